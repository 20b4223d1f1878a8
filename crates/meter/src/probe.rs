//! Steps of work that can be measured alone: whoever has them knows how they are done, and whoever measures
//! them does not.

/// What one go of a step moved.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Moved {
    /// Bytes that went in.
    pub input_bytes: u64,
    /// Bytes that came out.
    pub output_bytes: u64,
}

/// A step that was begun on a thread: each call is one go.
pub type Step = Box<dyn FnMut() -> Moved>;

/// A step of some work that can be measured alone.
pub struct Probe {
    /// What it does, such as `seal, AES-256-GCM`.
    pub name: String,
    /// What it does that to, such as `text`.
    pub sample: &'static str,
    /// Begins it on the thread that calls.
    pub begin: Box<dyn Fn() -> Step + Send + Sync>,
}

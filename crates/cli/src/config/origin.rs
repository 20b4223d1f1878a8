//! Where a value comes from: flags come before the environment, that before `config.toml`, and that before defaults.

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    /// This flag.
    Flag(&'static str),
    /// This variable.
    Environment(String),
    /// This key of `config.toml`, with those of the tables around it and dots between them.
    File(String),
    /// Nothing says anything.
    Default,
}

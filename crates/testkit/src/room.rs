//! A bound on the memory of a test's process.

use std::io;

use rustix::process::{Resource, Rlimit, setrlimit};

/// Has this process end by itself when what it allocates comes to more than so many bytes, whether it ever
/// touches them or not.
///
/// # Errors
/// If it may not have as much already.
pub fn limit_memory(bytes: u64) -> io::Result<()> {
    let limit = Rlimit { current: Some(bytes), maximum: Some(bytes) };
    Ok(setrlimit(Resource::Data, limit)?)
}

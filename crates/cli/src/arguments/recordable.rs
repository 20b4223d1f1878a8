//! What a snapshot's record takes of what was typed: more is refused before anything is read, since the
//! record is written last.

use holdall_engine::BackupOptions;
use holdall_format::limits::{
    BLOCK_MAX_PLAIN_BYTES, RECORD_MAX_EXCLUDES, RECORD_MAX_PATHS, RECORD_NAME_MAX_BYTES,
    RECORD_PATH_MAX_BYTES,
};

use crate::exit::{Exit, Refusal};

const FEWER_PATHS: &str = "name a folder that holds them, and exclude the rest with --exclude";
const FEWER_PATTERNS: &str =
    "a file .holdallignore in a folder takes any number of patterns, for everything below it";

/// Checks sources, patterns and host.
///
/// # Errors
/// [`Refusal`] for too many of them, or one that is too long.
pub(crate) fn check(options: &BackupOptions) -> Result<(), Refusal> {
    let paths: Vec<_> = options.sources.iter().map(|source| source.path.len()).collect();
    let patterns: Vec<_> = options.exclude_patterns.iter().map(String::len).collect();
    check_list(&paths, "path", RECORD_MAX_PATHS, FEWER_PATHS)?;
    check_list(&patterns, "exclude pattern", RECORD_MAX_EXCLUDES, FEWER_PATTERNS)?;
    if options.host.len() > RECORD_NAME_MAX_BYTES {
        return Err(too_long("host name", options.host.len(), RECORD_NAME_MAX_BYTES)
            .hint("give a shorter one with --host"));
    }
    let together: usize = paths.iter().chain(&patterns).sum();
    if together > BLOCK_MAX_PLAIN_BYTES {
        return Err(too_long("list of paths and patterns", together, BLOCK_MAX_PLAIN_BYTES)
            .hint(format!("{FEWER_PATHS}; {FEWER_PATTERNS}")));
    }
    Ok(())
}

/// Checks number and lengths of things.
fn check_list(lengths: &[usize], what: &str, most: usize, hint: &str) -> Result<(), Refusal> {
    if lengths.len() > most {
        let message = format!("{} {what}s; a snapshot has at most {most}", lengths.len());
        return Err(Refusal::new(Exit::Usage, message).hint(hint));
    }
    match lengths.iter().find(|length| **length > RECORD_PATH_MAX_BYTES) {
        Some(length) => Err(too_long(what, *length, RECORD_PATH_MAX_BYTES).hint(hint)),
        None => Ok(()),
    }
}

fn too_long(what: &str, bytes: usize, most: usize) -> Refusal {
    Refusal::new(Exit::Usage, format!("the {what} has {bytes} bytes; {most} are allowed"))
}

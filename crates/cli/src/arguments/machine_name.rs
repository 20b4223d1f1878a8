//! The name of a machine, as it is typed. What else is wrong with one, the server says.

use holdall_format::is_unseen;

/// Checks that all of a name is seen.
///
/// # Errors
/// In words, for one with a character that has no look of its own.
pub(crate) fn parse(name: &str) -> Result<String, String> {
    if name.trim() != name {
        return Err("a machine's name has no space at its beginning or end".to_owned());
    }
    match name.chars().find(|letter| is_unseen(*letter)) {
        None => Ok(name.to_owned()),
        Some(letter) => Err(format!(
            "a machine's name has no characters that cannot be seen, such as U+{:04X}",
            u32::from(letter)
        )),
    }
}

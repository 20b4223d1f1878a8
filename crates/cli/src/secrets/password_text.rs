//! The text of a password as a file or a command gives it: read whole or refused, and never told.

use std::io::{self, Read};

use holdall_format::OneLine;
use zeroize::Zeroizing;

use crate::exit::{Exit, Refusal};

/// The longest password that is read, in bytes.
pub(crate) const PASSWORD_MAX_BYTES: usize = 4096;

/// What of somebody's input is too long for a password.
const CUT: &str = "earlier versions took its first 4096 bytes: `head -c 4096` gives those";

/// Reads a password to its end. Bytes that are none of it, for they are too many, are not read.
///
/// # Errors
/// If it cannot be read.
pub(crate) fn read(from: impl Read) -> io::Result<Zeroizing<Vec<u8>>> {
    let mut bytes = Zeroizing::new(Vec::with_capacity(PASSWORD_MAX_BYTES + 1));
    from.take(PASSWORD_MAX_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The text of what was read, `what` from `place`, without the end of its last line.
///
/// # Errors
/// [`Refusal`] if it is too long, or no text.
pub(crate) fn text_of(bytes: &[u8], what: &str, place: &str) -> Result<Zeroizing<String>, Refusal> {
    if bytes.len() > PASSWORD_MAX_BYTES {
        return Err(too_long(what, place));
    }
    match str::from_utf8(bytes) {
        Ok(text) => Ok(Zeroizing::new(without_line_end(text).to_owned())),
        Err(_) => Err(not_utf8(&format!("the {what} from {place}"))),
    }
}

/// A password that is not too long.
///
/// # Errors
/// [`Refusal`] if it is.
pub(crate) fn checked(text: &str, what: &str, place: &str) -> Result<Zeroizing<String>, Refusal> {
    match text.len() <= PASSWORD_MAX_BYTES {
        true => Ok(Zeroizing::new(text.to_owned())),
        false => Err(too_long(what, place)),
    }
}

fn too_long(what: &str, place: &str) -> Refusal {
    let message = format!("the {what} from {place} is longer than {PASSWORD_MAX_BYTES} bytes");
    Refusal::new(Exit::Usage, message).hint(CUT)
}

/// The refusal of what is not UTF-8, which may be a secret.
pub(crate) fn not_utf8(what: &str) -> Refusal {
    Refusal::new(Exit::Usage, format!("{} is not UTF-8", OneLine(what)))
        .hint("UTF-16 begins with the bytes FF FE: save it as UTF-8 without a byte order mark")
}

/// Editors and commands end their only line; the line end is not part of the password.
fn without_line_end(text: &str) -> &str {
    let line = text.strip_suffix('\n');
    line.map_or(text, |line| line.strip_suffix('\r').unwrap_or(line))
}

/// What in a password nobody types, and that may be in it by mistake.
pub(crate) fn oddity(password: &str) -> Option<&'static str> {
    if password.starts_with('\u{feff}') {
        Some(
            "it begins with a byte order mark, which some editors write: save it as UTF-8 without one",
        )
    } else if password.contains('\0') {
        Some("it has a zero byte in it, as UTF-16 and binary files do")
    } else if password.contains('\r') {
        Some("it has a carriage return in it, as lines of Windows do")
    } else if password.ends_with('\n') {
        Some("it ends in an empty line: only one line end is left out")
    } else if password.contains('\n') {
        Some("it has more than one line, and all of them count")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &[u8]) -> Result<String, Refusal> {
        let read = read(bytes).unwrap();
        text_of(&read, "password", "there").map(|text| text.to_string())
    }

    #[test]
    fn one_line_end_is_left_out() {
        assert_eq!(text(b"se cret \r\n").unwrap(), "se cret ");
        assert_eq!(text(b"se cret").unwrap(), "se cret");
        assert_eq!(text(b"two\n\n").unwrap(), "two\n");
    }

    #[test]
    fn what_is_too_long_or_no_text_is_refused_and_not_told() {
        let longest = "x".repeat(PASSWORD_MAX_BYTES);
        assert_eq!(text(longest.as_bytes()).unwrap(), longest);
        let refusal = text(format!("{longest}y").as_bytes()).unwrap_err();
        assert!(refusal.message.contains("longer than 4096"), "{}", refusal.message);
        let refusal = text(b"secret\xff").unwrap_err();
        assert_eq!(refusal.exit, Exit::Usage);
        assert!(!refusal.message.contains("secret"), "{}", refusal.message);
    }

    #[test]
    fn what_nobody_types_is_found() {
        for odd in ["\u{feff}pw", "p\0w", "pw\r", "p\rw", "pw\n", "two\nlines"] {
            assert!(oddity(odd).is_some(), "{odd:?}");
        }
        assert_eq!(oddity("pässword with \t tab"), None);
    }
}

//! Names that people give, and names of repositories made from them.

use holdall_format::is_unseen;

use crate::ServerError;

/// Longest name of a machine, in bytes.
const NAME_MAX_BYTES: usize = 100;

/// A name of hexadecimal digits alone is shorter than this: longer ones are beginnings of ids.
const ID_MIN_DIGITS: usize = 12;

/// Checks a machine's name: it is shown in lists and logs, so it is one short line; and commands
/// name machines by it or by their ids, so it cannot be taken for an id.
pub(super) fn check_machine_name(name: &str) -> Result<(), ServerError> {
    if name.len() >= ID_MIN_DIGITS && name.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return Err(ServerError::refused(format!(
            "{name:?} looks like a machine's id: choose another name, with --name"
        )));
    }
    let fits = !name.trim().is_empty() && name.len() <= NAME_MAX_BYTES;
    match fits && !name.chars().any(is_unseen) {
        true => Ok(()),
        false => Err(ServerError::refused(format!(
            "a machine's name is one line of at most {NAME_MAX_BYTES} bytes, all of which can be seen"
        ))),
    }
}

/// A free name for a repository, made from a machine's name.
pub(super) fn repository_name(machine: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let letters = machine.chars().map(|letter| match letter.to_ascii_lowercase() {
        plain if plain.is_ascii_lowercase() || plain.is_ascii_digit() => plain,
        _ => '-',
    });
    let slug: String = letters.take(50).collect();
    let slug = match slug.trim_matches('-') {
        "" => "machine",
        slug => slug,
    };
    numbered(slug, is_taken)
}

/// A name, with a number behind it if it is taken.
pub(super) fn numbered(name: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let numbered = (2u64..).map(|number| format!("{name}-{number}"));
    let mut names = std::iter::once(name.to_owned()).chain(numbered);
    names.find(|name| !is_taken(name)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdall_protocol::wire::is_repository_name;
    use proptest::prelude::*;

    #[test]
    fn a_taken_name_is_numbered() {
        assert_eq!(repository_name("My Laptop", |_| false), "my-laptop");
        assert_eq!(repository_name("desk", |name| name == "desk"), "desk-2");
        assert_eq!(repository_name("ÄÖ", |_| false), "machine");
    }

    #[test]
    fn names_that_would_break_a_line_are_refused() {
        assert!(check_machine_name("Anna's laptop").is_ok());
        let unseen = ["a\u{202e}b", "a\u{2028}b", "\u{200b}", "a\u{61c}", "\u{3164}", "a\u{e0041}"];
        for name in [&["", "  ", "a\nb", "\u{1b}[2J", &"x".repeat(101)], &unseen[..]].concat() {
            assert!(check_machine_name(name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn names_that_could_be_ids_are_refused() {
        for name in ["0123456789ab", "ABCDEFabcdef", &"7".repeat(32)] {
            assert!(check_machine_name(name).is_err(), "{name:?}");
        }
        for name in ["deadbeef", "0123456789a", "0123456789abc-laptop"] {
            assert!(check_machine_name(name).is_ok(), "{name:?}");
        }
    }

    proptest! {
        #[test]
        fn any_name_gives_a_valid_repository_name(name: String) {
            prop_assert!(is_repository_name(&repository_name(&name, |_| false)));
        }
    }
}

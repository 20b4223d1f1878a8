//! Who holds a lock, as far as `/proc` tells.

use std::fmt::Write;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{major, minor};

/// A process that holds a lock on that file, for people: what it runs, and its number. Nothing where that cannot be
/// known, as of one in another namespace or on another computer.
#[must_use]
pub fn holder(file: &File) -> Option<String> {
    let about = file.metadata().ok()?;
    let (major, minor) = (major(about.dev()), minor(about.dev()));
    let wanted = format!("{major:02x}:{minor:02x}:{}", about.ino());
    let locks = fs::read_to_string("/proc/locks").ok()?;
    let own = std::process::id();
    let mut holders = locks.lines().filter_map(|line| process_of(line, &wanted));
    let process = holders.find(|process| *process != own)?;
    let mut said = String::new();
    let words = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    if let Some(command) = command_of(&words) {
        // Writing to a string does not fail.
        let _ = write!(said, "`{command}`, ");
    }
    let _ = write!(said, "process {process}");
    Some(said)
}

/// The process of a line such as `1: FLOCK  ADVISORY  READ 4711 08:01:131 0 EOF`; one that waits has an arrow.
fn process_of(line: &str, wanted: &str) -> Option<u32> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    match fields[..] {
        [_, "FLOCK", _, _, process, file, ..] if file == wanted => process.parse().ok(),
        _ => None,
    }
}

/// What a process was started as: its program's name, and its command if that is a plain word. Arguments may be
/// anything.
fn command_of(words: &[u8]) -> Option<String> {
    let mut words = words.split(|byte| *byte == 0).map(|word| std::str::from_utf8(word).ok());
    let is_plain = |word: &&str| {
        !word.is_empty() && word.chars().all(|one| one.is_ascii_alphanumeric() || one == '-')
    };
    let program = words.next()??;
    let program = Path::new(program).file_name()?.to_str().filter(is_plain)?;
    let command = words.next().flatten().filter(is_plain).filter(|word| !word.starts_with('-'));
    Some(command.map_or_else(|| program.to_owned(), |command| format!("{program} {command}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_holder_is_told_from_who_waits_and_from_other_files() {
        let wanted = "08:01:131";
        for (line, expected) in [
            ("1: FLOCK  ADVISORY  READ 4711 08:01:131 0 EOF", Some(4711)),
            ("1: -> FLOCK  ADVISORY  WRITE 4712 08:01:131 0 EOF", None),
            ("2: FLOCK  ADVISORY  READ 4711 08:01:132 0 EOF", None),
            ("3: POSIX  ADVISORY  READ 4711 08:01:131 0 EOF", None),
            ("", None),
        ] {
            assert_eq!(process_of(line, wanted), expected, "{line}");
        }
    }

    #[test]
    fn of_a_command_line_only_plain_words_are_shown() {
        for (line, expected) in [
            ("/usr/bin/holdall\0browse\0-r\0/srv\0", Some("holdall browse")),
            ("holdall\0--quiet\0browse\0", Some("holdall")),
            ("holdall\0a\u{202e}b\0", Some("holdall")),
            ("ev il\0x\0", None),
            ("", None),
        ] {
            assert_eq!(command_of(line.as_bytes()).as_deref(), expected, "{line}");
        }
    }

    #[test]
    fn nobody_is_named_of_a_file_that_nobody_else_locked() {
        let file = tempfile::tempfile().unwrap();
        file.lock().unwrap();
        assert_eq!(holder(&file), None);
    }
}

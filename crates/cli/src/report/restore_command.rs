//! The command that brings back what a listing shows.

use holdall_format::RecordHash;

/// The command that restores what is at `path`, as it is typed in a shell. `None` for a path that cannot be typed so.
pub(crate) fn restore_command(snapshot: &RecordHash, path: &[u8]) -> Option<String> {
    let path = std::str::from_utf8(path).ok().filter(|path| !path.contains(char::is_control))?;
    let is_plain = |letter: char| letter.is_alphanumeric() || "/._-+,@%:=".contains(letter);
    let word = format!("{:.10}:{path}", snapshot.to_string());
    Some(match word.chars().all(is_plain) {
        true => format!("holdall restore {word}"),
        false => format!("holdall restore '{}'", word.replace('\'', r"'\''")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_takes_the_path_as_it_is() {
        let of = |path: &[u8]| restore_command(&RecordHash::from_bytes([0xab; 32]), path);
        assert_eq!(of(b"/home/will.odt").unwrap(), "holdall restore ababababab:/home/will.odt");
        let quoted = of("/a b/it's $HOME".as_bytes()).unwrap();
        assert_eq!(quoted, r"holdall restore 'ababababab:/a b/it'\''s $HOME'");
        assert_eq!((of(b"/a\nb"), of(b"/a\xff")), (None, None));
    }
}

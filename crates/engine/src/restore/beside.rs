//! Names of files that are made beside what they are to replace, and what a restore that was killed left of them.

use holdall_crypto::{Entropy, SystemEntropy};
use holdall_sys::{FileKind, Name, Stat, TargetDir};

use super::unfinished;

/// Memory for a piece of a directory's names.
const LISTED_BYTES: usize = 1 << 20;

/// What a name beside another begins and ends with; between them are [`BESIDE_DIGITS`] digits.
const BESIDE: (&str, &str) = (".holdall-", ".partial");
const BESIDE_DIGITS: usize = 16;

/// A name that nothing has.
pub(super) fn name() -> String {
    let mut random = [0; 8];
    SystemEntropy.fill(&mut random);
    let (front, end) = BESIDE;
    format!("{front}{:0BESIDE_DIGITS$x}{end}", u64::from_le_bytes(random))
}

/// Removes what a restore that was killed left beside what it was to replace: a file with such a name that was
/// never finished, or one more name of a file that has others. Whatever else has such a name stays.
pub(super) fn remove_left(dir: &TargetDir) {
    let mut left: Vec<Box<[u8]>> = Vec::new();
    let listed = dir.as_dir().entries_in_pieces(LISTED_BYTES, |piece| {
        let names = piece.iter().map(|entry| entry.name().as_bytes());
        left.extend(names.filter(|name| is_beside(name)).map(Into::into));
        Ok(())
    });
    // One that cannot be listed, or removed, is in nobody's way.
    let _ = listed;
    for name in left.iter().filter_map(|name| Name::new(name).ok()) {
        let is_ours = |there: Stat| {
            unfinished::has_mode(&there) || (there.kind == FileKind::File && there.nlink > 1)
        };
        if dir.as_dir().stat(name).is_ok_and(is_ours) {
            let _ = dir.unlink(name);
        }
    }
}

/// Whether it is such a name.
pub(super) fn is_beside(name: &[u8]) -> bool {
    let digits = name.strip_prefix(BESIDE.0.as_bytes());
    let digits = digits.and_then(|rest| rest.strip_suffix(BESIDE.1.as_bytes()));
    let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    digits.is_some_and(|digits| digits.len() == BESIDE_DIGITS && digits.iter().all(is_digit))
}

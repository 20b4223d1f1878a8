//! How far a scrub in rounds has come, as it is written down.
//!
//! ```text
//! scrubbed: | holdall scrub, version 1 | begun NS | before NS, if any | read PACK, if any
//!           | damaged PACK REASON ... |, a line each
//! ```

use std::collections::BTreeMap;

use holdall_format::PackName;

const FRONT: &str = "holdall scrub, version 1";
/// What the name of a line stands for that is about blocks in no pack.
pub(crate) const IN_NO_PACK: &str = "tails";

/// How far a round has come. Times are in nanoseconds since 1970 UTC.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ScrubRound {
    /// When it began.
    pub begun_ns: i64,
    /// When the round before it began: everything that was stored then was read since. `None` while
    /// the first one lasts.
    pub before_ns: Option<i64>,
    /// What is damaged, and why, by the pack.
    pub damaged: BTreeMap<String, String>,
    /// The pack that was read last.
    pub(crate) read: Option<PackName>,
}

impl ScrubRound {
    /// Whether a repair may repair what is damaged there, or something else is to be done.
    pub fn is_for_repair(what: &str) -> bool {
        what == IN_NO_PACK || what.parse::<PackName>().is_ok()
    }

    /// The first round.
    pub(crate) fn begin(begun_ns: i64) -> Self {
        Self { begun_ns, ..Self::default() }
    }

    /// The next round, which begins now.
    pub(crate) fn next(self, begun_ns: i64) -> Self {
        Self { begun_ns, before_ns: Some(self.begun_ns), damaged: self.damaged, read: None }
    }

    /// The bytes of the file.
    pub(crate) fn encode(&self) -> String {
        let mut text = format!("{FRONT}\nbegun {}\n", self.begun_ns);
        self.before_ns.iter().for_each(|before_ns| text += &format!("before {before_ns}\n"));
        self.read.iter().for_each(|pack| text += &format!("read {pack}\n"));
        for (what, reason) in &self.damaged {
            text += &format!("damaged {what} {}\n", reason.replace('\n', " "));
        }
        text
    }

    /// Reads the file; nothing if it is not one.
    pub(crate) fn decode(text: &str) -> Option<Self> {
        let mut lines = text.strip_prefix(FRONT)?.lines().skip(1);
        let mut round = Self::begin(lines.next()?.strip_prefix("begun ")?.parse().ok()?);
        for line in lines {
            match line.split_once(' ')? {
                ("before", before_ns) => round.before_ns = Some(before_ns.parse().ok()?),
                ("read", pack) => round.read = Some(pack.parse().ok()?),
                ("damaged", damage) => {
                    let (what, reason) = damage.split_once(' ')?;
                    round.damaged.insert(what.to_owned(), reason.to_owned());
                }
                _ => return None,
            }
        }
        Some(round)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(begun_ns: i64, before_ns: Option<i64>, pack: Option<[u8; 32]>, reason in "[ -~]{1,40}") {
            let read = pack.map(PackName::from_bytes);
            let damaged = BTreeMap::from([("tails".to_owned(), reason)]);
            let round = ScrubRound { begun_ns, before_ns, damaged, read };
            prop_assert_eq!(ScrubRound::decode(&round.encode()), Some(round));
        }

        #[test]
        fn anything_else_begins_anew(text in ".{0,100}") {
            let _ = ScrubRound::decode(&format!("{FRONT}\n{text}"));
            prop_assert_eq!(ScrubRound::decode(&text), None);
        }
    }
}

//! A scrub's answer: lines of JSON, because it may take hours and be watched.
//!
//! ```text
//! {"progress":{"bytes_done":1,"bytes_total":2}}             any number
//! {"damaged":{"kind":"pack","pack":"...","reason":"..."}}   one for each damage
//! (a blank line)                                             any number, to show life
//! {"done":{"packs":1,...}}  or  {"failed":{"error":...}}    once, at the end
//! ```

use bytes::Bytes;
use holdall_format::wire::Reader;
use holdall_format::{BlockName, FormatError, ObjectId, PackName, RecordHash};
use serde::{Deserialize, Serialize};

use super::control::{from_json, to_json};
use super::error::{Body, WireError, body_of};
use super::text::Text;
use super::{MAX_CONTROL_BYTES, MAX_LINE_BYTES};
use crate::{ScrubDamage, ScrubProgress, ScrubReport};

/// Most damages that a client keeps of one scrub.
const MAX_DAMAGES: usize = 1 << 20;
/// Longest name or reason of a damage that is sent, in characters.
const MAX_TEXT_CHARACTERS: usize = 1000;
const WHAT: &str = "scrub answer";
const _: () = assert!(MAX_LINE_BYTES <= MAX_CONTROL_BYTES);

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Damage {
    Pack { pack: String, reason: String },
    Block { block: Text<BlockName>, pack: Option<Text<PackName>>, reason: String },
    Record { record: String, reason: String },
    Missing { object: Text<ObjectId>, record: Text<RecordHash> },
}

#[derive(Debug, Serialize, Deserialize)]
struct Totals {
    packs: u64,
    blocks: u64,
    objects: u64,
    snapshots: u64,
    bytes: u64,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Line {
    Progress { bytes_done: u64, bytes_total: u64 },
    Damaged(Damage),
    Done(Totals),
    Failed(Body),
}

/// Writes the lines of a scrub's answer.
#[derive(Debug)]
pub struct ScrubLine;

impl ScrubLine {
    /// How far it is.
    pub fn progress(progress: ScrubProgress) -> Bytes {
        let ScrubProgress { bytes_done, bytes_total } = progress;
        line(&Line::Progress { bytes_done, bytes_total })
    }

    /// One damage.
    pub fn damaged(damage: &ScrubDamage) -> Bytes {
        line(&Line::Damaged(damage.into()))
    }

    /// The end of a scrub that ran; the damages go before it, a line each.
    pub fn done(report: &ScrubReport) -> Bytes {
        let ScrubReport { packs, blocks, objects, snapshots, bytes, .. } = *report;
        line(&Line::Done(Totals { packs, blocks, objects, snapshots, bytes }))
    }

    /// The end of a scrub that could not run.
    pub fn failed(error: WireError) -> Bytes {
        line(&Line::Failed(body_of(error)))
    }
}

fn line(value: &Line) -> Bytes {
    let mut line = to_json(value).to_vec();
    line.push(b'\n');
    line.into()
}

/// Gathers the lines of a scrub's answer, in pieces as they arrive.
///
/// Untrusted: keeps at most one line of [`MAX_LINE_BYTES`] and about a million damages.
#[derive(Debug, Default)]
pub struct ScrubGathering {
    partial: Vec<u8>,
    report: ScrubReport,
    end: Option<Result<(), WireError>>,
}

impl ScrubGathering {
    /// Takes the next bytes and tells of progress.
    ///
    /// # Errors
    /// [`FormatError`] for a line that is too long or of another form.
    pub fn push(
        &mut self,
        bytes: &[u8],
        progress: &mut dyn FnMut(ScrubProgress),
    ) -> Result<(), FormatError> {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            if self.partial.len().saturating_add(piece.len()) > MAX_LINE_BYTES {
                return Err(Reader::new(WHAT, piece).invalid("line", "over its limit"));
            }
            self.partial.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                let line = std::mem::take(&mut self.partial);
                if !line.trim_ascii().is_empty() {
                    self.take(from_json(WHAT, &line)?, progress)?;
                }
            }
        }
        Ok(())
    }

    fn take(
        &mut self,
        line: Line,
        progress: &mut dyn FnMut(ScrubProgress),
    ) -> Result<(), FormatError> {
        match line {
            Line::Progress { bytes_done, bytes_total } => {
                progress(ScrubProgress { bytes_done, bytes_total });
            }
            Line::Damaged(_) if self.report.damaged.len() == MAX_DAMAGES => {
                return Err(Reader::new(WHAT, &[]).invalid("damages", "more than their limit"));
            }
            Line::Damaged(damage) => self.report.damaged.push(damage.into()),
            Line::Failed(body) => self.end = Some(Err(body.into())),
            Line::Done(Totals { packs, blocks, objects, snapshots, bytes }) => {
                let damaged = std::mem::take(&mut self.report.damaged);
                self.report = ScrubReport { packs, blocks, objects, snapshots, bytes, damaged };
                self.end = Some(Ok(()));
            }
        }
        Ok(())
    }

    /// What the scrub found; `None` if the answer was cut before its end.
    ///
    /// # Errors
    /// What kept the scrub from running.
    pub fn finish(self) -> Option<Result<ScrubReport, WireError>> {
        self.end.map(|end| end.map(|()| self.report))
    }
}

/// A damage in JSON.
pub(super) fn encode_damage(damage: &ScrubDamage) -> Bytes {
    to_json(&Damage::from(damage))
}

/// Reads a damage.
pub(super) fn decode_damage(body: &[u8]) -> Result<ScrubDamage, FormatError> {
    from_json::<Damage>("damage", body).map(ScrubDamage::from)
}

impl From<&ScrubDamage> for Damage {
    fn from(damage: &ScrubDamage) -> Self {
        let cut = |text: &str| text.chars().take(MAX_TEXT_CHARACTERS).collect();
        match damage {
            ScrubDamage::Pack { pack, reason } => {
                Self::Pack { pack: cut(pack), reason: cut(reason) }
            }
            ScrubDamage::Block { block, pack, reason } => {
                Self::Block { block: Text(*block), pack: pack.map(Text), reason: cut(reason) }
            }
            ScrubDamage::Record { record, reason } => {
                Self::Record { record: cut(record), reason: cut(reason) }
            }
            ScrubDamage::Missing { object, record } => {
                Self::Missing { object: Text(*object), record: Text(*record) }
            }
        }
    }
}

impl From<Damage> for ScrubDamage {
    fn from(damage: Damage) -> Self {
        match damage {
            Damage::Pack { pack, reason } => Self::Pack { pack, reason },
            Damage::Block { block, pack, reason } => {
                Self::Block { block: block.0, pack: pack.map(|Text(pack)| pack), reason }
            }
            Damage::Record { record, reason } => Self::Record { record, reason },
            Damage::Missing { object, record } => {
                Self::Missing { object: object.0, record: record.0 }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RepositoryError;
    use proptest::prelude::*;

    fn report() -> ScrubReport {
        let (pack, reason) = ("p".to_owned(), "torn".to_owned());
        let object = ObjectId::from_bytes([1; 32]);
        let record = RecordHash::from_bytes([2; 32]);
        let block = BlockName::from_bytes([3; 32]);
        ScrubReport {
            packs: 1,
            blocks: 2,
            objects: 3,
            snapshots: 4,
            bytes: 5,
            damaged: vec![
                ScrubDamage::Pack { pack, reason: reason.clone() },
                ScrubDamage::Block { block, pack: None, reason: reason.clone() },
                ScrubDamage::Record { record: "r".into(), reason },
                ScrubDamage::Missing { object, record },
            ],
        }
    }

    fn answer() -> Vec<u8> {
        let report = report();
        let progress = ScrubLine::progress(ScrubProgress { bytes_done: 1, bytes_total: 2 });
        let damaged = report.damaged.iter().map(ScrubLine::damaged);
        let blank = Bytes::from_static(b"\n");
        let lines: Vec<_> = [progress, blank].into_iter().chain(damaged).collect();
        [lines.concat(), ScrubLine::done(&report).to_vec()].concat()
    }

    #[test]
    fn an_answer_reads_back_however_it_is_cut() {
        for piece_bytes in [1, 7, 10_000] {
            let mut gathering = ScrubGathering::default();
            let mut seen = Vec::new();
            for piece in answer().chunks(piece_bytes) {
                gathering.push(piece, &mut |progress| seen.push(progress)).unwrap();
            }
            assert_eq!(seen, [ScrubProgress { bytes_done: 1, bytes_total: 2 }]);
            assert_eq!(gathering.finish().unwrap().unwrap(), report());
        }
    }

    #[test]
    fn an_answer_that_ends_early_is_told_from_one_that_failed() {
        assert!(ScrubGathering::default().finish().is_none());
        let mut failed = ScrubGathering::default();
        let place = "there".to_owned();
        let line = ScrubLine::failed(RepositoryError::NoRepository { place }.into());
        failed.push(&line, &mut |_| ()).unwrap();
        assert!(matches!(
            failed.finish(),
            Some(Err(WireError::Repository(RepositoryError::NoRepository { .. })))
        ));
    }

    #[test]
    fn a_line_without_end_is_refused() {
        let mut gathering = ScrubGathering::default();
        gathering.push(&vec![b' '; MAX_LINE_BYTES], &mut |_| ()).unwrap();
        assert!(gathering.push(b" ", &mut |_| ()).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_lines_or_an_error(bytes: Vec<u8>, at: usize, with: u8) {
            let mut mutated = answer();
            let at = at % mutated.len();
            mutated[at] = with;
            for bytes in [bytes, mutated] {
                let mut gathering = ScrubGathering::default();
                let _ = gathering.push(&bytes, &mut |_| ());
                let _ = gathering.finish();
                let _ = decode_damage(&bytes);
            }
        }
    }
}

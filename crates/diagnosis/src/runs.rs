//! Notes of how the backups and checks of this computer ended, by which `holdall status` finds the last good backup.
//!
//! A note is written when a run starts, and again when it ends. One without an end is of a run that goes on or was killed.
//! It is a line of JSON and a line with the BLAKE3 hash of the first one. A note that does not fit its hash is counted and
//! left out, so damage costs one note. It holds no secrets.

use std::collections::BTreeSet;

use holdall_meter::counted;
use serde::{Deserialize, Serialize};

/// More than any note has.
pub const NOTE_MAX_BYTES: u64 = 64 << 10;
/// So many notes are kept, beside those that say when there was a good backup last.
pub const MOST_NOTES: usize = 200;

/// Later versions only add fields.
const VERSION: u32 = 1;
/// So many sentences about what could not be read are kept, and so many letters of each.
const MOST_SENTENCES: usize = 8;
const MOST_LETTERS: usize = 400;
/// A run may end this much later than now by a clock that is being set right.
const CLOCK_SLACK_NS: i64 = 60 * 1_000_000_000;
/// What failed last so long ago is not tried any more: other sources are backed up instead.
const FAILING_NS: i64 = 7 * 86_400 * 1_000_000_000;
/// Done.
const DONE: u8 = 0;
/// Done, but some sources could not be read.
const INCOMPLETE: u8 = 3;

/// What kind of run it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunKind {
    /// A backup.
    Backup,
    /// A check.
    Check,
    /// A repository was opened with its recovery kit alone.
    KitTrial,
}

/// A run of the past, or one that goes on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunNote {
    version: u32,
    /// What kind of run it was.
    pub kind: RunKind,
    /// Where it went: the path of a directory, or the id of a repository on a server.
    pub to: String,
    /// The same as people write it.
    pub place: String,
    /// What was backed up.
    #[serde(default)]
    pub sources: Vec<String>,
    /// The process, which shows whether the run still goes on.
    #[serde(default)]
    pub process: Option<String>,
    /// When it started, in nanoseconds since 1970 UTC.
    pub started_ns: i64,
    /// How it ended, once it did.
    #[serde(default)]
    pub end: Option<RunEnd>,
}

/// How a run ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunEnd {
    /// When, in nanoseconds since 1970 UTC.
    pub ended_ns: i64,
    /// Its exit code.
    pub exit_code: u8,
    /// Why it did not do all that it should, in words.
    pub cause: Option<String>,
    /// The id of the snapshot that was committed, if one was.
    pub snapshot: Option<String>,
    /// Files, folders and the like in it.
    pub items: u64,
    /// Their bytes.
    pub bytes: u64,
    /// What could not be read, or needs a look.
    pub problems: u64,
    /// The first of these, a sentence each.
    pub first_problems: Vec<String>,
    /// What was left out without a rule that says so, a sentence each.
    pub left_out: Vec<String>,
}

impl RunNote {
    /// The note of a run that starts.
    pub fn starting(kind: RunKind, to: String, place: String, started_ns: i64) -> Self {
        Self {
            version: VERSION,
            kind,
            to,
            place,
            sources: Vec::new(),
            process: None,
            started_ns,
            end: None,
        }
    }

    /// The note once the run has ended; what would make it too long is cut.
    #[must_use]
    pub fn ended(self, end: RunEnd) -> Self {
        Self { end: Some(end.bounded()), ..self }
    }

    /// Reads a note; `None` if it is damaged.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (line, hash) = std::str::from_utf8(bytes).ok()?.split_once('\n')?;
        (hash.trim_end() == blake3::hash(line.as_bytes()).to_hex().as_str()).then_some(())?;
        serde_json::from_str(line).ok()
    }

    /// The note as it is written.
    ///
    /// # Errors
    /// If it has no form as JSON.
    pub fn encode(&self) -> serde_json::Result<Vec<u8>> {
        let line = serde_json::to_string(self)?;
        let hash = blake3::hash(line.as_bytes()).to_hex();
        Ok(format!("{line}\n{hash}\n").into_bytes())
    }

    /// Whether it is a backup that committed a snapshot without damage, of all that could be read.
    pub fn is_good(&self) -> bool {
        let is_good =
            |end: &RunEnd| end.snapshot.is_some() && matches!(end.exit_code, DONE | INCOMPLETE);
        self.kind == RunKind::Backup && self.end.as_ref().is_some_and(is_good)
    }

    /// Whether it ended otherwise than it should, or not at all. Of one that goes on, the caller knows.
    pub fn is_failure(&self) -> bool {
        self.end.as_ref().is_none_or(|end| end.exit_code != DONE)
    }

    /// When it ended; when it started, if that is all that is known. In nanoseconds since 1970 UTC.
    pub fn last_ns(&self) -> i64 {
        self.end.as_ref().map_or(self.started_ns, |end| end.ended_ns)
    }
}

impl RunEnd {
    /// Cuts what would make the note too long.
    fn bounded(mut self) -> Self {
        let cut = |text: &mut String| {
            if let Some((at, _)) = text.char_indices().nth(MOST_LETTERS) {
                text.truncate(at);
                text.push('…');
            }
        };
        for sentences in [&mut self.first_problems, &mut self.left_out] {
            sentences.truncate(MOST_SENTENCES);
            sentences.iter_mut().for_each(cut);
        }
        self.cause.iter_mut().for_each(cut);
        self
    }
}

/// The notes of a computer.
#[derive(Debug, Clone, Default)]
pub struct Runs {
    /// The oldest first, each with the name of its file.
    notes: Vec<(String, RunNote)>,
}

impl Runs {
    /// From the notes that can be read, each with the name of its file. Those that started later than `now_ns` were noted
    /// by a clock that was ahead, and count as the oldest.
    pub fn new(mut notes: Vec<(String, RunNote)>, now_ns: i64) -> Self {
        notes.sort_by_key(|(_, note)| (is_past(note.started_ns, now_ns), note.started_ns));
        Self { notes }
    }

    /// Those of a kind that went to a place, the newest first, with the names of their files.
    pub fn to<'a>(
        &'a self,
        to: &'a str,
        kind: RunKind,
    ) -> impl Iterator<Item = (&'a str, &'a RunNote)> {
        let all = self.notes.iter().rev().map(|(name, note)| (&**name, note));
        all.filter(move |(_, note)| note.kind == kind && note.to == to)
    }

    /// The newest of all, wherever it went.
    pub fn newest(&self) -> Option<&RunNote> {
        self.notes.last().map(|(_, note)| note)
    }

    /// The newest good backup to a place. One that ended later than `now_ns` was noted by a clock that was ahead, and says
    /// nothing about its age.
    pub fn last_good<'a>(&'a self, to: &'a str, now_ns: i64) -> Option<&'a RunNote> {
        self.backups_to(to).find(|note| note.is_good() && is_past(note.last_ns(), now_ns))
    }

    /// What was backed up to a place before and fails now, though other backups there may be good: of each set of sources
    /// whose newest backup failed within a week, that one, and the newest good one.
    pub fn failing<'a>(&'a self, to: &'a str, now_ns: i64) -> Vec<(&'a RunNote, &'a RunNote)> {
        let mut seen = BTreeSet::new();
        let newest = self.backups_to(to).filter(|note| seen.insert(&note.sources));
        let is_failing = |note: &&RunNote| {
            note.end.is_some()
                && !note.is_good()
                && now_ns.saturating_sub(note.last_ns()) < FAILING_NS
        };
        let with_good = |failed: &'a RunNote| {
            let mut of_those = self.backups_to(to).filter(|note| note.sources == failed.sources);
            let good = of_those.find(|note| note.is_good() && is_past(note.last_ns(), now_ns));
            good.map(|good| (failed, good))
        };
        newest.filter(is_failing).filter_map(with_good).collect()
    }

    fn backups_to<'a>(&'a self, to: &'a str) -> impl Iterator<Item = &'a RunNote> {
        self.to(to, RunKind::Backup).map(|(_, note)| note)
    }

    /// The files of the notes that are no longer needed: all but the newest, and but the newest good backup of each place
    /// and sources, and the newest check and the newest trial of the kit of each place.
    pub fn surplus(&self) -> Vec<&str> {
        let many = self.notes.len().saturating_sub(MOST_NOTES);
        let (old, _) = self.notes.split_at(many);
        let is_newest = |(name, note): &(String, RunNote)| {
            let mut same = self.to(&note.to, note.kind);
            let is_kept = |other: &RunNote| {
                note.kind != RunKind::Backup || (other.is_good() && other.sources == note.sources)
            };
            same.find(|(_, other)| is_kept(other)).is_some_and(|(newest, _)| newest == name)
        };
        old.iter().filter(|one| !is_newest(one)).map(|(name, _)| &**name).collect()
    }
}

/// Whether a moment is not in the future, but for what a clock may be off that is being set right.
pub fn is_past(then_ns: i64, now_ns: i64) -> bool {
    then_ns <= now_ns.saturating_add(CLOCK_SLACK_NS)
}

/// How long ago something was, as people say it: `5 minutes ago`.
pub fn ago(seconds: u64) -> String {
    let (number, unit) = match seconds {
        0..60 => return "just now".to_owned(),
        60..3600 => (seconds / 60, "minute"),
        3600..172_800 => (seconds / 3600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    format!("{} ago", counted(number, unit))
}

/// When a unit starts next, in nanoseconds since 1970 UTC, by what `systemctl list-timers --output=json` says. `None` if it
/// says nothing of that unit, or none is planned.
pub fn next_start_ns(json: &[u8], unit: &str) -> Option<i64> {
    let timers: Vec<serde_json::Value> = serde_json::from_slice(json).ok()?;
    let timer = timers.iter().find(|timer| timer["unit"] == unit)?;
    let microseconds = timer["next"].as_i64().filter(|&next| next > 0)?;
    microseconds.checked_mul(1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_NS: i64 = 1_900_000_000_000_000_000;

    fn note(started_ns: i64, exit_code: Option<u8>) -> RunNote {
        let end = |exit_code| RunEnd {
            ended_ns: started_ns + 5,
            exit_code,
            snapshot: matches!(exit_code, 0 | 3 | 20).then(|| "1f2e".to_owned()),
            ..RunEnd::default()
        };
        let starting = RunNote::starting(RunKind::Backup, "id".into(), "/x".into(), started_ns);
        RunNote { end: exit_code.map(end), ..starting }
    }

    fn runs(notes: impl IntoIterator<Item = RunNote>) -> Runs {
        let named = notes.into_iter().map(|note| (note.started_ns.to_string(), note));
        Runs::new(named.collect(), NOW_NS)
    }

    #[test]
    fn a_note_reads_back_and_a_damaged_one_is_none() {
        let note = note(NOW_NS, Some(3));
        let bytes = note.encode().unwrap();
        assert_eq!(RunNote::decode(&bytes), Some(note));
        for at in 0..bytes.len() - 1 {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert_eq!(RunNote::decode(&damaged), None, "{at}");
            assert_eq!(RunNote::decode(&bytes[..at]), None, "{at}");
        }
    }

    #[test]
    fn a_note_of_a_later_version_is_read_as_far_as_it_is_known() {
        let line =
            r#"{"version":9,"kind":"backup","to":"id","place":"/x","started_ns":7,"mood":"good"}"#;
        let bytes = format!("{line}\n{}\n", blake3::hash(line.as_bytes()).to_hex());
        assert_eq!(RunNote::decode(bytes.as_bytes()).unwrap().started_ns, 7);
    }

    #[test]
    fn the_last_good_backup_is_one_with_a_snapshot_and_no_damage_that_is_not_in_the_future() {
        let day_ns = 86_400_000_000_000;
        let all = runs([
            note(NOW_NS - 4 * day_ns, Some(0)),
            note(NOW_NS - 3 * day_ns, Some(3)),
            note(NOW_NS - 2 * day_ns, Some(14)),
            note(NOW_NS - day_ns, Some(20)),
            note(NOW_NS - 5, None),
            note(NOW_NS + day_ns, Some(0)),
        ]);
        assert_eq!(all.last_good("id", NOW_NS).unwrap().started_ns, NOW_NS - 3 * day_ns);
        assert_eq!(all.last_good("other", NOW_NS), None);
        let newest = all.newest().unwrap();
        assert_eq!(Some(newest), all.to("id", RunKind::Backup).next().map(|(_, note)| note));
        assert_eq!(newest.started_ns, NOW_NS - 5, "a clock that was ahead");
    }

    #[test]
    fn old_notes_go_and_the_last_good_one_stays_however_old_it_is() {
        let failures = (2..=MOST_NOTES as i64 + 9).map(|at| note(at, Some(14)));
        let all = runs([note(0, Some(0)), note(1, Some(0))].into_iter().chain(failures));
        let surplus = all.surplus();
        assert_eq!(surplus.len(), 9);
        assert!(surplus.contains(&"0") && !surplus.contains(&"1") && surplus.contains(&"2"));
        assert!(runs([note(0, Some(14))]).surplus().is_empty());
    }

    #[test]
    fn notes_by_a_clock_that_was_ahead_go_first() {
        let ahead = (1..=9).map(|at| note(NOW_NS * 2 + at, Some(14)));
        let all = runs(ahead.chain((0..MOST_NOTES as i64).map(|at| note(at, Some(14)))));
        assert_eq!(all.surplus().len(), 9);
        assert!(all.surplus().iter().all(|name| name.starts_with('3')));
    }

    #[test]
    fn what_fails_shows_beside_what_else_is_good() {
        let day_ns = 86_400_000_000_000;
        let of = |sources: &str, days: i64, code| RunNote {
            sources: vec![sources.to_owned()],
            ..note(NOW_NS - days * day_ns, Some(code))
        };
        let all = runs([
            of("/gone", 30, 0),
            of("/gone", 20, 1),
            of("/home", 9, 0),
            of("/typo", 2, 1),
            of("/home", 1, 14),
            of("/small", 0, 0),
        ]);
        let failing = all.failing("id", NOW_NS);
        let told = failing.iter().map(|(failed, good)| (failed.started_ns, good.started_ns));
        assert_eq!(told.collect::<Vec<_>>(), [(NOW_NS - day_ns, NOW_NS - 9 * day_ns)]);
        assert_eq!(all.last_good("id", NOW_NS).unwrap().sources, ["/small"]);
        let many = (1..=MOST_NOTES as i64).map(|at| note(NOW_NS - at, Some(14)));
        assert!(runs([of("/home", 9, 0)].into_iter().chain(many)).surplus().is_empty());
    }

    #[test]
    fn an_end_is_bounded() {
        let long = "ä".repeat(10_000);
        let end = RunEnd {
            cause: Some(long.clone()),
            first_problems: vec![long.clone(); 100],
            left_out: vec![long; 100],
            ..RunEnd::default()
        };
        let note = note(0, None).ended(end);
        assert!((note.encode().unwrap().len() as u64) < NOTE_MAX_BYTES);
    }

    #[test]
    fn ages_read_well() {
        let all = [59, 60, 3599, 7200, 172_799, 172_800].map(ago);
        let expected = [
            "just now",
            "1 minute ago",
            "59 minutes ago",
            "2 hours ago",
            "47 hours ago",
            "2 days ago",
        ];
        assert_eq!(all, expected);
    }

    #[test]
    fn the_next_start_is_that_of_the_unit() {
        let json = br#"[{"next":1764460800000000,"left":5,"last":null,"unit":"a.timer","activates":"a.service"},
            {"next":null,"unit":"b.timer"}]"#;
        assert_eq!(next_start_ns(json, "a.timer"), Some(1_764_460_800_000_000_000));
        for (text, unit) in [(&json[..], "b.timer"), (json, "c.timer"), (b"?", "a.timer")] {
            assert_eq!(next_start_ns(text, unit), None);
        }
    }
}

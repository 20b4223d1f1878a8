//! Audits: whether the keeper still has what it acknowledged, asked a little at a time.
//!
//! A keeper that lost a pack, or deleted it for want of room, answers everything as before until
//! somebody restores. So a client remembers the names of some of the blocks that it put, and asks for a
//! random kilobyte of each every six days, with the proof that it belongs to a block of that name: about
//! two kilobytes for each remembered block, which stands for eight. One in [`WHOLE_EVERY`] is also read as
//! a whole and opened. With a backup a day, what is lost is found within a week.
//!
//! A block that is not shown need not be lost: what nothing needed any more may have been pruned, and a
//! repair may have stored its objects in other blocks. So it is fetched by an object in it; and what is
//! not to be had in any way is looked for in the trees of all snapshots. Only what one of them needs is
//! told, with the paths that need it.

mod remembered;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use holdall_crypto::{Entropy, Opener, SystemEntropy};
use holdall_format::{SessionId, proves_slice, slices_in};
use holdall_protocol::{BlockProbe, MAX_PROBES, RepositoryError};

use remembered::{ROUND_NS, Remembered, Round};
pub(crate) use remembered::{Remembering, count_remembered};

use crate::blocks::open_node_cache;
use crate::error::is_damage;
use crate::restore::ChunkSource;
use crate::verify::{Check, GoodIds, check, walk_all};
use crate::{DamagedPath, EngineError, Listed, Run, UnlockedRepository, VerifyReport};

/// Of so many blocks that are asked for, one on average is read as a whole.
const WHOLE_EVERY: u64 = 512;
/// A backup is not held up for longer by questions; what is left is asked for by the next.
const MOST_TIME: Duration = Duration::from_secs(5);
/// The same where that was not enough before.
const MOST_TIME_BEHIND: Duration = Duration::from_secs(60);
/// A backup a day finds about as much to ask for as comes due in a day; whoever finds more is behind.
const BEHIND_NS: i128 = 36 * 3600 * 1_000_000_000;
/// What comes due in so long may be left for the next backup: then all is still asked for within a week.
const MAY_BE_LEFT_NS: i128 = 24 * 3600 * 1_000_000_000;
/// Runs in a row that may end without an answer before that is told.
const MOST_CUT_OFF: u64 = 4;
/// Copies of an object that are tried.
const COPIES_TRIED: u32 = 4;

/// What an audit asked for and found.
#[derive(Debug, Clone, Default)]
pub struct AuditReport {
    /// Blocks of which a slice was asked for.
    pub probed: u64,
    /// Blocks that were read as a whole.
    pub read: u64,
    /// Blocks that the repository does not have any more, and no snapshot needs.
    pub gone: u64,
    /// Paths that need what is lost, the first thousand.
    pub lost: Vec<DamagedPath>,
    /// How many those are.
    pub lost_count: u64,
    /// How long ago what is next was asked for, where there was no time for it, and that is more than a week.
    pub waiting_for: Option<Duration>,
}

/// Asks for what is due of this machine's remembered blocks at `now_ns`, nanoseconds since 1970 UTC:
/// in six days for all of them. Where it is to be looked who needs what is not there, `list` says which snapshots
/// there are, and checks that those are all that are known to be there: a keeper that lost something may well
/// say that nothing is left which would need it.
///
/// # Errors
/// What keeps it from asking, [`RepositoryError::Refused`] from a keeper that does not prove anything
/// among it; what `list` fails with; [`EngineError::Interrupted`].
pub fn audit(
    access: &UnlockedRepository,
    now_ns: i64,
    run: &Run,
    list: &dyn Fn() -> Result<Listed, EngineError>,
) -> Result<AuditReport, EngineError> {
    let Some(mut round) = Round::open(&access.cache, now_ns) else {
        return Ok(AuditReport::default());
    };
    let due = round.due(now_ns);
    if due == 0 {
        return Ok(AuditReport::default());
    }
    let cut_off = round.begin();
    let audited = access.reading(|session| {
        let opener = ChunkSource::opener(access);
        let (report, suspects) = Default::default();
        let mut audit = Audit { access, session, run, list, opener, report, suspects };
        let time = most_time(round.lag_ns(now_ns));
        let asked = audit.ask(&mut round, due, time)?;
        audit.settle(&mut round)?;
        round.asked(asked, now_ns);
        audit.report.waiting_for = waiting_for(round.lag_ns(now_ns));
        Ok(audit.report)
    });
    match audited {
        // A keeper that is there for everything else, and away whenever this is asked.
        Err(EngineError::Repository(error @ RepositoryError::Unreachable { .. }))
            if cut_off >= MOST_CUT_OFF =>
        {
            let reason = format!("it failed in {} runs in a row: {error}", cut_off + 1);
            Err(EngineError::damaged("the proof that what was backed up is there", reason))
        }
        audited => audited,
    }
}

/// How long questions may take, where what is due came due in so long.
fn most_time(lag_ns: i128) -> Duration {
    if lag_ns > BEHIND_NS { MOST_TIME_BEHIND } else { MOST_TIME }
}

/// How long ago what is left was asked for, if that is more than a week, where it came due in so long.
fn waiting_for(lag_ns: i128) -> Option<Duration> {
    let waiting_ns = u64::try_from(lag_ns + ROUND_NS).unwrap_or(u64::MAX);
    (lag_ns > MAY_BE_LEFT_NS).then_some(Duration::from_nanos(waiting_ns))
}

struct Audit<'a> {
    access: &'a UnlockedRepository,
    session: SessionId,
    run: &'a Run,
    list: &'a dyn Fn() -> Result<Listed, EngineError>,
    opener: Opener,
    report: AuditReport,
    /// What was neither shown nor could be fetched.
    suspects: Vec<Remembered>,
}

impl Audit<'_> {
    /// Asks for as many blocks as there is time for, and says how many.
    fn ask(&mut self, round: &mut Round, due: u64, most: Duration) -> Result<u64, EngineError> {
        let begun = Instant::now();
        let mut asked = 0;
        while asked < due && (asked == 0 || begun.elapsed() < most) {
            self.run.check()?;
            let count = (due - asked).min(MAX_PROBES as u64);
            self.probe(&round.take(count))?;
            asked += count;
        }
        Ok(asked)
    }

    fn probe(&mut self, blocks: &[Remembered]) -> Result<(), EngineError> {
        let probes: Vec<BlockProbe> = blocks.iter().map(probe_of).collect();
        let proofs = self.access.repository.prove_blocks(&self.session, &probes)?;
        for (at, (block, probe)) in blocks.iter().zip(&probes).enumerate() {
            let proof = proofs.get(at).and_then(Option::as_ref);
            let shown = proof.is_some_and(|proof| {
                proves_slice(&block.name, block.bytes as usize, probe.slice, proof)
            });
            self.report.probed += 1;
            let has = if shown && random_below(WHOLE_EVERY) > 0 { true } else { self.read(block)? };
            if !has {
                self.suspects.push(*block);
            }
        }
        Ok(())
    }

    /// Whether a block that opens can be fetched by the object.
    fn read(&mut self, block: &Remembered) -> Result<bool, EngineError> {
        self.report.read += 1;
        for copy in 0..COPIES_TRIED {
            let fetch = self.access.repository.fetch_objects(&self.session, &[block.object], copy);
            let blocks = match fetch {
                Err(RepositoryError::MissingObjects { .. }) => return Ok(false),
                Err(error) if is_damage(&error) => continue,
                fetched => fetched?.blocks,
            };
            let mut good = GoodIds::default();
            for bytes in blocks {
                check(self.access, &mut self.opener, bytes, &mut good);
            }
            good.sort();
            if good.has_chunk(&block.object) || good.has_node(&block.object) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Looks who needs what was not shown, and forgets what nobody needs if everybody can be asked.
    fn settle(&mut self, round: &mut Round) -> Result<(), EngineError> {
        if self.suspects.is_empty() {
            return Ok(());
        }
        let lost: HashSet<_> = self.suspects.iter().map(|block| block.object).collect();
        let cache = open_node_cache(self.access);
        let check = Check::NotAmongThese { lost: Arc::new(lost), cache };
        let (listed, report) = ((self.list)()?, VerifyReport::default());
        let (access, session) = (self.access, self.session);
        let report =
            walk_all(access, session, &listed.snapshots, check, report, self.run, &mut |_| {})?;
        if report.damaged_path_count == 0 && listed.is_all() {
            self.report.gone = self.suspects.len() as u64;
            round.forget(&self.suspects);
        }
        self.report.lost = report.damaged_paths;
        self.report.lost_count = report.damaged_path_count;
        Ok(())
    }
}

/// Asks for a slice that nobody can know before.
fn probe_of(block: &Remembered) -> BlockProbe {
    let slices = u64::from(slices_in(block.bytes as usize).max(1));
    let slice = u32::try_from(random_below(slices)).unwrap_or(0);
    BlockProbe { object: block.object, block: block.name, slice }
}

fn random_below(limit: u64) -> u64 {
    let mut random = [0; 8];
    SystemEntropy.fill(&mut random);
    u64::from_le_bytes(random) % limit
}

#[cfg(test)]
mod tests;

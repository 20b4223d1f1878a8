//! What machines tell of their runs, to be shown: the last of each, on the disk alone.

use holdall_format::MachineId;
use holdall_protocol::wire::RunReport;

use super::{Accounts, RunEntry};
use crate::ServerError;

impl Accounts {
    /// Keeps what a machine tells of a run; of one that is not known any more, nothing.
    pub(crate) fn note_run(
        &self,
        machine: MachineId,
        report: RunReport,
    ) -> Result<(), ServerError> {
        let run = RunEntry { received_ns: self.now_ns(), report };
        self.database.change(|changes| changes.put_run(&machine, &run))
    }

    /// What a machine told of its runs, the oldest first. It is named as for [`Accounts::machine_entry`].
    ///
    /// # Errors
    /// As there.
    pub(crate) fn runs(&self, wanted: &str) -> Result<Vec<RunEntry>, ServerError> {
        let (id, _) = self.state().find_machine(wanted)?;
        let mut runs = self.database.runs(&id, usize::MAX)?;
        runs.reverse();
        Ok(runs)
    }

    /// What a machine told of its last run; nothing where that cannot be read.
    pub(super) fn last_run(&self, id: &MachineId) -> Option<RunEntry> {
        self.database.runs(id, 1).ok()?.pop().map(RunEntry::without_points)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use holdall_format::PublicKey;
    use holdall_meter::{Layer, RunPoint};
    use holdall_protocol::wire::ReportedKind;
    use holdall_sys::Root;
    use holdall_testkit::FakeClock;

    use super::super::InviteRequest;
    use super::super::database::{MOST_RUNS, MOST_WITH_POINTS};
    use super::*;

    /// A run that began then.
    fn report(started_ns: i64) -> RunReport {
        RunReport {
            kind: ReportedKind::Backup,
            started_ns,
            milliseconds: 1000,
            exit_code: 0,
            items: 10,
            bytes: 20,
            sent_bytes: 5,
            problems: 0,
            limited_by: Layer::Network,
            usual_milliseconds: None,
            work: Vec::new(),
            points: vec![RunPoint { milliseconds: 1000, bytes: 20, items: 10 }],
            next_ns: None,
        }
    }

    fn open(folder: &tempfile::TempDir) -> Accounts {
        let clock = Arc::new(FakeClock::at(1_900_000_000));
        Accounts::open(&Root::at(folder.path()).join("db"), clock).unwrap()
    }

    /// A machine of that name, paired.
    fn paired(accounts: &Accounts, number: u8) -> MachineId {
        let key = |number| PublicKey::from_bytes([number; 32]);
        let invitation = accounts.invite(&InviteRequest::default(), key(99), vec![]).unwrap();
        let name = format!("machine{number}");
        accounts
            .pair(&invitation.invite.secret, key(number), &name, None, |_| false)
            .unwrap()
            .machine
    }

    fn begun(runs: &[RunEntry]) -> Vec<i64> {
        runs.iter().map(|run| run.report.started_ns).collect()
    }

    #[test]
    fn the_last_runs_of_each_machine_are_kept_and_the_points_of_fewer() {
        let folder = tempfile::tempdir().unwrap();
        let accounts = open(&folder);
        let [one, other] = [1, 2].map(|number| paired(&accounts, number));
        let most = i64::try_from(MOST_RUNS).unwrap();
        accounts.note_run(other, report(7)).unwrap();
        for started_ns in 0..most + 3 {
            accounts.note_run(one, report(started_ns)).unwrap();
        }
        drop(accounts);
        let accounts = open(&folder);
        let runs = accounts.runs("machine1").unwrap();
        assert_eq!(begun(&runs), (3..most + 3).collect::<Vec<_>>());
        let with_points = runs.iter().filter(|run| !run.report.points.is_empty()).count() as u64;
        assert_eq!(with_points, MOST_WITH_POINTS);
        assert!(!runs.last().unwrap().report.points.is_empty());
        assert_eq!(begun(&accounts.runs("machine2").unwrap()), [7]);
        let last = accounts.machine_entry("machine1").unwrap().last_run.unwrap();
        assert_eq!((last.report.started_ns, last.report.points.len()), (most + 2, 0));
    }

    #[test]
    fn a_run_that_is_told_twice_is_one_and_what_came_last_counts() {
        let folder = tempfile::tempdir().unwrap();
        let accounts = open(&folder);
        let machine = paired(&accounts, 1);
        accounts.note_run(machine, report(1)).unwrap();
        accounts.note_run(machine, report(2)).unwrap();
        accounts.note_run(machine, RunReport { items: 11, ..report(2) }).unwrap();
        let runs = accounts.runs("machine1").unwrap();
        assert_eq!((begun(&runs), runs[1].report.items), (vec![1, 2], 11));
    }

    #[test]
    fn nothing_is_kept_of_a_machine_that_is_unknown_or_gone() {
        let folder = tempfile::tempdir().unwrap();
        let accounts = open(&folder);
        let [one, other] = [1, 2].map(|number| paired(&accounts, number));
        accounts.note_run(one, report(1)).unwrap();
        accounts.note_run(other, report(2)).unwrap();
        accounts.database.change(|changes| changes.drop_machine(&one)).unwrap();
        accounts.note_run(one, report(3)).unwrap();
        accounts.note_run(MachineId::from_bytes([0; 16]), report(4)).unwrap();
        assert_eq!(accounts.database.runs(&one, 9).unwrap(), []);
        assert_eq!(begun(&accounts.database.runs(&other, 9).unwrap()), [2]);
        let kit = MachineId::from_bytes([0; 16]);
        assert_eq!(accounts.database.runs(&kit, 9).unwrap(), []);
    }
}

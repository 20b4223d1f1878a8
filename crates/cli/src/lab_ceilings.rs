//! What the newest `lab path` to a repository found out: what it takes to back up there, as long as there
//! is no history, and what the wire and the disk can do, beside what a backup used of them.

use holdall_lab::Unit;
use holdall_lab::cost::Work;
use holdall_lab::report::{Report, Rung};

use crate::app::App;
use crate::lab_report::Kept;
use crate::open::Where;

/// What of a path's report says which repository it led to.
pub(crate) const REPOSITORY: &str = "repository";
/// The steps that a wire's rate does not change, and the two that a backup is told its share of.
const BESIDE_WIRE: [&str; 4] =
    ["source read", "processor", "server disk, fsync", "repository disk, fsync"];
const WIRE: &str = "wire";
const SERVER_DISK: &str = "server disk, fsync";

/// Where backups go: a directory's path, or the id of a server's repository. `None` where nothing is named
/// or paired.
pub(crate) fn place(app: &App) -> Option<String> {
    let pairings = || app.pairings().ok();
    match app.named_repository().map(Where::parse) {
        Some(Ok(Where::Directory(folder))) => {
            Some(std::path::absolute(folder).ok()?.display().to_string())
        }
        Some(Ok(Where::Server { host, name })) => {
            Some(pairings()?.find(&host, &name)?.repository.clone())
        }
        Some(Err(_)) => None,
        None => Some(pairings()?.default()?.repository.clone()),
    }
}

/// The newest report of the path to where backups go.
pub(crate) struct Ceilings(Report);

impl Ceilings {
    /// That which is kept, if one is.
    pub(crate) fn newest(app: &App) -> Option<Self> {
        let place = place(app)?;
        let leads_there = |report: &Report| {
            report.facts.iter().any(|fact| fact.name == REPOSITORY && fact.value == place)
        };
        Kept::in_state(&app.folders.state).newest(leads_there).map(Self)
    }

    /// The backups that it made: what each had to do, and the seconds that it took.
    pub(crate) fn runs(&self) -> Vec<(Work, f64)> {
        let runs = self.0.measurements.iter().filter_map(|row| {
            let seconds = row.duration_seconds;
            let amount = |rate: Option<f64>| (rate.unwrap_or(0.0) * seconds).round() as u64;
            let (items, bytes) = (amount(row.operations_per_second), amount(row.bytes_per_second));
            let work = if row.operation.starts_with("first backup") {
                Work { items, items_unchanged: 0, bytes }
            } else if row.operation.starts_with("unchanged backup") {
                Work { items: 0, items_unchanged: items, bytes: 0 }
            } else {
                return None;
            };
            Some((work, seconds))
        });
        runs.collect()
    }

    /// How many bytes a second everything but the wire can do.
    pub(crate) fn beside_wire(&self) -> Option<f64> {
        BESIDE_WIRE.iter().filter_map(|name| self.rate(name)).reduce(f64::min)
    }

    /// How much of the wire and of the server's disk a backup used that sent and stored so many bytes a
    /// second, in a sentence.
    pub(crate) fn used(&self, sent: f64, stored: f64) -> Option<String> {
        let part = |name, what: &str, used: f64| {
            let rate = self.rate(name).filter(|&rate| rate > 0.0)?;
            let share = 100.0 * used / rate;
            Some(format!(
                "{what} does {}, {share:.0} % of it were used",
                Unit::BytesPerSecond.show(rate)
            ))
        };
        let parts = [part(WIRE, "the wire", sent), part(SERVER_DISK, "the server's disk", stored)];
        let parts: Vec<_> = parts.into_iter().flatten().collect();
        let day = self.0.made.get(..10).unwrap_or_default();
        (!parts.is_empty())
            .then(|| format!(" By `holdall lab path` of {day}, {}.", parts.join("; ")))
    }

    fn rate(&self, name: &str) -> Option<f64> {
        let is_it = |rung: &&Rung| !rung.reached && rung.name == name;
        self.0.ladder.iter().find(is_it)?.bytes_per_second
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdall_lab::Measurement;

    fn ceilings() -> Ceilings {
        let mut report = Report::new("holdall lab path".into(), "2026-11-20T10:00:00Z".into());
        let row = |operation: &str, bytes_per_second, operations_per_second| Measurement {
            bytes_per_second,
            operations_per_second,
            ..Measurement::new(operation, 2.0)
        };
        report.measurements = vec![
            row("source walk", None, Some(9e5)),
            row("first backup", Some(80e6), Some(1_000.0)),
            row("unchanged backup", None, Some(50_000.0)),
        ];
        let rung = |name: &str, rate| Rung {
            name: name.to_owned(),
            bytes_per_second: Some(rate),
            items_per_second: None,
            reached: name == "first backup",
            used: None,
        };
        let rungs =
            [("source read", 300e6), ("wire", 100e6), (SERVER_DISK, 200e6), ("first backup", 1e6)];
        report.ladder = rungs.map(|(name, rate)| rung(name, rate)).to_vec();
        Ceilings(report)
    }

    #[test]
    fn the_backups_of_a_path_are_runs() {
        let runs = ceilings().runs();
        let first = Work { items: 2_000, items_unchanged: 0, bytes: 160_000_000 };
        let again = Work { items: 0, items_unchanged: 100_000, bytes: 0 };
        assert_eq!(runs, [(first, 2.0), (again, 2.0)]);
    }

    #[test]
    fn what_was_used_of_wire_and_disk_is_told() {
        assert_eq!(ceilings().beside_wire(), Some(200e6));
        let told = ceilings().used(31e6, 20e6).unwrap();
        assert_eq!(
            told,
            " By `holdall lab path` of 2026-11-20, the wire does 100.0 MB/s, 31 % of it were used; the \
             server's disk does 200.0 MB/s, 10 % of it were used."
        );
        let none = Ceilings(Report::new(String::new(), String::new()));
        assert_eq!((none.used(1.0, 1.0), none.beside_wire(), none.runs().len()), (None, None, 0));
    }
}

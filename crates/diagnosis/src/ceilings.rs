//! What the newest `lab path` to a repository found out: what it takes to back up there, as long as there
//! is no history, and what the wire and the disk can do, beside what a backup or a restore used of them.

use holdall_lab::Measurement;
use holdall_lab::report::{Report, Rung};
use holdall_meter::cost::Work;
use holdall_meter::{Latency, Layer, Unit};

/// What of a path's report says which repository it led to.
pub const REPOSITORY: &str = "repository";
const WIRE: &str = "wire";
const SERVER_DISK: &str = "server disk, fsync";
const REPOSITORY_DISK: &str = "repository disk, fsync";
/// The steps that all bytes of a backup take, and what each leans on.
static STEPS: [(&str, Layer); 6] = [
    ("source read", Layer::SourceRead),
    ("processor", Layer::ClientCpu),
    (WIRE, Layer::Network),
    ("server processor", Layer::ServerCpu),
    (SERVER_DISK, Layer::ServerDisk),
    (REPOSITORY_DISK, Layer::ServerDisk),
];

/// The newest report of the path to a place.
pub struct Ceilings(Report);

impl Ceilings {
    /// What a report says of the path that it measured.
    pub fn of(report: Report) -> Self {
        Self(report)
    }

    /// Whether a report is one of the path to a place.
    pub fn lead_to(place: &str, report: &Report) -> bool {
        place_in(report) == Some(place)
    }

    /// Where the path leads.
    pub fn place(&self) -> Option<&str> {
        place_in(&self.0)
    }

    /// The backups that it made: what each had to do, and the seconds that it took.
    pub fn runs(&self) -> Vec<(Work, f64)> {
        self.ran(|operation, items, bytes| {
            let is = |what| operation.starts_with(what);
            match (is("first backup"), is("unchanged backup")) {
                (true, _) => Some(Work { items, items_unchanged: 0, bytes }),
                (_, true) => Some(Work { items: 0, items_unchanged: items, bytes: 0 }),
                _ => None,
            }
        })
    }

    /// The restores that it made, likewise.
    pub fn restores(&self) -> Vec<(Work, f64)> {
        self.ran(|operation, items, bytes| {
            let is_restore = operation.starts_with("restore");
            is_restore.then_some(Work { items, items_unchanged: 0, bytes })
        })
    }

    /// What each run had to do, by its operation, items and bytes, and the seconds that it took.
    fn ran(&self, work: impl Fn(&str, u64, u64) -> Option<Work>) -> Vec<(Work, f64)> {
        let runs = self.0.measurements.iter().filter_map(|row| {
            let seconds = row.duration_seconds;
            let amount = |rate: Option<f64>| (rate.unwrap_or(0.0) * seconds).round() as u64;
            let (items, bytes) = (amount(row.operations_per_second), amount(row.bytes_per_second));
            Some((work(&row.operation, items, bytes)?, seconds))
        });
        runs.collect()
    }

    /// The slowest step's layer.
    pub fn slowest(&self) -> Option<Layer> {
        self.steps().min_by(|one, other| one.1.total_cmp(&other.1)).map(|(layer, _)| layer)
    }

    /// How many bytes a second every step can do that does not lean on one of `layers`.
    pub fn beside(&self, layers: &[Layer]) -> Option<f64> {
        let others = self.steps().filter(|(layer, _)| !layers.contains(layer));
        others.map(|(_, rate)| rate).reduce(f64::min)
    }

    /// How much of the wire and of the disk a backup used that sent and stored so many bytes a
    /// second, and of a disk that limited it how long it takes to make something durable, in a sentence.
    pub fn used(&self, sent: f64, stored: f64, limited_by: Layer) -> Option<String> {
        let parts = [
            self.share(WIRE, "the wire", sent),
            self.share(SERVER_DISK, "the server's disk", stored),
            self.share(REPOSITORY_DISK, "the repository's disk", stored),
            (limited_by == Layer::ServerDisk).then(|| self.durable()).flatten(),
        ];
        self.told(parts)
    }

    /// The step that leans on the layer which limited a backup, and how much of it the backup used that sent
    /// and stored so many bytes a second. What the source and the processor do depends on what is backed up,
    /// which was something else when they were measured: of them nothing is said.
    pub fn used_of(&self, layer: Layer, sent: f64, stored: f64) -> Option<(&'static str, f64)> {
        let share = |name, what, used: f64| {
            let rate = self.rate(name).filter(|rate| *rate > 0.0)?;
            Some((what, used / rate))
        };
        match layer {
            Layer::Network => share(WIRE, "the wire", sent),
            Layer::ServerDisk => share(SERVER_DISK, "the server's disk", stored)
                .or_else(|| share(REPOSITORY_DISK, "the repository's disk", stored)),
            _ => None,
        }
    }

    /// The wire to here, and how much of it a restore used that the network limited and that received so many
    /// bytes a second.
    pub fn used_of_by_restore(&self, layer: Layer, received: f64) -> Option<(&'static str, f64)> {
        let rate = self.wire_to_here().filter(|rate| *rate > 0.0 && layer == Layer::Network)?;
        Some(("the wire to here", received / rate))
    }

    /// How many bytes a second come over the wire.
    fn wire_to_here(&self) -> Option<f64> {
        let rows = self.rows("receive").filter_map(|row| row.bytes_per_second);
        rows.reduce(f64::max)
    }

    /// How much of the wire a restore used that received so many bytes a second, in a sentence. The
    /// server's disk is measured by what is written to it alone, which says nothing of reading.
    pub fn used_by_restore(&self, received: f64) -> Option<String> {
        self.told([self
            .wire_to_here()
            .and_then(|rate| share_of(rate, "the wire to here", received))])
    }

    /// How much of a step was used.
    fn share(&self, name: &str, what: &str, used: f64) -> Option<String> {
        share_of(self.rate(name)?, what, used)
    }

    /// How long it takes to make something durable, 99 times of 100.
    fn durable(&self) -> Option<String> {
        let p99 = |name| {
            let took = |row: &Measurement| row.latency_ns.map(|Latency { p99, .. }| p99);
            // The first of several rows is that of one request alone.
            self.rows(name).find_map(took).map(|p99| p99 as f64 / 1e6)
        };
        let request = || {
            let took = p99("write at the server, durable")?;
            Some(format!("a request of 3 MiB was sent and durable there after {took:.1} ms (p99)"))
        };
        let fsync = || Some(format!("an fsync on its disk took {:.1} ms (p99)", p99("fsync")?));
        request().or_else(fsync)
    }

    /// The parts that are known, in a sentence.
    fn told<const N: usize>(&self, parts: [Option<String>; N]) -> Option<String> {
        let parts: Vec<_> = parts.into_iter().flatten().collect();
        let day = self.0.made.get(..10).unwrap_or_default();
        (!parts.is_empty())
            .then(|| format!(" By `holdall lab path` of {day}, {}.", parts.join("; ")))
    }

    /// Rows of that operation.
    fn rows(&self, operation: &str) -> impl Iterator<Item = &Measurement> {
        self.0.measurements.iter().filter(move |row| row.operation == operation)
    }

    /// What the steps lean on, and how many bytes of a source a backup that each alone holds back takes in
    /// a second: over the wire and to the disk these are fewer, since they are compressed.
    fn steps(&self) -> impl Iterator<Item = (Layer, f64)> {
        let is_backup = |rung: &&Rung| rung.reached && rung.name.starts_with("first backup");
        let backup = self.0.ladder.iter().find(is_backup).and_then(|rung| rung.bytes_per_second);
        let rate = move |name| {
            let rung = self.rung(name)?;
            let by_share = backup.zip(rung.used).map(|(backup, used)| backup / used);
            by_share.or(rung.bytes_per_second)
        };
        let steps = STEPS.iter().filter_map(move |(name, layer)| Some((*layer, rate(name)?)));
        // Of what a backup used nothing, nothing holds it back.
        steps.filter(|(_, rate)| *rate > 0.0 && rate.is_finite())
    }

    fn rung(&self, name: &str) -> Option<&Rung> {
        self.0.ladder.iter().find(|rung| !rung.reached && rung.name == name)
    }

    fn rate(&self, name: &str) -> Option<f64> {
        self.rung(name)?.bytes_per_second
    }
}

/// Where the path of a report leads; `None` if it led nowhere, or is another report.
fn place_in(report: &Report) -> Option<&str> {
    let fact = report.facts.iter().find(|fact| fact.name == REPOSITORY)?;
    Some(&fact.value)
}

/// How much was used of something that can do `rate` bytes a second.
fn share_of(rate: f64, what: &str, used: f64) -> Option<String> {
    let share = 100.0 * used / rate;
    let rate = (rate > 0.0).then(|| Unit::BytesPerSecond.show(rate))?;
    Some(format!("{what} does {rate} ({share:.0} % used)"))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use holdall_lab::report::Fact;

    /// Those of the path to the repository `one`, whose slowest step is the wire.
    pub(crate) fn ceilings() -> Ceilings {
        let mut report = Report::new("holdall lab path".into(), "2026-11-20T10:00:00Z".into());
        report.facts = vec![Fact::new(REPOSITORY, "one")];
        let row = |operation: &str, bytes_per_second, operations_per_second| Measurement {
            bytes_per_second,
            operations_per_second,
            ..Measurement::new(operation, 2.0)
        };
        report.measurements = vec![
            row("source walk", None, Some(9e5)),
            row("first backup", Some(80e6), Some(1_000.0)),
            row("unchanged backup", None, Some(50_000.0)),
            row("restore", Some(40e6), Some(500.0)),
        ];
        let rung = |name: &str, rate| Rung {
            name: name.to_owned(),
            bytes_per_second: Some(rate),
            items_per_second: None,
            reached: name == "first backup",
            used: None,
            needs: None,
            disturbed: false,
        };
        let rungs =
            [("source read", 300e6), ("wire", 100e6), (SERVER_DISK, 200e6), ("first backup", 1e6)];
        report.ladder = rungs.map(|(name, rate)| rung(name, rate)).to_vec();
        Ceilings(report)
    }

    #[test]
    fn how_much_was_used_is_known_of_the_wire_and_the_disk_and_of_nothing_that_depends_on_the_source()
     {
        let used = |layer| ceilings().used_of(layer, 25e6, 20e6);
        assert_eq!(used(Layer::Network), Some(("the wire", 0.25)));
        assert_eq!(used(Layer::ServerDisk), Some(("the server's disk", 0.1)));
        assert_eq!([used(Layer::SourceRead), used(Layer::ClientCpu)], [None, None]);
        assert_eq!(ceilings().used_of_by_restore(Layer::Network, 1e6), None, "nobody measured it");
        let mut received = ceilings();
        let row = Measurement { bytes_per_second: Some(80e6), ..Measurement::new("receive", 2.0) };
        received.0.measurements.push(row);
        let used = |layer| received.used_of_by_restore(layer, 20e6);
        assert_eq!(used(Layer::Network), Some(("the wire to here", 0.25)));
        assert_eq!(used(Layer::TargetWrite), None);
    }

    fn nothing() -> Ceilings {
        Ceilings(Report::new(String::new(), String::new()))
    }

    #[test]
    fn the_backups_and_restores_of_a_path_are_runs() {
        let runs = ceilings().runs();
        let first = Work { items: 2_000, items_unchanged: 0, bytes: 160_000_000 };
        let again = Work { items: 0, items_unchanged: 100_000, bytes: 0 };
        assert_eq!(runs, [(first, 2.0), (again, 2.0)]);
        let restored = Work { items: 1_000, items_unchanged: 0, bytes: 80_000_000 };
        assert_eq!(ceilings().restores(), [(restored, 2.0)]);
    }

    #[test]
    fn what_was_used_of_wire_and_disk_is_told() {
        let told = ceilings().used(31e6, 20e6, Layer::Network).unwrap();
        assert_eq!(
            told,
            " By `holdall lab path` of 2026-11-20, the wire does 100.0 MB/s (31 % used); the \
             server's disk does 200.0 MB/s (10 % used)."
        );
        assert_eq!(nothing().used(1.0, 1.0, Layer::ServerDisk), None);
    }

    #[test]
    fn a_step_that_holds_back_is_known_and_what_is_beside_it() {
        let ceilings = ceilings();
        assert_eq!(ceilings.slowest(), Some(Layer::Network));
        assert_eq!(ceilings.beside(&[Layer::Network]), Some(200e6));
        assert_eq!(ceilings.beside(&[Layer::ServerDisk]), Some(100e6));
        assert_eq!(ceilings.beside(&[Layer::Network, Layer::ServerDisk]), Some(300e6));
        assert_eq!(ceilings.place(), Some("one"));
        let none = nothing();
        assert_eq!(none.place(), None);
        assert_eq!((none.slowest(), none.beside(&[]), none.runs().len()), (None, None, 0));
    }

    #[test]
    fn what_is_compressed_is_compared_in_bytes_of_the_source() {
        let mut ceilings = ceilings();
        // 171.6 MB/s of a source became 64 MB/s on the wire and the disk.
        let shares =
            [(290.2e6, Some(0.59)), (119e6, Some(0.54)), (320e6, Some(0.2)), (171.6e6, None)];
        for (rung, (rate, used)) in ceilings.0.ladder.iter_mut().zip(shares) {
            (rung.bytes_per_second, rung.used) = (Some(rate), used);
        }
        assert_eq!(ceilings.slowest(), Some(Layer::SourceRead));
        assert_eq!(ceilings.beside(&[Layer::Network]), Some(171.6e6 / 0.59));
        assert_eq!(ceilings.beside(&[Layer::SourceRead]), Some(171.6e6 / 0.54));
        // Nothing was stored, to a disk that does less than the backup.
        let disk = &mut ceilings.0.ladder[2];
        (disk.bytes_per_second, disk.used) = (Some(90e6), Some(0.0));
        assert_eq!(ceilings.slowest(), Some(Layer::SourceRead));
        assert_eq!(ceilings.beside(&[Layer::SourceRead, Layer::Network]), None);
    }

    #[test]
    fn where_a_disk_limits_it_is_told_how_long_it_takes_to_be_durable() {
        let taking = |operation: &str, millis: u64| {
            let p99 = millis * 1_000_000;
            let latency_ns = Some(Latency { p50: 1, p90: 1, p99, p99_9: p99 });
            Measurement { latency_ns, ..Measurement::new(operation, 1.0) }
        };
        let told = |rows: &[Measurement]| {
            let mut ceilings = ceilings();
            ceilings.0.measurements.extend_from_slice(rows);
            ceilings.used(31e6, 20e6, Layer::ServerDisk).unwrap()
        };
        let operation = "write at the server, durable";
        let at_server = told(&[taking(operation, 240), taking(operation, 900)]);
        let request = "; a request of 3 MiB was sent and durable there after 240.0 ms (p99).";
        assert!(at_server.ends_with(request), "{at_server}");
        let here = told(&[taking("fsync", 12)]);
        assert!(here.ends_with("; an fsync on its disk took 12.0 ms (p99)."), "{here}");
    }

    #[test]
    fn of_a_restore_it_is_told_what_was_used_of_the_wire_to_here() {
        assert_eq!(ceilings().used_by_restore(31e6), None, "the client sent nothing of it");
        let mut ceilings = ceilings();
        for rate in [80e6, 62e6] {
            let bytes_per_second = Some(rate);
            let row = Measurement { bytes_per_second, ..Measurement::new("receive", 2.0) };
            ceilings.0.measurements.push(row);
        }
        assert_eq!(
            ceilings.used_by_restore(20e6).unwrap(),
            " By `holdall lab path` of 2026-11-20, the wire to here does 80.0 MB/s (25 % used)."
        );
    }
}

//! The rows of `lab net`: which jobs are carried, one after another, and what they say.
//!
//! What comes from a file or goes to one is measured with each buffer over each number of streams.
//! Every stream that writes has a file of its own. Every stream that reads has the same file from
//! its beginning, as with `iperf3 -F FILE -P N`: what one read, the others may find in memory.

use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use holdall_meter::Latency;
use serde::Serialize;

use super::far::{Carrier, Direction, Far, Job, Moved};
use super::link::interfaces_to;
use super::retransmits::retransmits;
use super::samples::Samples;
use super::{End, Link, PathShare, Paths, ScratchFile, ScratchFolder, Wait, interface_to, paths};
use crate::Measurement;

/// Bytes that are written or read at once where only memory is at both ends.
const MEMORY_BUFFER_BYTES: u32 = 128 << 10;
/// Round trips of an idle line.
const IDLE_TRIPS: usize = 50;
/// More than fit into the longest row.
const MOST_TRIPS: usize = 10_000;

/// What to measure.
#[derive(Debug, Clone)]
pub struct NetPlan {
    /// For how long each row sends.
    pub duration: Duration,
    /// Streams at once: each number is measured.
    pub streams: Vec<usize>,
    /// Whether both ways are measured at once, too.
    pub both_ways: bool,
    /// For how long round trips are measured before anything is sent, at most.
    pub idle: Duration,
    /// Addresses of this computer to connect from, in turn; empty for any.
    pub bind: Vec<IpAddr>,
    /// Read here and sent, too, from its beginning by every stream.
    pub from_file: Option<ScratchFile>,
    /// Received and written here, too, each stream to a file of its own.
    pub to_folder: Option<ScratchFolder>,
    /// Whether the other end writes what it gets to a file, too.
    pub to_far_file: bool,
    /// Whether the other end reads what it sends from a file, too.
    pub from_far_file: bool,
    /// Sizes of the pieces in which files are read and written; each is measured.
    pub buffers_bytes: Vec<u32>,
    /// What whoever writes waits for.
    pub wait: Wait,
}

impl NetPlan {
    /// From memory to memory, one way after the other, over so many streams: no files, any address.
    pub fn memory(duration: Duration, streams: usize) -> Self {
        Self {
            duration,
            streams: vec![streams],
            both_ways: false,
            idle: Duration::from_millis(300),
            bind: Vec::new(),
            from_file: None,
            to_folder: None,
            to_far_file: false,
            from_far_file: false,
            buffers_bytes: Vec::new(),
            wait: Wait::Never,
        }
    }

    /// How many rows it makes, where each buffer of a file is one.
    pub fn rows(&self) -> usize {
        let ends = [
            self.from_file.is_some(),
            self.to_folder.is_some(),
            self.to_far_file,
            self.from_far_file,
        ];
        let files =
            ends.into_iter().filter(|is_wanted| *is_wanted).count() * self.buffers_bytes.len();
        // Round trips alone, and in either direction under load.
        3 + self.streams.len() * (2 + files) + 2 * usize::from(self.both_ways)
    }

    /// For how long all rows send together, with a server, whose own files are measured with one
    /// buffer.
    pub fn sends_for(&self) -> Duration {
        let near = usize::from(self.from_file.is_some()) + usize::from(self.to_folder.is_some());
        let far = usize::from(self.to_far_file) + usize::from(self.from_far_file);
        let files = near * self.buffers_bytes.len() + far;
        let rows = self.streams.len() * (2 + files) + usize::from(self.both_ways);
        self.duration.saturating_mul(u32::try_from(rows).unwrap_or(u32::MAX))
    }
}

/// A measured row, and what else the system counted meanwhile.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NetRow {
    /// The row.
    #[serde(flatten)]
    pub measurement: Measurement,
    /// Segments that the senders' computers sent again, all of their connections; where they tell.
    pub retransmits: Option<u64>,
}

impl NetRow {
    /// The row as a report has it, with what is told beside it here.
    pub fn reported(&self) -> Measurement {
        Measurement { retransmits: self.retransmits, ..self.measurement.clone() }
    }
}

/// All rows, and what they went over.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NetReport {
    /// The rows, in the order in which they were measured.
    pub rows: Vec<NetRow>,
    /// The link that leads there, as the system tells.
    pub link: Option<Link>,
    /// What the interfaces had of what the row with most streams sent.
    pub paths: Vec<PathShare>,
    /// What holds the path back, and what would help, a sentence each.
    pub advice: Vec<String>,
}

/// Measures everything of `plan`, and tells each row when it is done.
///
/// # Errors
/// What the system or the other end says; [`io::ErrorKind::Interrupted`] once `stop` is set.
pub fn measure(
    far: &dyn Far,
    plan: &NetPlan,
    stop: &AtomicBool,
    told: &mut dyn FnMut(&NetRow) -> io::Result<()>,
) -> io::Result<NetReport> {
    let ends = far.connect(plan.bind.first().copied())?.addresses();
    let interface = ends.and_then(|(here, there)| match here.ip() == there.ip() {
        true => Some("lo".to_owned()),
        false => interface_to(Path::new("/"), there.ip()),
    });
    let link = interface.map(|interface| Link::read(Path::new("/"), &interface));
    let mut measuring = Measuring {
        far,
        plan,
        stop,
        told,
        rows: Vec::new(),
        paths: Vec::new(),
        in_use: BTreeSet::new(),
        advice: Vec::new(),
        leading: ends.and_then(|(_, there)| {
            match link.as_ref().map(|link| link.interface.as_str()) {
                Some("lo") => Some(BTreeSet::from(["lo".to_owned()])),
                _ => interfaces_to(Path::new("/"), there.ip(), &plan.bind),
            }
        }),
    };
    measuring.idle_trips()?;
    measuring.memory()?;
    measuring.files()?;
    let Measuring { rows, paths, in_use, mut advice, .. } = measuring;
    let used = links_used(Path::new("/"), link.as_ref(), &in_use);
    advice.extend(link.iter().flat_map(Link::advice));
    advice.extend(say_others(&used, link.as_ref()));
    advice.extend(use_of(&used, &rows));
    Ok(NetReport { rows, link, paths, advice })
}

/// The links that streams went over, by the names of the interfaces that were in use; the one of the
/// `route` where none was seen to be.
fn links_used(root: &Path, route: Option<&Link>, in_use: &BTreeSet<String>) -> Vec<Link> {
    let is_route = |name: &str| route.is_some_and(|route| route.interface == name);
    // What a computer sends to itself meanwhile has nothing to do with another one.
    let names = in_use.iter().filter(|name| *name != "lo" || is_route(name));
    let links: Vec<_> = names.map(|name| Link::read(root, name)).collect();
    if links.is_empty() { route.cloned().into_iter().collect() } else { links }
}

/// Which links streams went over beside that of the `route`, and what of each holds things back.
fn say_others(used: &[Link], route: Option<&Link>) -> Vec<String> {
    let is_route = |link: &Link| route.is_some_and(|route| route.interface == link.interface);
    let others = used.iter().filter(|link| !is_route(link));
    let say = |link: &Link| {
        let mut said = vec![format!("streams went over {}", link.words())];
        said.extend(link.advice());
        said
    };
    others.flat_map(say).collect()
}

/// How much of the speed of all links together the fastest row used.
fn use_of(links: &[Link], rows: &[NetRow]) -> Option<String> {
    let speed: Option<u64> = links.iter().map(|link| link.speed_mbits).sum();
    let speed = speed.filter(|&speed| speed > 0)? as f64;
    let names: Vec<_> = links.iter().map(|link| link.interface.as_str()).collect();
    let fastest = rows.iter().filter_map(|row| row.measurement.bytes_per_second);
    let mbits = fastest.fold(0.0, f64::max) * 8.0 / 1e6;
    let share = mbits / speed * 100.0;
    let of = names.join(" and ");
    Some(format!("the fastest row used {share:.0} % of the {speed:.0} Mb/s of {of}"))
}

/// A measurement that goes on.
struct Measuring<'a> {
    far: &'a dyn Far,
    plan: &'a NetPlan,
    stop: &'a AtomicBool,
    told: &'a mut dyn FnMut(&NetRow) -> io::Result<()>,
    rows: Vec<NetRow>,
    paths: Vec<PathShare>,
    /// The interfaces that streams went over, in either direction.
    in_use: BTreeSet<String>,
    advice: Vec<String>,
    /// The interfaces that bytes to the other end may leave by; `None` where the system does not tell.
    leading: Option<BTreeSet<String>>,
}

/// What is at this end of a row's streams.
#[derive(Clone, Copy)]
enum Near<'a> {
    Memory,
    Reads(&'a ScratchFile),
    Writes(&'a ScratchFolder),
}

/// What one row is about.
struct Row<'a> {
    operation: &'a str,
    direction: Direction,
    near: Near<'a>,
    far_file: bool,
    buffer_bytes: u32,
    streams: usize,
}

impl<'a> Row<'a> {
    fn memory(operation: &'a str, direction: Direction, streams: usize) -> Self {
        let (near, buffer_bytes) = (Near::Memory, MEMORY_BUFFER_BYTES);
        Self { operation, direction, near, far_file: false, buffer_bytes, streams }
    }

    fn has_near_file(&self) -> bool {
        !matches!(self.near, Near::Memory)
    }

    fn has_file(&self) -> bool {
        self.far_file || self.has_near_file()
    }

    /// What one of its streams is to carry; one that writes here gets a file of its own.
    fn job(&self, plan: &NetPlan) -> io::Result<Job> {
        let &Self { direction, far_file, buffer_bytes, .. } = self;
        let near = match self.near {
            Near::Memory => End::Memory,
            Near::Reads(file) => End::File(file.clone()),
            Near::Writes(folder) => End::File(folder.file(buffer_bytes).map_err(io::Error::other)?),
        };
        let wait = if self.has_file() { plan.wait } else { Wait::Never };
        Ok(Job { direction, duration: plan.duration, buffer_bytes, near, far_file, wait })
    }
}

impl Measuring<'_> {
    fn idle_trips(&mut self) -> io::Result<()> {
        let mut connection = self.far.connect(self.plan.bind.first().copied())?;
        let trips = connection.round_trips(IDLE_TRIPS, self.plan.idle, self.stop)?;
        self.tell_trips("round trip", &trips)
    }

    /// From memory to memory: each way, and both ways at once.
    fn memory(&mut self) -> io::Result<()> {
        let most = self.plan.streams.iter().copied().max().unwrap_or(1);
        for direction in [Direction::Send, Direction::Receive] {
            for &streams in &self.plan.streams {
                let row = Row::memory(word(direction), direction, streams);
                self.one_way(&row, streams == most)?;
            }
        }
        if !self.plan.both_ways {
            return Ok(());
        }
        let rows = [
            Row::memory("send, both ways", Direction::Send, most),
            Row::memory("receive, both ways", Direction::Receive, most),
        ];
        let before = retransmits(Path::new("/"));
        let moved = self.carry(&rows, None)?.moved;
        rows.iter().zip(moved).try_for_each(|(row, moved)| self.tell(row, &moved, before))
    }

    /// From and to files at either end, with each buffer over each number of streams.
    fn files(&mut self) -> io::Result<()> {
        let plan = self.plan;
        let far = |wanted: bool| wanted.then_some((Near::Memory, true));
        let from_file = plan.from_file.as_ref().map(|file| (Near::Reads(file), false));
        let to_file = plan.to_folder.as_ref().map(|folder| (Near::Writes(folder), false));
        let ends = [
            (Direction::Send, "send from file", from_file),
            (Direction::Send, "send to file", far(plan.to_far_file)),
            (Direction::Receive, "receive from file", far(plan.from_far_file)),
            (Direction::Receive, "receive to file", to_file),
        ];
        for (direction, operation, end) in ends {
            let Some((near, far_file)) = end else { continue };
            for (at, &buffer_bytes) in plan.buffers_bytes.iter().enumerate() {
                for &streams in &plan.streams {
                    let row = Row { operation, direction, near, far_file, buffer_bytes, streams };
                    // Where the other end decides on the pieces, one buffer is all of them.
                    if at == 0 || self.pieces_bytes(&row).is_some() {
                        self.one_way(&row, false)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn pieces_bytes(&self, row: &Row<'_>) -> Option<u32> {
        self.far.pieces_bytes(row.buffer_bytes, row.has_near_file())
    }

    /// A row in one direction; with `loaded`, round trips and paths are looked at meanwhile.
    fn one_way(&mut self, row: &Row<'_>, loaded: bool) -> io::Result<()> {
        let (before, paths) = (retransmits(Path::new("/")), self.paths_now());
        let trips = match loaded {
            true => Some(self.far.connect(self.plan.bind.first().copied())?),
            false => None,
        };
        let Carried { moved, trips } = self.carry(std::slice::from_ref(row), trips)?;
        self.tell(row, moved.first().map_or(&[], Vec::as_slice), before)?;
        if loaded {
            let shares = self.paths_now().shares_since(&paths, row.direction);
            let said = paths::say(&shares, row.streams, row.direction);
            self.advice.extend(said.filter(|said| !self.advice.contains(said)));
            self.in_use.extend(paths::in_use(&shares).map(|path| path.interface.clone()));
            if row.direction == Direction::Send {
                self.paths = shares;
            }
            let operation = match row.direction {
                Direction::Send => "round trip while sending",
                Direction::Receive => "round trip while receiving",
            };
            self.tell_trips(operation, &trips)?;
        }
        Ok(())
    }

    /// What the interfaces that lead there have carried.
    fn paths_now(&self) -> Paths {
        let root = Path::new("/");
        let all = Paths::now(root);
        if let Some(leading) = &self.leading { all.among(root, leading) } else { all }
    }

    /// Carries `rows` at once, each over so many streams as the first; what each carried, stream by
    /// stream.
    fn carry(&self, rows: &[Row<'_>], trips: Option<Box<dyn Carrier + '_>>) -> io::Result<Carried> {
        let streams = rows.first().map_or(1, |row| row.streams);
        let mut connections = Vec::new();
        for row in rows {
            for at in 0..streams {
                let from = self.plan.bind.get(at % self.plan.bind.len().max(1)).copied();
                let job = row.job(self.plan)?;
                let mut connection = self.far.connect(from)?;
                connection.prepare(&job)?;
                connections.push((job, connection));
            }
        }
        let (ended, stop) = (AtomicBool::new(false), self.stop);
        let (moved, trips) = std::thread::scope(|scope| {
            let carrying: Vec<_> = connections
                .into_iter()
                .map(|(job, mut connection)| scope.spawn(move || connection.carry(&job, stop)))
                .collect();
            let trips = trips.map(|mut connection| {
                let ended = &ended;
                scope.spawn(move || connection.round_trips(MOST_TRIPS, Duration::MAX, ended))
            });
            let moved: Vec<_> = carrying.into_iter().map(joined).collect();
            ended.store(true, Ordering::Relaxed);
            (moved, trips.map(joined))
        });
        if self.stop.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let moved = moved.into_iter().collect::<io::Result<Vec<_>>>()?;
        let moved = moved.chunks(streams).map(<[Moved]>::to_vec).collect();
        Ok(Carried { moved, trips: trips.transpose()?.unwrap_or_default() })
    }

    fn tell(&mut self, row: &Row<'_>, moved: &[Moved], before: Option<u64>) -> io::Result<()> {
        let &Row { direction, far_file, .. } = row;
        let (is_file, wait) = (row.has_file(), self.plan.wait);
        let writes = is_file && (direction == Direction::Send) == far_file;
        let bytes: u64 = moved.iter().map(|one| one.bytes).sum();
        let seconds = together(moved).as_secs_f64();
        let each = if writes && wait == Wait::EachWrite { ", each write durable" } else { "" };
        let measurement = Measurement {
            block_bytes: self.pieces_bytes(row).map(u64::from),
            jobs: u32::try_from(row.streams).ok(),
            direct: is_file.then_some(false),
            end_fsync: writes.then_some(wait == Wait::AtEnd),
            bytes_per_second: (seconds > 0.0).then(|| bytes as f64 / seconds),
            latency_ns: slowest(moved),
            ..Measurement::new(format!("{}{each}", row.operation), seconds)
        };
        let retransmits = match direction {
            Direction::Send => {
                before.and_then(|before| Some(retransmits(Path::new("/"))?.saturating_sub(before)))
            }
            // Each stream tells what its computer counted, for all of them.
            Direction::Receive => moved.iter().filter_map(|one| one.far_retransmits).max(),
        };
        self.keep(NetRow { measurement, retransmits })
    }

    fn tell_trips(&mut self, operation: &str, trips: &[Duration]) -> io::Result<()> {
        let mut samples = Samples::default();
        trips.iter().for_each(|&trip| samples.add(trip));
        let measurement = Measurement {
            block_bytes: Some(super::message::PING_BYTES as u64),
            queue_depth: Some(1),
            jobs: Some(1),
            latency_ns: samples.latency(),
            ..Measurement::new(operation, trips.iter().map(Duration::as_secs_f64).sum())
        };
        self.keep(NetRow { measurement, retransmits: None })
    }

    fn keep(&mut self, row: NetRow) -> io::Result<()> {
        (self.told)(&row)?;
        self.rows.push(row);
        Ok(())
    }
}

/// What was carried, job by job and stream by stream, and the round trips meanwhile.
struct Carried {
    moved: Vec<Vec<Moved>>,
    trips: Vec<Duration>,
}

/// From the first byte of any stream to the last of any: streams that did not move bytes at the same time did
/// not share a rate.
fn together(moved: &[Moved]) -> Duration {
    let ended = moved.iter().filter_map(|one| one.ended).max();
    let begun = moved.iter().filter_map(|one| one.ended?.checked_sub(one.duration)).min();
    let longest = moved.iter().map(|one| one.duration).max().unwrap_or_default();
    ended.zip(begun).map_or(longest, |(ended, begun)| ended - begun)
}

/// How long the reads or writes took, of several streams the most that any of them tells: what a share
/// of all requests together took, they do not tell.
fn slowest(moved: &[Moved]) -> Option<Latency> {
    moved.iter().filter_map(|one| one.latency).reduce(|one, other| Latency {
        p50: one.p50.max(other.p50),
        p90: one.p90.max(other.p90),
        p99: one.p99.max(other.p99),
        p99_9: one.p99_9.max(other.p99_9),
    })
}

fn word(direction: Direction) -> &'static str {
    match direction {
        Direction::Send => "send",
        Direction::Receive => "receive",
    }
}

/// What a thread found; one that panicked has found nothing.
fn joined<T>(thread: std::thread::ScopedJoinHandle<'_, io::Result<T>>) -> io::Result<T> {
    thread.join().unwrap_or_else(|_| Err(io::Error::other("a stream's thread failed")))
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn of_several_streams_the_slowest_is_told_at_each_share() {
        let latency = |p50, p99_9| Some(Latency { p50, p90: 50, p99: 60, p99_9 });
        let moved = [latency(10, 90), None, latency(20, 80)]
            .map(|latency| Moved { latency, ..Moved::default() });
        assert_eq!(slowest(&moved), latency(20, 90));
        assert_eq!(slowest(&moved[1..2]), None);
    }

    #[test]
    fn streams_one_after_another_take_as_long_as_all_of_them() {
        let now = Instant::now();
        let moved = |duration, ended| Moved {
            duration: Duration::from_secs(duration),
            ended: Some(now + Duration::from_secs(ended)),
            ..Moved::default()
        };
        assert_eq!(together(&[moved(3, 13), moved(3, 15)]), Duration::from_secs(5));
        assert_eq!(together(&[moved(9, 14), moved(3, 12)]), Duration::from_secs(9));
        assert_eq!(together(&[]), Duration::ZERO);
    }

    #[test]
    fn a_row_has_its_retransmits_once_when_it_is_told_and_in_a_report() {
        let row = |retransmits| NetRow { measurement: Measurement::new("send", 1.0), retransmits };
        assert_eq!(row(Some(7)).reported().retransmits, Some(7));
        let told = |row: &NetRow| serde_json::to_string(row).unwrap();
        assert_eq!(told(&row(Some(7))).matches("\"retransmits\":7").count(), 1);
        assert!(told(&row(None)).contains("\"retransmits\":null"), "what nobody tells is null");
    }

    #[test]
    fn of_several_links_each_is_told_and_their_speeds_are_added() {
        let root = tempfile::tempdir().unwrap();
        for (name, speed) in [("eth0", "1000"), ("eth1", "1000"), ("lo", "-1")] {
            let folder = root.path().join("sys/class/net").join(name);
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join("speed"), speed).unwrap();
        }
        let route = Link::read(root.path(), "eth0");
        let used = |names: &[&str]| {
            let names = names.iter().map(|name| (*name).to_owned()).collect();
            links_used(root.path(), Some(&route), &names)
        };
        let measurement =
            Measurement { bytes_per_second: Some(237.5e6), ..Measurement::new("send", 1.0) };
        let rows = [NetRow { measurement, retransmits: None }];
        let both = used(&["eth0", "eth1", "lo"]);
        assert_eq!(say_others(&both, Some(&route)), ["streams went over eth1, 1000 Mb/s"]);
        assert_eq!(
            use_of(&both, &rows).unwrap(),
            "the fastest row used 95 % of the 2000 Mb/s of eth0 and eth1"
        );
        let bound = used(&["eth1"]);
        assert_eq!(bound.len(), 1);
        assert_eq!(bound[0].interface, "eth1");
        assert_eq!(used(&[]), std::slice::from_ref(&route));
        assert_eq!(use_of(&[Link::read(root.path(), "lo")], &rows), None);
        assert_eq!(use_of(&[], &rows), None);
    }
}

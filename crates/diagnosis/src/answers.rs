//! What rows of the lab come to, in sentences for people who do not know what a queue depth is.
//!
//! Each function takes the rows of one command and says what they show. Rows that are missing cost their sentence.

use holdall_lab::Measurement;
use holdall_lab::net::Link;
use holdall_meter::{Unit, count, whole_duration};

use crate::reference::{DISKS, NETWORKS, NetworkKind, nearest};

const SMALL_BLOCK: u64 = 4 << 10;
/// As much as a home has on a computer.
const HOME_BYTES: f64 = 100e9;
const A_MILLION: f64 = 1e6;
/// An fsync of a disk without anything that turns takes less than this.
const QUICK_FSYNC_SECONDS: f64 = 0.002;
/// One that takes longer than this is slow for any disk.
const SLOW_FSYNC_SECONDS: f64 = 0.03;
/// Of what a network carries, so much is as good as all.
const NEARLY_ALL: f64 = 0.85;
/// An answer over a cable in a house takes less than this.
const NEAR_SECONDS: f64 = 0.001;
/// From here on, an answer comes from far away.
const FAR_SECONDS: f64 = 0.02;

/// What is said of a file system in memory in the place of what a disk does.
const OF_MEMORY: &str =
    "These figures are of memory: name a directory on a disk to see what that does.";

/// Of `lab disk`, in a directory that may lie in memory.
pub fn of_disk(rows: &[Measurement], is_in_memory: bool) -> Vec<String> {
    if is_in_memory {
        return vec![OF_MEMORY.to_owned()];
    }
    let best = |operation| best_of(rows, |row| row.operation == operation, bytes);
    let (read, write) = (best("sequential read"), best("sequential write"));
    let small = |operation: &str| {
        let is_one = |row: &Measurement| {
            row.operation == operation && row.block_bytes == Some(SMALL_BLOCK) && is_alone(row)
        };
        best_of(rows, is_one, |row| row.operations_per_second)
    };
    let fsync = rows.iter().find(|row| row.operation == "fsync");
    [
        read.map(|rate| large("read", rate)),
        write.map(|rate| large("written", rate)),
        small("random read").map(small_reads),
        small("random write").map(|often| {
            format!("4 KB random writes: {} a second, one after the other.", number(often))
        }),
        fsync.and_then(|row| row.latency_ns).map(|latency| safe_after(latency.p50 as f64 / 1e9)),
        write.map(|rate| {
            let seconds = whole_duration(HOME_BYTES / rate);
            format!("A first backup of 100 GB to this disk would take at least {seconds}.")
        }),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Of `lab files`.
pub fn of_files(rows: &[Measurement]) -> Vec<String> {
    // One pass over the files of a row; of several workers, the best number of them.
    let seconds = |operations: &[&str]| {
        let each = operations.iter().map(|operation| {
            let is_small = |row: &Measurement| {
                row.operation == *operation && row.file_bytes.is_none_or(|bytes| bytes <= 64 << 10)
            };
            Some(A_MILLION / best_of(rows, is_small, |row| row.operations_per_second)?)
        });
        each.sum::<Option<f64>>().map(whole_duration)
    };
    let looked = seconds(&["list", "stat"]).map(|time| {
        format!(
            "To look at a million small files, as a backup does if nothing changed, would take about {time} here."
        )
    });
    let read = seconds(&["read"]).map(|time| {
        format!("To read a million small files, as a first backup does: about {time}.")
    });
    let written = seconds(&["create", "write"]).map(|time| {
        format!("To write a million small files: about {time}, before they are durable.")
    });
    let is_alone = |row: &Measurement| row.operation == "fsync" && row.jobs.unwrap_or(1) == 1;
    let safe = best_of(rows, is_alone, |row| row.operations_per_second)
        .map(|often| format!("Files made durable one by one: {} a second.", number(often)));
    [looked, read, written, safe].into_iter().flatten().collect()
}

/// Of `lab cpu`, with so many cores.
pub fn of_processor(rows: &[Measurement], cores: f64) -> Vec<String> {
    let of_core = |begins: &str| {
        let is_one = |row: &Measurement| row.operation.starts_with(begins);
        best_of(rows, is_one, |row| row.bytes_per_core_second)
    };
    // A byte goes through all of these, one after the other.
    let steps = ["chunk", "id", "compress at level 1", "open and compare ids"].map(of_core);
    let seconds = steps.into_iter().map(|rate| rate.map(|rate| 1.0 / rate)).sum::<Option<f64>>();
    let Some(rate) = seconds.map(|seconds| cores / seconds) else { return Vec::new() };
    let network = NETWORKS
        .iter()
        .rfind(|kind| kind.sold_mbits.is_some() && kind.carried_mbits * 1e6 / 8.0 <= rate);
    let keeps_up = match network {
        Some(kind) => format!("that is more than a network of {} carries.", kind.name),
        None => {
            "that is less than a network of 100 Mb/s carries: the processor would be what limits."
                .to_owned()
        }
    };
    vec![
        format!(
            "With all cores this computer prepares about {} of files for a backup (cut, hashed, compressed, \
             encrypted, checked); {keeps_up}",
            Unit::BytesPerSecond.show(rate)
        ),
        format!("100 GB would keep it busy for about {}.", whole_duration(HOME_BYTES / rate)),
    ]
}

/// Of `lab net`, over that link, if it is known.
pub fn of_network(rows: &[Measurement], link: Option<&Link>) -> Vec<String> {
    let best = |begins: &str| {
        let is_one = |row: &Measurement| row.operation == begins;
        best_of(rows, is_one, bytes).map(|rate| rate * 8.0 / 1e6)
    };
    let (sent, received) = (best("send"), best("receive"));
    let mut said = Vec::new();
    if let Some(fastest) = [sent, received].into_iter().flatten().reduce(f64::max) {
        said.push(format!("{}: {}.", both_units(fastest), carried(fastest, link)));
    }
    if link.is_some_and(Link::is_own) {
        return said;
    }
    if let (Some(sent), Some(received)) = (sent, received)
        && (sent < received * 0.5 || received < sent * 0.5)
    {
        let (slow, way, other) = match sent < received {
            true => (sent, "to there", received),
            false => (received, "from there", sent),
        };
        said.push(format!(
            "The way {way} is slower, {} of {}: a line that is sold so, duplex, or Wi-Fi.",
            megabits(slow),
            megabits(other)
        ));
    }
    if let Some(sent) = sent {
        let seconds = whole_duration(HOME_BYTES * 8.0 / 1e6 / sent);
        said.push(format!("To send 100 GB would take about {seconds}."));
    }
    let trip = rows.iter().find(|row| row.operation == "round trip").and_then(|row| row.latency_ns);
    said.extend(trip.map(|latency| distance(latency.p50 as f64 / 1e9)));
    said
}

/// Of `lab quick`: the disk in large and in small pieces, if it is one, and the network if that was measured, over that link
/// if it is known.
pub fn of_quick(rows: &[Measurement], is_in_memory: bool, link: Option<&Link>) -> Vec<String> {
    let writes = || rows.iter().filter(|row| row.operation.ends_with("write"));
    let large_write = writes().find(|row| row.block_bytes > Some(SMALL_BLOCK)).and_then(bytes);
    let small = writes().find(|row| row.block_bytes == Some(SMALL_BLOCK));
    let disk = [
        large_write.map(|rate| large("written", rate)),
        small.and_then(|row| row.operations_per_second).map(|often| {
            format!("4 KB writes, many at once and made durable: {} a second.", number(often))
        }),
    ];
    let disk: Vec<_> = match is_in_memory {
        true => vec![OF_MEMORY.to_owned()],
        false => disk.into_iter().flatten().collect(),
    };
    disk.into_iter().chain(of_network(rows, link)).collect()
}

fn best_of(
    rows: &[Measurement],
    is_one: impl Fn(&Measurement) -> bool,
    figure: fn(&Measurement) -> Option<f64>,
) -> Option<f64> {
    let figures = rows.iter().filter(|row| is_one(row)).filter_map(figure);
    figures.filter(|figure| *figure > 0.0).reduce(f64::max)
}

fn bytes(row: &Measurement) -> Option<f64> {
    row.bytes_per_second
}

fn is_alone(row: &Measurement) -> bool {
    row.queue_depth.unwrap_or(1) == 1 && row.jobs.unwrap_or(1) == 1
}

fn number(value: f64) -> String {
    count(value.round() as u64)
}

fn large(done: &str, rate: f64) -> String {
    let like = nearest(&DISKS, |kind| Some(kind.bytes_per_second), rate);
    let like = like.map_or_else(String::new, |kind| format!(", like {}", kind.name));
    format!("Large files are {done} at {}{like}.", Unit::BytesPerSecond.show(rate))
}

fn small_reads(often: f64) -> String {
    let like = nearest(&DISKS, |kind| kind.random_reads, often);
    let like = like.map_or_else(String::new, |kind| format!(", like {}", kind.name));
    format!("4 KB random reads: {} a second{like}.", number(often))
}

fn safe_after(seconds: f64) -> String {
    let time = match seconds {
        ..0.001 => format!("{:.2} ms", seconds * 1e3),
        ..1.0 => format!("{:.1} ms", seconds * 1e3),
        _ => format!("{seconds:.1} s"),
    };
    let judged = match seconds {
        ..QUICK_FSYNC_SECONDS => "quick",
        ..SLOW_FSYNC_SECONDS => "as on a hard disk, and slow for an SSD",
        _ => "slow for any disk",
    };
    format!("What is written is safe against a power cut after {time} (fsync): {judged}.")
}

/// `96 Mb/s (12.0 MB/s)`.
fn both_units(mbits: f64) -> String {
    format!("{} ({})", megabits(mbits), Unit::BytesPerSecond.show(mbits * 1e6 / 8.0))
}

/// `96 Mb/s`, `2.35 Gb/s`.
pub fn megabits(mbits: f64) -> String {
    match mbits {
        1_000.0.. => format!("{:.2} Gb/s", mbits / 1e3),
        10.0.. => format!("{mbits:.0} Mb/s"),
        _ => format!("{mbits:.1} Mb/s"),
    }
}

/// What carried so much, beside what the interface could do.
fn carried(mbits: f64, link: Option<&Link>) -> String {
    let is_full = |kind: &&NetworkKind| {
        let share = mbits / kind.carried_mbits;
        kind.sold_mbits.is_some() && (NEARLY_ALL..=1.05).contains(&share)
    };
    let full = NETWORKS.iter().find(is_full);
    let interface = link.and_then(|link| link.speed_mbits).map(|speed| speed as f64);
    match (full, interface) {
        _ if link.is_some_and(Link::is_own) => "within this computer, over no network".to_owned(),
        _ if link.is_some_and(|link| link.wireless) => {
            "over Wi-Fi, where a cable would be faster and steadier".to_owned()
        }
        (Some(kind), Some(speed)) if kind.sold_mbits.is_some_and(|sold| sold < speed) => format!(
            "a port or cable on the way is {}; your interface says {}",
            kind.name,
            sold_as(speed)
        ),
        (Some(kind), Some(_)) => format!("all that your interface of {} carries", kind.name),
        (Some(kind), None) => format!("all that a network of {} carries", kind.name),
        (None, Some(speed)) if mbits < speed * NEARLY_ALL => format!(
            "{:.0} % of what your interface says, {}; the other end, its disk or something on the way is slower",
            mbits / speed * 100.0,
            sold_as(speed)
        ),
        (None, _) => {
            let like = nearest(&NETWORKS, |kind| Some(kind.carried_mbits), mbits);
            like.map_or_else(String::new, |kind| match kind.sold_mbits {
                Some(_) => format!("nearest to a network of {}", kind.name),
                None => format!("like good {}", kind.name),
            })
        }
    }
}

/// `10 Gb/s`, as a port is sold.
fn sold_as(mbits: f64) -> String {
    if mbits >= 1_000.0 { format!("{} Gb/s", mbits / 1e3) } else { format!("{mbits} Mb/s") }
}

fn distance(seconds: f64) -> String {
    let judged = match seconds {
        ..NEAR_SECONDS => "as over a cable in the same house",
        ..FAR_SECONDS => "as over Wi-Fi, or to a place nearby",
        _ => "it is far away, so that many small requests take long",
    };
    format!("An answer takes {:.1} ms: {judged}.", seconds * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdall_meter::Latency;

    fn row(operation: &str, bytes: f64, often: f64) -> Measurement {
        Measurement {
            bytes_per_second: Some(bytes),
            operations_per_second: Some(often),
            bytes_per_core_second: Some(bytes),
            ..Measurement::new(operation, 1.0)
        }
    }

    fn timed(operation: &str, p50: u64) -> Measurement {
        let latency_ns = Some(Latency { p50, p90: p50, p99: p50, p99_9: p50 });
        Measurement { latency_ns, ..Measurement::new(operation, 1.0) }
    }

    #[test]
    fn a_disk_is_told_by_what_people_know() {
        let small = |queue_depth, often| Measurement {
            block_bytes: Some(4096),
            queue_depth: Some(queue_depth),
            jobs: Some(1),
            ..row("random read", often * 4096.0, often)
        };
        let rows = [
            row("sequential read", 1.5e9, 1500.0),
            row("sequential read", 0.2e9, 1500.0),
            row("sequential write", 500e6, 500.0),
            small(32, 120_000.0),
            small(1, 12_000.0),
            timed("fsync", 4_000_000),
        ];
        assert_eq!(
            of_disk(&rows, false),
            [
                "Large files are read at 1.50 GB/s, like an NVMe SSD.",
                "Large files are written at 500.0 MB/s, like a SATA SSD.",
                "4 KB random reads: 12,000 a second, like a SATA SSD.",
                "What is written is safe against a power cut after 4.0 ms (fsync): as on a hard disk, and slow for \
                 an SSD.",
                "A first backup of 100 GB to this disk would take at least 3 min 20 s.",
            ]
        );
        assert_eq!(of_disk(&rows[5..], false).len(), 1, "what was not measured is not told");
        assert!(of_disk(&[small(1, 75.0)], false)[0].ends_with("75 a second, like a hard disk."));
    }

    #[test]
    fn files_are_told_by_the_million() {
        let by = |jobs, often| Measurement { jobs: Some(jobs), ..row("stat", 0.0, often) };
        let rows = [
            by(1, 30_000.0),
            by(4, 50_000.0),
            row("list", 0.0, 50_000.0),
            row("read", 40e6, 10_000.0),
            Measurement { jobs: Some(8), ..row("fsync", 0.0, 10_000.0) },
            row("fsync", 0.0, 480.0),
        ];
        let told = of_files(&rows);
        assert_eq!(
            told,
            [
                "To look at a million small files, as a backup does if nothing changed, would take about 40 s here.",
                "To read a million small files, as a first backup does: about 1 min 40 s.",
                "Files made durable one by one: 480 a second."
            ]
        );
    }

    #[test]
    fn a_processor_is_told_beside_the_networks_that_it_keeps_up_with() {
        let names = ["chunk", "id", "compress at level 1 and seal", "open and compare ids"];
        let rows = |rate| names.map(|name| row(name, rate, 1.0));
        let told = of_processor(&rows(400e6), 2.0);
        assert!(told[0].contains("about 200.0 MB/s of files"), "{told:?}");
        assert!(told[0].contains("more than a network of 1 Gb/s carries"), "{told:?}");
        assert!(told[1].contains("8 min 20 s"), "{told:?}");
        let slow = of_processor(&rows(20e6), 1.0);
        assert!(slow[0].contains("the processor would be what limits"), "{slow:?}");
        assert_eq!(of_processor(&rows(1e6)[..2], 1.0), Vec::<String>::new());
    }

    #[test]
    fn a_network_is_told_in_both_units_and_beside_its_interface() {
        let link = |speed_mbits, wireless| Link {
            interface: "eth0".to_owned(),
            speed_mbits,
            wireless,
            ..Link::default()
        };
        let told = |rate, link: Option<Link>| {
            let rows = [row("send", rate, 1.0), timed("round trip", 300_000)];
            of_network(&rows, link.as_ref())
        };
        let shaped = told(12e6, Some(link(Some(10_000), false)));
        assert_eq!(
            shaped,
            [
                "96 Mb/s (12.0 MB/s): a port or cable on the way is 100 Mb/s; your interface says 10 Gb/s.",
                "To send 100 GB would take about 2 h 18 min.",
                "An answer takes 0.3 ms: as over a cable in the same house."
            ]
        );
        let first = |rate, link| told(rate, link)[0].clone();
        let full = first(117e6, Some(link(Some(1_000), false)));
        assert!(full.ends_with("all that your interface of 1 Gb/s carries."), "{full}");
        let half = first(60e6, Some(link(Some(1_000), false)));
        assert!(half.contains("48 % of what your interface says, 1 Gb/s"), "{half}");
        assert!(first(30e6, Some(link(None, true))).contains("over Wi-Fi"));
        assert!(first(50e6, None).contains("like good Wi-Fi"));
        let own = Link { interface: "lo".to_owned(), ..Link::default() };
        let within = told(12e6, Some(own));
        assert_eq!(within, ["96 Mb/s (12.0 MB/s): within this computer, over no network."]);
        let rows = [row("send", 5e6, 1.0), row("receive", 30e6, 1.0)];
        assert!(
            of_network(&rows, None)[1].contains("The way to there is slower, 40 Mb/s of 240 Mb/s")
        );
    }

    #[test]
    fn a_first_impression_is_told_of_disk_and_network() {
        let block = |bytes, operation: &str| Measurement {
            block_bytes: Some(bytes),
            ..row(operation, 180e6, 900.0)
        };
        let told = of_quick(
            &[
                block(48 << 20, "sequential write"),
                block(4096, "random write"),
                row("send", 117e6, 1.0),
            ],
            false,
            None,
        );
        assert_eq!(told[0], "Large files are written at 180.0 MB/s, like a hard disk.");
        assert!(
            told[1].contains("900 a second") && told[2].contains("network of 1 Gb/s"),
            "{told:?}"
        );
        assert_eq!(of_quick(&[], false, None), Vec::<String>::new());
    }
}

//! What usual disks and networks do, in one table: figures that people know, to put measured ones beside.
//!
//! A figure says how a thing of that kind does when it is new and alone. Things of one kind differ by half or more,
//! so that a measured figure is only said to be like one of them.

/// A kind of disk, or of what a disk hangs on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DiskKind {
    /// With its article: `a hard disk`.
    pub name: &'static str,
    /// Bytes a second of large files.
    pub bytes_per_second: f64,
    /// Reads of 4 KiB at random, one at a time; `None` of what only leads to a disk.
    pub random_reads: Option<f64>,
    /// Where the figures are from.
    pub source: &'static str,
}

/// From the slowest to the fastest.
pub static DISKS: [DiskKind; 5] = [
    DiskKind {
        name: "a USB 2 port",
        bytes_per_second: 38e6,
        random_reads: None,
        source: "USB 2.0 specification, 480 Mb/s: at most 53 MB/s of bulk data; disks get 30 to 40 of them",
    },
    DiskKind {
        name: "a hard disk",
        bytes_per_second: 180e6,
        random_reads: Some(80.0),
        source: "data sheets of 3.5 inch disks (180 to 260 MB/s outside); at 7,200 turns a minute half a turn is \
                 4.2 ms and a seek about 8 ms",
    },
    DiskKind {
        name: "a USB 3 port",
        bytes_per_second: 420e6,
        random_reads: None,
        source: "USB 3.0 specification, 5 Gb/s of which 8b/10b coding leaves 500 MB/s; disks get 400 to 450",
    },
    DiskKind {
        name: "a SATA SSD",
        bytes_per_second: 550e6,
        random_reads: Some(12_000.0),
        source: "data sheets of SATA SSDs: 530 to 560 MB/s (6 Gb/s, 8b/10b), 10,000 to 13,000 reads a second, one \
                 at a time",
    },
    DiskKind {
        name: "an NVMe SSD",
        bytes_per_second: 3.3e9,
        random_reads: Some(19_000.0),
        source: "data sheets of SSDs with four lanes of PCIe 3.0: 3.3 to 3.5 GB/s, 15,000 to 20,000 reads a second, \
                 one at a time",
    },
];

/// A kind of network.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NetworkKind {
    /// As it is sold, or with its article: `100 Mb/s`, `Wi-Fi`.
    pub name: &'static str,
    /// What it is sold as, in megabits a second; `None` where that says little.
    pub sold_mbits: Option<f64>,
    /// Megabits a second that TCP carries over it.
    pub carried_mbits: f64,
    /// Where the figures are from.
    pub source: &'static str,
}

/// From the slowest to the fastest.
pub static NETWORKS: [NetworkKind; 5] = [
    NetworkKind {
        name: "100 Mb/s",
        sold_mbits: Some(100.0),
        carried_mbits: 94.1,
        source: ETHERNET,
    },
    NetworkKind {
        name: "Wi-Fi",
        sold_mbits: None,
        carried_mbits: 450.0,
        source: "IEEE 802.11ac with two streams of 80 MHz has a link of 867 Mb/s, of which about half is carried \
                 near the access point",
    },
    NetworkKind {
        name: "1 Gb/s",
        sold_mbits: Some(1_000.0),
        carried_mbits: 941.0,
        source: ETHERNET,
    },
    NetworkKind {
        name: "2.5 Gb/s",
        sold_mbits: Some(2_500.0),
        carried_mbits: 2_353.0,
        source: ETHERNET,
    },
    NetworkKind {
        name: "10 Gb/s",
        sold_mbits: Some(10_000.0),
        carried_mbits: 9_414.0,
        source: ETHERNET,
    },
];

const ETHERNET: &str =
    "IEEE 802.3: of 1,538 bytes of a full frame with its gap, TCP with timestamps carries 1,448";

/// The kind whose figure is nearest by its factor; `None` for what is no figure.
pub(crate) fn nearest<T>(kinds: &[T], of: fn(&T) -> Option<f64>, value: f64) -> Option<&T> {
    let distance = |kind: &T| Some((value / of(kind)?).ln().abs());
    let known = kinds.iter().filter_map(|kind| Some((kind, distance(kind)?)));
    let known = known.filter(|(_, distance)| distance.is_finite());
    known.min_by(|(_, one), (_, other)| one.total_cmp(other)).map(|(kind, _)| kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_go_from_slow_to_fast_and_each_has_a_source() {
        assert!(DISKS.is_sorted_by(|one, other| one.bytes_per_second < other.bytes_per_second));
        assert!(NETWORKS.is_sorted_by(|one, other| one.carried_mbits < other.carried_mbits));
        let sources = DISKS.iter().map(|kind| kind.source);
        assert!(sources.chain(NETWORKS.iter().map(|kind| kind.source)).all(|text| text.len() > 30));
        for NetworkKind { sold_mbits, carried_mbits, .. } in NETWORKS {
            // 1,448 of 1,538 bytes.
            let is_payload = |sold: f64| (carried_mbits / sold - 0.9415).abs() < 0.001;
            assert!(sold_mbits.is_none_or(is_payload), "{carried_mbits}");
        }
    }

    #[test]
    fn the_nearest_is_by_its_factor() {
        let like = |rate| nearest(&DISKS, |kind| Some(kind.bytes_per_second), rate).unwrap().name;
        assert_eq!(
            [35e6, 210e6, 500e6, 7e9].map(like),
            ["a USB 2 port", "a hard disk", "a SATA SSD", "an NVMe SSD"]
        );
        assert_eq!(nearest(&DISKS, |kind| kind.random_reads, 0.0), None);
    }
}

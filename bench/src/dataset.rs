//! The data sets that holdall is measured on, planned before anything is written.
//!
//! | set | what |
//! | --- | --- |
//! | D1 | 150,000 files of median 2 KB (log-normal, mean 8 KB) in 6,000 directories |
//! | D2 | 4 files of 1 GiB, two incompressible, two text-like |
//! | D2B | 2 files of 1 GiB, incompressible: what a link carries |
//! | D2T | 2 files of 1 GiB, text-like: what compression adds to that |
//! | D4 | 1,000,000 files of 50 to 600 bytes in 20,000 directories |
//! | S1 | 2,000 files of mean 8 KB, for links of 1 to 10 Mbit/s |
//! | S0 | 40 incompressible files of 10 KB, for links of some kbit/s |
//! | T0 | 300 files, to prove that the benchmark itself runs |

use clap::ValueEnum;

use crate::random::Random;

const SEED: u64 = 20091;
const TEXT_ENDS: [&str; 10] = ["c", "h", "py", "rs", "js", "md", "html", "json", "txt", "xml"];
const BINARY_ENDS: [&str; 6] = ["png", "jpg", "gz", "o", "pyc", "woff2"];
/// Log-normal with a median of 2 KiB has a mean of 8 KiB at this sigma: sqrt(2 ln 4).
const D1_SIGMA: f64 = 1.665;

/// A data set by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "UPPER")]
pub(crate) enum Set {
    /// 150,000 small files
    D1,
    /// 4 GiB in four files
    D2,
    /// 2 GiB that do not compress
    D2B,
    /// 2 GiB of text
    D2T,
    /// 1,000,000 tiny files
    D4,
    /// 16 MB in 2,000 small files, for slow links
    S1,
    /// 400 KB that do not compress, for very slow links
    S0,
    /// 300 files, a smoke test
    T0,
}

/// What is in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    /// Words by Zipf's law.
    Text,
    /// Bytes that do not compress.
    Binary,
}

/// A file that a set has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct File {
    /// Below the set's root.
    pub(crate) path: String,
    pub(crate) size_bytes: u64,
    pub(crate) content: Content,
}

impl File {
    /// The directory that it lies in, below the set's root; the root is empty.
    pub(crate) fn dir(&self) -> &str {
        self.path.rsplit_once('/').map_or("", |(dir, _)| dir)
    }

    /// What it is called there.
    pub(crate) fn name(&self) -> &str {
        self.path.rsplit_once('/').map_or(&self.path, |(_, name)| name)
    }
}

/// Everything that a set has, in the order in which it is written.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Directories below the root, parents first.
    pub(crate) dirs: Vec<String>,
    pub(crate) files: Vec<File>,
    pub(crate) seed: u64,
}

impl Plan {
    pub(crate) fn total_bytes(&self) -> u64 {
        self.files.iter().map(|file| file.size_bytes).sum()
    }
}

impl Set {
    /// The set's name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::D1 => "D1",
            Self::D2 => "D2",
            Self::D2B => "D2B",
            Self::D2T => "D2T",
            Self::D4 => "D4",
            Self::S1 => "S1",
            Self::S0 => "S0",
            Self::T0 => "T0",
        }
    }

    /// What the set has; the same every time.
    pub(crate) fn plan(self) -> Plan {
        match self {
            Self::D1 => small_files(SEED + 1, 150_000, 6_000, 0.25, |random| {
                random.log_normal(2048.0, D1_SIGMA).min(8e6) as u64
            }),
            Self::D2 => large_files(SEED + 50, &LARGE_FILES),
            Self::D2B => large_files(SEED + 60, &[LARGE_FILES[0], LARGE_FILES[2]]),
            Self::D2T => large_files(SEED + 70, &[LARGE_FILES[1], LARGE_FILES[3]]),
            Self::D4 => tiny_files(1_000_000),
            Self::S1 => small_files(SEED + 2, 2_000, 100, 0.25, |random| {
                random.log_normal(2048.0, D1_SIGMA).min(8e6) as u64
            }),
            Self::S0 => small_files(SEED + 3, 40, 8, 1.0, |_| 10_000),
            Self::T0 => small_files(SEED + 9, 300, 20, 0.3, |random| {
                random.log_normal(2981.0, 1.5).min(1e6) as u64
            }),
        }
    }
}

/// `count` files of 50 to 600 bytes, 50 for each directory.
pub(crate) fn tiny_files(count: usize) -> Plan {
    small_files(SEED + 4, count, (count / 50).max(1), 0.2, |random| 50 + random.below(551))
}

const LARGE_BYTES: u64 = 1 << 30;
const LARGE_FILES: [(&str, Content); 4] = [
    ("video.bin", Content::Binary),
    ("export.sql", Content::Text),
    ("disk.img", Content::Binary),
    ("server.log", Content::Text),
];

fn large_files(seed: u64, files: &[(&str, Content)]) -> Plan {
    let file = |(path, content): &(&str, Content)| File {
        path: (*path).into(),
        size_bytes: LARGE_BYTES,
        content: *content,
    };
    Plan { dirs: Vec::new(), files: files.iter().map(file).collect(), seed }
}

fn small_files(
    seed: u64,
    count: usize,
    dir_count: usize,
    binary_share: f64,
    size: impl Fn(&mut Random) -> u64,
) -> Plan {
    let mut random = Random::new(seed);
    let dirs = directories(&mut random, dir_count);
    let file = |at: usize| {
        let dir = random.index(dirs.len());
        let (content, ends) = if random.unit() < binary_share {
            (Content::Binary, BINARY_ENDS.as_slice())
        } else {
            (Content::Text, TEXT_ENDS.as_slice())
        };
        let end = ends[random.index(ends.len())];
        let path = format!("{}f{at:06}.{end}", dirs[dir]);
        File { path, size_bytes: size(&mut random), content }
    };
    let mut files: Vec<File> = (0..count).map(file).collect();
    // Directory by directory, as an installation or a checkout lays them out on disk.
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Plan { dirs, files, seed }
}

/// A tree of `count` directories, mostly 3 to 7 deep; the root first, each ending in a slash.
fn directories(random: &mut Random, count: usize) -> Vec<String> {
    let depth = |dir: &str| dir.matches('/').count();
    let mut dirs = vec![String::new()];
    for at in 1..count {
        let recent = dirs.len().saturating_sub(400);
        let mut pick = |dirs: &[String]| {
            let from = if random.unit() < 0.6 { recent } else { 0 };
            from + random.index(dirs.len() - from)
        };
        let mut parent = pick(&dirs);
        for _ in 0..7 {
            if depth(&dirs[parent]) < 9 {
                break;
            }
            parent = pick(&dirs);
        }
        dirs.push(format!("{}d{at:05x}/", dirs[parent]));
    }
    dirs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_the_same_every_time() {
        assert_eq!(Set::T0.plan(), Set::T0.plan());
    }

    #[test]
    fn sets_for_slow_links_are_small() {
        let bytes = |set: Set| set.plan().total_bytes();
        assert!((10_000_000..25_000_000).contains(&bytes(Set::S1)), "{}", bytes(Set::S1));
        assert_eq!(bytes(Set::S0), 400_000);
        assert!(Set::S0.plan().files.iter().all(|file| file.content == Content::Binary));
        assert_eq!(bytes(Set::D2B) + bytes(Set::D2T), bytes(Set::D2));
    }

    #[test]
    fn small_sets_have_their_counts_sizes_and_shares() {
        let plan = Set::D1.plan();
        assert_eq!((plan.files.len(), plan.dirs.len()), (150_000, 6_000));
        let mut sizes: Vec<u64> = plan.files.iter().map(|file| file.size_bytes).collect();
        sizes.sort_unstable();
        assert!((2000..2100).contains(&sizes[75_000]), "median {}", sizes[75_000]);
        let mean = plan.total_bytes() / 150_000;
        assert!((7_500..8_700).contains(&mean), "mean {mean}");
        let binary = plan.files.iter().filter(|file| file.content == Content::Binary).count();
        assert!((36_000..39_000).contains(&binary), "{binary} binary files");
        let deepest = plan.dirs.iter().map(|dir| dir.matches('/').count()).max();
        assert!(deepest.is_some_and(|depth| (5..20).contains(&depth)), "{deepest:?}");
    }

    #[test]
    fn parents_come_before_their_children() {
        let plan = Set::T0.plan();
        for (at, dir) in plan.dirs.iter().enumerate().skip(1) {
            let parent =
                dir.trim_end_matches('/').rsplit_once('/').map_or("", |(parent, _)| parent);
            let parent = if parent.is_empty() { String::new() } else { format!("{parent}/") };
            assert!(plan.dirs[..at].contains(&parent), "{dir}");
        }
    }
}

//! A short run of every fuzz target on the stable compiler, over inputs that are the same every time: its
//! corpus, the golden vectors, and what becomes of both when bytes are changed, cut, doubled and exchanged.
//!
//! `cargo xtask fuzz` looks for more, for as long as one likes, and needs a nightly compiler; what breaks a
//! target there belongs into its corpus. `HOLDALL_HOSTILE_INPUTS` says how many inputs each target gets here.
//! What takes an input's word for how much there is to come ends the process, for it may not have so much memory.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "tests fail by panicking, are told how long by variables, and tell the input that did it"
)]

extern crate self as holdall_fuzz;
extern crate self as libfuzzer_sys;

use std::fs;
use std::path::{Path, PathBuf};

use holdall_testkit::{Random, Slice, limit_memory, setting};

#[path = "../../../../fuzz/src/lib.rs"]
#[allow(unreachable_pub)]
mod shared;
use shared::*;
mod takers;

/// Inputs for each target.
const INPUTS: u64 = 10_000;
/// A change draws one in so many of them.
const SLICES: u64 = 5;
/// Targets that derive keys from passwords, which takes its time: one input of so many is for them.
const SLOW: [&str; 2] = ["recovery_kit", "unwrap"];
const SLOWER: u64 = 100;
/// Less than a length of four bytes may claim. A stretched password takes 1 GiB, in two tests at a time.
const MEMORY_BYTES: u64 = 3 << 30;
/// Where golden vectors are.
const GOLDEN: [&str; 5] = ["crypto.txt", "files.txt", "format.txt", "tree.txt", "wire.txt"];
/// Longest input.
const MAX_BYTES: usize = 64 << 10;

/// What a target takes, made of the bytes of an input.
trait Input<'a>: Sized {
    /// Nothing if they are none.
    fn of(bytes: &'a [u8]) -> Option<Self>;
}

impl<'a> Input<'a> for &'a [u8] {
    fn of(bytes: &'a [u8]) -> Option<Self> {
        Some(bytes)
    }
}

impl<'a> Input<'a> for &'a str {
    fn of(bytes: &'a [u8]) -> Option<Self> {
        str::from_utf8(bytes).ok()
    }
}

impl Input<'_> for Vec<(u8, u16, u8)> {
    fn of(bytes: &[u8]) -> Option<Self> {
        let (edits, _) = bytes.as_chunks::<4>();
        Some(edits.iter().map(|[a, b, c, d]| (*a, u16::from_le_bytes([*b, *c]), *d)).collect())
    }
}

/// Stands for the fuzzer's own, which hands a target its inputs.
#[macro_export]
macro_rules! fuzz_target {
    (|$data:ident: $kind:ty| $body:block) => {
        /// Runs the target on one input.
        pub(crate) fn run(bytes: &[u8]) {
            let Some($data): Option<$kind> = $crate::Input::of(bytes) else { return };
            $body
        }
    };
}

/// The targets, each in its own file. The fuzzer has a main of its own, which is not wanted here.
macro_rules! targets {
    ($($name:ident: $path:literal,)*) => {
        $(
            #[path = $path]
            #[allow(unused_attributes, unused_imports)]
            mod $name;
        )*
        const TARGETS: &[(&str, fn(&[u8]))] = &[$((stringify!($name), $name::run)),*];
    };
}

targets! {
    admin_commands: "../../../../fuzz/fuzz_targets/admin_commands.rs",
    admin_token: "../../../../fuzz/fuzz_targets/admin_token.rs",
    attributes: "../../../../fuzz/fuzz_targets/attributes.rs",
    block: "../../../../fuzz/fuzz_targets/block.rs",
    cache_files: "../../../../fuzz/fuzz_targets/cache_files.rs",
    config: "../../../../fuzz/fuzz_targets/config.rs",
    content_list: "../../../../fuzz/fuzz_targets/content_list.rs",
    extents: "../../../../fuzz/fuzz_targets/extents.rs",
    file_events: "../../../../fuzz/fuzz_targets/file_events.rs",
    invite: "../../../../fuzz/fuzz_targets/invite.rs",
    key_ring: "../../../../fuzz/fuzz_targets/key_ring.rs",
    lab_messages: "../../../../fuzz/fuzz_targets/lab_messages.rs",
    lab_report: "../../../../fuzz/fuzz_targets/lab_report.rs",
    node: "../../../../fuzz/fuzz_targets/node.rs",
    own_key: "../../../../fuzz/fuzz_targets/own_key.rs",
    pack_footer: "../../../../fuzz/fuzz_targets/pack_footer.rs",
    pack_trailer: "../../../../fuzz/fuzz_targets/pack_trailer.rs",
    path: "../../../../fuzz/fuzz_targets/path.rs",
    patterns: "../../../../fuzz/fuzz_targets/patterns.rs",
    payload: "../../../../fuzz/fuzz_targets/payload.rs",
    record: "../../../../fuzz/fuzz_targets/record.rs",
    record_secret: "../../../../fuzz/fuzz_targets/record_secret.rs",
    recovery_kit: "../../../../fuzz/fuzz_targets/recovery_kit.rs",
    requests: "../../../../fuzz/fuzz_targets/requests.rs",
    spare: "../../../../fuzz/fuzz_targets/spare.rs",
    stored_index: "../../../../fuzz/fuzz_targets/stored_index.rs",
    stored_journal: "../../../../fuzz/fuzz_targets/stored_journal.rs",
    stored_marks: "../../../../fuzz/fuzz_targets/stored_marks.rs",
    stored_parity: "../../../../fuzz/fuzz_targets/stored_parity.rs",
    stored_record: "../../../../fuzz/fuzz_targets/stored_record.rs",
    stored_words: "../../../../fuzz/fuzz_targets/stored_words.rs",
    table: "../../../../fuzz/fuzz_targets/table.rs",
    tombstone: "../../../../fuzz/fuzz_targets/tombstone.rs",
    tree: "../../../../fuzz/fuzz_targets/tree.rs",
    unwrap: "../../../../fuzz/fuzz_targets/unwrap.rs",
    wire_control: "../../../../fuzz/fuzz_targets/wire_control.rs",
    wire_deletion: "../../../../fuzz/fuzz_targets/wire_deletion.rs",
    wire_frames: "../../../../fuzz/fuzz_targets/wire_frames.rs",
    wire_lab: "../../../../fuzz/fuzz_targets/wire_lab.rs",
    wire_probe: "../../../../fuzz/fuzz_targets/wire_probe.rs",
    wire_route: "../../../../fuzz/fuzz_targets/wire_route.rs",
    wire_scrub: "../../../../fuzz/fuzz_targets/wire_scrub.rs",
    wrapping_set: "../../../../fuzz/fuzz_targets/wrapping_set.rs",
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The golden vectors of some files: what is hexadecimal at the end of a line, and the words before it.
fn vectors(files: &[&str]) -> Vec<(String, Vec<u8>)> {
    let read = |file: &&str| fs::read_to_string(root().join("golden").join(file));
    let text: String = files.iter().map(|file| read(file).expect("golden vectors")).collect();
    let vector = |line: &str| {
        let (words, hex) = line.rsplit_once(' ')?;
        Some((words.trim_end_matches(" =").to_owned(), from_hex(hex)?))
    };
    text.lines().filter_map(vector).collect()
}

/// The vectors that were made for a target, or are called as it is, and its corpus.
fn own(vectors: &[(String, Vec<u8>)], target: &str) -> Vec<Vec<u8>> {
    let is_own = |words: &str| words.split(' ').next() == Some(target);
    let own = vectors.iter().filter(|(words, _)| is_own(words));
    own.map(|(_, bytes)| bytes.clone()).chain(corpus(target)).collect()
}

/// What `fuzz/corpus` has for a target, sorted by name.
fn corpus(target: &str) -> Vec<Vec<u8>> {
    let mut files = files_in(&root().join("fuzz/corpus").join(target));
    files.sort();
    files.iter().map(|file| fs::read(file).expect("an input")).collect()
}

fn files_in(folder: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    files.map(|file| file.expect("a file").path()).collect()
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let pairs = text.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok()).collect()
}

/// A seed that was changed a few times, or not at all; every other one is the target's own, if it has
/// any.
fn input(seeds: &[Vec<u8>], own: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let is_any = own.is_empty() || random.one_in(2);
    let mut bytes = pick(if is_any { seeds } else { own }, random).clone();
    for _ in 0..random.below(5) {
        change(&mut bytes, pick(seeds, random), random);
    }
    bytes.truncate(MAX_BYTES);
    bytes
}

fn pick<'a>(seeds: &'a [Vec<u8>], random: &mut Random) -> &'a Vec<u8> {
    &seeds[random.index(seeds.len())]
}

fn change(bytes: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    let mut place = |length: usize| random.index(length + 1);
    let (at, to) = (place(bytes.len()), place(bytes.len()));
    let (from, end) = (at.min(to), at.max(to));
    let (other_from, what) = (place(other.len()), place(6));
    match what {
        0 => bytes.truncate(at),
        1 => drop(bytes.drain(from..end)),
        2 => bytes.extend_from_within(from..end),
        3 => drop(bytes.splice(from..end, other[other_from..].iter().copied())),
        // Lengths and counts at their limits.
        4 => {
            bytes[from..].iter_mut().take(4).for_each(|byte| *byte = if at > to { 255 } else { 0 })
        }
        _ => {
            if let Some(byte) = bytes.get_mut(from) {
                *byte ^= 1 << (to % 8);
            }
        }
    }
}

/// Tells the input on which a target panicked.
struct Tells<'a>(&'a str, &'a [u8]);

impl Drop for Tells<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let hex: String = self.1.iter().map(|byte| format!("{byte:02x}")).collect();
            eprintln!("the target {} panicked on {hex}", self.0);
        }
    }
}

#[test]
fn no_decoder_panics_on_changed_vectors_and_what_it_takes_it_writes_again() {
    limit_memory(MEMORY_BYTES).expect("it may have less");
    let slice = Slice::one_in(SLICES);
    let said = slice.share(setting("HOLDALL_HOSTILE_INPUTS", INPUTS));
    let vectors = vectors(&GOLDEN);
    let mut seeds = vec![Vec::new()];
    seeds.extend(vectors.iter().map(|(_, bytes)| bytes.clone()));
    assert!(seeds.len() > 100, "{}", seeds.len());
    for (number, (name, run)) in TARGETS.iter().enumerate() {
        let inputs = if SLOW.contains(name) { said.div_ceil(SLOWER) } else { said };
        let own = own(&vectors, name);
        let mut random = Random::new(slice.seed(number as u64));
        let run_all = || {
            for _ in 0..inputs {
                let bytes = input(&seeds, &own, &mut random);
                let _tells = Tells(name, &bytes);
                run(&bytes);
            }
        };
        // What a target keeps between inputs, such as a server, ends with its thread.
        std::thread::scope(|scope| scope.spawn(run_all).join()).expect("no target panics");
    }
}

#[test]
fn no_target_panics_on_its_corpus_as_it_is() {
    limit_memory(MEMORY_BYTES).expect("it may have less");
    for (name, run) in TARGETS {
        let run_all = || {
            for bytes in corpus(name) {
                let _tells = Tells(name, &bytes);
                run(&bytes);
            }
        };
        std::thread::scope(|scope| scope.spawn(run_all).join()).expect("no target panics");
    }
}

#[test]
fn every_fuzz_target_is_run_and_has_a_corpus() {
    let stem = |file: PathBuf| file.file_stem().expect("a name").to_string_lossy().into_owned();
    for folder in ["fuzz/fuzz_targets", "fuzz/corpus"] {
        let mut there: Vec<_> = files_in(&root().join(folder)).into_iter().map(stem).collect();
        there.sort();
        let run: Vec<_> = TARGETS.iter().map(|(name, _)| *name).collect();
        assert_eq!(run, there, "{folder}");
    }
    assert!(TARGETS.iter().all(|(name, _)| !corpus(name).is_empty()));
}

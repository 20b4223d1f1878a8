//! The steps of a backup that the processor does, one by one, for the lab to measure.
//!
//! Each is the very code that a backup runs, on a sample in memory, with keys that are thrown away.

use std::sync::Arc;

use holdall_crypto::{
    IdKeys, KeyRing, Opener, PlainObject, RepositoryKeys, Sealer, SystemEntropy, suite_for_this_cpu,
};
use holdall_format::{Block, BlockKind, FormatError, ObjectId, Suite};
use holdall_meter::{Moved, Probe, Step};
use holdall_tree::{
    BuiltNode, ChunkRef, Chunker, Content, Entry, EntryKind, PathKey, Time, TreeBuilder,
};

use crate::storing::LEVELS;

/// A block's worth of plain bytes.
const BLOCK_BYTES: usize = 1 << 20;
/// What is chunked at a time: several chunks.
const CHUNKED_BYTES: usize = 8 << 20;
const SUITES: [(Suite, &str); 2] =
    [(Suite::Aes256Gcm, "AES-256-GCM"), (Suite::ChaCha20Poly1305, "ChaCha20-Poly1305")];
/// Entries of which nodes are made at a time, and the bits of a path's hash that begin a leaf: that of new
/// repositories.
const TREE_ENTRIES: u32 = 2000;
const LEAF_BITS: u8 = 3;
const TEXT: &str = "text";
const INCOMPRESSIBLE: &str = "incompressible";
const ENTRIES: &str = "entries";

/// What makes the content that steps are measured with: so many bytes, from a seed.
#[derive(Debug, Clone, Copy)]
pub struct Samples {
    /// Content that compresses as text does.
    pub text: fn(usize, u64) -> Vec<u8>,
    /// Content that does not compress.
    pub incompressible: fn(usize, u64) -> Vec<u8>,
}

impl Samples {
    fn make(self, kind: &str, len_bytes: usize) -> Vec<u8> {
        let make = if kind == TEXT { self.text } else { self.incompressible };
        make(len_bytes, 1)
    }
}

/// What every step has on a thread of its own.
#[derive(Clone)]
struct Bench {
    keys: Arc<RepositoryKeys>,
    samples: Samples,
}

/// The steps, in the order in which a backup takes them, on `samples`.
pub fn cpu_probes(samples: Samples) -> Vec<Probe> {
    let keys = Arc::new(RepositoryKeys::derive(&KeyRing::generate(&mut SystemEntropy)));
    let bench = Bench { keys, samples };
    let mut probes = vec![chunk(&bench), id(&bench)];
    for level in LEVELS {
        let name = format!("compress at level {level} and seal");
        probes.push(seal(&bench, Suite::Aes256Gcm, level, name, TEXT));
    }
    for (suite, name) in SUITES {
        let name = format!("seal, {name}");
        probes.push(seal(&bench, suite, 1, name, INCOMPRESSIBLE));
    }
    for (suite, name) in SUITES {
        probes.push(open(&bench, suite, format!("open, {name}"), INCOMPRESSIBLE));
    }
    for kind in [INCOMPRESSIBLE, TEXT] {
        probes.push(check(&bench, kind));
    }
    let name = "open and decompress".to_owned();
    probes.push(open(&bench, Suite::Aes256Gcm, name, TEXT));
    probes.push(nodes(&bench.keys));
    probes
}

/// All that the processor does with `content` in a backup: cutting it into chunks, their ids,
/// compressing as fast as a backup does whose limit is the processor, sealing, and opening again what
/// was sealed.
pub fn content_probe(content: Arc<Vec<u8>>) -> Probe {
    let keys = Arc::new(RepositoryKeys::derive(&KeyRing::generate(&mut SystemEntropy)));
    probe("chunk, hash, compress, seal and check", "the source's own", move || {
        let mut steps = Steps {
            chunker: Chunker::new(keys.chunker_key()),
            ids: keys.ids().clone(),
            sealer: Sealer::new(
                keys.sealing(),
                suite_for_this_cpu(),
                LEVELS[0],
                Box::new(SystemEntropy),
            ),
            opener: Opener::new(keys.sealing(), keys.repository()),
        };
        let (content, mut at) = (Arc::clone(&content), 0);
        Box::new(move || {
            let rest = content.get(at..).unwrap_or_default();
            let piece = &rest[..rest.len().min(CHUNKED_BYTES)];
            at = if rest.len() > CHUNKED_BYTES { at + CHUNKED_BYTES } else { 0 };
            let output_bytes = steps.take(piece);
            Moved { input_bytes: piece.len() as u64, output_bytes }
        })
    })
}

/// What one thread takes content through.
struct Steps {
    chunker: Chunker,
    ids: IdKeys,
    sealer: Sealer,
    opener: Opener,
}

impl Steps {
    /// Turns content into sealed blocks, and says how long they are.
    fn take(&mut self, content: &[u8]) -> u64 {
        let (mut objects, mut block_start, mut at, mut sealed) = (Vec::new(), 0, 0, 0);
        while let Some(rest) = content.get(at..).filter(|rest| !rest.is_empty()) {
            let len = self.chunker.cut(rest);
            let id = self.ids.chunk_id(&rest[..len]);
            objects.push(PlainObject { id, refs: Vec::new(), len });
            at += len;
            if at - block_start >= BLOCK_BYTES || at == content.len() {
                sealed += self.seal(&std::mem::take(&mut objects), &content[block_start..at]);
                block_start = at;
            }
        }
        sealed
    }

    fn seal(&mut self, objects: &[PlainObject], plain: &[u8]) -> u64 {
        let Ok(sealed) = self.sealer.seal(BlockKind::Chunks, objects, plain) else { return 0 };
        let checked = self.opener.check(&sealed, BlockKind::Chunks, &self.ids);
        if checked.is_ok() { sealed.bytes().len() as u64 } else { 0 }
    }
}

fn probe(
    name: impl Into<String>,
    sample: &'static str,
    begin: impl Fn() -> Step + Send + Sync + 'static,
) -> Probe {
    Probe { name: name.into(), sample, begin: Box::new(begin) }
}

fn chunk(bench: &Bench) -> Probe {
    let (chunker, samples) = (Chunker::new(bench.keys.chunker_key()), bench.samples);
    probe("chunk", INCOMPRESSIBLE, move || {
        let (chunker, content) = (chunker.clone(), samples.make(INCOMPRESSIBLE, CHUNKED_BYTES));
        Box::new(move || {
            let mut rest = &content[..];
            while !rest.is_empty() {
                rest = rest.get(chunker.cut(rest)..).unwrap_or_default();
            }
            let bytes = content.len() as u64;
            Moved { input_bytes: bytes, output_bytes: bytes }
        })
    })
}

fn id(bench: &Bench) -> Probe {
    let Bench { keys, samples } = bench.clone();
    probe("id", INCOMPRESSIBLE, move || {
        let (keys, content) = (Arc::clone(&keys), samples.make(INCOMPRESSIBLE, BLOCK_BYTES / 2));
        Box::new(move || {
            let id = std::hint::black_box(keys.ids().chunk_id(&content));
            Moved { input_bytes: content.len() as u64, output_bytes: id.as_bytes().len() as u64 }
        })
    })
}

/// A block's object and bytes.
fn block(bench: &Bench, kind: &str) -> (Vec<PlainObject>, Vec<u8>) {
    let plain = bench.samples.make(kind, BLOCK_BYTES);
    let id = bench.keys.ids().chunk_id(&plain);
    (vec![PlainObject { id, refs: Vec::new(), len: plain.len() }], plain)
}

fn seal(bench: &Bench, suite: Suite, level: i32, name: String, kind: &'static str) -> Probe {
    let bench = bench.clone();
    probe(name, kind, move || {
        let (objects, plain) = block(&bench, kind);
        let mut sealer = Sealer::new(bench.keys.sealing(), suite, level, Box::new(SystemEntropy));
        Box::new(move || {
            let sealed = sealer.seal(BlockKind::Chunks, &objects, &plain);
            let output_bytes = sealed.map_or(0, |block| block.bytes().len() as u64);
            Moved { input_bytes: plain.len() as u64, output_bytes }
        })
    })
}

/// Its input counts as plain bytes too, so that it can be compared with sealing.
fn open(bench: &Bench, suite: Suite, name: String, kind: &'static str) -> Probe {
    let begin = with_sealed(bench, suite, kind, |_, opener, sealed| {
        opener.open(sealed, BlockKind::Chunks).is_ok()
    });
    probe(name, kind, begin)
}

/// What is done with each sealed block before it leaves: it is opened, and its ids are computed anew.
fn check(bench: &Bench, kind: &'static str) -> Probe {
    let begin = with_sealed(bench, Suite::Aes256Gcm, kind, |keys, opener, sealed| {
        opener.check(sealed, BlockKind::Chunks, keys.ids()).is_ok()
    });
    probe("open and compare ids", kind, begin)
}

/// A step that takes a sealed block, and says whether it could.
fn with_sealed(
    bench: &Bench,
    suite: Suite,
    kind: &'static str,
    take: impl Fn(&RepositoryKeys, &mut Opener, &Block<Vec<u8>>) -> bool + Copy + Send + Sync + 'static,
) -> impl Fn() -> Step + Send + Sync + 'static {
    let bench = bench.clone();
    move || {
        let (objects, plain) = block(&bench, kind);
        let mut sealer = Sealer::new(bench.keys.sealing(), suite, 3, Box::new(SystemEntropy));
        let sealed = sealer.seal(BlockKind::Chunks, &objects, &plain);
        let mut opener = Opener::new(bench.keys.sealing(), bench.keys.repository());
        let (keys, plain_bytes) = (Arc::clone(&bench.keys), plain.len() as u64);
        Box::new(move || {
            let taken = sealed.as_ref().is_ok_and(|sealed| take(&keys, &mut opener, sealed));
            let moved = if taken { plain_bytes } else { 0 };
            Moved { input_bytes: moved, output_bytes: moved }
        })
    }
}

/// Makes a tree of files: entries are encoded, gathered into nodes, and these named. The bytes are those of
/// the nodes with the ids that they refer to.
fn nodes(keys: &Arc<RepositoryKeys>) -> Probe {
    let keys = Arc::clone(keys);
    probe("make tree nodes", ENTRIES, move || {
        let keys = Arc::clone(&keys);
        let entries: Vec<_> = (0..TREE_ENTRIES).filter_map(|at| entry(&keys, at)).collect();
        Box::new(move || {
            let bytes = tree_bytes(&keys, &entries).unwrap_or(0);
            Moved { input_bytes: bytes, output_bytes: bytes }
        })
    })
}

/// A file of one chunk, as a tree has it.
fn entry(keys: &RepositoryKeys, at: u32) -> Option<(PathKey, Entry)> {
    let path = format!("/home/somebody/folder {:03}/file {at:06}", at / 25);
    let (nanos, len_bytes) = (at.wrapping_mul(0x9e37_79b9) % 1_000_000_000, 4096 + at);
    let id = keys.ids().chunk_id(path.as_bytes());
    let time = Time { secs: 1_700_000_000 + i64::from(at), nanos };
    let entry = Entry {
        mode: 0o644,
        mtime: time,
        ctime: time,
        size: len_bytes.into(),
        inode: at.into(),
        content: Content::Chunks(vec![ChunkRef { id, len_bytes }]),
        ..Entry::empty(EntryKind::File)
    };
    Some((PathKey::from_absolute(path.as_bytes()).ok()?, entry))
}

/// Builds the tree of these entries, and gives the length of its nodes.
fn tree_bytes(keys: &RepositoryKeys, entries: &[(PathKey, Entry)]) -> Option<u64> {
    let mut builder = TreeBuilder::new(keys.ids().clone(), *keys.boundary_key(), LEAF_BITS);
    let mut bytes = 0;
    let mut sink = |node: BuiltNode| {
        bytes += (node.body.len() + node.refs.len() * ObjectId::LEN) as u64;
        Ok::<_, FormatError>(())
    };
    for (path, entry) in entries {
        builder.push(path, entry, &mut sink).ok()?;
    }
    builder.finish(&mut sink).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use holdall_lab::{incompressible, text};

    use super::*;

    #[test]
    fn all_of_a_sources_content_goes_through_all_steps() {
        let content = Arc::new(text(CHUNKED_BYTES + 100_000, 7));
        let mut step = (content_probe(content).begin)();
        let goes = [step(), step(), step()].map(|moved| (moved.input_bytes, moved.output_bytes));
        assert_eq!(goes.map(|(input, _)| input), [CHUNKED_BYTES as u64, 100_000, 8 << 20]);
        for (input, output) in goes {
            assert!((input / 8..input * 3 / 5).contains(&output), "{input} became {output}");
        }
    }

    #[test]
    fn every_step_does_its_work_and_text_becomes_smaller() {
        let probes = cpu_probes(Samples { text, incompressible });
        assert_eq!(probes.len(), 2 + LEVELS.len() + 2 * SUITES.len() + 2 + 1 + 1);
        for probe in probes {
            let moved = (probe.begin)()();
            let least =
                if probe.sample == ENTRIES { 30 * TREE_ENTRIES as usize } else { BLOCK_BYTES / 2 };
            assert!(moved.input_bytes >= least as u64, "{}: {moved:?}", probe.name);
            let ratio = moved.output_bytes as f64 / moved.input_bytes as f64;
            match &*probe.name {
                "id" => assert_eq!(moved.output_bytes, 32),
                name if name.starts_with("compress") => {
                    assert!((0.15..0.6).contains(&ratio), "{name}: {ratio}");
                }
                name => assert!((0.99..1.1).contains(&ratio), "{name}: {ratio}"),
            }
        }
    }
}

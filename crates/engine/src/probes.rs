//! The steps of a backup that the processor does, one by one, for the lab to measure.
//!
//! Each is the very code that a backup runs, on a sample in memory, with keys that are thrown away.

use std::sync::Arc;

use holdall_crypto::{
    Entropy, IdKeys, KeyRing, Opener, PlainObject, RepositoryKeys, Sealer, suite_for_this_cpu,
};
use holdall_format::{BlockKind, Suite};
use holdall_lab::{Moved, Probe, Step, incompressible, text};
use holdall_tree::Chunker;

use crate::storing::LEVELS;

/// A block's worth of plain bytes.
const BLOCK_BYTES: usize = 1 << 20;
/// What is chunked at a time: several chunks.
const CHUNKED_BYTES: usize = 8 << 20;
const SUITES: [(Suite, &str); 2] =
    [(Suite::Aes256Gcm, "AES-256-GCM"), (Suite::ChaCha20Poly1305, "ChaCha20-Poly1305")];
const TEXT: &str = "text";
const INCOMPRESSIBLE: &str = "incompressible";

/// The steps, in the order in which a backup takes them. `entropy` makes a source for each thread.
pub fn cpu_probes(
    entropy: impl Fn() -> Box<dyn Entropy> + Send + Sync + Clone + 'static,
) -> Vec<Probe> {
    let keys = Arc::new(RepositoryKeys::derive(&KeyRing::generate(&mut *entropy())));
    let mut probes = vec![chunk(&keys), id(&keys)];
    for level in LEVELS {
        let name = format!("compress at level {level} and seal");
        probes.push(seal(&keys, Suite::Aes256Gcm, level, name, TEXT, entropy.clone()));
    }
    for (suite, name) in SUITES {
        let name = format!("seal, {name}");
        probes.push(seal(&keys, suite, 1, name, INCOMPRESSIBLE, entropy.clone()));
    }
    for (suite, name) in SUITES {
        probes.push(open(&keys, suite, format!("open, {name}"), INCOMPRESSIBLE, entropy.clone()));
    }
    let name = "open and decompress".to_owned();
    probes.push(open(&keys, Suite::Aes256Gcm, name, TEXT, entropy));
    probes
}

/// All that the processor does with `content` in a backup: cutting it into chunks, their ids,
/// compressing as fast as a backup does whose limit is the processor, sealing, and opening again what
/// was sealed.
pub fn content_probe(
    content: Arc<Vec<u8>>,
    entropy: impl Fn() -> Box<dyn Entropy> + Send + Sync + 'static,
) -> Probe {
    let keys = Arc::new(RepositoryKeys::derive(&KeyRing::generate(&mut *entropy())));
    probe("chunk, hash, compress, seal and check", "the source's own", move || {
        let mut steps = Steps {
            chunker: Chunker::new(keys.chunker_key()),
            ids: keys.ids().clone(),
            sealer: Sealer::new(keys.sealing(), suite_for_this_cpu(), LEVELS[0], entropy()),
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
        let opened = self.opener.open(&sealed, BlockKind::Chunks);
        let checked = opened.and_then(|opened| opened.check_ids(&self.ids, BlockKind::Chunks));
        if checked.is_ok() { sealed.bytes().len() as u64 } else { 0 }
    }
}

fn sample(kind: &str, len_bytes: usize) -> Vec<u8> {
    if kind == TEXT { text(len_bytes, 1) } else { incompressible(len_bytes, 1) }
}

fn probe(
    name: impl Into<String>,
    sample: &'static str,
    begin: impl Fn() -> Step + Send + Sync + 'static,
) -> Probe {
    Probe { name: name.into(), sample, begin: Box::new(begin) }
}

fn chunk(keys: &RepositoryKeys) -> Probe {
    let chunker = Chunker::new(keys.chunker_key());
    probe("chunk", INCOMPRESSIBLE, move || {
        let (chunker, content) = (chunker.clone(), sample(INCOMPRESSIBLE, CHUNKED_BYTES));
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

fn id(keys: &Arc<RepositoryKeys>) -> Probe {
    let keys = Arc::clone(keys);
    probe("id", INCOMPRESSIBLE, move || {
        let (keys, content) = (Arc::clone(&keys), sample(INCOMPRESSIBLE, BLOCK_BYTES / 2));
        Box::new(move || {
            let id = std::hint::black_box(keys.ids().chunk_id(&content));
            Moved { input_bytes: content.len() as u64, output_bytes: id.as_bytes().len() as u64 }
        })
    })
}

/// A block's object and bytes.
fn block(keys: &RepositoryKeys, kind: &str) -> (Vec<PlainObject>, Vec<u8>) {
    let plain = sample(kind, BLOCK_BYTES);
    let id = keys.ids().chunk_id(&plain);
    (vec![PlainObject { id, refs: Vec::new(), len: plain.len() }], plain)
}

fn seal(
    keys: &Arc<RepositoryKeys>,
    suite: Suite,
    level: i32,
    name: String,
    kind: &'static str,
    entropy: impl Fn() -> Box<dyn Entropy> + Send + Sync + 'static,
) -> Probe {
    let keys = Arc::clone(keys);
    probe(name, kind, move || {
        let (objects, plain) = block(&keys, kind);
        let mut sealer = Sealer::new(keys.sealing(), suite, level, entropy());
        Box::new(move || {
            let sealed = sealer.seal(BlockKind::Chunks, &objects, &plain);
            let output_bytes = sealed.map_or(0, |block| block.bytes().len() as u64);
            Moved { input_bytes: plain.len() as u64, output_bytes }
        })
    })
}

/// Its input counts as plain bytes too, so that it can be compared with sealing.
fn open(
    keys: &Arc<RepositoryKeys>,
    suite: Suite,
    name: String,
    kind: &'static str,
    entropy: impl Fn() -> Box<dyn Entropy> + Send + Sync + 'static,
) -> Probe {
    let keys = Arc::clone(keys);
    probe(name, kind, move || {
        let (objects, plain) = block(&keys, kind);
        let mut sealer = Sealer::new(keys.sealing(), suite, 3, entropy());
        let sealed = sealer.seal(BlockKind::Chunks, &objects, &plain);
        let mut opener = Opener::new(keys.sealing(), keys.repository());
        let plain_bytes = plain.len() as u64;
        Box::new(move || {
            let sealed = sealed.as_ref().ok();
            let opened = sealed.and_then(|sealed| opener.open(sealed, BlockKind::Chunks).ok());
            let moved = if opened.is_some() { plain_bytes } else { 0 };
            Moved { input_bytes: moved, output_bytes: moved }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every byte is different from the one before.
    struct Counting(u8);

    impl Entropy for Counting {
        fn fill(&mut self, bytes: &mut [u8]) {
            for byte in bytes {
                self.0 = self.0.wrapping_add(1);
                *byte = self.0;
            }
        }
    }

    #[test]
    fn all_of_a_sources_content_goes_through_all_steps() {
        let content = Arc::new(text(CHUNKED_BYTES + 100_000, 7));
        let mut step = (content_probe(content, || Box::new(Counting(0))).begin)();
        let goes = [step(), step(), step()].map(|moved| (moved.input_bytes, moved.output_bytes));
        assert_eq!(goes.map(|(input, _)| input), [CHUNKED_BYTES as u64, 100_000, 8 << 20]);
        for (input, output) in goes {
            assert!((input / 6..input * 3 / 5).contains(&output), "{input} became {output}");
        }
    }

    #[test]
    fn every_step_does_its_work_and_text_becomes_smaller() {
        let probes = cpu_probes(|| Box::new(Counting(0)));
        assert_eq!(probes.len(), 2 + LEVELS.len() + 2 * SUITES.len() + 1);
        for probe in probes {
            let moved = (probe.begin)()();
            assert!(moved.input_bytes >= BLOCK_BYTES as u64 / 2, "{}: {moved:?}", probe.name);
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

//! Fixed keys and fixed randomness.

use holdall_crypto::{Entropy, KeyRing, Opener, PlainObject, RepositoryKeys, Sealer};
use holdall_format::{BlockKind, ObjectId, Suite};

/// A ring of one epoch, whose master secret is made of that byte.
pub(crate) fn ring(byte: u8) -> KeyRing {
    KeyRing::from_master([byte; 32])
}

pub(crate) fn keys(byte: u8) -> RepositoryKeys {
    RepositoryKeys::derive(&ring(byte))
}

/// The ring of that byte with a second epoch, whose secret is made of 0x77.
pub(crate) fn rotated(byte: u8) -> KeyRing {
    let front = [&b"HMst"[..], &[2, 1]].concat();
    KeyRing::decode(&[&front[..], &[byte; 32], &[0x77; 32]].concat()).unwrap()
}

/// A generator that is stuck: it gives the same byte for ever.
pub(crate) struct Stuck(pub(crate) u8);

impl Entropy for Stuck {
    fn fill(&mut self, out: &mut [u8]) {
        out.fill(self.0);
    }
}

pub(crate) fn sealer(keys: &RepositoryKeys, suite: Suite) -> Sealer {
    Sealer::new(keys.sealing(), suite, 3, Box::new(Stuck(5)))
}

pub(crate) fn opener(keys: &RepositoryKeys) -> Opener {
    Opener::new(keys.sealing(), keys.repository())
}

/// Bytes that no compressor makes smaller, the same for each seed.
pub(crate) fn noise(seed: &str, len_bytes: usize) -> Vec<u8> {
    let mut out = vec![0; len_bytes];
    blake3::Hasher::new().update(seed.as_bytes()).finalize_xof().fill(&mut out);
    out
}

/// Objects of that kind with these bodies; nodes refer to as many ids as their place says.
pub(crate) fn objects(
    keys: &RepositoryKeys,
    kind: BlockKind,
    bodies: &[&[u8]],
) -> (Vec<PlainObject>, Vec<u8>) {
    let object = |(at, body): (usize, &&[u8])| {
        let count = if kind == BlockKind::Nodes { at % 4 } else { 0 };
        let refs: Vec<ObjectId> =
            (0..count).map(|n| ObjectId::from_bytes([n as u8 + 1; 32])).collect();
        let id = match kind {
            BlockKind::Nodes => keys.ids().node_id(&refs, body),
            _ => keys.ids().chunk_id(body),
        };
        PlainObject { id, refs, len: body.len() }
    };
    (bodies.iter().enumerate().map(object).collect(), bodies.concat())
}

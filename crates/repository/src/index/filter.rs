//! A filter beside each run: most ids that a run lacks are told without reading a page of it.
//!
//! A first full backup asks for ids of which nearly none is there, and there are several runs. This
//! is a Bloom filter in lines of 64 bytes, about 8 bits for each entry, but never more than 4 MiB:
//! over 4 million entries it tells less, and costs no more memory. Ids are hashes already, so their
//! own bytes choose the bits.

use holdall_format::ObjectId;

const LINE_BYTES: usize = 64;
const MAX_BYTES: usize = 4 << 20;
const PROBES: u32 = 5;

/// Which ids may be in a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Filter {
    bytes: Vec<u8>,
}

impl Filter {
    /// An empty filter for a run of that many entries.
    pub(crate) fn for_entries(entries: u64) -> Self {
        Self { bytes: vec![0; Self::len_bytes(entries)] }
    }

    /// How long the filter of such a run is.
    pub(crate) fn len_bytes(entries: u64) -> usize {
        let wanted = usize::try_from(entries).unwrap_or(usize::MAX).min(MAX_BYTES);
        wanted.next_power_of_two().clamp(LINE_BYTES, MAX_BYTES)
    }

    /// Wraps stored bytes, whose length is that of such a run's filter.
    pub(crate) fn from_bytes(bytes: Vec<u8>) -> Self {
        Self { bytes }
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Adds an id.
    pub(crate) fn insert(&mut self, id: &ObjectId) {
        let (line, mut bits) = self.place(id);
        for _ in 0..PROBES {
            let bit = (bits % 512) as usize;
            if let Some(byte) = self.bytes.get_mut(line + bit / 8) {
                *byte |= 1 << (bit % 8);
            }
            bits >>= 9;
        }
    }

    /// Whether the id may be there; `false` is certain.
    pub(crate) fn may_have(&self, id: &ObjectId) -> bool {
        let (line, bits) = self.place(id);
        (0..PROBES).all(|probe| {
            let bit = ((bits >> (9 * probe)) % 512) as usize;
            self.bytes.get(line + bit / 8).is_some_and(|byte| byte & (1 << (bit % 8)) != 0)
        })
    }

    /// The line of an id, and the bits that choose inside it.
    fn place(&self, id: &ObjectId) -> (usize, u64) {
        let number = |at: usize| {
            id.as_bytes().split_at(at).1.first_chunk().map_or(0, |part| u64::from_le_bytes(*part))
        };
        let lines = (self.bytes.len() / LINE_BYTES) as u64;
        ((number(16) & (lines - 1)) as usize * LINE_BYTES, number(24))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u32) -> ObjectId {
        ObjectId::from_bytes(*blake3::hash(&number.to_le_bytes()).as_bytes())
    }

    #[test]
    fn what_was_added_may_be_there_and_most_else_is_not() {
        let mut filter = Filter::for_entries(10_000);
        (0..10_000).for_each(|number| filter.insert(&id(number)));
        assert!((0..10_000).all(|number| filter.may_have(&id(number))));
        let wrong = (10_000..20_000).filter(|&number| filter.may_have(&id(number))).count();
        assert!(wrong < 600, "{wrong} of 10,000");
    }

    #[test]
    fn its_size_has_a_limit() {
        assert_eq!(Filter::len_bytes(0), LINE_BYTES);
        assert_eq!(Filter::len_bytes(u64::MAX), MAX_BYTES);
    }
}

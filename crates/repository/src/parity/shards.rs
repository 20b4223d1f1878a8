//! The shards of a file, and the code between them.
//!
//! Reed-Solomon over GF(2^16): of d data shards and p parity shards any d restore all. Shards are coded
//! 4 KiB at a time, the same part of each, so that a pack of 64 MiB needs some megabytes of memory and
//! not several times its length.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use reed_solomon_simd::{ReedSolomonDecoder, ReedSolomonEncoder};

use super::head::SHARD_BYTES;

/// Bytes of each shard that are coded at once.
const PART_BYTES: usize = 4096;

/// Shards that lie one behind the other in a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shards<'a> {
    /// The file.
    pub(crate) file: &'a File,
    /// Where the first shard starts.
    pub(crate) at: u64,
    /// Where the last shard ends; what is missing of it counts as zeros.
    pub(crate) end: u64,
}

impl Shards<'_> {
    /// Reads a part of a shard.
    fn read(&self, shard: usize, offset: usize, part: &mut [u8]) -> io::Result<()> {
        let at = self.at + (shard * SHARD_BYTES + offset) as u64;
        let there = self.end.saturating_sub(at).min(part.len() as u64) as usize;
        let (there, missing) = part.split_at_mut(there);
        missing.fill(0);
        self.file.read_exact_at(there, at)
    }

    /// Writes a part of a shard, as far as it is in the file.
    fn write(&self, shard: usize, offset: usize, part: &[u8]) -> io::Result<()> {
        let at = self.at + (shard * SHARD_BYTES + offset) as u64;
        let there = self.end.saturating_sub(at).min(part.len() as u64) as usize;
        self.file.write_all_at(part.get(..there).unwrap_or_default(), at)
    }

    /// BLAKE3 of a shard.
    pub(crate) fn hash(
        &self,
        shard: usize,
        buffer: &mut [u8; SHARD_BYTES],
    ) -> io::Result<[u8; 32]> {
        self.read(shard, 0, buffer)?;
        Ok(*blake3::hash(buffer).as_bytes())
    }

    /// Copies the sound shards to another file.
    pub(crate) fn copy_sound(&self, sound_shards: &[bool], to: &Self) -> io::Result<()> {
        let mut buffer = Box::new([0; SHARD_BYTES]);
        for shard in sound(sound_shards) {
            self.read(shard, 0, buffer.as_mut_slice())?;
            to.write(shard, 0, buffer.as_slice())?;
        }
        Ok(())
    }

    /// Which shards have these hashes; one that cannot be read has not.
    pub(crate) fn sound(&self, hashes: &[[u8; 32]]) -> Vec<bool> {
        let mut buffer = Box::new([0; SHARD_BYTES]);
        let hashes = hashes.iter().enumerate();
        hashes
            .map(|(shard, hash)| self.hash(shard, &mut buffer).is_ok_and(|found| found == *hash))
            .collect()
    }
}

/// Writes `parity_shards` shards of parity for `data_shards` shards of data.
pub(crate) fn encode(
    data: Shards<'_>,
    data_shards: usize,
    parity: Shards<'_>,
    parity_shards: usize,
) -> io::Result<()> {
    let mut encoder = ReedSolomonEncoder::new(data_shards, parity_shards, PART_BYTES)
        .map_err(io::Error::other)?;
    let mut part = [0; PART_BYTES];
    for offset in (0..SHARD_BYTES).step_by(PART_BYTES) {
        for shard in 0..data_shards {
            data.read(shard, offset, &mut part)?;
            encoder.add_original_shard(part).map_err(io::Error::other)?;
        }
        let coded = encoder.encode().map_err(io::Error::other)?;
        for (shard, part) in coded.recovery_iter().enumerate() {
            parity.write(shard, offset, part)?;
        }
    }
    Ok(())
}

/// Writes the shards of `data` again that are not sound, from those that are and from sound parity.
///
/// # Errors
/// If fewer shards are sound than there are shards of data.
pub(crate) fn restore(
    data: Shards<'_>,
    sound_data: &[bool],
    parity: Shards<'_>,
    sound_parity: &[bool],
) -> io::Result<()> {
    let (data_shards, parity_shards) = (sound_data.len(), sound_parity.len());
    let mut decoder = ReedSolomonDecoder::new(data_shards, parity_shards, PART_BYTES)
        .map_err(io::Error::other)?;
    let mut part = [0; PART_BYTES];
    for offset in (0..SHARD_BYTES).step_by(PART_BYTES) {
        for shard in sound(sound_data) {
            data.read(shard, offset, &mut part)?;
            decoder.add_original_shard(shard, part).map_err(io::Error::other)?;
        }
        for shard in sound(sound_parity) {
            parity.read(shard, offset, &mut part)?;
            decoder.add_recovery_shard(shard, part).map_err(io::Error::other)?;
        }
        let restored = decoder.decode().map_err(io::Error::other)?;
        for (shard, part) in restored.restored_original_iter() {
            data.write(shard, offset, part)?;
        }
    }
    Ok(())
}

fn sound(shards: &[bool]) -> impl Iterator<Item = usize> {
    shards.iter().enumerate().filter_map(|(shard, sound)| sound.then_some(shard))
}

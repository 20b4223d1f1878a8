//! Holes: at the start, in the middle, at the end, nothing else, very many, very long.

use std::io;
use std::os::unix::fs::FileExt;

use holdall_sys::metadata;

use super::place::Place;

const MIB: u64 = 1 << 20;
const DATA_BYTES: u64 = 64 << 10;

pub(super) fn make(place: &mut Place, hole_bytes: u64, large_bytes: u64) -> io::Result<()> {
    make_one(place, b"hole-at-start", 2 * MIB, &[2 * MIB - DATA_BYTES])?;
    make_one(place, b"hole-in-middle", 2 * MIB, &[0, 2 * MIB - DATA_BYTES])?;
    make_one(place, b"hole-at-end", 2 * MIB, &[0])?;
    make_one(place, b"data-in-middle", 3 * MIB + 17, &[MIB])?;
    make_one(place, b"all-hole", 5 * MIB + 1, &[])?;
    make_one(place, b"small-hole", 100_000, &[])?;
    let many: Vec<u64> = (0..50).map(|number| number * 2 * DATA_BYTES).collect();
    make_one(place, b"many-holes", 100 * DATA_BYTES, &many)?;
    make_one(place, b"longest-hole", hole_bytes, &[])?;
    make_one(place, b"data-after-longest-hole", hole_bytes, &[hole_bytes - DATA_BYTES])?;
    let spread: Vec<u64> = (1..5).map(|fifth| large_bytes / 5 * fifth / 4096 * 4096).collect();
    make_one(place, b"large", large_bytes, &spread)?;
    place.finish()
}

/// Makes a file of `len_bytes` that is a hole but for 64 KiB of data at each of `data_offsets`.
fn make_one(
    place: &mut Place,
    name: &[u8],
    len_bytes: u64,
    data_offsets: &[u64],
) -> io::Result<()> {
    let file = place.file(name, b"")?;
    file.set_len(len_bytes)?;
    for &offset in data_offsets {
        let content = crate::Random::new(offset ^ len_bytes).bytes(DATA_BYTES as usize);
        let fitting = (len_bytes - offset).min(DATA_BYTES) as usize;
        file.write_all_at(&content[..fitting], offset)?;
    }
    metadata::set_mtime(&file, place.next_time())
}

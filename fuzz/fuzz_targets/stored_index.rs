//! The files of a repository's index, as they come and with checksums that hold.

#![no_main]

use holdall_fuzz::{checked, id, read_again};
use holdall_repository::decoders::{StoredFile, found_in_run};
use libfuzzer_sys::fuzz_target;

/// What a run begins with, and bytes of its front before the checksum.
const RUN_MAGIC: &[u8] = b"HRun";
const RUN_FRONT_BYTES: usize = 40;
/// Where a front has the number of entries, bytes of a page, and entries in it.
const ENTRIES_AT: usize = 32;
const PAGE_BYTES: usize = 4096;
const PAGE_ENTRIES: u64 = 85;

fuzz_target!(|data: &[u8]| {
    let checked = checked(data);
    for file in [StoredFile::IndexManifest, StoredFile::IndexRunFront] {
        read_again(file, data);
        read_again(file, &checked);
    }
    if data.starts_with(RUN_MAGIC) {
        let folder = tempfile::tempdir().unwrap();
        let ids = [0, 0x11, 0x22, 0xff].map(id);
        let with_checksums = with_checksums(data).unwrap_or_default();
        for bytes in [data, &with_checksums] {
            let found = found_in_run(folder.path(), bytes, &ids).unwrap_or(0);
            // Each is looked for once, and an entry has its place in a page.
            assert!(found <= ids.len() * bytes.len());
        }
    }
});

/// Makes the checksums of a run's front and end hold; those of its pages stay as they are.
fn with_checksums(data: &[u8]) -> Option<Vec<u8>> {
    let mut run = data.to_vec();
    let (clear, rest) = run.split_at_mut_checked(RUN_FRONT_BYTES)?;
    let hash = blake3::hash(clear);
    rest.first_chunk_mut::<32>()?.copy_from_slice(hash.as_bytes());
    let entries = u64::from_le_bytes(*clear.get(ENTRIES_AT..)?.first_chunk()?);
    let pages = usize::try_from(entries.div_ceil(PAGE_ENTRIES)).ok()?;
    let end_at = pages.checked_add(1)?.checked_mul(PAGE_BYTES)?;
    let end = checked(run.get(end_at..)?);
    run.truncate(end_at);
    run.extend_from_slice(&end);
    Some(run)
}

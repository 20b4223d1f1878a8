//! What lies inside the seal of a block.
//!
//! ```text
//! payload:   | compression u8 | body length u32 | unpacked length u32 | body | zeros |
//! unpacked:  | object count u32 | per object, in true order: table position u32, length u32 | plain |
//! ```
//!
//! Compression is 0 (the body is the unpacked bytes) or 1 (the body is one zstd frame of them). The
//! whole has the length that [`padded_len`] gives for what comes before the zeros. A record's
//! sealed half has no objects and its plain bytes are free.
//!
//! What is read here was authenticated, but whoever shares the repository may have sealed it:
//! lengths are checked as everywhere.

use bytes::Bytes;
use holdall_format::limits::{BLOCK_MAX_OBJECTS, BLOCK_MAX_PAYLOAD_BYTES, BLOCK_MAX_PLAIN_BYTES};
use holdall_format::wire::{Reader, put_length};
use holdall_format::{BlockKind, FormatError, TableEntry, padded_len};
use zstd::bulk::Decompressor;
use zstd::zstd_safe;

use crate::{CryptoError, OpenedBlock, OpenedObject};

const WHAT: &str = "block payload";
/// Bytes before the body.
const PREFIX_BYTES: usize = 9;
/// Most bytes of a directory.
const DIRECTORY_MAX_BYTES: usize = directory_bytes(BLOCK_MAX_OBJECTS);
/// Most bytes of an unpacked body; nothing larger is ever allocated.
const UNPACKED_MAX_BYTES: usize = BLOCK_MAX_PLAIN_BYTES + DIRECTORY_MAX_BYTES;

/// How a body is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compression {
    Raw,
    Zstd,
}

/// Length of the directory of so many objects.
pub(crate) const fn directory_bytes(objects: usize) -> usize {
    4 + 8 * objects
}

/// Length of a payload whose body has that length.
pub(crate) fn payload_bytes(body_bytes: usize) -> usize {
    padded_len(PREFIX_BYTES + body_bytes)
}

/// Length of the zeros behind a body of that length.
pub(crate) fn padding_bytes(body_bytes: usize) -> usize {
    payload_bytes(body_bytes) - (PREFIX_BYTES + body_bytes)
}

/// Appends what stands before the body.
pub(crate) fn put_prefix(
    out: &mut Vec<u8>,
    compression: Compression,
    body_bytes: usize,
    unpacked_bytes: usize,
) {
    out.push(match compression {
        Compression::Raw => 0,
        Compression::Zstd => 1,
    });
    put_length(out, body_bytes);
    put_length(out, unpacked_bytes);
}

/// Appends a directory of objects, given as (table position, length) in their true order.
pub(crate) fn put_directory(
    out: &mut Vec<u8>,
    objects: impl ExactSizeIterator<Item = (u32, usize)>,
) {
    put_length(out, objects.len());
    for (position, len_bytes) in objects {
        out.extend_from_slice(&position.to_le_bytes());
        put_length(out, len_bytes);
    }
}

/// Unpacks decrypted payloads; owns a zstd context, and a buffer.
#[derive(Default)]
pub(crate) struct Unpacker {
    zstd: Decompressor<'static>,
    /// What was unpacked last, where that is not kept.
    unpacked: Vec<u8>,
}

/// Objects in their true order, and their bytes, which stay where they are.
pub(crate) struct Unpacked<'a> {
    pub(crate) plain: &'a [u8],
    pub(crate) objects: Vec<OpenedObject>,
}

impl Unpacker {
    /// Reads a payload of a block of that kind with that table.
    ///
    /// # Errors
    /// [`CryptoError::Format`] or [`CryptoError::Compression`].
    pub(crate) fn unpack(
        &mut self,
        payload: &[u8],
        kind: BlockKind,
        table: &[TableEntry],
    ) -> Result<OpenedBlock, CryptoError> {
        let (compression, body, unpacked_bytes) = split(payload)?;
        let unpacked = match compression {
            Compression::Raw => Bytes::copy_from_slice(body),
            Compression::Zstd => {
                let mut unpacked = Vec::new();
                self.decompress(body, unpacked_bytes, &mut unpacked)?;
                unpacked.into()
            }
        };
        let Unpacked { plain, objects } = read_unpacked(&unpacked, kind, table)?;
        Ok(OpenedBlock::new(unpacked.slice_ref(plain), objects))
    }

    /// The same for who only looks at it.
    ///
    /// # Errors
    /// As [`Unpacker::unpack`].
    pub(crate) fn look<'a>(
        &'a mut self,
        payload: &'a [u8],
        kind: BlockKind,
        table: &[TableEntry],
    ) -> Result<Unpacked<'a>, CryptoError> {
        let (compression, body, unpacked_bytes) = split(payload)?;
        match compression {
            Compression::Raw => read_unpacked(body, kind, table),
            Compression::Zstd => {
                let mut unpacked = std::mem::take(&mut self.unpacked);
                self.decompress(body, unpacked_bytes, &mut unpacked)?;
                self.unpacked = unpacked;
                read_unpacked(&self.unpacked, kind, table)
            }
        }
    }

    /// Puts what a body unpacks to into `unpacked`, in place of what is there.
    fn decompress(
        &mut self,
        body: &[u8],
        unpacked_bytes: usize,
        unpacked: &mut Vec<u8>,
    ) -> Result<(), CryptoError> {
        if zstd_safe::find_frame_compressed_size(body) != Ok(body.len()) {
            return Err(invalid("body", "not exactly one frame"));
        }
        unpacked.clear();
        unpacked.reserve(unpacked_bytes);
        let found = self
            .zstd
            .decompress_to_buffer(body, unpacked)
            .map_err(|error| CryptoError::Compression { reason: error.to_string() })?;
        if found != unpacked_bytes {
            return Err(invalid("unpacked length", "not that of the body"));
        }
        Ok(())
    }
}

fn split(payload: &[u8]) -> Result<(Compression, &[u8], usize), CryptoError> {
    let mut reader = Reader::new(WHAT, payload);
    let compression = match reader.u8("compression")? {
        0 => Compression::Raw,
        1 => Compression::Zstd,
        _ => return Err(invalid("compression", "unknown")),
    };
    let body_bytes = reader.length("body length", BLOCK_MAX_PAYLOAD_BYTES)?;
    let unpacked_bytes = reader.length("unpacked length", UNPACKED_MAX_BYTES)?;
    let body = reader.bytes("body", body_bytes)?;
    // A fold over all bytes is faster than one that stops early, and none of it is expected to.
    let padding = reader.remaining().iter().fold(0, |any, byte| any | byte);
    if payload.len() != payload_bytes(body_bytes) || padding != 0 {
        return Err(invalid("padding", "not the expected zeros"));
    }
    if compression == Compression::Raw && body_bytes != unpacked_bytes {
        return Err(invalid("unpacked length", "not that of the body"));
    }
    Ok((compression, body, unpacked_bytes))
}

fn read_unpacked<'a>(
    unpacked: &'a [u8],
    kind: BlockKind,
    table: &[TableEntry],
) -> Result<Unpacked<'a>, CryptoError> {
    let mut reader = Reader::new(WHAT, unpacked);
    let count = reader.length("object count", BLOCK_MAX_OBJECTS)?;
    if count != table.len() || (kind == BlockKind::Record && count > 0) {
        return Err(invalid("object count", "not that of the table, or a record has objects"));
    }
    let mut used = vec![false; count];
    let mut objects = Vec::with_capacity(count);
    let mut end = 0;
    for _ in 0..count {
        let position = reader.u32("table position")? as usize;
        let len_bytes = reader.length("object length", BLOCK_MAX_PLAIN_BYTES)?;
        let (Some(entry), Some(used)) = (table.get(position), used.get_mut(position)) else {
            return Err(invalid("table position", "outside the table"));
        };
        if std::mem::replace(used, true) {
            return Err(invalid("table position", "given twice"));
        }
        let range = end..end + len_bytes;
        end = range.end;
        objects.push(OpenedObject { id: entry.id, refs: entry.refs.clone(), range });
    }
    let plain = reader.remaining();
    if plain.len() > BLOCK_MAX_PLAIN_BYTES || (kind != BlockKind::Record && plain.len() != end) {
        return Err(invalid("plain bytes", "not as many as the directory says"));
    }
    Ok(Unpacked { plain, objects })
}

fn invalid(field: &'static str, reason: &'static str) -> CryptoError {
    FormatError::Invalid { what: WHAT, field, reason }.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdall_format::ObjectId;
    use proptest::prelude::*;

    fn table(count: u8) -> Vec<TableEntry> {
        let entry = |n| TableEntry { id: ObjectId::from_bytes([n; 32]), refs: Vec::new() };
        (0..count).map(entry).collect()
    }

    fn payload(compression: Compression, body: &[u8], unpacked_bytes: usize) -> Vec<u8> {
        let mut out = Vec::new();
        put_prefix(&mut out, compression, body.len(), unpacked_bytes);
        out.extend_from_slice(body);
        out.resize(payload_bytes(body.len()), 0);
        out
    }

    fn unpacked() -> Vec<u8> {
        let mut out = Vec::new();
        put_directory(&mut out, [(1, 3), (0, 2)].into_iter());
        out.extend_from_slice(b"abcde");
        out
    }

    fn unpack(payload: &[u8]) -> Result<OpenedBlock, CryptoError> {
        Unpacker::default().unpack(payload, BlockKind::Chunks, &table(2))
    }

    #[test]
    fn objects_come_back_in_their_true_order() {
        let frame = zstd::bulk::compress(&unpacked(), 3).unwrap();
        for payload in [
            payload(Compression::Raw, &unpacked(), unpacked().len()),
            payload(Compression::Zstd, &frame, unpacked().len()),
        ] {
            let opened = unpack(&payload).unwrap();
            assert_eq!(opened.plain, b"abcde"[..]);
            assert_eq!(opened.find(&ObjectId::from_bytes([1; 32])), Some(&b"abc"[..]));
            assert_eq!(opened.find(&ObjectId::from_bytes([0; 32])), Some(&b"de"[..]));
        }
    }

    #[test]
    fn a_second_frame_a_skippable_frame_and_a_wrong_length_are_refused() {
        let frame = zstd::bulk::compress(&unpacked(), 3).unwrap();
        let skippable = [&0x184D_2A50u32.to_le_bytes()[..], &4u32.to_le_bytes(), b"meta"].concat();
        let len = unpacked().len();
        for (body, unpacked_bytes) in [
            ([&frame[..], &frame].concat(), 2 * len),
            ([&frame[..], &skippable].concat(), len),
            ([&skippable[..], &frame].concat(), len),
            (skippable, 0),
            (frame[..frame.len() - 1].to_vec(), len),
            (frame.clone(), len + 1),
            (frame, len - 1),
        ] {
            assert!(unpack(&payload(Compression::Zstd, &body, unpacked_bytes)).is_err());
        }
    }

    #[test]
    fn a_frame_that_unpacks_to_more_than_the_limit_is_refused_before_anything_is_allocated() {
        let bomb = zstd::bulk::compress(&vec![0; UNPACKED_MAX_BYTES + 1], 3).unwrap();
        let refused = unpack(&payload(Compression::Zstd, &bomb, UNPACKED_MAX_BYTES + 1));
        assert!(matches!(refused, Err(CryptoError::Format(FormatError::OverLimit { .. }))));
    }

    #[test]
    fn padding_that_is_not_zero_or_not_as_long_as_it_should_be_is_refused() {
        let good = payload(Compression::Raw, &unpacked(), unpacked().len());
        let mut spoiled = good.clone();
        *spoiled.last_mut().unwrap() = 1;
        for bytes in [spoiled, [&good[..], &[0]].concat(), good[..good.len() - 1].to_vec()] {
            assert!(unpack(&bytes).is_err());
        }
    }

    #[test]
    fn a_directory_that_does_not_fit_the_table_is_refused() {
        for directory in [
            &[(0, 5)][..],
            &[(0, 2), (0, 3)],
            &[(0, 2), (2, 3)],
            &[(0, 2), (1, 4)],
            &[(0, 2), (1, 2)],
            &[(0, usize::MAX), (1, usize::MAX)],
            &[(0, 1), (1, 2), (2, 2)],
        ] {
            let mut body = Vec::new();
            put_directory(&mut body, directory.iter().copied());
            body.extend_from_slice(b"abcde");
            assert!(unpack(&payload(Compression::Raw, &body, body.len())).is_err());
        }
    }

    proptest! {
        #[test]
        fn any_payload_is_an_error_or_within_bounds(
            zstd: bool, body: Vec<u8>, unpacked_bytes in 0usize..100, at: usize, flip: u8
        ) {
            let compression = if zstd { Compression::Zstd } else { Compression::Raw };
            let mut bytes = payload(compression, &body, unpacked_bytes);
            let at = at % (PREFIX_BYTES + body.len());
            bytes[at] ^= flip;
            if let Ok(opened) = unpack(&bytes) {
                prop_assert!(opened.objects.iter().all(|o| o.range.end <= opened.plain.len()));
            }
        }

        #[test]
        fn a_mutated_frame_is_an_error_or_within_bounds(at: usize, flip: u8) {
            let mut frame = zstd::bulk::compress(&unpacked(), 3).unwrap();
            let at = at % frame.len();
            frame[at] ^= flip;
            if let Ok(opened) = unpack(&payload(Compression::Zstd, &frame, unpacked().len())) {
                prop_assert!(opened.objects.iter().all(|o| o.range.end <= opened.plain.len()));
            }
        }
    }
}

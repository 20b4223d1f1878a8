//! The sealed half of a record: what people want to know of a snapshot, and a keeper must not.
//!
//! ```text
//! | magic "HSec" | version u8 | head 32 | items u64 | bytes u64 | unreadable u64 | client time i64
//! | path count | path ... | host | user | program | tag count | tag ... | exclude count | exclude ...
//! | copied u8 | of a copy: record hash 32 | received i64 | of a copy of a copy: through 32 |
//! ```
//!
//! `head` is what the clear half is bound to, [`RecordHead::binding`]: a keeper, which has no keys, can
//! sign a head with a key of its own, and cannot make it fit any sealed half.
//!
//! Counts and lengths are variable-length numbers; a string is its length and its bytes. The client's
//! time is in nanoseconds since 1970 by its clock and for display only. The sealed half of an
//! amendment has tags and is empty otherwise: all else is the amended record's.

use holdall_format::limits::{
    RECORD_MAX_EXCLUDES, RECORD_MAX_PATHS, RECORD_MAX_TAGS, RECORD_NAME_MAX_BYTES,
    RECORD_PATH_MAX_BYTES,
};
use holdall_format::wire::{Reader, put_varint};
use holdall_format::{Block, BlockKind, FormatError, RecordHash, RecordHead};

use crate::{CryptoError, Opener, Sealer};

const WHAT: &str = "sealed half of a record";
const MAGIC: &[u8; 4] = b"HSec";
const VERSION: u8 = 3;

/// It is no copy.
const NO_COPY: u8 = 0;
/// A copy of an original.
const COPY: u8 = 1;
/// A copy of a copy.
const COPY_OF_COPY: u8 = 2;

/// What a snapshot was copied from, in another repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CopiedFrom {
    /// The hash of the original's record, where that was made.
    pub record: RecordHash,
    /// When that repository received it, in nanoseconds since 1970 UTC.
    pub received_ns: i64,
    /// Of a copy of a copy: the hash of the record that it was copied from itself.
    pub through: Option<RecordHash>,
}

impl CopiedFrom {
    /// The record that it was copied from itself: its tree is that one's, whatever the original's
    /// is.
    pub fn direct(&self) -> RecordHash {
        self.through.unwrap_or(self.record)
    }
}

/// What a record says of itself inside the seal.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecordSecret {
    /// Source paths, absolute and sorted, as they were recorded; at most 4096 of 64 KiB.
    pub paths: Vec<Vec<u8>>,
    /// The host's name, at most 1024 bytes.
    pub host: String,
    /// The user who ran the backup, at most 1024 bytes.
    pub user: String,
    /// The program and its version, at most 1024 bytes.
    pub program: String,
    /// Tags, at most 256 of 1024 bytes.
    pub tags: Vec<String>,
    /// Exclude patterns, at most 4096 of 64 KiB.
    pub excludes: Vec<String>,
    /// Entries of the tree.
    pub items: u64,
    /// Plain bytes of content of the tree.
    pub bytes: u64,
    /// Entries that could not be read and are missing or older in the tree.
    pub unreadable: u64,
    /// Nanoseconds since 1970 by the client's clock; for display only.
    pub client_time_ns: i64,
    /// What it is a copy of; `None` for a snapshot that was made where it is.
    pub copied_from: Option<CopiedFrom>,
}

impl RecordSecret {
    /// The bytes to be sealed, for the record whose head is bound to `binding`.
    ///
    /// # Errors
    /// [`CryptoError::Format`] if a limit is passed.
    pub fn encode(&self, binding: &[u8; 32]) -> Result<Vec<u8>, CryptoError> {
        let mut out = Vec::with_capacity(512);
        out.extend_from_slice(MAGIC);
        out.push(VERSION);
        out.extend_from_slice(binding);
        for number in [self.items, self.bytes, self.unreadable] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(&self.client_time_ns.to_le_bytes());
        put_list(&mut out, "paths", &self.paths, RECORD_MAX_PATHS, RECORD_PATH_MAX_BYTES)?;
        put_string(&mut out, "host", self.host.as_bytes(), RECORD_NAME_MAX_BYTES)?;
        put_string(&mut out, "user", self.user.as_bytes(), RECORD_NAME_MAX_BYTES)?;
        put_string(&mut out, "program", self.program.as_bytes(), RECORD_NAME_MAX_BYTES)?;
        put_list(&mut out, "tags", &self.tags, RECORD_MAX_TAGS, RECORD_NAME_MAX_BYTES)?;
        put_list(&mut out, "excludes", &self.excludes, RECORD_MAX_EXCLUDES, RECORD_PATH_MAX_BYTES)?;
        put_copied_from(&mut out, self.copied_from.as_ref());
        Ok(out)
    }

    /// Reads the bytes of an opened half: these, and what the head must be bound to.
    ///
    /// Untrusted: allocates at most in proportion to `bytes`.
    ///
    /// # Errors
    /// [`CryptoError::Format`].
    pub fn decode(bytes: &[u8]) -> Result<(Self, [u8; 32]), CryptoError> {
        let mut reader = Reader::new(WHAT, bytes);
        reader.magic(MAGIC, VERSION)?;
        let binding = reader.array("head")?;
        let secret = Self {
            items: reader.u64("items")?,
            bytes: reader.u64("bytes")?,
            unreadable: reader.u64("unreadable")?,
            client_time_ns: i64::from_le_bytes(reader.array("client time")?),
            paths: list(&mut reader, "paths", RECORD_MAX_PATHS, |reader| {
                string(reader, "path", RECORD_PATH_MAX_BYTES).map(<[u8]>::to_vec)
            })?,
            host: text(&mut reader, "host", RECORD_NAME_MAX_BYTES)?,
            user: text(&mut reader, "user", RECORD_NAME_MAX_BYTES)?,
            program: text(&mut reader, "program", RECORD_NAME_MAX_BYTES)?,
            tags: list(&mut reader, "tags", RECORD_MAX_TAGS, |reader| {
                text(reader, "tag", RECORD_NAME_MAX_BYTES)
            })?,
            excludes: list(&mut reader, "excludes", RECORD_MAX_EXCLUDES, |reader| {
                text(reader, "exclude", RECORD_PATH_MAX_BYTES)
            })?,
            copied_from: copied_from(&mut reader)?,
        };
        reader.finish()?;
        Ok((secret, binding))
    }

    /// Seals this into the bytes of the sealed half of the record of that head, whose hash of the
    /// sealed half may be anything yet.
    ///
    /// # Errors
    /// As [`RecordSecret::encode`] and [`Sealer::seal`].
    pub fn seal(&self, head: &RecordHead, sealer: &mut Sealer) -> Result<Vec<u8>, CryptoError> {
        let plain = self.encode(&head.binding())?;
        Ok(sealer.seal(BlockKind::Record, &[], &plain)?.into_bytes())
    }

    /// Opens the sealed half of the record of that head.
    ///
    /// # Errors
    /// [`CryptoError::OtherHead`] if it is that of another record; as [`Opener::open`] and
    /// [`RecordSecret::decode`].
    pub fn open(
        sealed: &[u8],
        head: &RecordHead,
        opener: &mut Opener,
    ) -> Result<Self, CryptoError> {
        let opened = opener.open(&Block::decode(sealed)?, BlockKind::Record)?;
        let (secret, binding) = Self::decode(&opened.plain)?;
        if binding == head.binding() { Ok(secret) } else { Err(CryptoError::OtherHead) }
    }
}

fn put_string(
    out: &mut Vec<u8>,
    field: &'static str,
    bytes: &[u8],
    max_bytes: usize,
) -> Result<(), FormatError> {
    put_count(out, field, bytes.len(), max_bytes)?;
    out.extend_from_slice(bytes);
    Ok(())
}

fn put_list(
    out: &mut Vec<u8>,
    field: &'static str,
    items: &[impl AsRef<[u8]>],
    max_items: usize,
    max_bytes: usize,
) -> Result<(), FormatError> {
    put_count(out, field, items.len(), max_items)?;
    items.iter().try_for_each(|item| put_string(out, field, item.as_ref(), max_bytes))
}

fn put_count(
    out: &mut Vec<u8>,
    field: &'static str,
    count: usize,
    limit: usize,
) -> Result<(), FormatError> {
    let (declared, max) = (count as u64, limit as u64);
    if declared > max {
        return Err(FormatError::OverLimit { what: WHAT, field, declared, limit: max });
    }
    put_varint(out, declared);
    Ok(())
}

fn string<'a>(
    reader: &mut Reader<'a>,
    field: &'static str,
    max_bytes: usize,
) -> Result<&'a [u8], FormatError> {
    let len_bytes = reader.varlen(field, max_bytes)?;
    reader.bytes(field, len_bytes)
}

fn text(
    reader: &mut Reader<'_>,
    field: &'static str,
    max_bytes: usize,
) -> Result<String, FormatError> {
    let bytes = string(reader, field, max_bytes)?;
    let text = std::str::from_utf8(bytes).map_err(|_| reader.invalid(field, "not UTF-8"))?;
    Ok(text.to_owned())
}

fn put_copied_from(out: &mut Vec<u8>, copied_from: Option<&CopiedFrom>) {
    let Some(CopiedFrom { record, received_ns, through }) = copied_from else {
        return out.push(NO_COPY);
    };
    out.push(if through.is_some() { COPY_OF_COPY } else { COPY });
    out.extend_from_slice(record.as_bytes());
    out.extend_from_slice(&received_ns.to_le_bytes());
    through.iter().for_each(|through| out.extend_from_slice(through.as_bytes()));
}

fn copied_from(reader: &mut Reader<'_>) -> Result<Option<CopiedFrom>, FormatError> {
    let copied = reader.u8("copied")?;
    if copied == NO_COPY {
        return Ok(None);
    }
    if copied > COPY_OF_COPY {
        return Err(reader.invalid("copied", "not 0, 1 or 2"));
    }
    let record = RecordHash::from_bytes(reader.array("copied record")?);
    let received_ns = i64::from_le_bytes(reader.array("received")?);
    let through = match copied {
        COPY_OF_COPY => Some(RecordHash::from_bytes(reader.array("copied through")?)),
        _ => None,
    };
    Ok(Some(CopiedFrom { record, received_ns, through }))
}

/// Reads a list. Nothing is allocated ahead: every item takes at least a byte of the input.
fn list<T>(
    reader: &mut Reader<'_>,
    field: &'static str,
    max_items: usize,
    item: impl Fn(&mut Reader<'_>) -> Result<T, FormatError>,
) -> Result<Vec<T>, FormatError> {
    let count = reader.varlen(field, max_items)?;
    let mut items = Vec::new();
    for _ in 0..count {
        items.push(item(reader)?);
    }
    Ok(items)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BINDING: [u8; 32] = [7; 32];

    prop_compose! {
        fn any_secret()(
            paths: Vec<Vec<u8>>, host: String, user: String, program: String,
            tags in proptest::collection::vec(".*", 0..4),
            excludes in proptest::collection::vec(".*", 0..4),
            numbers: (u64, u64, u64, i64), copied: Option<([u8; 32], i64, Option<[u8; 32]>)>,
        ) -> RecordSecret {
            let (items, bytes, unreadable, client_time_ns) = numbers;
            let copied_from = copied.map(|(record, received_ns, through)| CopiedFrom {
                record: RecordHash::from_bytes(record),
                received_ns,
                through: through.map(RecordHash::from_bytes),
            });
            RecordSecret {
                paths, host, user, program, tags, excludes,
                items, bytes, unreadable, client_time_ns, copied_from,
            }
        }
    }

    proptest! {
        #[test]
        fn it_reads_back(secret in any_secret()) {
            let bytes = secret.encode(&BINDING).unwrap();
            prop_assert_eq!(RecordSecret::decode(&bytes), Ok((secret, BINDING)));
        }

        #[test]
        fn mutated_bytes_are_read_as_what_they_say_or_refused(
            secret in any_secret(), at: usize, flip: u8
        ) {
            let mut bytes = secret.encode(&BINDING).unwrap();
            let at = at % bytes.len();
            bytes[at] ^= flip;
            if let Ok((secret, binding)) = RecordSecret::decode(&bytes) {
                prop_assert_eq!(secret.encode(&binding).unwrap(), bytes);
            }
        }

        #[test]
        fn random_bytes_behind_the_front_are_read_as_what_they_say_or_refused(tail: Vec<u8>) {
            let bytes = [&MAGIC[..], &[VERSION], &tail].concat();
            if let Ok((secret, binding)) = RecordSecret::decode(&bytes) {
                prop_assert_eq!(secret.encode(&binding).unwrap(), bytes);
            }
        }
    }

    #[test]
    fn what_is_over_a_limit_is_not_written() {
        let long = "x".repeat(RECORD_NAME_MAX_BYTES + 1);
        for secret in [
            RecordSecret { host: long.clone(), ..RecordSecret::default() },
            RecordSecret { tags: vec![long], ..RecordSecret::default() },
            RecordSecret {
                paths: vec![vec![b'/']; RECORD_MAX_PATHS + 1],
                ..RecordSecret::default()
            },
        ] {
            assert!(secret.encode(&BINDING).is_err());
        }
    }
}

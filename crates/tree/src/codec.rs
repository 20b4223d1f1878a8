//! An entry's bytes in a leaf, without its path.
//!
//! ```text
//! | flags u8 | contents u8 | device: major varint, minor varint | mode varint
//! | uid varint | gid varint | user length varint | user | group length varint | group
//! | mtime: seconds since the mtime before (zigzag), nanoseconds u32
//! | ctime: seconds since the mtime (zigzag), nanoseconds u32
//! | size varint | inode since the one before (zigzag) | hard-link group 16
//! | attributes | content | extents |
//!
//! flags:    bits 0-2 kind, 3 owner as before, 4 mode as before, 5 unsettled, 6 has a hard-link
//!           group, 7 ctime is the mtime
//! contents: bits 0-1 attributes, 2-3 content, 4-5 extents, 6 has extents, 7 zero;
//!           0 nothing, 1 inline, 2 chunks, 3 list
//! inline:   | length varint | bytes |
//! chunks:   | count varint | length varint ... |    and as many ids
//! list:     | length varint |                       and one id
//! ```
//!
//! What a flag says is not there takes no bytes. "Before" is the previous entry of the same leaf, as
//! neighbours in a directory mostly have one owner, near times and near inodes; before a leaf's
//! first entry everything is zero.

use crate::content::{CONTENT_MAX_CHUNKS, ChunkRef, Content};
use crate::entry::{CONTENT_INLINE_MAX_BYTES, Entry, EntryKind, OWNER_NAME_MAX_BYTES, Time};
use crate::node::Body;
use holdall_format::wire::put_varint;
use holdall_format::{FormatError, ObjectId};
use std::sync::Arc;

const KIND_BITS: u8 = 0b111;
const OWNER_AS_BEFORE: u8 = 1 << 3;
const MODE_AS_BEFORE: u8 = 1 << 4;
const UNSETTLED: u8 = 1 << 5;
const HAS_HARDLINK: u8 = 1 << 6;
const CTIME_IS_MTIME: u8 = 1 << 7;
const HAS_EXTENTS: u8 = 1 << 6;

/// What the next entry of a leaf is compared with.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Before {
    mode: u32,
    uid: u32,
    gid: u32,
    user: Arc<[u8]>,
    group: Arc<[u8]>,
    mtime_secs: i64,
    inode: u64,
}

impl Before {
    fn has_owner_of(&self, entry: &Entry) -> bool {
        let same = |a: &Arc<[u8]>, b: &Arc<[u8]>| Arc::ptr_eq(a, b) || a == b;
        self.uid == entry.uid
            && self.gid == entry.gid
            && same(&self.user, &entry.user)
            && same(&self.group, &entry.group)
    }

    fn note(&mut self, entry: &Entry) {
        if !self.has_owner_of(entry) {
            (self.uid, self.gid) = (entry.uid, entry.gid);
            self.user = Arc::clone(&entry.user);
            self.group = Arc::clone(&entry.group);
        }
        self.mode = entry.mode;
        self.mtime_secs = entry.mtime.secs;
        self.inode = entry.inode;
    }
}

/// Appends a checked entry: its bytes to `out`, the ids that it names to `uses`.
pub(crate) fn put_entry(
    entry: &Entry,
    before: &mut Before,
    out: &mut Vec<u8>,
    uses: &mut Vec<ObjectId>,
) {
    let owner_as_before = before.has_owner_of(entry);
    let mode_as_before = before.mode == entry.mode;
    let (kind, device) = kind_code(entry.kind);
    let flag = |set, bit| if set { bit } else { 0 };
    let flags = kind
        | flag(owner_as_before, OWNER_AS_BEFORE)
        | flag(mode_as_before, MODE_AS_BEFORE)
        | flag(entry.unsettled, UNSETTLED)
        | flag(entry.hardlink.is_some(), HAS_HARDLINK)
        | flag(entry.ctime == entry.mtime, CTIME_IS_MTIME);
    let extents = entry.extents.as_ref().map_or(0, |list| HAS_EXTENTS | content_code(list) << 4);
    let contents = content_code(&entry.attributes) | content_code(&entry.content) << 2 | extents;
    out.extend_from_slice(&[flags, contents]);
    if let Some((major, minor)) = device {
        put_varint(out, u64::from(major));
        put_varint(out, u64::from(minor));
    }
    if !mode_as_before {
        put_varint(out, u64::from(entry.mode));
    }
    if !owner_as_before {
        put_varint(out, u64::from(entry.uid));
        put_varint(out, u64::from(entry.gid));
        put_bytes(out, &entry.user);
        put_bytes(out, &entry.group);
    }
    put_time(out, entry.mtime, before.mtime_secs);
    if entry.ctime != entry.mtime {
        put_time(out, entry.ctime, entry.mtime.secs);
    }
    put_varint(out, entry.size);
    put_varint(out, zigzag(entry.inode.wrapping_sub(before.inode).cast_signed()));
    out.extend_from_slice(entry.hardlink.as_ref().map_or(&[], |group| &group[..]));
    put_content(&entry.attributes, out, uses);
    put_content(&entry.content, out, uses);
    entry.extents.iter().for_each(|extents| put_content(extents, out, uses));
    before.note(entry);
}

/// Reads an entry.
///
/// Untrusted: allocates in proportion to the bytes that are there.
pub(crate) fn take_entry(body: &mut Body<'_>, before: &mut Before) -> Result<Entry, FormatError> {
    let flags = body.items.u8("flags")?;
    let contents = body.items.u8("contents")?;
    let kind = take_kind(body, flags & KIND_BITS)?;
    let mode = if flags & MODE_AS_BEFORE == 0 { take_u32(body, "mode")? } else { before.mode };
    if flags & OWNER_AS_BEFORE == 0 {
        take_owner(body, before)?;
    }
    let mtime = take_time(body, before.mtime_secs)?;
    let ctime = if flags & CTIME_IS_MTIME == 0 { take_time(body, mtime.secs)? } else { mtime };
    let entry = Entry {
        kind,
        mode,
        uid: before.uid,
        gid: before.gid,
        user: Arc::clone(&before.user),
        group: Arc::clone(&before.group),
        mtime,
        ctime,
        size: body.items.varint("size")?,
        inode: take_inode(body, before)?,
        unsettled: flags & UNSETTLED != 0,
        hardlink: match flags & HAS_HARDLINK {
            0 => None,
            _ => Some(body.items.array("hard-link group")?),
        },
        attributes: take_content(body, contents)?,
        content: take_content(body, contents >> 2)?,
        extents: take_extents(body, contents)?,
    };
    entry.check().map_err(|reason| body.items.invalid("entry", reason))?;
    before.note(&entry);
    Ok(entry)
}

fn take_owner(body: &mut Body<'_>, before: &mut Before) -> Result<(), FormatError> {
    before.uid = take_u32(body, "uid")?;
    before.gid = take_u32(body, "gid")?;
    before.user = take_bytes(body, "user", OWNER_NAME_MAX_BYTES)?.into();
    before.group = take_bytes(body, "group", OWNER_NAME_MAX_BYTES)?.into();
    Ok(())
}

fn take_inode(body: &mut Body<'_>, before: &Before) -> Result<u64, FormatError> {
    let delta = unzigzag(body.items.varint("inode")?);
    Ok(before.inode.wrapping_add(delta.cast_unsigned()))
}

fn take_extents(body: &mut Body<'_>, contents: u8) -> Result<Option<Content>, FormatError> {
    match contents >> 4 {
        0 => Ok(None),
        code if code >> 2 == 1 => take_content(body, code).map(Some),
        _ => Err(body.items.invalid("contents", "reserved bits are set")),
    }
}

fn kind_code(kind: EntryKind) -> (u8, Option<(u32, u32)>) {
    match kind {
        EntryKind::File => (0, None),
        EntryKind::Directory => (1, None),
        EntryKind::Symlink => (2, None),
        EntryKind::Fifo => (3, None),
        EntryKind::Socket => (4, None),
        EntryKind::CharDevice { major, minor } => (5, Some((major, minor))),
        EntryKind::BlockDevice { major, minor } => (6, Some((major, minor))),
    }
}

fn take_kind(body: &mut Body<'_>, code: u8) -> Result<EntryKind, FormatError> {
    let mut number = |field| take_u32(body, field);
    Ok(match code {
        0 => EntryKind::File,
        1 => EntryKind::Directory,
        2 => EntryKind::Symlink,
        3 => EntryKind::Fifo,
        4 => EntryKind::Socket,
        5 => EntryKind::CharDevice { major: number("major")?, minor: number("minor")? },
        6 => EntryKind::BlockDevice { major: number("major")?, minor: number("minor")? },
        _ => return Err(body.items.invalid("kind", "unknown")),
    })
}

fn content_code(content: &Content) -> u8 {
    match content {
        Content::Inline(bytes) if bytes.is_empty() => 0,
        Content::Inline(_) => 1,
        Content::Chunks(_) => 2,
        Content::List { .. } => 3,
    }
}

fn put_content(content: &Content, out: &mut Vec<u8>, uses: &mut Vec<ObjectId>) {
    match content {
        Content::Inline(bytes) if bytes.is_empty() => {}
        Content::Inline(bytes) => put_bytes(out, bytes),
        Content::Chunks(chunks) => {
            put_varint(out, chunks.len() as u64);
            for chunk in chunks {
                put_varint(out, u64::from(chunk.len_bytes));
                uses.push(chunk.id);
            }
        }
        Content::List { id, len_bytes } => {
            put_varint(out, *len_bytes);
            uses.push(*id);
        }
    }
}

fn take_content(body: &mut Body<'_>, code: u8) -> Result<Content, FormatError> {
    match code & 0b11 {
        0 => Ok(Content::empty()),
        1 => match take_bytes(body, "content", CONTENT_INLINE_MAX_BYTES)? {
            [] => Err(body.items.invalid("content", "no bytes are not inline")),
            bytes => Ok(Content::Inline(bytes.to_vec())),
        },
        2 => {
            let count = body.items.varlen("chunk count", CONTENT_MAX_CHUNKS)?;
            let mut chunks = Vec::with_capacity(count);
            for _ in 0..count {
                let len_bytes = take_u32(body, "chunk length")?;
                chunks.push(ChunkRef { id: body.ids.next()?, len_bytes });
            }
            Ok(Content::Chunks(chunks))
        }
        _ => {
            let len_bytes = body.items.varint("list length")?;
            Ok(Content::List { id: body.ids.next()?, len_bytes })
        }
    }
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn take_bytes<'a>(
    body: &mut Body<'a>,
    field: &'static str,
    max_bytes: usize,
) -> Result<&'a [u8], FormatError> {
    let len = body.items.varlen(field, max_bytes)?;
    body.items.bytes(field, len)
}

fn take_u32(body: &mut Body<'_>, field: &'static str) -> Result<u32, FormatError> {
    let value = body.items.varint(field)?;
    u32::try_from(value).map_err(|_| body.items.invalid(field, "more than 32 bits"))
}

fn put_time(out: &mut Vec<u8>, time: Time, since_secs: i64) {
    put_varint(out, zigzag(time.secs.wrapping_sub(since_secs)));
    out.extend_from_slice(&time.nanos.to_le_bytes());
}

fn take_time(body: &mut Body<'_>, since_secs: i64) -> Result<Time, FormatError> {
    let delta = unzigzag(body.items.varint("seconds")?);
    Ok(Time { secs: since_secs.wrapping_add(delta), nanos: body.items.u32("nanoseconds")? })
}

/// Maps small numbers of either sign to small numbers.
fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)).cast_unsigned()
}

fn unzigzag(value: u64) -> i64 {
    (value >> 1).cast_signed() ^ (value & 1).cast_signed().wrapping_neg()
}

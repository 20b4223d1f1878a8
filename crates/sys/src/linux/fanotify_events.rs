//! What the kernel writes of changes on file systems that are watched as a whole (fanotify(7)), taken apart.
//!
//! ```text
//! event:  | event_len u32 | vers u8 | - u8 | metadata_len u16 | mask u64 | fd i32 | pid i32 | records |
//! record: | type u8 | - u8 | len u16 | file system 8 | handle_bytes u32 | handle_type i32 | handle | name, NUL |
//! ```
//!
//! All numbers are in the order of the processor. Pure: whoever resolves a handle is elsewhere. What does not fit is an error, so
//! that its reader takes it as a sign that something was missed.

use libc::{
    FAN_ATTRIB, FAN_CLOSE_WRITE, FAN_EVENT_INFO_TYPE_DFID, FAN_EVENT_INFO_TYPE_DFID_NAME,
    FAN_EVENT_INFO_TYPE_FID, FAN_EVENT_INFO_TYPE_NEW_DFID_NAME, FAN_EVENT_INFO_TYPE_OLD_DFID_NAME,
    FAN_MODIFY, FAN_ONDIR, FAN_Q_OVERFLOW, FAN_RENAME, FANOTIFY_METADATA_VERSION,
};

/// Bytes of an event before its records.
pub(super) const EVENT_BYTES: usize = 24;
/// Bytes of a record before its handle: its own head, the file system, and the handle's length and type.
const RECORD_BYTES: usize = 20;
/// The head of a record alone.
const RECORD_HEAD_BYTES: usize = 4;

/// Which file system something lies on, as `statfs` says it.
pub type FileSystemId = [u8; 8];

/// Names a file for as long as it is there, whatever it is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Handle<'a> {
    /// Where it lies.
    pub file_system: FileSystemId,
    /// Of which kind the handle is; only its file system knows more of that.
    pub kind: i32,
    /// At most 128 bytes, which only its file system understands.
    pub bytes: &'a [u8],
}

/// A name in a directory. `.` is the directory itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Named<'a> {
    /// The directory.
    pub directory: Handle<'a>,
    /// The name, without a NUL; empty if it is not known.
    pub name: &'a [u8],
}

/// Something that changed. The kernel joins several changes of one name to one event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Event<'a> {
    mask: u64,
    /// Where it happened; of a rename, `from` and `to` say it.
    pub at: Option<Named<'a>>,
    /// What something was called.
    pub from: Option<Named<'a>>,
    /// What it is called now.
    pub to: Option<Named<'a>>,
    /// What it happened to.
    pub target: Option<Handle<'a>>,
}

impl Event<'_> {
    /// Whether events were lost.
    #[must_use]
    pub fn is_overflow(&self) -> bool {
        self.mask & FAN_Q_OVERFLOW != 0
    }

    /// Whether it happened to a directory.
    #[must_use]
    pub fn is_of_directory(&self) -> bool {
        self.mask & FAN_ONDIR != 0
    }

    /// Whether something got another name.
    #[must_use]
    pub fn is_rename(&self) -> bool {
        self.mask & FAN_RENAME != 0
    }

    /// Whether content was written.
    #[must_use]
    pub fn is_write(&self) -> bool {
        self.mask & FAN_MODIFY != 0
    }

    /// Whether what had been open for writing was closed.
    #[must_use]
    pub fn is_close(&self) -> bool {
        self.mask & FAN_CLOSE_WRITE != 0
    }

    /// Whether nothing but metadata changed.
    #[must_use]
    pub fn is_of_metadata(&self) -> bool {
        self.mask & !FAN_ONDIR == FAN_ATTRIB
    }
}

/// What was read is no list of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the kernel's list of changes cannot be understood")]
pub struct Malformed;

/// Takes apart what was read at once. After an error there is nothing more.
pub fn events(buffer: &[u8]) -> impl Iterator<Item = Result<Event<'_>, Malformed>> {
    let mut rest = Some(buffer).filter(|buffer| !buffer.is_empty());
    std::iter::from_fn(move || {
        let (event, behind) = match event(rest.take()?) {
            Some(event) => event,
            None => return Some(Err(Malformed)),
        };
        rest = Some(behind).filter(|behind| !behind.is_empty());
        Some(Ok(event))
    })
}

fn event(buffer: &[u8]) -> Option<(Event<'_>, &[u8])> {
    let length = u32::from_ne_bytes(*buffer.first_chunk()?) as usize;
    let (event, behind) = buffer.split_at_checked(length)?;
    let version = *event.get(4)?;
    let records_at = usize::from(u16::from_ne_bytes(*event.get(6..)?.first_chunk()?));
    let mask = u64::from_ne_bytes(*event.get(8..)?.first_chunk()?);
    if version != FANOTIFY_METADATA_VERSION || records_at < EVENT_BYTES {
        return None;
    }
    let mut found = Event { mask, ..Event::default() };
    let mut records = event.get(records_at..)?;
    while !records.is_empty() {
        let length = usize::from(u16::from_ne_bytes(*records.get(2..)?.first_chunk()?));
        let (record, rest) =
            records.split_at_checked(length).filter(|_| length >= RECORD_HEAD_BYTES)?;
        found.take(record)?;
        records = rest;
    }
    Some((found, behind))
}

impl<'a> Event<'a> {
    fn take(&mut self, record: &'a [u8]) -> Option<()> {
        let place = match *record.first()? {
            FAN_EVENT_INFO_TYPE_DFID | FAN_EVENT_INFO_TYPE_DFID_NAME => &mut self.at,
            FAN_EVENT_INFO_TYPE_OLD_DFID_NAME => &mut self.from,
            FAN_EVENT_INFO_TYPE_NEW_DFID_NAME => &mut self.to,
            FAN_EVENT_INFO_TYPE_FID => {
                self.target = Some(handle(record)?.0);
                return Some(());
            }
            // Of a newer kernel.
            _ => return Some(()),
        };
        let (directory, name) = handle(record)?;
        let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
        *place = Some(Named { directory, name });
        Some(())
    }
}

/// The handle of a record, and what stands behind it.
fn handle(record: &[u8]) -> Option<(Handle<'_>, &[u8])> {
    let file_system = *record.get(RECORD_HEAD_BYTES..)?.first_chunk()?;
    let length = u32::from_ne_bytes(*record.get(12..)?.first_chunk()?) as usize;
    let kind = i32::from_ne_bytes(*record.get(16..)?.first_chunk()?);
    let (bytes, name) = record.get(RECORD_BYTES..)?.split_at_checked(length)?;
    Some((Handle { file_system, kind, bytes }, name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn record(kind: u8, handle: &[u8], name: &[u8]) -> Vec<u8> {
        let length = (RECORD_BYTES + handle.len() + name.len()) as u16;
        let mut record = vec![kind, 0];
        record.extend(length.to_ne_bytes());
        record.extend([7; 8]);
        record.extend((handle.len() as u32).to_ne_bytes());
        record.extend(1_i32.to_ne_bytes());
        record.extend([handle, name].concat());
        record
    }

    fn whole(mask: u64, records: &[Vec<u8>]) -> Vec<u8> {
        let records = records.concat();
        let mut event = ((EVENT_BYTES + records.len()) as u32).to_ne_bytes().to_vec();
        event.extend([FANOTIFY_METADATA_VERSION, 0]);
        event.extend((EVENT_BYTES as u16).to_ne_bytes());
        event.extend(mask.to_ne_bytes());
        event.extend([0xff; 8]);
        event.extend(records);
        event
    }

    /// A write, a rename of a directory, and an overflow.
    fn buffer() -> Vec<u8> {
        let written = [
            record(FAN_EVENT_INFO_TYPE_DFID_NAME, b"dir", b"name\0\0\0"),
            record(FAN_EVENT_INFO_TYPE_FID, b"file", b""),
            record(99, b"", b""),
        ];
        let renamed = [
            record(FAN_EVENT_INFO_TYPE_OLD_DFID_NAME, b"one", b"old\0"),
            record(FAN_EVENT_INFO_TYPE_NEW_DFID_NAME, b"two", b"new\0"),
        ];
        [
            whole(FAN_MODIFY | FAN_CLOSE_WRITE, &written),
            whole(FAN_RENAME | FAN_ONDIR, &renamed),
            whole(FAN_Q_OVERFLOW, &[]),
        ]
        .concat()
    }

    #[test]
    fn a_write_a_rename_and_an_overflow_are_understood() {
        let buffer = buffer();
        let all: Vec<_> = events(&buffer).map(Result::unwrap).collect();
        let [written, renamed, lost] = &all[..] else { panic!("{all:?}") };
        assert!(written.is_write() && written.is_close() && !written.is_of_directory());
        let at = written.at.unwrap();
        assert_eq!(
            (at.name, at.directory.bytes, at.directory.file_system),
            (&b"name"[..], &b"dir"[..], [7; 8])
        );
        assert_eq!(written.target.unwrap().bytes, b"file");
        assert!(renamed.is_rename() && renamed.is_of_directory() && renamed.at.is_none());
        assert_eq!(
            [renamed.from, renamed.to].map(|named| named.unwrap().name),
            [&b"old"[..], b"new"]
        );
        assert!(lost.is_overflow() && !renamed.is_overflow());
    }

    #[test]
    fn what_is_cut_is_told() {
        let buffer = buffer();
        let ends: Vec<_> = (1..buffer.len())
            .filter(|&len| events(&buffer[..len]).all(|event| event.is_ok()))
            .collect();
        let first = u32::from_ne_bytes(*buffer.first_chunk().unwrap()) as usize;
        assert_eq!(ends, [first, buffer.len() - EVENT_BYTES]);
        let mut other = buffer;
        other[4] = 0;
        assert_eq!(events(&other).collect::<Vec<_>>(), [Err(Malformed)]);
    }

    proptest! {
        #[test]
        fn no_buffer_makes_the_reader_fail_or_go_on_for_ever(
            bytes in proptest::collection::vec(any::<u8>(), 0..200),
            (at, byte) in (0_usize..150, any::<u8>()),
        ) {
            prop_assert!(events(&bytes).count() <= bytes.len());
            let mut changed = buffer();
            if let Some(place) = changed.get_mut(at) {
                *place = byte;
            }
            prop_assert!(events(&changed).count() <= changed.len());
        }
    }
}

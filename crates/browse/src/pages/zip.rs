//! A folder as a zip archive, for computers that have nothing else. Names are written so that no system takes them for
//! more than a name. Devices, pipes, sockets, and links to what is no text are left out; a file in the archive lists them.

use std::cell::Cell;
use std::io::{self, Write};
use std::sync::Arc;

use axum::extract::State;
use axum::http::Uri;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use holdall_engine::{Content, EngineError, Entry, EntryKind, ListedEntry, Run, Snapshot, Viewer};
use holdall_format::portable_name;
use jiff::Timestamp;
use zip::write::{SimpleFileOptions, StreamWriter};
use zip::{CompressionMethod, DateTime, ZipWriter};

use super::download::archive_name;
use super::{On, Place, entry_at};
use crate::names::header;
use crate::problem::Problem;
use crate::stream;

/// Bytes that are read at once.
const PIECE_BYTES: u64 = 1 << 20;

/// What the list of what is left out is called, and how much of it is named.
const LEFT_OUT: &str = "NOT-IN-THIS-ZIP";
const LEFT_OUT_NAMED: usize = 10_000;

/// An archive that is being written.
struct Archive<'a, W: Write> {
    viewer: &'a Viewer,
    /// How long the path of the folder is.
    top: usize,
    out: ZipWriter<StreamWriter<W>>,
    left_out: LeftOut,
}

/// What has no place in a zip.
#[derive(Default)]
struct LeftOut {
    /// A line each, of the first.
    lines: String,
    count: usize,
    /// Names in the folder that a list of these could have had.
    taken: Vec<String>,
}

impl LeftOut {
    fn add(&mut self, name: &str, what: &str) {
        self.count += 1;
        if self.count <= LEFT_OUT_NAMED {
            self.lines.push_str(&format!("{name}: {what}\r\n"));
        }
    }

    /// A name for the list that nothing in the folder has, whatever the case of its letters.
    fn name(&self) -> String {
        let names = (1..).map(|number| match number {
            1 => format!("{LEFT_OUT}.txt"),
            _ => format!("{LEFT_OUT}-{number}.txt"),
        });
        let is_free =
            |name: &String| !self.taken.iter().any(|taken| taken.eq_ignore_ascii_case(name));
        names.into_iter().find(is_free).unwrap_or_default()
    }

    fn text(&self) -> String {
        let more = self.count.saturating_sub(LEFT_OUT_NAMED);
        let more = if more > 0 { format!("and {more} more\r\n") } else { String::new() };
        format!("A tar of the folder has these too.\r\n\r\n{}{more}", self.lines)
    }
}

/// Where an archive goes as long as all is well. A writer of zip that is dropped would write the end of an archive, and what
/// was cut would be taken for whole.
struct Cut<'a, W> {
    out: W,
    is_cut: &'a Cell<bool>,
}

impl<W: Write> Write for Cut<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.is_cut.get() {
            true => Err(io::Error::other("the archive was cut")),
            false => self.out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.is_cut.get() { Ok(()) } else { self.out.flush() }
    }
}

/// A folder as a zip archive.
pub(crate) async fn send(State(shared): On, uri: Uri) -> Result<Response, Problem> {
    let place = Place::of(&uri)?;
    let name = archive_name(&place, ".zip");
    let asked = place.clone();
    let (snapshot, viewer) = shared
        .ask(move |shared, _| {
            let snapshot = shared.listing()?.snapshot(&asked.id)?.clone();
            match entry_at(shared, &snapshot, &asked.path)?.kind {
                EntryKind::Directory => Ok((snapshot, shared.viewer()?)),
                _ => Err(Problem::wrong("That is no folder.")),
            }
        })
        .await?;
    let path = place.path.clone();
    let body = shared.send_holding(place, move |sink| {
        let written = write(&viewer, &snapshot, &path, stream::gathered(sink));
        written.map_err(|error| error.to_string())
    });
    let headers = [(CONTENT_TYPE, header("application/zip")), (CONTENT_DISPOSITION, name)];
    Ok((headers, body.await?).into_response())
}

/// Writes all that is in a folder.
fn write(
    viewer: &Arc<Viewer>,
    snapshot: &Snapshot,
    path: &[u8],
    out: impl Write,
) -> Result<(), EngineError> {
    let top = if path == b"/" { 0 } else { path.len() };
    let is_cut = Cell::new(false);
    let out = Cut { out, is_cut: &is_cut };
    let (out, left_out) = (ZipWriter::new_stream(out), LeftOut::default());
    let mut archive = Archive { viewer, top, out, left_out };
    let mut add = |listed: ListedEntry<'_>| archive.add(listed.path, listed.entry);
    let listed = viewer.list(snapshot, path, true, &Run::new(), &mut add);
    is_cut.set(listed.is_err());
    listed?;
    archive.list_left_out()?;
    let mut out = archive.out.finish().map_err(failed)?;
    out.flush().map_err(|error| EngineError::io("sending an archive", error))
}

impl<W: Write> Archive<'_, W> {
    fn add(&mut self, path: &[u8], entry: &Entry) -> Result<(), EngineError> {
        let below = path.get(self.top + 1..).unwrap_or_default();
        let name: Vec<_> = below.split(|byte| *byte == b'/').map(portable_name).collect();
        let name = name.join("/");
        if !name.contains('/')
            && name.get(..LEFT_OUT.len()).is_some_and(|front| front.eq_ignore_ascii_case(LEFT_OUT))
        {
            self.left_out.taken.push(name.clone());
        }
        let options = options(entry);
        match (entry.kind, &entry.content) {
            (EntryKind::Directory, _) => self.out.add_directory(name, options).map_err(failed),
            (EntryKind::File, _) => {
                self.out.start_file(name, options).map_err(failed)?;
                self.file(path, entry)
            }
            (EntryKind::Symlink, Content::Inline(target)) => match std::str::from_utf8(target) {
                Ok(target) => self.out.add_symlink(name, target, options).map_err(failed),
                Err(_) => {
                    self.left_out.add(&name, "a link to what is no text");
                    Ok(())
                }
            },
            (kind, _) => {
                self.left_out.add(&name, &format!("a {}", super::word(kind)));
                Ok(())
            }
        }
    }

    /// Lists what was left out, if something was.
    fn list_left_out(&mut self) -> Result<(), EngineError> {
        if self.left_out.count == 0 {
            return Ok(());
        }
        let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
        self.out.start_file(self.left_out.name(), options).map_err(failed)?;
        let written = self.out.write_all(self.left_out.text().as_bytes());
        written.map_err(|error| EngineError::io("sending an archive", error))
    }

    fn file(&mut self, path: &[u8], entry: &Entry) -> Result<(), EngineError> {
        let file = self.viewer.file(path, entry.clone())?;
        let mut at = 0;
        loop {
            let piece = self.viewer.read(&file, at, PIECE_BYTES)?;
            if piece.is_empty() {
                return Ok(());
            }
            at += piece.len() as u64;
            let written = self.out.write_all(&piece);
            written.map_err(|error| EngineError::io("sending an archive", error))?;
        }
    }
}

fn options(entry: &Entry) -> SimpleFileOptions {
    let time = Timestamp::from_second(entry.mtime.secs).ok();
    let time = time.map(|time| time.to_zoned(jiff::tz::TimeZone::system()).datetime());
    // Before 1980 there is no time in a zip.
    let time = time.and_then(|time| {
        let year = u16::try_from(time.year()).ok()?;
        let [month, day, hour, minute, second] =
            [time.month(), time.day(), time.hour(), time.minute(), time.second()]
                .map(|number| u8::try_from(number).unwrap_or_default());
        DateTime::from_date_and_time(year, month, day, hour, minute, second).ok()
    });
    SimpleFileOptions::default()
        .compression_method(CompressionMethod::Deflated)
        .compression_level(Some(1))
        .last_modified_time(time.unwrap_or_default())
        .unix_permissions(entry.mode & 0o777)
        .large_file(entry.size >= u64::from(u32::MAX / 2))
}

fn failed(error: zip::result::ZipError) -> EngineError {
    EngineError::io("sending an archive", io::Error::other(error))
}

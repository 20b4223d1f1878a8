//! `holdall ls`.

use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use anyhow::Result;
use holdall_engine::{Content, EngineError, Entry, EntryKind, ListedEntry};
use serde::Serialize;

use crate::app::App;
use crate::arguments::filter::Filter;
use crate::arguments::sources::{TypedPath, snapshot_name};
use crate::exit::Exit;
use crate::opening::open;
use crate::report::entries::{modified_ns, word};
use crate::report::listing;
use crate::terminal::output::{JsonPath, Output, Shown, local_time, rfc3339, size};

/// Lists what a snapshot holds
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall ls latest /home/ada -l

Exit codes: 0 done, 1 no such snapshot or path, 2 wrong usage, 10 no such repository, 11 in use, 12 \
wrong password, 13 not allowed, 14 server unreachable, 20 damage found, 130 interrupted")]
pub(crate) struct Args {
    /// `latest` (of those that --machine, --path and --tag take), or the beginning of a snapshot's id
    #[arg(value_name = "SNAP", value_parser = snapshot_name)]
    snapshot: String,
    /// A folder, of which the content is shown, or anything else
    #[arg(value_name = "PATH", default_value = "/")]
    path: PathBuf,
    /// Shows mode, owner and group, size and time too, and what each thing is called in the folder
    #[arg(short, long)]
    long: bool,
    /// Shows everything below the folder
    #[arg(short = 'R', long)]
    recursive: bool,
    #[command(flatten)]
    filter: Filter,
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit> {
    let path = TypedPath::read(args.path.as_os_str().as_bytes())?;
    let filter = args.filter.resolve()?;
    let access = open::access(app)?;
    let shown = listing::shown(app, &access)?;
    let path = shown.meant(&access, path);
    // `latest` of what is asked for; at the top, of anything.
    let of = Some(&path[..]).filter(|path| *path != b"/");
    let snapshot = shown.wanted_with(&access, &args.snapshot, of, &filter)?;
    let show = &mut |listed: ListedEntry<'_>| {
        show(&app.output, args.long, &path, &listed)
            .map_err(|error| EngineError::io("standard output", error))
    };
    holdall_engine::list(&access, snapshot, &path, args.recursive, &app.run(), show)?;
    Ok(Exit::Done)
}

fn show(
    output: &Output,
    long: bool,
    folder: &[u8],
    listed: &ListedEntry<'_>,
) -> std::io::Result<()> {
    if output.json {
        return output.object("entry", &JsonEntry::new(listed));
    }
    if !long {
        return output.result(Shown(listed.path));
    }
    let entry = listed.entry;
    let link = target(entry).map(|to| format!(" -> {}", Shown(to))).unwrap_or_default();
    let owners = [owner(&entry.user, entry.uid), owner(&entry.group, entry.gid)].join(":");
    output.result(format_args!(
        "{} {owners:<11} {:>8} {} {}{link}",
        permissions(entry),
        size(entry.size),
        local_time(modified_ns(entry.mtime)),
        Shown(within(listed.path, folder)),
    ))
}

/// A path as it is called in the folder that is listed.
fn within<'a>(path: &'a [u8], folder: &[u8]) -> &'a [u8] {
    let folder = folder.strip_suffix(b"/").unwrap_or(folder);
    let below = path.strip_prefix(folder).and_then(|rest| rest.strip_prefix(b"/"));
    below.filter(|rest| !rest.is_empty() && !folder.is_empty()).unwrap_or(path)
}

fn owner(name: &[u8], id: u32) -> String {
    if name.is_empty() { id.to_string() } else { Shown(name).to_string() }
}

/// Where a symbolic link points.
fn target(entry: &Entry) -> Option<&[u8]> {
    match (&entry.kind, &entry.content) {
        (EntryKind::Symlink, Content::Inline(target)) => Some(target),
        _ => None,
    }
}

/// The ten letters of `ls -l`.
fn permissions(entry: &Entry) -> String {
    let mut out = String::with_capacity(10);
    out.push(letter(entry.kind));
    for (shift, special, set, only) in
        [(6, 0o4000, 's', 'S'), (3, 0o2000, 's', 'S'), (0, 0o1000, 't', 'T')]
    {
        let bits = entry.mode >> shift;
        out.push(if bits & 4 != 0 { 'r' } else { '-' });
        out.push(if bits & 2 != 0 { 'w' } else { '-' });
        out.push(match (entry.mode & special != 0, bits & 1 != 0) {
            (true, true) => set,
            (true, false) => only,
            (false, true) => 'x',
            (false, false) => '-',
        });
    }
    out
}

fn letter(kind: EntryKind) -> char {
    match kind {
        EntryKind::File => '-',
        EntryKind::Directory => 'd',
        EntryKind::Symlink => 'l',
        EntryKind::Fifo => 'p',
        EntryKind::Socket => 's',
        EntryKind::CharDevice { .. } => 'c',
        EntryKind::BlockDevice { .. } => 'b',
    }
}

/// An entry as programs see it.
#[derive(Serialize)]
struct JsonEntry<'a> {
    #[serde(flatten)]
    path: JsonPath,
    kind: &'static str,
    mode: u32,
    permissions: String,
    uid: u32,
    gid: u32,
    user: std::borrow::Cow<'a, str>,
    group: std::borrow::Cow<'a, str>,
    size: u64,
    mtime: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    link_target: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    device: Option<String>,
}

impl<'a> JsonEntry<'a> {
    fn new(listed: &ListedEntry<'a>) -> Self {
        let entry = listed.entry;
        Self {
            path: JsonPath::new(listed.path),
            kind: word(entry.kind),
            mode: entry.mode,
            permissions: permissions(entry),
            uid: entry.uid,
            gid: entry.gid,
            user: String::from_utf8_lossy(&entry.user),
            group: String::from_utf8_lossy(&entry.group),
            size: entry.size,
            mtime: rfc3339(modified_ns(entry.mtime)),
            link_target: target(entry).map(|to| String::from_utf8_lossy(to).into_owned()),
            device: device(entry.kind),
        }
    }
}

fn device(kind: EntryKind) -> Option<String> {
    let (EntryKind::CharDevice { major, minor } | EntryKind::BlockDevice { major, minor }) = kind
    else {
        return None;
    };
    Some(format!("{major}:{minor}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_called_as_in_the_folder_that_is_listed() {
        let shown = |path: &'static str, folder: &str| within(path.as_bytes(), folder.as_bytes());
        assert_eq!(shown("/home/ada/x", "/home/ada"), b"x");
        assert_eq!(shown("/home/ada/x/y", "/home/ada"), b"x/y");
        for (path, folder) in
            [("/home", "/"), ("/home/ada", "/home/ada"), ("/home/adam", "/home/ada")]
        {
            assert_eq!(shown(path, folder), path.as_bytes(), "{folder}");
        }
    }

    #[test]
    fn permissions_read_as_ls_writes_them() {
        let shown = |kind, mode| permissions(&Entry { mode, ..Entry::empty(kind) });
        assert_eq!(shown(EntryKind::File, 0o644), "-rw-r--r--");
        assert_eq!(shown(EntryKind::File, 0o4755), "-rwsr-xr-x");
        assert_eq!(shown(EntryKind::File, 0o2644), "-rw-r-Sr--");
        assert_eq!(shown(EntryKind::Directory, 0o1777), "drwxrwxrwt");
    }
}

//! From paths as they are typed to sources as they are recorded, and what of them is refused.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::FileTypeExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use holdall_engine::{
    BackupOptions, FOLLOWED, Overlap, Patterns, Source, folder_behind, misplaced, overlap,
    plain_path,
};
use holdall_sys::pipe;

use crate::app::App;
use crate::config::below_home;
use crate::exit::{Exit, Refusal};
use crate::terminal::output::Shown;

/// The longest list of paths that is read, in bytes.
const LIST_MAX_BYTES: u64 = 256 << 20;
/// The longest file of rules that is read, in bytes.
const RULES_MAX_BYTES: u64 = 16 << 20;

/// `--as OLD=NEW`: what is read below OLD is recorded below NEW.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReadAs {
    old: Vec<u8>,
    new: Vec<u8>,
}

impl ReadAs {
    /// Reads `OLD=NEW`; both must be absolute.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (old, new) = text.split_once('=').ok_or("it has no `=`")?;
        if !old.starts_with('/') || !new.starts_with('/') {
            return Err("both paths must be absolute".into());
        }
        Ok(Self { old: plain_path(old.as_bytes()), new: plain_path(new.as_bytes()) })
    }

    /// Where `path` is recorded, if it is OLD or lies below it.
    fn record(&self, path: &[u8]) -> Option<Vec<u8>> {
        let rest = match &self.old[..] {
            b"/" => path,
            old => path.strip_prefix(old)?,
        };
        if !rest.is_empty() && !rest.starts_with(b"/") {
            return None;
        }
        Some(plain_path(&[&self.new, &b"/"[..], rest].concat()))
    }
}

/// The sources that are meant by these paths. One that ends with a slash and is a link to a folder means that
/// folder, recorded where the link is.
///
/// # Errors
/// If the current folder is needed and not known, or a parent of a path with `..` is not there;
/// [`Refusal`] if two sources are recorded at one place, or one of `read_as` is about none.
pub(crate) fn resolve(paths: &[PathBuf], read_as: &[ReadAs]) -> Result<Vec<Source>> {
    let named = paths.iter().map(|typed| absolute(typed)).collect::<Result<Vec<_>>>()?;
    check_needed(&named, read_as)?;
    let source = |(typed, named): (&PathBuf, Vec<u8>)| {
        let recorded = read_as.iter().find_map(|read_as| read_as.record(&named));
        let path = recorded.unwrap_or_else(|| named.clone());
        Source { path, read_at: followed(typed, &named).unwrap_or(named) }
    };
    let sources: Vec<_> = paths.iter().zip(named).map(source).collect();
    if sources.iter().any(|source| source.path != source.read_at) {
        check_overlaps(&sources)?;
    }
    Ok(sources)
}

/// Refuses what records none of the paths elsewhere.
fn check_needed(named: &[Vec<u8>], read_as: &[ReadAs]) -> Result<(), Refusal> {
    let is_idle = |read_as: &&ReadAs| named.iter().all(|path| read_as.record(path).is_none());
    match read_as.iter().find(is_idle) {
        Some(idle) => {
            let message = format!("--as: no source is {}, or lies below it", Shown(&idle.old));
            Err(Refusal::new(Exit::Usage, message)
                .hint("OLD is where a source is read, as it is named"))
        }
        None => Ok(()),
    }
}

/// Where those of the sources are recorded that these paths name.
///
/// # Errors
/// As for [`resolve`]; [`Refusal`] for a path that is no source.
pub(crate) fn among(sources: &[Source], typed: &[PathBuf]) -> Result<Vec<Vec<u8>>> {
    let recorded = |typed: &PathBuf| {
        let path = absolute(typed)?;
        let is_it = |source: &&Source| source.path == path || plain_path(&source.read_at) == path;
        let Some(source) = sources.iter().find(is_it) else {
            let message = format!("--accept-empty: no source is {}", Shown(&path));
            let hint = "it takes paths that are backed up, as they are named there";
            return Err(Refusal::new(Exit::Usage, message).hint(hint).into());
        };
        Ok(source.path.clone())
    };
    typed.iter().map(recorded).collect()
}

/// Refuses a pattern of what is recorded elsewhere: below a link that is followed, or what `--as` is about.
pub(crate) fn check_reached(sources: &[Source], patterns: &Patterns) -> Result<(), Refusal> {
    let Some(found) = misplaced(sources, patterns) else { return Ok(()) };
    let [pattern, real, path] = [&found.pattern, &found.read_at, &found.path].map(|of| Shown(of));
    let message = format!("{pattern} can match nothing: {real} is recorded as {path}");
    let hint = format!("patterns are of paths as they are recorded: begin it with {path}");
    Err(Refusal::new(Exit::Usage, message).hint(hint))
}

/// Refuses two sources of which one would be recorded where the other records something else.
fn check_overlaps(sources: &[Source]) -> Result<(), Refusal> {
    let Some(Overlap { inner, outer }) = overlap(sources) else { return Ok(()) };
    let [inner, inner_read_at, outer, outer_read_at] =
        [&inner.path, &inner.read_at, &outer.path, &outer.read_at].map(|path| Shown(path));
    let message = format!(
        "{inner_read_at} would be recorded as {inner}, and so would what lies in {outer_read_at}, \
         which is recorded as {outer}"
    );
    Err(Refusal::new(Exit::Usage, message)
        .hint("leave one of them out, or record it elsewhere (--as)"))
}

/// What reads the folder that `typed`, a link at `path`, leads to, if it ends with a slash. One that leads nowhere now
/// means a folder all the same, which is missing.
fn followed(typed: &Path, path: &[u8]) -> Option<Vec<u8>> {
    let typed = typed.as_os_str().as_bytes();
    let means_its_content = typed.ends_with(b"/") || typed.ends_with(b"/.");
    let link = Path::new(OsStr::from_bytes(path));
    let is_link = || link.symlink_metadata().is_ok_and(|there| there.is_symlink());
    let may_be_folder = || link.metadata().map_or(true, |there| there.is_dir());
    let is_followed = means_its_content && is_link() && may_be_folder();
    is_followed.then(|| [path, FOLLOWED].concat())
}

/// Opens those of the `typed` sources that are pipes, or lead to one as `/dev/stdin` may; `all` counts the others, too.
///
/// # Errors
/// [`Refusal`] if all of them are pipes without a writer; the system's error if one cannot be opened.
pub(crate) fn open_pipes(typed: &[Source], all: usize) -> Result<Vec<(Vec<u8>, Arc<File>)>> {
    let (mut pipes, mut idle) = (Vec::new(), Vec::new());
    for source in typed {
        let path = Path::new(OsStr::from_bytes(&source.read_at));
        // What is not there is told of sources in general.
        if !path.metadata().is_ok_and(|there| there.file_type().is_fifo()) {
            continue;
        }
        let what = || format!("cannot read the pipe {}", Shown(&source.read_at));
        let Some(file) = pipe::open(path).with_context(what)? else { continue };
        // Beside other sources it is read like any, and told, since nothing comes.
        if !pipe::may_give(&file).with_context(what)? {
            idle.push(Shown(&source.read_at).to_string());
        }
        pipes.push((source.path.clone(), Arc::new(file)));
    }
    if idle.is_empty() || idle.len() < all {
        return Ok(pipes);
    }
    let message =
        format!("nothing to back up: {} is a pipe, and no program writes to it", idle.join(", "));
    Err(Refusal::new(Exit::Usage, message)
        .hint("start what writes to it before; to store the pipe itself, name its folder")
        .into())
}

/// Says which sources are links or devices, of which nothing is backed up that lies there, as of a home folder that is
/// elsewhere; where that is all that there is, somebody meant something else.
pub(crate) fn check_whole(app: &App, options: &BackupOptions) -> Result<(), Refusal> {
    let is_pipe = |source: &&Source| options.pipes.iter().any(|(path, _)| *path == source.path);
    let read = options.sources.iter().filter(|source| !is_pipe(source));
    let bare: Vec<_> = read.filter_map(|source| Bare::of(&source.read_at)).collect();
    let [first, ..] = &bare[..] else { return Ok(()) };
    if bare.len() < options.sources.len() {
        for Bare { what, alone, .. } in bare {
            app.output.note(format_args!("note: {what}, and only {alone} is backed up"));
        }
        return Ok(());
    }
    let all = bare.iter().map(|bare| &bare.what[..]).collect::<Vec<_>>().join(", ");
    Err(Refusal::new(Exit::Usage, format!("nothing to back up: {all}")).hint(first.hint.clone()))
}

/// A source of which less is stored than what lies there.
struct Bare {
    /// Which it is, and what.
    what: String,
    /// What is stored.
    alone: &'static str,
    hint: String,
}

impl Bare {
    fn of(path: &[u8]) -> Option<Self> {
        let shown = Shown(path);
        let there = Path::new(OsStr::from_bytes(path)).symlink_metadata().ok()?.file_type();
        if there.is_symlink() {
            let (what, hint) = standard_input(path).unwrap_or_else(|| link(path));
            return Some(Self { what, alone: "the link", hint });
        }
        let kind = match () {
            () if there.is_block_device() || there.is_char_device() => "device",
            () if there.is_socket() => "socket",
            () => return None,
        };
        let what = format!("{shown} is a {kind}");
        let reads = if kind == "socket" { "socat -u UNIX-CONNECT:" } else { "cat " };
        let hint = format!("to back up what it gives: {reads}{shown} | holdall backup /dev/stdin");
        Some(Self { what, alone: "its name", hint })
    }
}

/// What a link is, and what to do about it.
fn link(path: &[u8]) -> (String, String) {
    let shown = Shown(path);
    if let Some(folder) = folder_behind(path) {
        let what = format!("{shown} is a link to {}", Shown(&folder));
        return (what, "to back up what lies there, end the path with a slash".to_owned());
    }
    let at = Path::new(OsStr::from_bytes(path));
    let to = at.canonicalize().or_else(|_| at.read_link()).unwrap_or_default();
    let to = Shown(to.as_os_str().as_bytes());
    let mounted = "check that what it leads to is mounted, or leave the link out".to_owned();
    match at.metadata() {
        Ok(_) => {
            let hint = format!("to back up what it leads to, name that: {to}");
            (format!("{shown} is a link to {to}"), hint)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            (format!("{shown} is a link that leads nowhere: {to} is not there"), mounted)
        }
        Err(error) => (format!("{shown} is a link that cannot be followed: {error}"), mounted),
    }
}

/// What standard input is, if that is named and no file or folder, and what to do about it.
fn standard_input(path: &[u8]) -> Option<(String, String)> {
    const NAMES: [&[u8]; 3] = [b"/dev/stdin", b"/dev/fd/0", b"/proc/self/fd/0"];
    let there = NAMES.contains(&path).then(|| Path::new(OsStr::from_bytes(path)).metadata())?;
    let kind = there.ok()?.file_type();
    let what = match () {
        () if kind.is_file() || kind.is_dir() => return None,
        () if kind.is_socket() => "a socket",
        () if io::stdin().is_terminal() => "a terminal",
        () if Path::new("/dev/stdin")
            .canonicalize()
            .is_ok_and(|to| to == Path::new("/dev/null")) =>
        {
            "/dev/null"
        }
        () => "a device",
    };
    let what = format!("standard input is {what}");
    let hint = "send what is to be backed up through a pipe: PROGRAM | holdall backup /dev/stdin; \
                a file is named itself";
    Some((what, hint.to_owned()))
}

/// Whether some sources are not there at all; none of them is a failure.
pub(crate) fn check_there(sources: &[Source]) -> Result<bool> {
    use io::ErrorKind::{NotADirectory, NotFound};
    let missing = |source: &&Source| {
        let path = Path::new(OsStr::from_bytes(&source.read_at));
        path.symlink_metadata().is_err_and(|error| matches!(error.kind(), NotFound | NotADirectory))
    };
    let missing: Vec<_> = sources.iter().filter(missing).collect();
    if missing.len() < sources.len() {
        return Ok(!missing.is_empty());
    }
    let what = |source: &&Source| match source.read_at.strip_suffix(FOLLOWED) {
        Some(followed) => link(followed).0,
        None => format!("{} is not there", Shown(&source.read_at)),
    };
    let what = missing.iter().map(what).collect::<Vec<_>>().join(", ");
    Err(Refusal::new(Exit::Failed, format!("nothing to back up: {what}"))
        .hint("check the path, and that what it is on is mounted")
        .into())
}

/// The refusal of a file named by `option` that cannot be read.
pub(crate) fn unreadable(option: &str, file: &Path, error: &io::Error) -> Refusal {
    Refusal::new(Exit::Failed, format!("cannot read {}: {error}", file.display()))
        .hint(format!("check the path after {option}, and that this user may read it"))
}

/// Reads a file of rules that is named by `option`.
///
/// # Errors
/// [`Refusal`] if it cannot be read, or is too long.
pub(crate) fn read_rules(option: &str, file: &Path) -> Result<Vec<u8>, Refusal> {
    read_named(option, file, RULES_MAX_BYTES)
}

fn read_named(option: &str, file: &Path, max_bytes: u64) -> Result<Vec<u8>, Refusal> {
    let opened = File::open(file).map_err(|error| unreadable(option, file, &error))?;
    read_text(option, file, opened, max_bytes)
}

fn read_text(
    option: &str,
    file: &Path,
    from: impl Read,
    max_bytes: u64,
) -> Result<Vec<u8>, Refusal> {
    let mut text = Vec::new();
    from.take(max_bytes + 1)
        .read_to_end(&mut text)
        .map_err(|error| unreadable(option, file, &error))?;
    if text.len() as u64 > max_bytes {
        let message =
            format!("{option} {}: it has more than {} MiB", file.display(), max_bytes >> 20);
        return Err(Refusal::new(Exit::Usage, message).hint("name a file of lines"));
    }
    Ok(text)
}

/// Reads a list of paths, one a line, any bytes; `-` is standard input. Empty lines are left out.
///
/// # Errors
/// If it cannot be read.
pub(crate) fn read_list(file: &Path) -> Result<Vec<PathBuf>> {
    let list = match file == Path::new("-") {
        true => read_text("--files-from", file, std::io::stdin().lock(), LIST_MAX_BYTES),
        false => read_named("--files-from", file, LIST_MAX_BYTES),
    }?;
    let lines = list.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    Ok(lines.map(|line| PathBuf::from(OsStr::from_bytes(line))).collect())
}

/// An absolute path without `.`, `..` and doubled slashes. Links are kept, except where `..` must
/// be resolved as the system does; what has a name need not be there.
///
/// # Errors
/// As for [`resolve`].
pub(crate) fn absolute(path: &Path) -> Result<Vec<u8>> {
    if path.as_os_str().is_empty() {
        let empty = Refusal::new(Exit::Usage, "a path is empty");
        return Err(empty.hint("the current folder is .").into());
    }
    let what = || format!("cannot resolve {}", path.display());
    let climbs = path.components().any(|component| component == Component::ParentDir);
    let absolute = if climbs { resolved(path) } else { std::path::absolute(path) };
    Ok(plain_path(&absolute.with_context(what)?.into_os_string().into_vec()))
}

/// A path with `..` as the system resolves it, but for its last names.
fn resolved(path: &Path) -> io::Result<PathBuf> {
    match (path.parent(), path.file_name()) {
        (Some(above), Some(name)) => match above.canonicalize() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => resolved(above),
            above => above,
        }
        .map(|above| above.join(name)),
        _ => path.canonicalize(),
    }
}

/// A path in a snapshot, as it was typed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TypedPath {
    /// In its plain form. One that is not absolute begins in the current folder.
    pub(crate) absolute: Vec<u8>,
    /// One that is not absolute, from the root on: by its name the output of a command is recorded there.
    pub(crate) from_root: Option<Vec<u8>>,
}

impl TypedPath {
    /// Reads it.
    ///
    /// # Errors
    /// As for [`snapshot_path`].
    pub(crate) fn read(typed: &[u8]) -> Result<Self, Refusal> {
        let from_root = (!typed.starts_with(b"/")).then(|| plain_path(typed));
        Ok(Self { absolute: snapshot_path(typed)?, from_root })
    }
}

/// `SNAP` or `SNAP:PATH`, as typed; a `~` at the beginning of the path is the home folder.
///
/// # Errors
/// [`Refusal`] for a path that is empty.
pub(crate) fn split_snapshot(text: &OsStr) -> Result<(String, Option<TypedPath>), Refusal> {
    let bytes = text.as_bytes();
    let (name, path) = match bytes.iter().position(|&byte| byte == b':') {
        Some(colon) => {
            // No shell puts the home folder there.
            let path = below_home(Path::new(OsStr::from_bytes(&bytes[colon + 1..])))?;
            (&bytes[..colon], Some(TypedPath::read(path.as_os_str().as_bytes())?))
        }
        None => (bytes, None),
    };
    let name = snapshot_name(&String::from_utf8_lossy(name));
    Ok((name.map_err(|reason| Refusal::new(Exit::Usage, reason))?, path))
}

/// A snapshot's name, as it is typed.
///
/// # Errors
/// What is wrong with it: with none, all would be meant.
pub(crate) fn snapshot_name(text: &str) -> Result<String, String> {
    match text {
        "" => Err("a snapshot's name is empty".to_owned()),
        // What restore and dump take.
        name if name.contains(':') => {
            let (name, path) = name.split_once(':').unwrap_or_default();
            Err(format!(
                "a snapshot's name has no colon: write `{name} {path}` where a path may follow"
            ))
        }
        name => Ok(name.to_owned()),
    }
}

/// What snapshots are chosen by, as it is typed.
///
/// # Errors
/// What is wrong with it: a script may have a variable that is not set.
pub(crate) fn not_empty(text: &str) -> Result<String, String> {
    match text {
        "" => Err("it is empty: leave the option out if nothing is meant".to_owned()),
        text => Ok(text.to_owned()),
    }
}

/// A path inside a snapshot, in its plain form. One that is not absolute begins in the current folder.
///
/// # Errors
/// [`Refusal`] if it is empty, or if there is no current folder any more.
pub(crate) fn snapshot_path(path: &[u8]) -> Result<Vec<u8>, Refusal> {
    if path.starts_with(b"/") {
        return Ok(plain_path(path));
    }
    absolute(Path::new(OsStr::from_bytes(path))).map_err(|error| {
        Refusal::new(Exit::Usage, format!("{error:#}"))
            .hint("write the whole path, as `holdall ls SNAP` shows it")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_behind_a_snapshot_s_name_is_told_from_the_name() {
        assert!(snapshot_name("latest:letters").unwrap_err().contains("`latest letters`"));
        assert_eq!(snapshot_name("latest").as_deref(), Ok("latest"));
    }

    #[test]
    fn what_is_read_at_one_place_is_recorded_at_another() {
        let read_as = ReadAs::parse("/snap/home/=/home").unwrap();
        let paths = ["/snap/home", "/snap/home/ada/./x//y/", "/snap/homes"].map(PathBuf::from);
        let sources = resolve(&paths, &[read_as]).unwrap();
        let recorded: Vec<_> = sources.iter().map(|source| &source.path[..]).collect();
        assert_eq!(recorded, [&b"/home"[..], b"/home/ada/x/y", b"/snap/homes"]);
        assert_eq!(sources[1].read_at, b"/snap/home/ada/x/y");
        let all = ReadAs::parse("/=/whole").unwrap();
        assert_eq!(all.record(b"/etc").unwrap(), b"/whole/etc");
        assert_eq!(ReadAs::parse("/snap=/").unwrap().record(b"/snap/x").unwrap(), b"/x");
        ReadAs::parse("/snap").unwrap_err();
        ReadAs::parse("snap=/home").unwrap_err();
    }

    #[test]
    fn two_sources_are_not_recorded_at_one_place() {
        let resolved = |paths: &[&str], read_as: &str| {
            let paths: Vec<_> = paths.iter().map(PathBuf::from).collect();
            resolve(&paths, &[ReadAs::parse(read_as).unwrap()])
        };
        for paths in [
            &["/snap/home", "/home/ada"][..],
            &["/home/ada", "/snap/home"],
            &["/snap/home", "/home"],
            &["/snap/home", "/"],
        ] {
            let error = resolved(paths, "/snap/home=/home").unwrap_err();
            assert_eq!(crate::exit::exit_of(&error), Exit::Usage, "{paths:?}");
        }
        for paths in [&["/snap/home", "/snap/home/ada"][..], &["/snap/home", "/home-ada", "/etc"]] {
            resolved(paths, "/snap/home=/home").unwrap();
        }
        resolved(&["/", "/etc"], "/=/whole").unwrap();
        resolved(&["/snap", "/snap/x"], "/snap=/").unwrap();
    }

    #[test]
    fn a_relative_path_is_one_below_the_current_folder() {
        let here = std::env::current_dir().unwrap();
        assert_eq!(absolute(Path::new(".")).unwrap(), here.as_os_str().as_bytes());
        let real = here.canonicalize().unwrap();
        let parent = real.parent().unwrap();
        assert_eq!(absolute(Path::new("..")).unwrap(), parent.as_os_str().as_bytes());
        assert_eq!(absolute(Path::new("/")).unwrap(), b"/");
        absolute(Path::new("")).unwrap_err();
    }

    #[test]
    fn what_is_not_there_yet_may_be_named_from_a_folder_above() {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().canonicalize().unwrap();
        std::fs::create_dir(real.join("here")).unwrap();
        std::os::unix::fs::symlink("here", real.join("link")).unwrap();
        let named = |path: &str| absolute(&real.join(path)).ok();
        let below = |path: &str| Some(real.join(path).into_os_string().into_vec());
        assert_eq!(named("here/../new"), below("new"));
        assert_eq!(named("here/../new/er"), below("new/er"));
        assert_eq!(named("here/../link"), below("link"), "the last name may be a link");
        assert_eq!(named("new/.."), None);
        assert_eq!(named("new/../other"), None);
    }

    #[test]
    fn a_link_to_a_folder_is_followed_where_it_ends_with_a_slash() {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().canonicalize().unwrap();
        std::fs::create_dir(real.join("data")).unwrap();
        std::fs::write(real.join("file"), b"").unwrap();
        for (link, to) in [("home", "data"), ("paper", "file"), ("lost", "nothing")] {
            std::os::unix::fs::symlink(to, real.join(link)).unwrap();
        }
        let bytes = |path: &str| real.join(path).into_os_string().into_vec();
        let read_at = |typed: &str| {
            let [source] = &resolve(&[real.join(typed)], &[]).unwrap()[..] else { panic!("one") };
            assert_eq!(source.path, bytes(typed.split('/').next().unwrap()));
            source.read_at.clone()
        };
        for (typed, read) in [("home/", "home/."), ("home/.", "home/."), ("lost/", "lost/.")] {
            assert_eq!(read_at(typed), bytes(read), "{typed}");
        }
        for typed in ["home", "data/", "paper/", "lost"] {
            assert_eq!(read_at(typed), bytes(typed.trim_end_matches('/')), "{typed}");
        }
        // Within another source the link itself is recorded there.
        let both = [real.clone(), real.join("home/")];
        assert_eq!(crate::exit::exit_of(&resolve(&both, &[]).unwrap_err()), Exit::Usage);
        resolve(&[real.join("home/"), real.join("home/letters")], &[]).unwrap();
    }

    #[test]
    fn a_snapshot_may_be_named_with_a_path_that_has_colons() {
        let split = |text: &str| split_snapshot(OsStr::new(text));
        let absolute = |path: &[u8]| Some(TypedPath { absolute: path.to_vec(), from_root: None });
        assert_eq!(split("latest").unwrap(), ("latest".into(), None));
        assert_eq!(split("1a:/b:c/").unwrap(), ("1a".into(), absolute(b"/b:c")));
        assert_eq!(split("1a:/").unwrap(), ("1a".into(), absolute(b"/")));
        let here = std::env::current_dir().unwrap().join("b").into_os_string().into_encoded_bytes();
        let b = TypedPath { absolute: here, from_root: Some(b"/b".to_vec()) };
        assert_eq!(split("1a:b").unwrap(), ("1a".into(), Some(b)));
        split("1a:").unwrap_err();
    }

    #[test]
    fn a_list_may_hold_any_bytes_but_line_ends() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("list");
        std::fs::write(&file, b"/a b\n\n/\xff\r\n").unwrap();
        let list = read_list(&file).unwrap();
        assert_eq!(list, [Path::new("/a b"), Path::new(OsStr::from_bytes(b"/\xff\r"))]);
    }
}

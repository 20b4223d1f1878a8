//! Reading what `strace -f -xx` writes: one line for each call, two where another thread came between.

use std::collections::HashMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// The calls that are asked of strace: all that change files or names, make them durable, or say
/// which file a number stands for.
pub(super) const CALLS: &str = "openat,openat2,open,creat,close,dup,dup2,dup3,fcntl,lseek,read,write,\
    pwrite64,writev,pwritev,pwritev2,truncate,ftruncate,fallocate,rename,renameat,renameat2,link,linkat,\
    symlink,symlinkat,unlink,unlinkat,mkdir,mkdirat,rmdir,fchmod,utimensat,fsync,fdatasync,\
    sync_file_range,sync,syncfs,copy_file_range,sendfile,splice,io_uring_setup";

/// A folder that a path starts from: a number of an open one, or where the process is.
pub(super) type Base = Option<i32>;

/// One call that went well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Call {
    Open {
        base: Base,
        path: PathBuf,
        creates: bool,
        truncates: bool,
        appends: bool,
        mode: u32,
        fd: i32,
    },
    Close {
        fd: i32,
    },
    Duplicate {
        from: i32,
        to: i32,
    },
    Seek {
        fd: i32,
        to: u64,
    },
    Read {
        fd: i32,
        length: u64,
    },
    Write {
        fd: i32,
        at: Option<u64>,
        bytes: Vec<u8>,
    },
    Truncate {
        fd: i32,
        length: u64,
    },
    Rename {
        from: (Base, PathBuf),
        to: (Base, PathBuf),
    },
    Link {
        from: (Base, PathBuf),
        to: (Base, PathBuf),
    },
    Unlink {
        base: Base,
        path: PathBuf,
    },
    MakeDir {
        base: Base,
        path: PathBuf,
        mode: u32,
    },
    SetMode {
        fd: i32,
        mode: u32,
    },
    /// Seconds and nanoseconds.
    SetTime {
        fd: i32,
        time: (i64, u32),
    },
    /// Begun at that line of the trace: what was written later need not be covered.
    Sync {
        fd: i32,
        begun: usize,
    },
    /// The same of all that was done to the file system of a file.
    SyncAll {
        fd: i32,
        begun: usize,
    },
    /// A call that changes something and is not known here.
    Unknown {
        line: String,
    },
}

/// Reads a trace: the calls, each with the line at which it was over.
pub(super) fn parse(text: &str) -> Vec<(usize, Call)> {
    let mut begun: HashMap<&str, (usize, &str)> = HashMap::new();
    let mut calls = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let Some((thread, rest)) = line.split_once(' ') else { continue };
        let rest = rest.trim_start();
        if let Some(front) = rest.strip_suffix(" <unfinished ...>") {
            begun.insert(thread, (number, front));
            // Its number may be given out again before it is said to be over.
            calls.extend(close_of(front).map(|call| (number, call)));
        } else if rest.starts_with("<... ") {
            let Some((start, front)) = begun.remove(thread) else { continue };
            let Some((_, end)) = rest.split_once(" resumed>") else { continue };
            if close_of(front).is_none() {
                calls.extend(call(&format!("{front}{end}"), start).map(|call| (number, call)));
            }
        } else {
            calls.extend(call(rest, number).map(|call| (number, call)));
        }
    }
    calls
}

fn close_of(text: &str) -> Option<Call> {
    let fd = text.strip_prefix("close(")?.trim_end_matches(')').parse().ok()?;
    Some(Call::Close { fd })
}

/// Reads one whole call; `None` for one that failed or changed nothing.
fn call(line: &str, begun: usize) -> Option<Call> {
    let (front, result) = line.rsplit_once(" = ")?;
    let result: i64 =
        result.split_whitespace().next()?.parse().ok().filter(|result| *result >= 0)?;
    let (name, arguments) = front.trim_end().strip_suffix(')')?.split_once('(')?;
    let arguments: Vec<&str> = split(arguments);
    let call = known(name, &arguments, result, begun);
    Some(call.unwrap_or_else(|| Call::Unknown { line: line.to_owned() })).filter(is_change)
}

fn is_change(call: &Call) -> bool {
    // Of the numbers of processes and locks nothing is kept.
    !matches!(call, Call::Unknown { line } if line.starts_with("fcntl("))
}

fn known(name: &str, arguments: &[&str], result: i64, begun: usize) -> Option<Call> {
    let text = |at: usize| arguments.get(at).copied();
    let number = |at: usize| text(at)?.parse::<i64>().ok();
    let fd = |at: usize| text(at)?.parse::<i32>().ok();
    let path = |at: usize| Some(PathBuf::from(OsString::from_vec(string(text(at)?)?)));
    let place = |base: usize| Some((self::base(text(base)?)?, path(base + 1)?));
    let mode = |at: usize| text(at).and_then(octal);
    let result_fd = i32::try_from(result).ok()?;
    let length = u64::try_from(result).ok()?;
    Some(match name {
        "open" => open((None, path(0)?), text(1)?, mode(2), result_fd),
        "creat" => open((None, path(0)?), "O_CREAT|O_TRUNC", mode(1), result_fd),
        "openat" => open(place(0)?, text(2)?, mode(3), result_fd),
        // {flags=O_RDWR|O_CREAT, mode=0666, resolve=...}
        "openat2" => {
            let mode = field(text(2)?, "mode=").and_then(octal);
            open(place(0)?, field(text(2)?, "flags=")?, mode, result_fd)
        }
        "close" => Call::Close { fd: fd(0)? },
        "dup" | "dup2" | "dup3" => Call::Duplicate { from: fd(0)?, to: result_fd },
        "fcntl" if text(1)?.starts_with("F_DUPFD") => {
            Call::Duplicate { from: fd(0)?, to: result_fd }
        }
        "lseek" => Call::Seek { fd: fd(0)?, to: length },
        "read" => Call::Read { fd: fd(0)?, length },
        "write" => write(fd(0)?, None, string(text(1)?)?, result),
        "pwrite64" => write(fd(0)?, number(3), string(text(1)?)?, result),
        "writev" => write(fd(0)?, None, pieces(text(1)?)?, result),
        "pwritev" | "pwritev2" => write(fd(0)?, number(3), pieces(text(1)?)?, result),
        "ftruncate" => Call::Truncate { fd: fd(0)?, length: number(1)?.try_into().ok()? },
        "rename" => Call::Rename { from: (None, path(0)?), to: (None, path(1)?) },
        "renameat" | "renameat2" => Call::Rename { from: place(0)?, to: place(2)? },
        "link" => Call::Link { from: (None, path(0)?), to: (None, path(1)?) },
        "linkat" => Call::Link { from: place(0)?, to: place(2)? },
        "unlink" | "rmdir" => Call::Unlink { base: None, path: path(0)? },
        "unlinkat" => Call::Unlink { base: base(text(0)?)?, path: path(1)? },
        "mkdir" => Call::MakeDir { base: None, path: path(0)?, mode: mode(1)? },
        "mkdirat" => Call::MakeDir { base: base(text(0)?)?, path: path(1)?, mode: mode(2)? },
        "fchmod" => Call::SetMode { fd: fd(0)?, mode: mode(1)? },
        "utimensat" if text(1)? == "NULL" => Call::SetTime { fd: fd(0)?, time: time(text(2)?)? },
        "syncfs" => Call::SyncAll { fd: fd(0)?, begun },
        "fsync" | "fdatasync" => Call::Sync { fd: fd(0)?, begun },
        _ => return None,
    })
}

fn open((base, path): (Base, PathBuf), flags: &str, mode: Option<u32>, fd: i32) -> Call {
    let has = |flag: &str| flags.split('|').any(|one| one == flag);
    let (creates, truncates, appends) = (has("O_CREAT"), has("O_TRUNC"), has("O_APPEND"));
    Call::Open { base, path, creates, truncates, appends, mode: mode.unwrap_or_default(), fd }
}

fn octal(text: &str) -> Option<u32> {
    u32::from_str_radix(text, 8).ok()
}

/// The value of a field of a structure, or of the last of several structures.
fn field<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let (_, value) = text.rsplit_once(name)?;
    value.split([',', '}']).next()
}

/// The modification time that is set.
fn time(times: &str) -> Option<(i64, u32)> {
    Some((field(times, "tv_sec=")?.parse().ok()?, field(times, "tv_nsec=")?.parse().ok()?))
}

fn write(fd: i32, at: Option<i64>, mut bytes: Vec<u8>, written: i64) -> Call {
    bytes.truncate(usize::try_from(written).unwrap_or(0));
    Call::Write { fd, at: at.and_then(|at| u64::try_from(at).ok()), bytes }
}

fn base(text: &str) -> Option<Base> {
    if text == "AT_FDCWD" { Some(None) } else { text.parse().ok().map(Some) }
}

/// The arguments of a call: what is between the commas that are in no bracket. Strings are
/// hexadecimal, so there is no comma in one.
fn split(arguments: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0i32);
    for (at, byte) in arguments.bytes().enumerate() {
        match byte {
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth -= 1,
            b',' if depth == 0 => {
                parts.push(arguments[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(arguments[start..].trim());
    parts
}

/// Reads a string that is written as `"\x61\x62"`; `None` if strace cut it short.
fn string(text: &str) -> Option<Vec<u8>> {
    let hex = text.strip_prefix('"')?.strip_suffix('"')?;
    hex.split("\\x").skip(1).map(|byte| u8::from_str_radix(byte, 16).ok()).collect()
}

/// The strings of a list of buffers, one behind the other.
fn pieces(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    for piece in text.split("iov_base=").skip(1) {
        bytes.extend(string(piece.split(", iov_len=").next()?)?);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_read_and_failed_ones_are_not() {
        let text = r#"7 mkdir("\x64", 0777) = 0
7 openat(AT_FDCWD, "\x64\x2f\x66", O_RDWR|O_CREAT|O_CLOEXEC, 0777) = 3
7 pwrite64(3, "\x78\x79", 2, 10) = 2
7 writev(3, [{iov_base="\x61", iov_len=1}, {iov_base="\x62", iov_len=1}], 2) = 2
7 unlinkat(4, "\x67", 0) = -1 ENOENT (No such file or directory)
7 renameat2(AT_FDCWD, "\x61", 5, "\x62", RENAME_NOREPLACE) = 0
7 openat2(5, "\x63", {flags=O_RDWR|O_CREAT|O_EXCL, mode=0666, resolve=RESOLVE_BENEATH}, 24) = 6
7 fcntl(3, F_SETLK, {l_type=F_WRLCK, l_whence=SEEK_SET, l_start=0, l_len=0}) = 0
7 copy_file_range(3, NULL, 4, NULL, 10, 0) = 10
7 fchmod(3, 01644) = 0
7 utimensat(3, NULL, [{tv_sec=9, tv_nsec=UTIME_OMIT}, {tv_sec=-2, tv_nsec=7} /* 1969 */], 0) = 0
7 syncfs(3) = 0
"#;
        let calls: Vec<Call> = parse(text).into_iter().map(|(_, call)| call).collect();
        let path = PathBuf::from;
        let opened = |fd| Call::Open {
            base: None,
            path: path("d/f"),
            creates: true,
            truncates: false,
            appends: false,
            mode: 0o777,
            fd,
        };
        let made = Call::MakeDir { base: None, path: path("d"), mode: 0o777 };
        assert_eq!(calls[..2], [made, opened(3)]);
        assert_eq!(calls[2], Call::Write { fd: 3, at: Some(10), bytes: b"xy".to_vec() });
        assert_eq!(calls[3], Call::Write { fd: 3, at: None, bytes: b"ab".to_vec() });
        let moved = Call::Rename { from: (None, path("a")), to: (Some(5), path("b")) };
        assert_eq!(calls[4], moved);
        let beneath = Call::Open {
            base: Some(5),
            path: path("c"),
            creates: true,
            truncates: false,
            appends: false,
            mode: 0o666,
            fd: 6,
        };
        assert_eq!(calls[5], beneath);
        assert!(matches!(&calls[6], Call::Unknown { line } if line.starts_with("copy_file_range")));
        assert_eq!(calls[7], Call::SetMode { fd: 3, mode: 0o1644 });
        assert_eq!(calls[8], Call::SetTime { fd: 3, time: (-2, 7) });
        assert_eq!(calls[9], Call::SyncAll { fd: 3, begun: 11 });
        assert_eq!(calls.len(), 10);
    }

    #[test]
    fn a_sync_covers_what_was_there_when_it_began() {
        let text = "1 fsync(3 <unfinished ...>\n2 pwrite64(3, \"\\x61\", 1, 0) = 1\n\
                    2 close(9 <unfinished ...>\n1 <... fsync resumed>) = 0\n\
                    2 <... close resumed>) = 0\n";
        let calls = parse(text);
        assert_eq!(calls[0].0, 1);
        assert_eq!(calls[1], (2, Call::Close { fd: 9 }));
        assert_eq!(calls[2], (3, Call::Sync { fd: 3, begun: 0 }));
        assert_eq!(calls.len(), 3);
    }
}

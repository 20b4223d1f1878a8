//! The disk is as bad as it says, and no worse: small programs whose states are known.

use std::path::Path;
use std::process::Command;

use crate::{Random, has_strace};

use super::{History, Image, Watch, choices};

/// What a shell did to a folder, and the folder as it is.
fn watched(script: &str) -> (History, Image) {
    let folder = tempfile::tempdir().expect("a folder");
    let (root, notes) = (folder.path().join("disk"), folder.path().join("notes"));
    std::fs::create_dir(&root).expect("a folder");
    let mut history = History::new(&root, &notes, &Image::default(), "").with_metadata();
    let script = script.replace("DISK", root.to_str().expect("UTF-8"));
    let script = script.replace("NOTES", notes.to_str().expect("UTF-8"));
    let mut command = Command::new("/usr/bin/python3");
    command.args(["-c", &script]);
    let watch = Watch::new(&folder.path().join("trace"));
    let output = watch.run(&command, &mut history, None).expect("strace runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    (history, Image::read(&root).expect("it can be read"))
}

/// All that may be found, at all moments after `said` was said.
fn after(history: &History, said: &str) -> Vec<Image> {
    let mut random = Random::new(1);
    let mut images = Vec::new();
    for moment in history.moments().filter(|moment| moment.said.contains(said)) {
        let choices = choices(history, moment, &mut random, 50);
        images.extend(choices.iter().map(|choice| history.image(moment, choice)));
    }
    images
}

const FRONT: &str = "
import os
def make(path, data):
    fd = os.open(path, os.O_WRONLY | os.O_CREAT); os.write(fd, data); return fd
def sync(path):
    fd = os.open(path, os.O_RDONLY); os.fsync(fd); os.close(fd)
def sync_all(fd):
    import ctypes; assert ctypes.CDLL(None).syncfs(fd) == 0
def say(text):
    fd = os.open('NOTES', os.O_WRONLY | os.O_CREAT | os.O_APPEND); os.write(fd, text); os.close(fd)
";

#[test]
fn without_a_crash_the_folder_is_as_it_is() {
    if !has_strace() {
        return;
    }
    let (history, folder) = watched(&format!(
        "{FRONT}
os.mkdir('DISK/a'); fd = make('DISK/a/one', b'x' * 5000); os.pwrite(fd, b'yy', 100)
os.rename('DISK/a/one', 'DISK/two'); os.link('DISK/two', 'DISK/a/three'); os.ftruncate(fd, 4000)
make('DISK/gone', b'z'); os.unlink('DISK/gone'); os.mkdir('DISK/b'); os.rmdir('DISK/b')
dir = os.open('DISK/a', os.O_RDONLY); os.close(os.open('at', os.O_CREAT, dir_fd=dir))
os.writev(fd, [b'at the', b' place']); os.lseek(fd, 2, 0); os.write(os.dup(fd), b'there')
"
    ));
    assert_eq!(history.last().entries, folder.entries);
    assert_eq!(folder.files().count(), 3);
}

#[test]
fn what_was_synced_stays_and_what_was_not_may_be_lost_torn_or_garbage() {
    if !has_strace() {
        return;
    }
    let (history, _) = watched(&format!(
        "{FRONT}
make('DISK/unsynced', b'u' * 5000)
fd = make('DISK/synced', b's' * 5000); os.fsync(fd); sync('DISK'); say(b'synced')
os.pwrite(fd, b't' * 5000, 0)
"
    ));
    let images = after(&history, "synced");
    let of = |name: &str| -> Vec<Vec<u8>> {
        images.iter().map(|image| image.file(Path::new(name)).expect("synced").to_vec()).collect()
    };
    let synced = of("synced");
    assert!(synced.iter().all(|bytes| bytes.len() == 5000));
    let torn = |bytes: &Vec<u8>| bytes.contains(&b's') && bytes.contains(&b't');
    assert!(synced.iter().any(torn), "sectors are kept or not each on its own");
    let sectors = |bytes: &Vec<u8>| bytes.chunks(512).all(|one| one.iter().all(|b| *b == one[0]));
    assert!(synced.iter().all(sectors));
    let unsynced = of("unsynced");
    let found = |is: &dyn Fn(&[u8]) -> bool| unsynced.iter().any(|bytes| is(bytes));
    assert!(found(&|bytes| bytes.is_empty()) && found(&|bytes| bytes == [b'u'; 5000]));
    assert!(found(&|bytes| bytes == [0; 5000]), "the length alone was kept");
    assert!(found(&|bytes| bytes.len() == 5000 && bytes.iter().any(|byte| !b"u\0".contains(byte))));
}

#[test]
fn names_are_durable_with_their_folder_and_a_moved_one_is_never_gone() {
    if !has_strace() {
        return;
    }
    let (history, _) = watched(&format!(
        "{FRONT}
os.mkdir('DISK/from'); os.mkdir('DISK/to'); sync('DISK')
os.fsync(make('DISK/from/name', b'n')); sync('DISK/from'); say(b'named')
os.rename('DISK/from/name', 'DISK/to/name'); say(b' moved'); sync('DISK/to'); say(b' synced')
"
    ));
    let places = |said: &str| -> Vec<(bool, bool)> {
        let is_at = |image: &Image, path: &str| image.file(Path::new(path)) == Some(b"n");
        let images = after(&history, said);
        images.iter().map(|one| (is_at(one, "from/name"), is_at(one, "to/name"))).collect()
    };
    let moved = places("moved");
    assert!([(true, false), (false, true), (true, true)].iter().all(|one| moved.contains(one)));
    assert!(!moved.contains(&(false, false)));
    assert!(places("synced").iter().all(|place| *place == (false, true)));
}

#[test]
fn what_was_durable_at_the_start_stays() {
    let start = Image::default().with(Path::new("old"), b"kept".to_vec());
    let history = History::new(Path::new("/d"), Path::new("/n"), &start, "said before");
    assert_eq!(history.last(), start);
}

#[test]
fn modes_and_times_are_lost_in_order_and_what_was_synced_with_all_else_stays() {
    if !has_strace() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let (history, made) = watched(&format!(
        "{FRONT}
os.umask(0)
fd = os.open('DISK/file', os.O_WRONLY | os.O_CREAT, 0o600); os.write(fd, b'x')
os.utime(fd, (5, 5)); os.fchmod(fd, 0o644); say(b'set')
sync_all(fd); say(b' synced'); os.fchmod(fd, 0o755)
"
    ));
    assert_eq!(history.last().entries, made.entries);
    let found = |said: &str| -> Vec<(u32, bool)> {
        let images = after(&history, said);
        let of = |image: &Image| {
            let known = image.metadata.get(Path::new("file"))?;
            Some((known.mode.expect("a mode"), known.time == Some((5, 0))))
        };
        images.iter().filter_map(of).collect()
    };
    let set = found("set");
    assert!([(0o600, false), (0o600, true), (0o644, true)].iter().all(|one| set.contains(one)));
    assert!(!set.contains(&(0o644, false)));
    let synced = found("synced");
    assert!(synced.iter().all(|one| *one == (0o644, true) || *one == (0o755, true)));
    let image = history.last();
    image.lay_down(&folder.path().join("again")).expect("it can be made");
    let again = Image::read_with_metadata(&folder.path().join("again")).expect("it can be read");
    assert_eq!(image, again);
}

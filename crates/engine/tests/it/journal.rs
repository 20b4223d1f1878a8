//! Ten thousand steps of somebody who works, watched by the agent's journal: each run that it tells where to look makes the
//! snapshot that a walk of everything makes.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::channel;

use holdall_agent::journal::{Committed, Journal, Queue, Walk, WatchedSet, WatchedSource};
use holdall_engine::{BackupOptions, Changes, ListedEntry, Place, Run, Source, Walked, list};
use holdall_testkit::{Disturber, Slice, is_there, setting};
use tempfile::TempDir;

use crate::world::{World, newest};

/// From one run to the next.
const STEPS: u64 = 20;
const SET: &str = "home";

/// A file system of its own: elsewhere others work meanwhile, also in the folder of temporary files, which would be above the source.
struct Disk(TempDir);

impl Disk {
    /// `None` for who may not mount.
    fn in_memory() -> Option<Self> {
        let point = is_there("the right to make a folder in /mnt (root)", is_root())
            .then(|| tempfile::tempdir_in("/mnt").unwrap())?;
        let mount = ["-t", "tmpfs", "-o", "size=256m", "holdall-test"];
        let mounted = Command::new("mount").args(mount).arg(point.path()).output().unwrap();
        is_there("the right to mount (root)", mounted.status.success()).then_some(Self(point))
    }
}

fn is_root() -> bool {
    holdall_sys::users::effective_uid() == 0
}

impl Drop for Disk {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg("-l").arg(self.0.path()).status();
        assert!(unmounted.unwrap().success());
    }
}

/// What a run of the set is told that asks now.
fn ask(journal: &Journal) -> Walk {
    let (mut asks, asked) = UnixStream::pair().unwrap();
    let (tell, told) = channel();
    let answer = move |walk: &Walk| {
        tell.send(walk.clone()).unwrap();
        Ok(String::new())
    };
    journal.run_started(SET, asked, Box::new(answer));
    asks.write_all(b"?").unwrap();
    asks.read_to_end(&mut Vec::new()).unwrap();
    told.recv().unwrap()
}

fn watched(source: &Path) -> WatchedSet {
    WatchedSet {
        name: SET.to_owned(),
        sources: vec![WatchedSource { path: source.to_owned(), is_followed: false }],
        marks: Vec::new(),
        one_file_system: false,
        settings: String::new(),
        unsuitable: None,
    }
}

#[test]
fn whatever_is_done_between_runs_their_snapshots_are_those_of_full_walks() {
    let slice = Slice::one_in(10);
    let steps = slice.share(setting("HOLDALL_JOURNAL_STEPS", 10_000));
    let (told, untold) = (World::new(), World::new());
    let Some(disk) = Disk::in_memory() else { return };
    let [source, outside] = ["source", "outside"].map(|name| disk.0.path().join(name));
    [&source, &outside].iter().for_each(|folder| fs::create_dir(folder).unwrap());
    let path = source.as_os_str().as_bytes().to_vec();
    let sources = vec![Source { path: path.clone(), read_at: path }];
    // All was written just now, and is to count as settled.
    let options = BackupOptions { sources, settling_seconds: -1, ..told.options() };
    let journal = Journal::start(Queue::Unbounded).unwrap();
    journal.follow(vec![watched(&source)]);
    let mut disturber = Disturber::new(vec![source, outside], slice.seed(2)).unwrap();
    let (mut by_journal, mut full) = (0, BTreeMap::new());
    for run in 0..steps / STEPS {
        let done: Vec<_> = (0..STEPS).map(|_| disturber.step().unwrap()).collect();
        let walk = ask(&journal);
        // One run in five fails, and the next one has to make up for it.
        if run % 5 == 4 {
            journal.run_ended(SET, Committed::Nothing);
            continue;
        }
        let changes = match &walk {
            Walk::Changes { since, places } => Some(Changes {
                since: since.parse().unwrap(),
                places: places.iter().cloned().map(place).collect(),
            }),
            Walk::Full(_) => None,
        };
        let summary = told.backup_with(&BackupOptions { changes, ..options.clone() });
        untold.backup_with(&options);
        let [with, without] = [&told, &untold].map(|world| newest(&world.access(), None).root);
        if with != without {
            let [told, untold] = [&told, &untold].map(entries);
            let other: Vec<_> = told.iter().filter(|entry| !untold.contains(entry)).collect();
            let wanted: Vec<_> = untold.iter().filter(|entry| !told.contains(entry)).collect();
            panic!("{other:#?}\nin place of\n{wanted:#?}\n{walk:?}, after\n{}", done.join("\n"));
        }
        match (summary.walked, walk) {
            (Walked::Journal, _) => by_journal += 1,
            (Walked::Full(Some(why)), _) => *full.entry(why.to_string()).or_insert(0) += 1,
            (_, Walk::Full(why)) => *full.entry(why.to_string()).or_insert(0) += 1,
            (walked, walk) => panic!("{walked:?} although it was told {walk:?}"),
        }
        let snapshot = summary.snapshot_id.unwrap().to_string();
        journal.run_ended(SET, Committed::Whole(snapshot));
    }
    println!("{steps} steps: {by_journal} runs by the journal, the others: {full:?}");
    assert!(by_journal > steps / STEPS / 4, "{by_journal} by the journal, others: {full:?}");
}

/// What the newest snapshot has, a line each.
fn entries(world: &World) -> Vec<String> {
    let access = world.access();
    let mut all = Vec::new();
    let mut add = |listed: ListedEntry<'_>| {
        all.push(format!("{} {:?}", listed.path.escape_ascii(), listed.entry));
        Ok(())
    };
    list(&access, &newest(&access, None), b"/", true, &Run::new(), &mut add).unwrap();
    all
}

fn place((directory, is_deep): (PathBuf, bool)) -> Place {
    Place { directory, is_deep }
}

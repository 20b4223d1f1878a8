//! Sources whose content a program gives, such as the dump of a database. Each is stored as a file.
//!
//! A program that fails may have given the beginning of what it was to give, or nothing at all, and only how it ends tells.
//! So its end is part of reading it, and no snapshot is made of what is not whole.

use std::fmt::Debug;
use std::fs::File;
use std::io;

use holdall_sys::{DeviceNumber, FileKind, Stat, host, users};

use crate::EngineError;

/// Gives the content of a source.
pub trait Producer: Debug + Send + Sync {
    /// Begins to give it, from its beginning: a backup that begins again asks once more.
    ///
    /// # Errors
    /// What the system says.
    fn start(&self) -> io::Result<Produced>;
}

/// Content on its way.
pub struct Produced {
    /// The end of a pipe from which it is read.
    pub pipe: File,
    /// Waits for the program once the pipe is at its end. Dropped, it ends the program.
    ///
    /// # Errors
    /// Why the content is not whole.
    pub finish: Box<dyn FnOnce() -> io::Result<()> + Send>,
}

/// The error of a source that was not produced as a whole.
pub(super) fn failed(path: &[u8], error: &io::Error) -> EngineError {
    let path = String::from_utf8_lossy(path).into_owned();
    EngineError::Path { path, reason: error.to_string() }
}

/// What content that is about to be produced is stored as: a file of this user that was made just now.
pub(super) fn stat_now() -> Stat {
    let now = host::now();
    Stat {
        kind: FileKind::File,
        mode: 0o600,
        uid: users::effective_uid(),
        gid: users::effective_gid(),
        size: 0,
        blocks: 0,
        nlink: 1,
        inode: 0,
        device: 0,
        rdev: DeviceNumber::default(),
        mtime: now,
        ctime: now,
        mount_id: None,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::test_world::World;
    use crate::{BackupOptions, Run, Source, backup};

    /// Gives some bytes, and then ends well or not.
    #[derive(Debug, Default)]
    struct Fake {
        fails: bool,
        starts: AtomicUsize,
    }

    impl Producer for Fake {
        fn start(&self) -> io::Result<Produced> {
            self.starts.fetch_add(1, Ordering::Relaxed);
            let (pipe, mut end) = io::pipe()?;
            end.write_all(b"rows")?;
            let fails = self.fails;
            let finish = move || if fails { Err(io::Error::other("no luck")) } else { Ok(()) };
            Ok(Produced {
                pipe: File::from(std::os::fd::OwnedFd::from(pipe)),
                finish: Box::new(finish),
            })
        }
    }

    fn backed_up(world: &World, fake: &Arc<Fake>, dry_run: bool) -> Result<u64, EngineError> {
        let path = b"/db/shop.dump".to_vec();
        let source = Source { path: path.clone(), read_at: Vec::new() };
        let producers: Vec<(_, Arc<dyn Producer>)> = vec![(path, fake.clone())];
        let options = BackupOptions::new(vec![source], "host".to_owned());
        let options = BackupOptions { producers, dry_run, ..options };
        let summary = backup(&world.access, &options, &Arc::new(Run::new()))?;
        assert_eq!(summary.problems, 0, "no folder is looked for above it");
        Ok(summary.bytes)
    }

    #[test]
    fn what_a_program_gives_is_stored_unless_it_fails_in_the_end() {
        let world = World::new();
        let [good, bad] = [false, true].map(|fails| Arc::new(Fake { fails, ..Fake::default() }));
        let refused = backed_up(&world, &bad, false).unwrap_err();
        assert_eq!(refused.to_string(), "/db/shop.dump: no luck");
        assert!(crate::snapshots(&world.access).unwrap().snapshots.is_empty());
        assert_eq!(backed_up(&world, &good, false).unwrap(), 4);
        assert_eq!(crate::snapshots(&world.access).unwrap().snapshots.len(), 1);
    }

    #[test]
    fn a_dry_run_has_nothing_given_and_the_next_run_everything_again() {
        let (world, good) = (World::new(), Arc::new(Fake::default()));
        backed_up(&world, &good, true).unwrap();
        assert_eq!(good.starts.load(Ordering::Relaxed), 0);
        for _ in 0..2 {
            backed_up(&world, &good, false).unwrap();
        }
        assert_eq!(good.starts.load(Ordering::Relaxed), 2);
    }
}

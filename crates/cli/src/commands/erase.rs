//! `holdall erase`.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Result;
use holdall_crypto::fingerprint;
use holdall_diagnosis::Forecast;
use holdall_engine::{UnlockedRepository, erased_text, snapshots};
use holdall_format::{Erased, RepositoryId};
use holdall_lab::storage_stack::StorageStack;
use holdall_repository::{ErasedFiles, Erasing, erase, erased_in, is_anything_left};
use holdall_state::{KeptKeys, KeptParts};
use holdall_sys::Root;
use serde::Serialize;

use crate::app::App;
use crate::exit::{Exit, Refusal};
use crate::opening::open::{self, Where};
use crate::terminal::output::{counted, size};
use crate::terminal::progress::watched;

/// File systems that write what is changed to another place.
const WRITE_ELSEWHERE: [&str; 5] = ["btrfs", "zfs", "bcachefs", "f2fs", "nilfs2"];

/// Destroys a repository in a directory for good
///
/// What opens it goes first, then each file is overwritten and removed. Every snapshot in it is lost, also to you.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall erase -r /mnt/disk/backup                         (says what it is, and its fingerprint)
         holdall erase -r /mnt/disk/backup --confirm 3Q7K-... --passes 3

Without --confirm nothing is destroyed. If it is interrupted, run it again: it goes on, and needs no password then. The \
folder stays, with a file that says when it was erased, signed by the repository's key: no holdall begins anew there \
until the folder is removed. The key that this computer keeps is removed, too.

If anything lies in the folder that no repository makes there, or is mounted there, nothing is destroyed, and it is named.

What was removed before is not overwritten: old wrappings after `holdall key change`, which the old password opens, and packs \
that were pruned, lie in the free space of the disk until something else takes their place. A file system with `data=journal` has copies in its \
journal. A disk may keep old copies of what is overwritten where nobody but its maker can read them: solid-state disks do, and so \
do file systems that write changes elsewhere, and snapshots of them. Such a copy is sealed. It can be opened by whoever also has a \
copy of the wrapped keys from there, and the password or the recovery kit; or by a computer that keeps the key. If that \
matters, destroy the disk, or use its own command for all of it.

Exit codes: 0 done, 1 failed, 2 wrong usage, such as another fingerprint, 10 no such repository, 11 in use, 12 wrong password, 13 on \
a server, where an administrator does it, 130 interrupted")]
pub(crate) struct Args {
    /// Overwrites each file so many times
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=35))]
    passes: u32,
    /// The repository's fingerprint: without it nothing is destroyed
    #[arg(long, value_name = "FINGERPRINT")]
    confirm: Option<String>,
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit> {
    let named = app.named_repository().ok_or_else(|| {
        Refusal::new(Exit::Usage, "which repository?").hint("name its directory with -r")
    })?;
    let Where::Directory(folder) = Where::parse(named)? else {
        let message = "a machine does not erase what a server keeps";
        let hint = "an administrator removes it there: `holdall admin remove NAME --repository`";
        return Err(Refusal::new(Exit::NotAllowed, message).hint(hint).into());
    };
    let doomed = match erased_in(&folder)? {
        Some(erased) => Doomed::going_on(&erased),
        None => Doomed::open(&open::access(app)?)?,
    };
    if doomed.has.is_none() && args.confirm.is_none() && !is_anything_left(&folder)? {
        app.output.say("it was erased, and nothing of it is left")?;
        return Ok(Exit::Done);
    }
    doomed.check(args, app)?;
    let interrupt = app.interrupt.flag();
    let run = app.run();
    let told = |bytes| {
        run.bytes.fetch_add(bytes, Ordering::Relaxed);
    };
    let how = Erasing { passes: args.passes, interrupt: &interrupt, told: &told };
    let erasing = || erase(&folder, &doomed.text, &how);
    let done = watched(&app.output, &run, Forecast::typical, erasing)?;
    KeptKeys::in_state(&app.folders.state).forget(doomed.repository)?;
    KeptParts::in_state(&app.folders.state).forget(doomed.repository)?;
    let told = doomed.tell(args, app, &done, &notes(&folder));
    app.output.told(told, "the repository was erased", false)?;
    Ok(Exit::Done)
}

/// The repository that is to go.
struct Doomed {
    repository: RepositoryId,
    fingerprint: String,
    /// What stays of it.
    text: String,
    /// What is in it, in words, where it could be opened.
    has: Option<String>,
}

impl Doomed {
    /// One that was begun to be erased, and cannot be opened any more.
    fn going_on(erased: &Erased) -> Self {
        let fingerprint = fingerprint(&erased.owner, &erased.repository);
        Self { repository: erased.repository, fingerprint, text: String::new(), has: None }
    }

    fn open(access: &UnlockedRepository) -> Result<Self> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        // Damage is no reason to keep it.
        let snapshots = snapshots(access).map_or(0, |listed| listed.snapshots.len() as u64);
        Ok(Self {
            repository: access.config().repository,
            fingerprint: access.keys().fingerprint(),
            text: erased_text(access, now.as_secs()),
            has: Some(counted(snapshots, "snapshot")),
        })
    }

    /// Refuses unless just this repository was named.
    fn check(&self, args: &Args, app: &App) -> Result<()> {
        let plain = |text: &str| text.trim().to_uppercase();
        match &args.confirm {
            Some(confirmed) if plain(confirmed) == plain(&self.fingerprint) => Ok(()),
            Some(_) => {
                let message = format!("that is not its fingerprint, which is {}", self.fingerprint);
                let hint = "nothing was destroyed: see whether it is the repository that you mean";
                Err(Refusal::new(Exit::Usage, message).hint(hint).into())
            }
            None => {
                let has = self
                    .has
                    .as_deref()
                    .unwrap_or("what is left of one that was begun to be erased");
                app.output.say(format_args!("it has {has}"))?;
                let message = "nothing was destroyed: --confirm is missing";
                let hint =
                    format!("to destroy all of it, also to you: --confirm {}", self.fingerprint);
                Err(Refusal::new(Exit::Usage, message).hint(hint).into())
            }
        }
    }

    fn tell(&self, args: &Args, app: &App, done: &ErasedFiles, notes: &[String]) -> Result<()> {
        #[derive(Serialize)]
        struct Summary<'a> {
            fingerprint: &'a str,
            files: u64,
            bytes: u64,
            passes: u32,
            notes: &'a [String],
        }
        let &ErasedFiles { files, bytes } = done;
        let summary =
            Summary { fingerprint: &self.fingerprint, files, bytes, passes: args.passes, notes };
        app.output.object("summary", &summary)?;
        app.output.say(format_args!(
            "{}, {}, overwritten {} and removed",
            counted(files, "file"),
            size(bytes),
            counted(args.passes.into(), "time")
        ))?;
        notes.iter().try_for_each(|note| app.output.say(format_args!("note: {note}")))?;
        Ok(())
    }
}

/// Where a file system puts what it finds no name for.
const LOST_AND_FOUND: &str = "lost+found";

/// What overwriting means where the repository lay.
fn notes(folder: &Path) -> Vec<String> {
    let Ok(stack) = StorageStack::of(folder) else { return Vec::new() };
    let mut notes = vec![
        "what was removed before, as by `holdall prune` and `holdall key change`, is not overwritten: it lies in the free space of the disk \
         until something else takes its place"
            .to_owned(),
    ];
    if Root::at(folder).join(LOST_AND_FOUND).names().is_ok_and(|names| !names.is_empty()) {
        notes.push(format!(
            "what lies in {LOST_AND_FOUND} stays: it may be parts of the repository"
        ));
    }
    let kind = &stack.file_system.kind;
    if WRITE_ELSEWHERE.contains(&kind.as_str()) {
        notes.push(format!(
            "{kind} writes changes elsewhere: what was there stays on the disk until its place is used again, and in snapshots of the \
             file system for as long as they are kept"
        ));
    }
    if stack.disks.iter().any(|disk| disk.rotating != Some(true)) {
        notes.push(
            "a solid-state disk keeps old copies for a while, which only its maker can read: `fstrim` has it forget them sooner, \
             and its own command for erasing all of them (`nvme format`, `hdparm --security-erase`)"
                .to_owned(),
        );
    }
    if !stack.has_disk() && !stack.is_in_memory() {
        notes.push("what the disk behind this file system keeps is not known here".to_owned());
    }
    notes
}

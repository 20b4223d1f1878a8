//! `holdall mount`.

use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use anyhow::{Result, anyhow};
use holdall_mount::{MountError, MountOptions, Mounted, Trouble};
use serde::Serialize;

use crate::app::App;
use crate::exit::{Exit, Refusal};
use crate::opening::connection::parse_duration;
use crate::opening::open::{self, Patience};
use crate::report::listing;
use crate::terminal::output::{JsonPath, Shown, plain};

/// Shows all snapshots as folders, only to be read
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall mount /mnt/backups

It is ready when it prints \"mounted at DIR\", and ends with Ctrl-C, with `umount DIR` (as root) or with `fusermount3 -u DIR`. \
The folders are snapshots/TIME, with all that is in a snapshot; machines/HOST/TIME, tags/TAG/TIME, ids/ID and latest lead \
there. Snapshots that come while it is mounted are seen within seconds. Needs FUSE: Debian's package fuse3.

Only you can look, and you see everything, whatever the permissions of the files say. With --allow-other everybody can, each \
what these permissions allow; unless you are root, /etc/fuse.conf has to have the line user_allow_other.

What is damaged cannot be read (EIO), and is told here once. If a server is lost, reads wait for it.

Exit codes: 0 ended as it was asked to, 1 failed, such as for a folder that is not empty, 2 wrong usage, 10 no such \
repository, 12 wrong password, 13 not allowed, 14 server unreachable, 20 damage found")]
pub(crate) struct Args {
    /// Where to show them: an empty folder
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Lets other users look, too, each at what the permissions in the snapshots allow
    #[arg(long)]
    allow_other: bool,
    /// Lets reads wait so long for a server that was lost (such as 90s, 5m, 2h), before they fail [default: 5m]
    #[arg(long, value_name = "DURATION", env = "HOLDALL_RETRY_FOR", value_parser = parse_duration)]
    retry_for: Option<Duration>,
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit> {
    // Before a password is asked for.
    Mounted::check(&args.directory).map_err(refused)?;
    // Many threads take large buffers, and what each keeps of them adds up.
    holdall_sys::heap::share(1);
    let usual = Patience::default();
    let patience = Patience { retry_for: args.retry_for.unwrap_or(usual.retry_for), ..usual };
    let access = open::access_with(app, patience)?;
    // What is damaged or gone is told before anybody looks at the rest.
    listing::shown(app, &access)?;
    let (end, ended) = channel::<()>();
    let (told, ending) = (app.clone(), end.clone());
    let options = MountOptions {
        access: Arc::new(access),
        directory: args.directory.clone(),
        allow_other: args.allow_other,
        tell: Box::new(move |trouble| tell(&told, trouble)),
        ended: Box::new(move || end_by(&ending)),
    };
    let mounted = Mounted::start(options).map_err(refused)?;
    announce(app, args)?;
    app.interrupt.tell(move || end_by(&end));
    // A signal, or who unmounted it.
    let _ = ended.recv();
    if mounted.unmount().map_err(refused)? {
        app.output.urge(format_args!(
            "{} was in use. It is unmounted all the same, and what still reads from it fails",
            Shown(args.directory.as_os_str().as_bytes())
        ));
    }
    Ok(app.ended(Exit::Done))
}

fn end_by(end: &Sender<()>) {
    // Nobody waits any more where the other came first.
    let _ = end.send(());
}

fn tell(app: &App, Trouble { is_damage, words }: Trouble) {
    match is_damage {
        true => app.damage(&anyhow!(words)),
        false => app.output.urge(words),
    }
}

fn announce(app: &App, args: &Args) -> Result<()> {
    #[derive(Serialize)]
    struct MountedAt {
        #[serde(flatten)]
        path: JsonPath,
    }
    let directory = args.directory.as_os_str().as_bytes();
    app.output.object("mounted", &MountedAt { path: JsonPath::new(directory) })?;
    if !app.output.json {
        // Said even with -q: until then there is nothing to look at.
        plain(format_args!("mounted at {}", Shown(directory)))?;
    }
    Ok(())
}

/// Says what to do about what keeps it from being mounted.
fn refused(error: MountError) -> anyhow::Error {
    let error = match error {
        MountError::Engine(error) => return error.into(),
        error => error,
    };
    let hint = match &error {
        MountError::NotBuilt => "build it with `--features mount`, or take the packaged one",
        MountError::Directory { .. } => "give an empty folder: `mkdir DIR` makes one",
        MountError::Dead { directory } => {
            let directory = Shown(directory.as_os_str().as_bytes());
            return Refusal::new(Exit::Failed, error.to_string())
                .hint(format!(
                    "free it with `fusermount3 -u {directory}`, or as root with `umount {directory}`"
                ))
                .into();
        }
        MountError::NoDevice { .. } => {
            "install FUSE (Debian and Ubuntu: apt install fuse3), as root load it with `modprobe fuse`, and \
             see who may open /dev/fuse; a container needs it passed on (--device /dev/fuse --cap-add SYS_ADMIN)"
        }
        MountError::NoFusermount => "install it (Debian and Ubuntu: apt install fuse3)",
        MountError::NotForOthers => {
            "add the line user_allow_other to /etc/fuse.conf, or leave --allow-other out"
        }
        _ => return error.into(),
    };
    Refusal::new(Exit::Failed, error.to_string()).hint(hint).into()
}

//! `holdall import restic`.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Result;
use holdall_diagnosis::{Forecast, UsageCounters};
use holdall_engine::{Copied, CopyOptions, CopySummary, Imported, Importer, UnlockedRepository};
use holdall_import::{ResticRepository, ResticSnapshot, UnreadSnapshot};
use holdall_state::Receipts;

use super::hints::{self, refused};
use super::report::{self, Sums};
use crate::app::{App, GlobalArgs};
use crate::commands::backup::{cores, tell_lost};
use crate::config::PasswordSettings;
use crate::exit::{self, Exit, Refusal};
use crate::opening::connection::Connection;
use crate::opening::open;
use crate::report::audits;
use crate::secrets::password::{FROM_PASSWORD, Passwords};
use crate::terminal::output::{Output, Shown, count};
use crate::terminal::progress::watched;

/// Imports the snapshots of a repository of restic
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall import restic /mnt/old/restic --password-file restic.txt -r /mnt/disk

All snapshots are imported, oldest first, or those that --snapshot names. Each keeps its date, host, user, paths and tags, \
and rules count it by its date, as they count copies. What was imported before is not imported again, so the same command \
later imports only what is new, and goes on after an import that was cut short. One that was imported without items that \
could not be read stays as it is: forget it to import it again. The repository of restic is only read.

--password-file is the password of restic's repository here. That of holdall's repository is taken from \
HOLDALL_PASSWORD_FILE or the settings, or asked for. With --from-password-file, or HOLDALL_FROM_PASSWORD_FILE, \
HOLDALL_FROM_PASSWORD_COMMAND or HOLDALL_FROM_PASSWORD, restic's comes from there, and --password-file is that of holdall's.

The repository has to be in a directory. restic copies one from elsewhere with `restic copy`. What of a snapshot cannot be \
read is told, and the rest of the snapshot imported.

Exit codes: 0 done, 1 failed (nothing committed of the snapshot at hand), or not allowed to read a snapshot of restic, 2 wrong usage, 3 done, but something could not be \
read in restic's repository, now or when it was imported, or a receipt not be kept, 10 no such repository, 11 repository in use, 12 wrong password, \
13 not allowed, 14 server unreachable, 20 damage found: the snapshots that have it were not imported, or the own repository \
lost one, 130 interrupted")]
pub(crate) struct Args {
    /// The repository of restic: a directory
    #[arg(value_name = "REPO")]
    repository: PathBuf,
    /// Reads the password of restic's repository from this file, if --password-file is for the own one
    #[arg(long, value_name = "FILE")]
    from_password_file: Option<PathBuf>,
    /// What --password-file names, if that is for restic's repository
    #[arg(skip)]
    password_file: Option<PathBuf>,
    /// Imports this snapshot alone: the beginning of its id in restic; may be given several times
    #[arg(long = "snapshot", value_name = "ID")]
    snapshots: Vec<String>,
    /// Skips opening each block again before it is sent, a check that finds faulty memory or a faulty processor
    #[arg(long)]
    no_self_check: bool,
    #[command(flatten)]
    connection: Connection,
}

impl Args {
    /// Takes the password that is restic's, unless another place is named for that.
    pub(super) fn take_password(&mut self, global: &mut GlobalArgs) {
        let variables =
            ["_FILE", "_COMMAND", ""].map(|end| format!("{}{end}", FROM_PASSWORD.variable));
        let is_named =
            |name: &String| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        if self.from_password_file.is_none() && !variables.iter().any(is_named) {
            self.password_file = global.take_password_file();
        }
    }

    fn passwords(&self, app: &App) -> Result<Passwords> {
        let file = self.from_password_file.as_deref().or(self.password_file.as_deref());
        Passwords::new(FROM_PASSWORD, file, &PasswordSettings::default(), &app.interrupt)
    }
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit> {
    let begun = Instant::now();
    // Before a password is asked for.
    ResticRepository::check(&args.repository).map_err(refused)?;
    let password = args.passwords(app)?;
    let is_trimmed = password.is_read();
    let password = password.existing(&args.repository.display().to_string())?;
    let password = if is_trimmed { trimmed(&password) } else { &*password };
    let source = ResticRepository::open(&args.repository, password).map_err(refused)?;
    let (listed, unread) = source.snapshots().map_err(refused)?;
    let wanted = chosen(&listed, &unread, &args.snapshots)?;
    let destination = open::access_with(app, args.connection.patience())?;
    args.connection.tell_idle_limit(app);
    tell_lost(app, &destination);
    let options = CopyOptions {
        streams: args.connection.streams(),
        self_check: !args.no_self_check,
        cores: cores(),
        ..CopyOptions::default()
    };
    let mut importing = Importing {
        app,
        place: &args.repository,
        source: &source,
        listed: &listed,
        destination: &destination,
        importer: Importer::new(&destination, options)?,
        sums: Sums::default(),
        unsaid: None,
        exit: Exit::Done,
    };
    let is_named = |one: &&UnreadSnapshot| is_among(&args.snapshots, &one.id);
    unread.iter().filter(is_named).for_each(|one| importing.tell_unread(one));
    wanted.into_iter().try_for_each(|snapshot| importing.import(snapshot))?;
    importing.sums.total_duration = begun.elapsed().as_secs_f64();
    let exit = importing.end()?;
    audits::tell(app, &destination);
    Ok(exit)
}

/// What restic takes of the output of a command, or of a file.
fn trimmed(password: &str) -> &str {
    password.trim_start_matches('\u{feff}').trim()
}

/// The snapshots with ids that begin so; all, if none is named.
fn chosen<'a>(
    listed: &'a [ResticSnapshot],
    unread: &[UnreadSnapshot],
    named: &[String],
) -> Result<Vec<&'a ResticSnapshot>, Refusal> {
    for name in named {
        let ids = listed.iter().map(ResticSnapshot::hex_id);
        let ids = ids.chain(unread.iter().map(|one| one.id.clone()));
        let fitting = ids.filter(|id| id.starts_with(&**name)).count();
        let reason = match fitting {
            1 if !name.is_empty() => continue,
            0 => "none has an id that begins so".to_owned(),
            _ => format!("{} have an id that begins so", count(fitting as u64)),
        };
        return Err(Refusal::new(Exit::Failed, format!("no snapshot {name} of restic: {reason}"))
            .hint("`restic snapshots` lists them with their ids"));
    }
    Ok(listed.iter().filter(|one| is_among(named, &one.hex_id())).collect())
}

/// Whether an id is one of those that begin so; all are, if none is named.
fn is_among(named: &[String], id: &str) -> bool {
    named.is_empty() || named.iter().any(|name| id.starts_with(&**name))
}

/// How an import may end, with what could be imported.
const WORST_LAST: [Exit; 4] = [Exit::Done, Exit::Incomplete, Exit::Failed, Exit::Damage];

struct Importing<'a> {
    app: &'a App,
    /// restic's repository.
    place: &'a Path,
    source: &'a ResticRepository,
    /// All snapshots of restic.
    listed: &'a [ResticSnapshot],
    destination: &'a UnlockedRepository,
    importer: Importer<'a>,
    sums: Sums,
    /// Why something could not be said: what is left to import is imported all the same.
    unsaid: Option<anyhow::Error>,
    /// How it ends so far.
    exit: Exit,
}

impl<'a> Importing<'a> {
    /// Imports one snapshot. One that cannot be read at all is told and counted.
    fn import(&mut self, snapshot: &ResticSnapshot) -> Result<()> {
        if let Some(done) = self.imported(snapshot) {
            self.told_before(snapshot, &done);
            return Ok(());
        }
        match self.source.placed(snapshot) {
            Ok(placed) => self.import_placed(&placed, self.base(snapshot)),
            Err(error) => {
                let (exit, hint) = hints::of_tree(&error, self.place);
                let error = anyhow::Error::from(error).context(not_imported(snapshot));
                self.failed(&error, exit, &hint);
                Ok(())
            }
        }
    }

    /// Imports one snapshot that the repository does not have.
    fn import_placed(
        &mut self,
        snapshot: &ResticSnapshot,
        base: Option<&ResticSnapshot>,
    ) -> Result<()> {
        if let Some(reason) = snapshot.foreign.unrecordable() {
            let error = anyhow::anyhow!("{reason}").context(not_imported(snapshot));
            let hint = hints::of_unrecordable(&snapshot.hex_id());
            self.failed(&error, Exit::Incomplete, &hint);
            return Ok(());
        }
        let run = self.app.run();
        let before = UsageCounters::now(&run);
        let source = self.source;
        let tree = |with_base: bool| source.tree(snapshot, base.filter(|_| with_base));
        let base_id = base.map(|base| base.foreign.id);
        let imported = watched(&self.app.output, &run, Forecast::typical, || {
            self.importer.import(&snapshot.foreign, base_id, tree, &run)
        });
        let usage = UsageCounters::now(&run).since(&before);
        let problems = run.take_problems();
        let told = problems.iter().try_for_each(|problem| self.app.output.problem(problem));
        self.say(|_| told.map_err(Into::into));
        match imported {
            Ok(Copied::Before(id)) => {
                self.told_before(snapshot, &Imported { id, unreadable: 0 });
            }
            Ok(Copied::Now(summary)) => {
                let errors = run.problem_count();
                if errors > 0 {
                    self.ends_with(Exit::Incomplete);
                }
                self.remember(&summary);
                report::note_date(&self.app.output, snapshot);
                self.sums.add(&summary, errors);
                self.say(|output| report::told(output, snapshot, &summary, errors, &usage));
            }
            Err(error) => {
                let error = anyhow::Error::from(error).context(not_imported(snapshot));
                if exit::exit_of(&error) != Exit::Damage {
                    return Err(error);
                }
                self.failed(&error, Exit::Damage, &hints::of_damage(self.place));
            }
        }
        Ok(())
    }

    /// Tells of a snapshot whose file cannot be read.
    fn tell_unread(&mut self, snapshot: &UnreadSnapshot) {
        let UnreadSnapshot { id, reason, kind } = snapshot;
        let error =
            anyhow::anyhow!("snapshot {} of restic cannot be read: {reason}", Shown(id.as_bytes()));
        let (exit, hint) = hints::of_unread(*kind);
        self.failed(&error, exit, hint);
    }

    /// Tells of a snapshot that was not imported, and counts it.
    fn failed(&mut self, error: &anyhow::Error, exit: Exit, hint: &str) {
        self.sums.errors += 1;
        self.ends_with(exit);
        self.app.output.failure(error, exit.code(), Some(hint));
    }

    /// Ends with this, unless something is worse.
    fn ends_with(&mut self, exit: Exit) {
        let badness = |exit| WORST_LAST.iter().position(|one| *one == exit);
        if badness(exit) > badness(self.exit) {
            self.exit = exit;
        }
    }

    /// As what it was imported, also if restic gave it another id since, as it does when its tags change.
    fn imported(&self, snapshot: &ResticSnapshot) -> Option<Imported> {
        let original = snapshot
            .original
            .filter(|original| self.listed.iter().all(|listed| listed.foreign.id != *original));
        let ids = [Some(snapshot.foreign.id), original];
        ids.into_iter().flatten().find_map(|id| self.importer.imported(&id))
    }

    /// What was imported of the same paths and is nearest in time.
    fn base(&self, snapshot: &ResticSnapshot) -> Option<&'a ResticSnapshot> {
        let of = |one: &ResticSnapshot| (one.foreign.host.clone(), one.foreign.paths.clone());
        let fits = |one: &&'a ResticSnapshot| {
            of(one) == of(snapshot) && self.importer.is_base(&one.foreign.id)
        };
        let away =
            |one: &&'a ResticSnapshot| one.foreign.taken_ns.abs_diff(snapshot.foreign.taken_ns);
        self.listed.iter().filter(fits).min_by_key(away)
    }

    fn remember(&mut self, summary: &CopySummary) {
        let receipts = Receipts::in_state(&self.app.folders.state);
        if let Err(error) = receipts.remember(self.destination, &summary.stored_record) {
            let what = "the snapshot was imported, but its receipt could not be kept";
            let error = anyhow::Error::from(error).context(what);
            self.app.output.failure(&error, Exit::Incomplete.code(), None);
            self.ends_with(Exit::Incomplete);
        }
    }

    fn told_before(&mut self, snapshot: &ResticSnapshot, imported: &Imported) {
        self.sums.already_imported += 1;
        if imported.unreadable > 0 {
            self.ends_with(Exit::Incomplete);
        }
        self.say(|output| report::told_before(output, snapshot, imported));
    }

    /// Says something, unless that failed before.
    fn say(&mut self, say: impl FnOnce(&Output) -> Result<()>) {
        if self.unsaid.is_none() {
            self.unsaid = say(&self.app.output).err();
        }
    }

    /// Says what was done altogether.
    fn end(mut self) -> Result<Exit> {
        let sums = std::mem::take(&mut self.sums);
        self.say(|output| report::summary(output, &sums));
        if sums.imported > 0 && !self.destination.is_in_directory() {
            self.app.output.note(report::KEPT_BY_A_SERVER);
        }
        match self.unsaid {
            Some(error) if self.exit != Exit::Damage => Err(error),
            _ => Ok(self.exit),
        }
    }
}

/// What became of a snapshot.
fn not_imported(snapshot: &ResticSnapshot) -> String {
    format!("snapshot {} of restic was not imported", short(snapshot))
}

/// An id as restic shows it.
fn short(snapshot: &ResticSnapshot) -> String {
    snapshot.hex_id().chars().take(8).collect()
}

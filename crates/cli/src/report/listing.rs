//! What snapshots there are, whether some are missing or damaged, and which one is meant by a name.

use anyhow::Result;
use holdall_engine::{
    BreakKind, ChainBreak, DamagedRecord, EngineError, GoneRecord, Listed, Snapshot,
    UnlockedRepository, whose_latest,
};
use holdall_format::{RecordHash, RecordKind, record_file};
use holdall_state::{Gone, NOT_THERE, Receipts};

use crate::app::App;
use crate::arguments::filter::Wanted;
use crate::arguments::sources::TypedPath;
use crate::exit::{Exit, Refusal, exit_of};
use crate::terminal::output::{Output, Shown, local_time};

/// Damaged records that are told one by one.
const DAMAGED_TOLD: usize = 10;
/// Parts of a path that are told one by one.
const PARTS_TOLD: usize = 3;

/// The snapshots that a repository shows, for who only reads them.
pub(crate) struct Listing {
    pub(crate) snapshots: Vec<Snapshot>,
    output: Output,
    /// Those that this machine knows, and that the repository does not have.
    gone: Vec<RecordHash>,
    /// Whether this machine made one of them.
    own_is_gone: bool,
}

/// Lists all snapshots. Those that are damaged, and the one that this machine remembers if it is missing, are
/// told, and make the exit code that of damage; they keep no other from being read.
///
/// # Errors
/// If they cannot be listed; if the receipt cannot be read.
pub(crate) fn shown(app: &App, access: &UnlockedRepository) -> Result<Listing> {
    shown_as(app, access, |error| error)
}

/// The same of another repository than the one that the command is about: `about` says so.
///
/// # Errors
/// As for [`shown`].
pub(crate) fn shown_as(
    app: &App,
    access: &UnlockedRepository,
    about: impl Fn(anyhow::Error) -> anyhow::Error,
) -> Result<Listing> {
    let listed = holdall_engine::snapshots(access).map_err(|error| about(error.into()))?;
    match tell_damage(app, access, &listed).map_err(about) {
        Err(error) if exit_of(&error) == Exit::Damage => app.damage(&error),
        told => told?,
    }
    let missed = Receipts::in_state(&app.folders.state).missed(access, &listed)?;
    let missed = missed.iter().filter(|stored| stored.record.head.amends.is_none());
    let known = listed.gone.iter().filter(|gone| gone.kind == RecordKind::Snapshot);
    let own_is_gone = missed.clone().next().is_some()
        || known.clone().any(|gone| !gone.is_followed && gone.machine == access.machine());
    let gone = missed.map(|stored| stored.record.hash()).chain(known.map(|gone| gone.id));
    let (gone, output) = (gone.collect(), app.output.clone());
    Ok(Listing { snapshots: listed.snapshots, output, gone, own_is_gone })
}

/// Lists all snapshots, with what else was listed, for who changes something by them: while the one that this
/// machine remembers is missing, nothing is changed.
///
/// # Errors
/// If they cannot be listed; damage if that one is missing.
pub(crate) fn all(app: &App, access: &UnlockedRepository) -> Result<Listed> {
    let listed = holdall_engine::snapshots(access)?;
    tell_damage(app, access, &listed)?;
    Ok(listed)
}

impl Listing {
    /// The snapshot that is meant by `name`, as [`named`] finds it, which `filter` has to take; `latest` is
    /// the newest that it takes.
    ///
    /// # Errors
    /// If none or several answer to the name; [`Refusal`] for one that the filter does not take, or where
    /// the one that is gone may be meant: by `latest`, too.
    pub(crate) fn wanted(
        &self,
        access: &UnlockedRepository,
        name: &str,
        path: Option<&[u8]>,
        filter: &Wanted<'_>,
    ) -> Result<&Snapshot> {
        let may_be = |gone: &&RecordHash| match name {
            "latest" => self.own_is_gone,
            _ => gone.to_string().starts_with(name),
        };
        match self.gone.iter().find(may_be) {
            Some(gone) => Err(may_be_gone(name, &gone.to_string()).into()),
            None => wanted(access, &self.snapshots, name, path, filter),
        }
    }

    /// The path that is meant. A name alone may be that of a command's output, which is recorded at the root wherever
    /// one is; what the newest snapshot of the current folder has there comes first.
    pub(crate) fn meant(&self, access: &UnlockedRepository, typed: TypedPath) -> Vec<u8> {
        let TypedPath { absolute, from_root } = typed;
        let is_recorded =
            |path: &Vec<u8>| self.snapshots.iter().any(|one| one.secret.paths.contains(path));
        let is_here = || {
            let newest = self.snapshots.iter().rfind(|one| one.covers(&absolute));
            newest
                .is_some_and(|one| holdall_engine::is_directory_at(access, one, &absolute).is_ok())
        };
        from_root.filter(|path| is_recorded(path) && !is_here()).unwrap_or(absolute)
    }

    /// The same for what is at a path: `latest` is the newest that has something there, and not the newest of a
    /// run that
    /// was of that path.
    ///
    /// # Errors
    /// As for [`Self::wanted`]; if a tree cannot be looked at.
    pub(crate) fn wanted_with(
        &self,
        access: &UnlockedRepository,
        name: &str,
        path: Option<&[u8]>,
        filter: &Wanted<'_>,
    ) -> Result<&Snapshot> {
        let newest = self.wanted(access, name, path, filter)?;
        let Some(path) = path.filter(|_| name == "latest") else { return Ok(newest) };
        let taken = || self.snapshots.iter().filter(|one| filter.takes(one));
        let found = holdall_engine::newest_with(access, taken(), newest, path)?;
        let of_machine = || taken().filter(|one| one.machine == found.machine);
        self.note_part(of_machine(), found, path);
        let is_newer = |one: &Snapshot| one.holds(path) && one.taken_ns() > found.taken_ns();
        if found.id != newest.id && of_machine().any(is_newer) {
            self.output.note(format_args!(
                "note: {} is not in the newest snapshot; this is the one of {}, the newest that has it",
                Shown(path),
                local_time(found.taken_ns()),
            ));
        }
        Ok(found)
    }

    /// Says that `found` is only of something below a path, if so, and which of the others has more.
    fn note_part<'a>(
        &self,
        others: impl DoubleEndedIterator<Item = &'a Snapshot>,
        found: &Snapshot,
        path: &[u8],
    ) {
        if found.covers(path) {
            return;
        }
        let above = path.strip_suffix(b"/").unwrap_or(path);
        let is_part = |of: &[u8]| of.strip_prefix(above).is_some_and(|rest| rest.starts_with(b"/"));
        let parts = |one: &Snapshot, is_more: &dyn Fn(&[u8]) -> bool| {
            let paths = one.secret.paths.iter().filter(|of| is_part(of) && is_more(of));
            let paths: Vec<_> = paths.map(|of| Shown(of).to_string()).collect();
            match paths.len().checked_sub(PARTS_TOLD) {
                Some(more @ 1..) => format!("{} and {more} more", paths[..PARTS_TOLD].join(" ")),
                _ => paths.join(" "),
            }
        };
        let more = |one: &Snapshot| parts(one, &|of| !found.covers(of));
        let other = others.map(|one| (one, more(one))).rfind(|(_, more)| !more.is_empty());
        let of = parts(found, &|_| true);
        let only = format!("note: only part of {} is in this snapshot: {of}", Shown(path));
        match other {
            Some((one, more)) => self.output.note(format_args!(
                "{only}; {more} is in snapshot {:.10} of {}",
                one.id.to_string(),
                local_time(one.taken_ns()),
            )),
            // What lies above all sources is how one begins to look.
            None if above.is_empty() => {}
            None => self.output.note(only),
        }
    }

    /// The snapshots that are meant by `names` and that `filter` takes, each once and oldest first.
    ///
    /// # Errors
    /// As for [`Self::wanted`].
    pub(crate) fn chosen(
        &self,
        access: &UnlockedRepository,
        names: &[impl AsRef<str>],
        filter: &Wanted<'_>,
    ) -> Result<Vec<&Snapshot>> {
        once_each(names, |name| self.wanted(access, name, None, filter))
    }
}

fn may_be_gone(name: &str, gone: &str) -> Refusal {
    let message = format!("which snapshot is {name}? It may be {gone:.10}, which is gone");
    let hint =
        "name the snapshot that is wanted by its id; `holdall snapshots` lists all that are there";
    Refusal::new(Exit::Damage, message).hint(hint)
}

/// Says what this computer cannot know of a list: without a receipt of its own, whether it is all that
/// there is.
///
/// # Errors
/// If the receipt cannot be read.
pub(crate) fn tell_unknown(app: &App, access: &UnlockedRepository) -> Result<()> {
    let repository = access.config().repository.to_string();
    if Receipts::in_state(&app.folders.state).machine(&repository)?.is_none() {
        app.output.note(
            "this computer has not backed up here before, so it cannot prove that the newest snapshots are shown: \
             each one is as its machine made it and follows the one before",
        );
    }
    Ok(())
}

/// Tells which of the records that were listed are damaged, and checks that none is missing.
///
/// # Errors
/// Damage if one is missing; if the receipt cannot be read.
pub(crate) fn tell_damage(app: &App, access: &UnlockedRepository, listed: &Listed) -> Result<()> {
    for damaged in listed.damaged.iter().take(DAMAGED_TOLD) {
        app.damage(&lost_record(damaged, access.is_in_directory()));
    }
    if let Some(more @ 1..) = listed.damaged.len().checked_sub(DAMAGED_TOLD) {
        app.damage(&Refusal::new(Exit::Damage, format!("{more} more records are damaged")).into());
    }
    listed.breaks.iter().take(DAMAGED_TOLD).for_each(|broken| tell_break(app, broken));
    let mut gone = untold(app, access, listed)?;
    gone.extend(listed.gone.iter().filter(|gone| gone.is_followed && gone.refusal.is_some()));
    let is_in_directory = access.is_in_directory();
    let gone = gone.into_iter().take(DAMAGED_TOLD);
    gone.for_each(|gone| app.damage(&is_gone(gone, is_in_directory).into()));
    Ok(Receipts::in_state(&app.folders.state).check(access, listed)?)
}

/// Records that are gone, and of which neither the next of a chain nor a receipt tells.
///
/// # Errors
/// If the receipt cannot be read.
pub(crate) fn untold<'a>(
    app: &App,
    access: &UnlockedRepository,
    listed: &'a Listed,
) -> Result<Vec<&'a GoneRecord>> {
    let missed = Receipts::in_state(&app.folders.state).missed(access, listed)?;
    let is_told = |gone: &&GoneRecord| {
        gone.is_followed || missed.iter().any(|stored| stored.record.hash() == gone.id)
    };
    Ok(listed.gone.iter().filter(|gone| !is_told(gone)).collect())
}

/// Says that a record is gone that this computer has seen, and what can be done.
pub(crate) fn is_gone(gone: &GoneRecord, is_in_directory: bool) -> Refusal {
    let is_amendment = gone.kind == RecordKind::Amendment;
    let mut way_out = way_out(&record_file(gone.position), is_in_directory);
    if let Some(refusal) = &gone.refusal {
        way_out = format!("the repository did not take this computer's copy: {refusal}. {way_out}");
    }
    let hint = match is_in_directory {
        true => format!(
            "{way_out}; `holdall forget {}` gives it up. Until then no rule lets anything go, and nothing is deleted",
            gone.id
        ),
        false => {
            format!("{way_out}; `holdall backup` on the machine that made it goes on without it")
        }
    };
    let gone = Gone { record: gone.id, is_amendment, reason: NOT_THERE };
    Refusal::new(Exit::Damage, gone.to_string()).hint(hint)
}

/// What can be done about a record that is damaged or gone, named by its file.
pub(crate) fn way_out(file: &str, is_in_directory: bool) -> String {
    let otherwise = match is_in_directory {
        true => format!("say so with `--record {file}`"),
        false => format!(
            "the server's administrator puts a copy of `records/{file}` back into the repository's folder"
        ),
    };
    format!(
        "`holdall check --repair` puts a record back that this computer has seen; if nothing shows that it is the right \
         one, {otherwise}"
    )
}

/// What can be done about a record that is gone and that this computer has never seen.
pub(crate) const WAY_OUT_OF_UNKNOWN: &str = "`holdall check --repair` puts the record that is gone back on a computer that has seen it, as the one that made it \
     has; `holdall forget ID`, with its whole id, gives it up";

/// The same where the repository `second` has a record in that place, and nothing shows that it is the right one.
pub(crate) fn way_out_by(file: &str, second: &str) -> String {
    format!(
        "`holdall check --repair` on the computer that made the record puts it back; if what {second} has is the right \
         one, say so with `--record {file} --from {second}`"
    )
}

/// Tells where a machine's chain is broken: damage where something is missing, else a note.
fn tell_break(app: &App, broken: &ChainBreak) {
    let ChainBreak { position, kind, .. } = broken;
    let file = format!("records/{}", record_file(*position));
    let message = match kind {
        BreakKind::LeftOut(count) => left_out(*count),
        BreakKind::TwoHistories => return tell_two_histories(app, broken),
    };
    let hint = "what is listed can be used; ask whoever keeps the repository what became of the rest, \
                and put back copies of the files";
    app.damage(&Refusal::new(Exit::Damage, format!("{file}: {message}")).hint(hint).into());
}

/// Says that a machine has two histories, which is no damage: everything of both is there.
pub(crate) fn tell_two_histories(app: &App, broken: &ChainBreak) {
    let ChainBreak { record, position, .. } = broken;
    app.output.note(format_args!(
        "records/{} ({record}) follows the same record as another one: the repository did not have, or \
         did not show, that other one when this one came. Now it has both, and nothing is missing",
        record_file(*position)
    ));
}

/// Says that records are missing.
pub(crate) fn left_out(count: u64) -> String {
    let records = if count == 1 { "the record" } else { "records" };
    format!(
        "{records} of its machine before it ({count}) cannot be seen: the repository lost or hides \
         them"
    )
}

fn lost_record(damaged: &DamagedRecord, is_in_directory: bool) -> anyhow::Error {
    let DamagedRecord { position, reason, may_be_tombstone } = damaged;
    let file = record_file(*position);
    let or_tombstone = match may_be_tombstone {
        true => format!(", or tombstones/{file} if that is there,"),
        false => String::new(),
    };
    let message = format!("records/{file}{or_tombstone} in the repository is damaged: {reason}");
    Refusal::new(Exit::Damage, message)
        .hint(format!(
            "the other snapshots are not affected; put back a copy of that file; {}",
            way_out(&record_file(*position), is_in_directory)
        ))
        .into()
}

/// Finds the snapshot that is meant by `name`, which may be `latest`, of `path`, among those that were
/// listed and checked. On a computer that backed nothing up itself, such as one that replaces a lost one,
/// `latest` is that of the only machine that did. A copy is only meant where there is nothing that it
/// could hide.
///
/// # Errors
/// If none or several answer to the name.
pub(crate) fn named<'a>(
    access: &UnlockedRepository,
    listed: &'a [Snapshot],
    name: &str,
    path: Option<&[u8]>,
) -> Result<&'a Snapshot, EngineError> {
    let machine = whose_latest(access.machine(), listed);
    holdall_engine::find_snapshot(listed, machine, name, path)
}

fn wanted<'a>(
    access: &UnlockedRepository,
    listed: &'a [Snapshot],
    name: &str,
    path: Option<&[u8]>,
    filter: &Wanted<'_>,
) -> Result<&'a Snapshot> {
    match name {
        "latest" if !filter.is_empty() => latest_of(access, listed, path, filter),
        _ => taken(named(access, listed, name, path)?, filter),
    }
}

/// The snapshots that are meant by `names` and that `filter` takes, each once and oldest first, of a list
/// in which none is missing.
///
/// # Errors
/// If none or several answer to a name; [`Refusal`] for one that the filter does not take.
pub(crate) fn chosen<'a>(
    access: &UnlockedRepository,
    listed: &'a [Snapshot],
    names: &[impl AsRef<str>],
    filter: &Wanted<'_>,
) -> Result<Vec<&'a Snapshot>> {
    once_each(names, |name| wanted(access, listed, name, None, filter))
}

fn once_each<'a>(
    names: &[impl AsRef<str>],
    one: impl Fn(&str) -> Result<&'a Snapshot>,
) -> Result<Vec<&'a Snapshot>> {
    let mut chosen = names.iter().map(|name| one(name.as_ref())).collect::<Result<Vec<_>>>()?;
    chosen.sort_by_key(|snapshot| snapshot.log_position);
    chosen.dedup_by_key(|snapshot| snapshot.id);
    Ok(chosen)
}

/// The newest snapshot, of `path` where one is given, that a filter takes: of the machines that it names,
/// else of this one; where this one has none at all, of the only one that it takes any of.
fn latest_of<'a>(
    access: &UnlockedRepository,
    listed: &'a [Snapshot],
    path: Option<&[u8]>,
    filter: &Wanted<'_>,
) -> Result<&'a Snapshot> {
    let of_path = |one: &Snapshot| path.is_none_or(|path| one.holds(path));
    let taken: Vec<_> = listed.iter().filter(|one| filter.takes(one) && of_path(one)).collect();
    let own = access.machine();
    let machine = match taken.last() {
        Some(newest) if filter.names_machine() => newest.machine,
        _ if listed.iter().any(|one| one.machine == own) => own,
        _ => whose_latest(own, taken.iter().copied()),
    };
    holdall_engine::find_snapshot(taken, machine, "latest", path).map_err(|_| {
        let whose = if filter.names_machine() { "" } else { " of this machine's" };
        let of = path.map(|path| format!(" of {}", Shown(path))).unwrap_or_default();
        let message =
            format!("no snapshot latest{of}: --machine, --path and --tag take none{whose}");
        let hint = "`holdall snapshots` with the same options lists what they take";
        Refusal::new(Exit::Failed, message).hint(hint).into()
    })
}

/// Refuses a snapshot that was named and that a filter does not take: one of both is a mistake.
fn taken<'a>(snapshot: &'a Snapshot, filter: &Wanted<'_>) -> Result<&'a Snapshot> {
    if filter.takes(snapshot) {
        return Ok(snapshot);
    }
    let id = snapshot.id.to_string();
    let message =
        format!("snapshot {id:.10} is none of those that --machine, --path and --tag take");
    let hint =
        "leave those options out, or name a snapshot that `holdall snapshots` lists with them";
    Err(Refusal::new(Exit::Usage, message).hint(hint).into())
}

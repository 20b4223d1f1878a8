//! The plan: goes through the source, in the order of the tree.

mod by_places;
mod rules;

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

use holdall_format::RepositoryConfig;
use holdall_meter::{counted, size};
use holdall_sys::{Dir, FileKind, Name, Stat, btrfs, disk, stat};
use holdall_tree::PathKey;

use super::job::Work;
use super::listed::{Deeper, Listed};
use super::meters::Meters;
use super::options::{BackupOptions, FOLLOWED};
use super::own_repository;
use super::places::{Places, Scope};
use super::produced::{self, Producer};
use super::read::{has_vanished, not_read};
use super::scan::Step;
use super::snapshots_place;
use super::unread::Unread;
use super::walk::Walk;
use crate::EngineError;
use crate::filter::exclude::{ExcludeRules, LocalRules, RulesMet};
use crate::storing::Shared;

/// The next subdirectories are handed to the walkers when no more than this many are left, so that
/// the walkers always have something to do.
const AHEAD_LEFT: usize = 8;

/// What becomes of the paths that a plan finds: jobs, or a count. They come in the order of the tree.
pub(super) trait ItemSink {
    /// Takes the next path. What cannot be read of the source never comes here.
    ///
    /// # Errors
    /// What keeps the plan from going on.
    fn add(&mut self, path: PathKey, stat: Stat, work: Work) -> Result<(), EngineError>;

    /// Takes a path that a rule leaves out, the rule in words, and how long a file is that is left out for that.
    ///
    /// # Errors
    /// As [`ItemSink::add`].
    fn left_out(
        &mut self,
        path: PathKey,
        rule: String,
        too_large_bytes: Option<u64>,
    ) -> Result<(), EngineError>;

    /// Takes a directory that is nowhere: one above a source that is recorded elsewhere.
    ///
    /// # Errors
    /// As [`ItemSink::add`].
    fn made_up(&mut self, path: PathKey) -> Result<(), EngineError>;

    /// How many paths the parents have below one behind which none was added so far.
    ///
    /// # Errors
    /// As [`ItemSink::add`].
    fn count_before(&mut self, path: &PathKey) -> Result<u64, EngineError>;

    /// The inode of the directory that the only parent has at `path`.
    ///
    /// # Errors
    /// As [`ItemSink::add`].
    fn directory_before(&mut self, path: &PathKey) -> Result<Option<u64>, EngineError>;

    /// Takes over what the only parent has from one key up to another, which may be none; says how many
    /// paths that are.
    ///
    /// # Errors
    /// As [`ItemSink::add`].
    fn keep(&mut self, from: &[u8], until: Option<&[u8]>) -> Result<u64, EngineError>;

    /// There are no more paths.
    ///
    /// # Errors
    /// As [`ItemSink::add`].
    fn finish(&mut self) -> Result<(), EngineError>;
}

/// Goes through the sources.
pub(super) struct Plan<'a, F> {
    pub(super) options: &'a BackupOptions,
    pub(super) shared: &'a Shared<'a>,
    pub(super) unread: &'a Unread,
    pub(super) meters: &'a Meters,
    pub(super) walk: &'a Walk,
    pub(super) exclude: Arc<ExcludeRules>,
    pub(super) met: RulesMet,
    /// The one that is backed up to.
    pub(super) repository: RepositoryConfig,
    pub(super) items: F,
    /// Where the sources are recorded, those within others too.
    pub(super) named: BTreeSet<PathKey>,
    /// Paths that were added so far.
    pub(super) added: u64,
    /// Those of them within others that the walk did not come to so far.
    pub(super) unmet: BTreeSet<PathKey>,
    /// Where to look; nothing if that is everywhere.
    pub(super) places: Option<Places>,
}

/// Why a source is not in the snapshot within which another one lies.
const NOT_MET: &str = "was named and is left out: above it is a link, or something that is excluded; back it up \
in a run of its own";

/// Why directories are left out that no rule names.
const OF_REPOSITORY: &str = "is of the repository itself and is left out";
const HOLDS_FS_SNAPSHOTS: &str =
    "is where snapshots of the file system are kept while they are read, and is left out";
const SHOWS_KERNEL: &str = "has no files, but shows the state of the system, and is left out";
const ALL_RULED_OUT: &str = "has nothing in this snapshot: rules leave out all that is in it";

/// Why nothing of a source is in the snapshot.
#[derive(Clone, Copy)]
enum Nothing {
    IsThere,
    IsWanted,
    /// Something that is no folder is in its place.
    Replaced(FileKind),
}

impl Nothing {
    fn words(self) -> &'static str {
        match self {
            Self::IsThere => "it is empty",
            Self::IsWanted => "rules leave out all that is in it",
            Self::Replaced(FileKind::Symlink) => "it is a link, and was a folder",
            Self::Replaced(FileKind::File) => "it is a file, and was a folder",
            Self::Replaced(_) => "it is no folder any more",
        }
    }

    fn question(self) -> &'static str {
        match self {
            Self::IsThere | Self::Replaced(_) => {
                "is its disk mounted? If it is meant to be empty, say --accept-empty"
            }
            Self::IsWanted => "if that is meant, say --accept-empty",
        }
    }
}

/// The option that leaves out other file systems.
const ONE_FILE_SYSTEM: &str = "--one-file-system";

/// A rule that leaves out what is in a directory, and not the directory.
fn content_by(rule: &str) -> String {
    format!("what is in it, {rule}")
}

const NOT_ENTERED: &str = "lies on another file system, cannot be looked at and is left out";

/// Why something was not seen.
enum Unseen {
    /// It would not be entered anyway.
    Elsewhere(io::Error),
    Problem(io::Error),
}

/// A directory that the plan is in.
struct Frame {
    path: PathKey,
    listed: Listed,
    next: usize,
    rules: Option<LocalRules>,
    /// Whether there are such rules here or above.
    is_ruled: bool,
    device: u64,
    stays_on: StaysOn,
    /// How many paths were added before what is in it.
    added_before: u64,
    /// Whether something in it is left out.
    leaves_out: bool,
    /// How much of it is looked at.
    scope: Scope,
    /// The key up to which everything was kept, if it is only gone through.
    kept_until: Vec<u8>,
}

/// The file system on which a walk that stays on one stays; none on the way from one to a source
/// that lies deeper on another, where nothing else is wanted.
type StaysOn = Option<u64>;

/// How much of a path is wanted.
enum Wanted {
    /// It and, if it is a directory, what lies in it.
    Whole(StaysOn),
    /// It alone: something is mounted there.
    Itself,
    Nothing,
}

impl Frame {
    /// What is to be done for a child that is no directory to be entered.
    fn read(&self, stat: Stat) -> Work {
        Work::Read { dir: Arc::clone(&self.listed.dir), name: None, stat }
    }
}

impl<F: ItemSink> Plan<'_, F> {
    /// Plans all steps: the body of the plan's thread.
    ///
    /// # Errors
    /// A parent that cannot be read, or the wish to stop; what cannot be read of the source is a
    /// problem, no error.
    pub(super) fn run(&mut self, steps: Vec<Step>) -> Result<(), EngineError> {
        for step in steps {
            match step {
                Step::Ancestor { path, read_at } => self.ancestor(path, read_at)?,
                Step::Source { path, read_at } => self.source(path, &read_at)?,
            }
        }
        let mut told: Option<&PathKey> = None;
        for path in &self.unmet {
            // The walk is past what the snapshot before has of it: what is known from earlier runs stays known.
            let absolute = path.to_absolute();
            if self.options.filled_before.contains(&absolute) {
                self.shared.run.filled(&absolute);
            }
            // Whatever lies below it is left out with it.
            if !told.is_some_and(|told| told.is_ancestor_of(path)) {
                match open_source(&path.to_absolute()) {
                    Ok(_) => self.shared.run.problem(&path.to_absolute(), NOT_MET),
                    Err(error) => self.shared.left_out(path, "not read", &error)?,
                }
                told = Some(path);
            }
        }
        // What was not looked at may have met the others.
        if self.places.is_none() {
            self.shared.run.rules_unmet(self.exclude.unmet(&self.met));
        }
        self.items.finish()
    }

    fn ancestor(&mut self, path: PathKey, read_at: Option<Vec<u8>>) -> Result<(), EngineError> {
        let Some(read_at) = read_at else { return self.items.made_up(path) };
        let look = || Dir::on_the_way(&read_at).and_then(|dir| dir.stat_self());
        let looked = self.shared.run.looking_at(read_at.clone(), look);
        let stat = match looked {
            Ok(stat) => stat,
            Err(error) => {
                self.shared.left_out(&path, "not read", &error)?;
                return self.items.made_up(path);
            }
        };
        // A link to a directory is one here. Who may only pass through sees no attributes of it.
        let work = match Dir::open_absolute(&[&read_at, &b"/."[..]].concat()) {
            Ok(dir) => Work::Directory { dir: Arc::new(dir), stat, is_empty: false },
            Err(error) => {
                if error.kind() != io::ErrorKind::PermissionDenied {
                    self.shared.left_out(&path, "not read", &error)?;
                }
                Work::StatOnly { stat }
            }
        };
        self.add(path, stat, work)
    }

    fn source(&mut self, path: PathKey, read_at: &[u8]) -> Result<(), EngineError> {
        if let Some(producer) = self.producer(&path) {
            let stat = produced::stat_now();
            return self.add(path, stat, Work::Produce { producer, stat });
        }
        let opened = self.shared.run.looking_at(read_at.to_vec(), || open_source(read_at));
        let (dir, name, stat) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                self.shared.left_out(&path, "not read", &error)?;
                return self.note_nothing(&path);
            }
        };
        if let Some((stat, work)) = self.pipe(&path) {
            return self.add(path, stat, work);
        }
        if stat.kind != FileKind::Dir {
            let work = Work::Read { dir, name: Some(name.into()), stat };
            return self.add_no_folder(path, stat, work);
        }
        let scope = self.scope_of_source(&path, &stat)?;
        let listed = self.meters.walk.working(|| {
            let dir = if name.is_empty() {
                Dir::open_absolute(read_at)?
            } else {
                dir.open_child(Name::new(&name)?)?
            };
            self.walk.read(dir, scope)
        });
        if let Err(error) = &listed
            && error.kind() == io::ErrorKind::NotFound
        {
            not_read(self.shared, &path, error)?;
            return self.note_nothing(&path);
        }
        match self.enter(path, &stat, listed, Some(stat.device))? {
            Some(frame) => self.descend(Frame { scope, ..frame }),
            None => Ok(()),
        }
    }

    /// What gives the content of a source, if a program does.
    fn producer(&self, path: &PathKey) -> Option<Arc<dyn Producer>> {
        let mut all = self.options.producers.iter();
        let (_, producer) = all.find(|(at, _)| *at == path.to_absolute())?;
        Some(Arc::clone(producer))
    }

    /// What is to be done for a source that is a pipe, and what it is stored as.
    fn pipe(&self, path: &PathKey) -> Option<(Stat, Work)> {
        if self.options.pipes.is_empty() || !self.named.contains(path) {
            return None;
        }
        let path = path.to_absolute();
        let (_, pipe) = self.options.pipes.iter().find(|(at, _)| *at == path)?;
        let stat = Stat { kind: FileKind::File, size: 0, ..stat::of_fd(pipe).ok()? };
        Some((stat, Work::Pipe { pipe: Arc::clone(pipe), stat }))
    }

    /// Goes through everything below a directory.
    fn descend(&mut self, root: Frame) -> Result<(), EngineError> {
        let mut frames = vec![root];
        while let Some(frame) = frames.last_mut() {
            self.shared.check()?;
            if frame.scope == Scope::Through {
                self.go_through(&mut frames)?;
                continue;
            }
            let index = frame.next;
            if index >= frame.listed.names.len() {
                if let Some(done) = frames.pop() {
                    self.leave(&done)?;
                }
                continue;
            }
            frame.next += 1;
            let (kind, path) = (frame.listed.kind(index), self.child_path(frame, index));
            let Some(path) = path else { continue };
            // Before it is looked at: what is left out need not answer.
            if let Some(kind) = kind
                && self.leaves_out(&mut frames, &path, kind)?
            {
                continue;
            }
            let Some(frame) = frames.last_mut() else { break };
            let stat = match self.look(frame, index, &path) {
                Ok(stat) => stat,
                Err(Unseen::Elsewhere(error)) => {
                    let reason = format!("{NOT_ENTERED}: {error}");
                    self.shared.run.leave_out(&path.to_absolute(), &reason);
                    continue;
                }
                Err(Unseen::Problem(error)) => {
                    let is_mounted = matches!(frame.listed.stats.get(index), Some(None));
                    let above = Arc::clone(&frame.listed.dir);
                    self.not_there(&path, &above, is_mounted, &error)?;
                    self.unmet.remove(&path);
                    continue;
                }
            };
            if kind != Some(stat.kind) && self.leaves_out(&mut frames, &path, stat.kind)? {
                continue;
            }
            let Some(frame) = frames.last_mut() else { break };
            if self.holds_fs_snapshots(frame, &path, &stat) {
                continue;
            }
            if let Some(limit_bytes) = self.exceeded_limit(&path, &stat) {
                frames.last_mut().into_iter().for_each(|frame| frame.leaves_out = true);
                let rule = format!("--exclude-larger-than {}", size(limit_bytes));
                self.items.left_out(path, rule, Some(stat.size))?;
                continue;
            }
            self.unmet.remove(&path);
            if let Some((stat, work)) = self.pipe(&path) {
                self.add(path, stat, work)?;
                continue;
            }
            let Some(frame) = frames.last_mut() else { break };
            let stays_on = match self.wanted(frame.stays_on, &path, &stat) {
                Wanted::Whole(stays_on) if stat.kind == FileKind::Dir => stays_on,
                wanted @ (Wanted::Whole(_) | Wanted::Itself) => {
                    let work = frame.read(stat);
                    self.add_no_folder(path.clone(), stat, work)?;
                    if matches!(wanted, Wanted::Itself) && stat.kind == FileKind::Dir {
                        self.items.left_out(path, content_by(ONE_FILE_SYSTEM), None)?;
                    }
                    continue;
                }
                Wanted::Nothing => continue,
            };
            let Some(scope) = self.scope_within(frame, &path, &stat)? else { continue };
            if let Some(mut below) = self.go_into(&mut frames, index, (path, stat), stays_on)? {
                below.scope = scope;
                below.is_ruled |= frames.last().is_some_and(|above| above.is_ruled);
                frames.push(below);
            }
        }
        Ok(())
    }

    /// Ends with a directory: all that is in it was planned.
    fn leave(&mut self, done: &Frame) -> Result<(), EngineError> {
        self.walk.discard(&done.listed);
        let is_filled = done.added_before != self.added;
        if is_filled && self.named.contains(&done.path) {
            self.shared.run.filled(&done.path.to_absolute());
        }
        match done.leaves_out && !is_filled {
            true => self.tell_nothing(&done.path, Nothing::IsWanted),
            false => Ok(()),
        }
    }

    /// Records a directory within the innermost of `frames`, and steps into it, unless it turns out to be
    /// something that
    /// is not wanted.
    fn go_into(
        &mut self,
        frames: &mut [Frame],
        index: usize,
        (path, stat): (PathKey, Stat),
        stays_on: StaysOn,
    ) -> Result<Option<Frame>, EngineError> {
        let Some(frame) = frames.last_mut() else { return Ok(None) };
        let absolute = path.to_absolute();
        let look = || self.list(frame, index, path.name());
        let listed = self.shared.run.looking_at(absolute, look);
        let above = Arc::clone(&frame.listed.dir);
        let mounted = self.walk.has_mount(&above, path.name());
        let is_other = mounted || stat.device != frame.device;
        let listed = match is_other {
            true => listed.and_then(|listed| still_mounted(listed, &stat, &above, mounted)),
            false => listed,
        };
        let is_met = is_other && !self.named.contains(&path);
        if let Some(other) = became_other(&listed, &frame.listed.dir, path.name()) {
            let work = frame.read(other);
            self.add_no_folder(path, other, work)?;
            return Ok(None);
        }
        if let Err(error) = &listed
            && error.kind() == io::ErrorKind::NotFound
        {
            self.not_there(&path, &above, is_other, error)?;
            return Ok(None);
        }
        if is_met && is_view(&listed) {
            listed.iter().for_each(|listed| self.walk.discard(listed));
            self.shared.run.leave_out(&path.to_absolute(), SHOWS_KERNEL);
            self.add(path, stat, frame.read(stat))?;
            return Ok(None);
        }
        if self.is_own_repository(frames, &path, &listed) {
            listed.iter().for_each(|listed| self.walk.discard(listed));
            self.shared.run.leave_out(&path.to_absolute(), OF_REPOSITORY);
            return Ok(None);
        }
        self.enter(path, &stat, listed, stays_on)
    }

    /// Whether rules leave out what lies in the innermost of `frames`; then notes that.
    fn leaves_out(
        &mut self,
        frames: &mut [Frame],
        path: &PathKey,
        kind: FileKind,
    ) -> Result<bool, EngineError> {
        let Some(rule) = self.excluding_rule(frames, path, kind == FileKind::Dir) else {
            return Ok(false);
        };
        frames.last_mut().into_iter().for_each(|frame| frame.leaves_out = true);
        // A list of paths may name what a rule is there for.
        if self.unmet.remove(path) {
            self.unmet.retain(|below| !path.is_ancestor_of(below));
        }
        self.items.left_out(path.clone(), rule, None)?;
        Ok(true)
    }

    /// Whether snapshots of the file system are kept in a directory within a frame, which are of this or another run; then
    /// notes that. In a snapshot nothing is there.
    fn holds_fs_snapshots(&self, frame: &Frame, path: &PathKey, stat: &Stat) -> bool {
        let is_on_the_way = |named: &PathKey| named == path || path.is_ancestor_of(named);
        let is_wanted = || self.named.range(path..).next().is_some_and(is_on_the_way);
        if !snapshots_place::is_kept_at(&frame.listed.dir, path.name(), stat) || is_wanted() {
            return false;
        }
        if btrfs::is_subvolume(stat) {
            self.shared.run.leave_out(&path.to_absolute(), HOLDS_FS_SNAPSHOTS);
        }
        true
    }

    /// The length that a file may have, if it has more and is no source itself.
    fn exceeded_limit(&self, path: &PathKey, stat: &Stat) -> Option<u64> {
        let limit_bytes = self.options.exclude.larger_than_bytes?;
        let is_too_large = stat.kind == FileKind::File && stat.size > limit_bytes;
        (is_too_large && !self.named.contains(path)).then_some(limit_bytes)
    }

    /// Looks at what is in a directory, which may not answer.
    fn look(&self, frame: &mut Frame, index: usize, path: &PathKey) -> Result<Stat, Unseen> {
        let is_mounted = matches!(frame.listed.stats.get(index), Some(None));
        let mut look =
            || frame.listed.stat(index).unwrap_or_else(|| Err(io::ErrorKind::NotFound.into()));
        let seen = match is_mounted {
            true => self.shared.run.looking_at(path.to_absolute(), look),
            false => look(),
        };
        let stays = self.options.one_file_system && !self.named.contains(path);
        seen.map_err(|error| match stays && is_mounted {
            true => Unseen::Elsewhere(error),
            false => Unseen::Problem(error),
        })
    }

    /// Whether a directory within the innermost of `frames` is of the repository that is backed up to.
    fn is_own_repository(
        &self,
        frames: &[Frame],
        path: &PathKey,
        listed: &io::Result<Listed>,
    ) -> bool {
        let Ok(Listed { dir, names, .. }) = listed else { return false };
        if own_repository::is(dir, names, &self.repository) {
            return true;
        }
        let [.., folder, above] = frames else { return false };
        let (folder, above, name) = (&folder.listed, above.path.name(), path.name());
        own_repository::is_cache(&folder.dir, &folder.names, above, name, &self.repository)
    }

    fn child_path(&self, frame: &Frame, index: usize) -> Option<PathKey> {
        let name = frame.listed.names.get(index)?.name().as_bytes();
        let path = frame.path.child(name);
        if path.is_err() {
            self.shared.run.problem(name, "its path is longer than 64 KiB");
        }
        path.ok()
    }

    /// How much of a path is wanted that lies in a directory with that `stays_on`.
    fn wanted(&self, stays_on: StaysOn, path: &PathKey, stat: &Stat) -> Wanted {
        if !self.options.one_file_system || stays_on == Some(stat.device) {
            return Wanted::Whole(stays_on);
        }
        let mut from_here = self.named.range(path..);
        match from_here.next() {
            Some(named) if named == path => Wanted::Whole(Some(stat.device)),
            Some(named) if path.is_ancestor_of(named) => Wanted::Whole(None),
            _ if stays_on.is_some() => Wanted::Itself,
            _ => Wanted::Nothing,
        }
    }

    /// Takes a subdirectory's listing from the walkers, and keeps them supplied.
    fn list(&self, frame: &mut Frame, index: usize, name: &[u8]) -> io::Result<Listed> {
        if frame.scope == Scope::All && frame.listed.below.len() <= AHEAD_LEFT {
            self.look_ahead(frame, index);
        }
        let below = &mut frame.listed.below;
        while below.front().is_some_and(|(at, _)| *at <= index)
            && let Some((at, task)) = below.pop_front()
        {
            if at == index {
                return self.meters.plan.waiting_in(|| self.walk.take(&task, self.meters));
            }
            self.walk.forget(&task);
        }
        self.walk.read(frame.listed.dir.open_child(Name::new(name)?)?, Scope::All)
    }

    /// Hands the next subdirectories of a directory to the walkers.
    fn look_ahead(&self, frame: &mut Frame, index: usize) {
        let listed = &mut frame.listed;
        listed.looked = listed.looked.max(index);
        let exclude = Arc::clone(&self.exclude);
        let above = match exclude.patterns.is_empty() || frame.path.is_root() {
            true => Arc::default(),
            false => frame.path.to_absolute().into(),
        };
        // What a `.holdallignore` on the way says, only the plan knows.
        let deeper = Deeper { exclude, above, device: frame.device };
        let stays = !self.options.one_file_system || frame.stays_on == Some(frame.device);
        let deeper = (stays && !frame.is_ruled).then_some(deeper);
        let (indices, begins): (Vec<_>, Vec<_>) =
            listed.look_ahead(deeper.as_ref()).into_iter().unzip();
        if !indices.is_empty() {
            let tasks = self.walk.ahead(begins, listed.below.back().map(|(_, task)| task));
            listed.below.extend(indices.into_iter().zip(tasks));
        }
    }

    /// Records a directory and, if its content is wanted, steps into it.
    fn enter(
        &mut self,
        path: PathKey,
        stat: &Stat,
        listed: io::Result<Listed>,
        stays_on: StaysOn,
    ) -> Result<Option<Frame>, EngineError> {
        let listed = match listed {
            Ok(listed) => listed,
            Err(error) => {
                self.shared.left_out(&path, "not read", &error)?;
                self.add(path.clone(), *stat, Work::StatOnly { stat: *stat })?;
                self.note_nothing(&path)?;
                return Ok(None);
            }
        };
        let (dir, is_empty) = (Arc::clone(&listed.dir), listed.names.is_empty());
        // A source that is empty is told as such.
        let is_found_empty = is_empty && !self.named.contains(&path);
        let work = Work::Directory { dir, stat: *stat, is_empty: is_found_empty };
        self.add(path.clone(), *stat, work)?;
        if is_empty {
            self.tell_nothing(&path, Nothing::IsThere)?;
        }
        if let Some(rule) = self.options.exclude.excluding_content(&listed.dir, &self.met) {
            self.walk.discard(&listed);
            self.items.left_out(path.clone(), content_by(&rule), None)?;
            self.tell_nothing(&path, Nothing::IsWanted)?;
            return Ok(None);
        }
        let rules = self.local_rules(&path, &listed);
        let (is_ruled, device) = (rules.is_some(), stat.device);
        let (added_before, leaves_out) = (self.added, false);
        let (scope, kept_until) = (Scope::All, path.before_children());
        let frame = Frame {
            path,
            listed,
            next: 0,
            rules,
            is_ruled,
            device,
            stays_on,
            added_before,
            leaves_out,
            scope,
            kept_until,
        };
        Ok(Some(frame))
    }

    fn add(&mut self, path: PathKey, stat: Stat, work: Work) -> Result<(), EngineError> {
        self.added += 1;
        self.items.add(path, stat, work)
    }

    /// Records what is not gone into. A source that is no folder and was one has nothing of that in the snapshot.
    fn add_no_folder(&mut self, path: PathKey, stat: Stat, work: Work) -> Result<(), EngineError> {
        if stat.kind == FileKind::Dir || !self.named.contains(&path) {
            return self.add(path, stat, work);
        }
        self.add(path.clone(), stat, work)?;
        self.tell_nothing(&path, Nothing::Replaced(stat.kind))
    }

    /// Tells of a source of which nothing is in the snapshot: as a problem if there once was something, and each
    /// time until there is again, or it is said that this is meant. The snapshots before have what is missing, so
    /// this one is made all the same.
    fn tell_nothing(&mut self, path: &PathKey, why: Nothing) -> Result<(), EngineError> {
        if !self.named.contains(path) {
            return Ok(());
        }
        let absolute = path.to_absolute();
        if self.options.accept_empty.contains(&absolute) {
            return Ok(());
        }
        let before = self.items.count_before(path)?;
        let (words, question) = (why.words(), why.question());
        let had = match before {
            0 if self.options.filled_before.contains(&absolute) => {
                "an earlier snapshot has more of it".to_owned()
            }
            0 => {
                if matches!(why, Nothing::IsWanted) {
                    self.shared.run.leave_out(&absolute, ALL_RULED_OUT);
                }
                return Ok(());
            }
            before => format!("the previous snapshot has {} in it", counted(before, "item")),
        };
        self.shared.run.problem(&absolute, format!("{words}, and {had}: {question}"));
        self.shared.run.filled(&absolute);
        Ok(())
    }

    /// Notes why something is missing that was listed a moment ago. A disk that is gone is a problem, and so is
    /// a folder
    /// that had something in it; what else comes and goes is none.
    fn not_there(
        &mut self,
        path: &PathKey,
        above: &Dir,
        is_mounted: bool,
        error: &io::Error,
    ) -> Result<(), EngineError> {
        let may_vanish = !is_mounted && !self.named.contains(path);
        if may_vanish
            && has_vanished(above, path.name(), error)
            && self.items.count_before(path)? == 0
        {
            self.shared.run.vanished(&path.to_absolute());
            return Ok(());
        }
        not_read(self.shared, path, error)?;
        self.note_nothing(path)
    }

    /// Notes a source that could not be read, which was told, if there once was something: it is told until there is
    /// again.
    fn note_nothing(&mut self, path: &PathKey) -> Result<(), EngineError> {
        self.unread.note(path)?;
        let absolute = path.to_absolute();
        let had_something = self.named.contains(path)
            && (self.options.filled_before.contains(&absolute)
                || self.items.count_before(path)? > 0);
        if had_something {
            self.shared.run.filled(&absolute);
        }
        Ok(())
    }
}

/// Opens the directory above a source and looks at the source in it. For `/`, and for the directory that a link
/// leads to, the name is empty.
fn open_source(read_at: &[u8]) -> io::Result<(Arc<Dir>, Vec<u8>, Stat)> {
    let itself = || {
        let dir = Dir::open_absolute(read_at)?;
        let stat = dir.stat_self()?;
        Ok((Arc::new(dir), Vec::new(), stat))
    };
    if read_at.ends_with(FOLLOWED) {
        return itself();
    }
    let key = PathKey::from_absolute(read_at).map_err(io::Error::other)?;
    let Some(parent) = key.parent() else { return itself() };
    let dir = Dir::on_the_way(&parent.to_absolute())?;
    let stat = dir.stat(Name::new(key.name())?)?;
    Ok((Arc::new(dir), key.name().to_vec(), stat))
}

/// The listing of a directory that was seen on another file system than what is above it, or on which something was
/// `mounted` when the run began; an error if it is not mounted any more, for what lies below it is not what was
/// meant.
fn still_mounted(listed: Listed, seen: &Stat, above: &Dir, mounted: bool) -> io::Result<Listed> {
    let (now, above) = (listed.dir.stat_self()?, above.stat_self()?);
    // A subvolume is another file system, and no mount.
    let was_taken_away = seen.device != above.device && now.device == above.device;
    let was_gone = mounted && now.mount_id.is_some() && now.mount_id == above.mount_id;
    match was_taken_away || was_gone {
        true => Err(io::Error::other("it was unmounted while the backup ran")),
        false => Ok(listed),
    }
}

/// Whether a directory is of a file system that holds nothing, and only shows what the kernel knows.
fn is_view(listed: &io::Result<Listed>) -> bool {
    let file_system = |listed: &Listed| disk::file_system_of(&*listed.dir);
    listed.as_ref().is_ok_and(|listed| file_system(listed).is_ok_and(disk::is_view))
}

/// What is there by now instead of a directory that could not be opened, if that is something else.
fn became_other(listed: &io::Result<Listed>, dir: &Dir, name: &[u8]) -> Option<Stat> {
    let name = Name::new(name).ok().filter(|_| listed.is_err())?;
    dir.stat(name).ok().filter(|stat| stat.kind != FileKind::Dir)
}

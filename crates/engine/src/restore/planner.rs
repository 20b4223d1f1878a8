//! The planner: walks the snapshot in tree order and turns it into windows of work.
//!
//! It touches neither target nor network, apart from the tree's nodes: directories are only named
//! here, and made by the first writer that needs them.

use std::sync::Arc;

use crossbeam_channel::Sender;
use holdall_format::ObjectId;
use holdall_meter::StageMeter;
use holdall_tree::{Content, ContentReader, Cursor, Entry, EntryKind, PathKey};

use super::Selected;
use super::context::{Context, add};
use super::directory::Directory;
use super::foreseen::Foreseen;
use super::layout::Layout;
use super::links::{Groups, Membership};
use super::mark;
use super::reader::Reader;
use super::settle::Whole;
use super::split_file::SplitFile;
use super::window::{Ended, Item, Outlets, Output, WINDOW_BYTES, Work, held_bytes};
use crate::EngineError;
use crate::blocks::Nodes;
use crate::error::is_damaged;

/// A directory on the way from the start of the walk to the current entry.
struct Level<'a> {
    /// How much of the current directory's key is this one's.
    key_bytes: usize,
    directory: Directory<'a>,
}

pub(super) struct Planner<'a> {
    context: &'a Context<'a>,
    reader: Reader<'a>,
    levels: Vec<Level<'a>>,
    /// The key of the lowest level's directory.
    key: Vec<u8>,
    groups: Groups,
    /// What a dry run looks at.
    foreseen: Foreseen,
    output: Output<'a, Work<'a>>,
    /// Where large files go that are whole.
    settle: Sender<Whole<'a>>,
    meter: &'a StageMeter,
}

/// What is to be done with an entry.
enum Plan {
    Taken,
    SkipBelow,
}

impl<'a> Planner<'a> {
    /// Starts in the directory `top` of the snapshot, which `directory` stands for.
    pub(super) fn new(
        context: &'a Context<'a>,
        reader: Reader<'a>,
        top: &PathKey,
        (directory, foreseen): (Directory<'a>, Foreseen),
        (outlets, settle): (Outlets<Work<'a>>, Sender<Whole<'a>>),
        meter: &'a StageMeter,
    ) -> Self {
        let key = top.as_bytes().to_vec();
        Self {
            context,
            reader,
            levels: vec![Level { key_bytes: key.len(), directory }],
            key,
            groups: Groups::default(),
            foreseen,
            output: Output::new(outlets, meter),
            settle,
            meter,
        }
    }

    /// Plans everything below `top`, or only the entry `only` in it.
    pub(super) fn run(
        &mut self,
        nodes: Nodes,
        root: ObjectId,
        top: &PathKey,
        only: Option<&PathKey>,
    ) {
        let mut cursor = Cursor::new(nodes, root);
        let start = only.unwrap_or(top);
        let mut skipped: Option<PathKey> = None;
        // An error is met again by the walk, which knows what to do with it. One that was of a moment
        // is not: then the walk comes by what was to be passed.
        let _ = cursor.seek(start);
        while !self.context.stopping() {
            let step = match self.meter.working(|| cursor.next()) {
                Ok(Some((path, _)))
                    if path < *start
                        || skipped.as_ref().is_some_and(|above| above.is_ancestor_of(&path)) =>
                {
                    continue;
                }
                Ok(Some((path, entry))) if only.is_none_or(|only| *only == path) => {
                    if path == *top {
                        continue;
                    }
                    if !top.is_ancestor_of(&path) {
                        break;
                    }
                    self.plan(&path, entry).map(|plan| (plan, path))
                }
                Ok(_) => break,
                Err(error) => match EngineError::from(error) {
                    error if is_damaged(&error) => {
                        self.tell_damage(&error);
                        cursor.skip_unreadable();
                        continue;
                    }
                    error => return self.context.fail(error),
                },
            };
            let Ok((plan, path)) = step else { return };
            if matches!(plan, Plan::SkipBelow) {
                // An error is met again by the next step, or passed.
                let _ = cursor.skip_subtree(&path);
                skipped = Some(path);
            }
        }
        if !self.context.stopping() && !self.output.window.is_empty() {
            // If nobody takes it, the restore ended.
            let _ = self.output.pass_on();
        }
    }

    /// Says behind which entry something cannot be read.
    fn tell_damage(&self, error: &EngineError) {
        let after = PathKey::from_bytes(self.key.clone()).unwrap_or_default();
        let reason = format!("what comes after it is damaged: {error}");
        self.context.run.damage(&after.to_absolute(), reason);
    }

    fn plan(&mut self, path: &PathKey, entry: Entry) -> Result<Plan, Ended> {
        let meter = self.meter;
        let planned = meter.working(|| self.plan_entry(path, entry));
        match planned {
            Planned::Done(plan) => {
                self.output.pass_on_full()?;
                Ok(plan)
            }
            Planned::File(item) => self.add_file(*item).map(|()| Plan::Taken),
        }
    }

    fn plan_entry(&mut self, path: &PathKey, mut entry: Entry) -> Planned<'a> {
        let is_directory = entry.kind == EntryKind::Directory;
        let selected = self
            .context
            .options
            .select
            .as_ref()
            .map_or(Selected::Yes, |select| select(&path.to_absolute(), is_directory));
        if selected == Selected::No || (selected == Selected::Below && !is_directory) {
            return Planned::Done(Plan::SkipBelow);
        }
        let parent = self.parent_of(path.as_bytes());
        if self.levels.len() == 1 && path.name() == mark::NAME {
            // Of a restore into what was backed up; this one's own is there.
            if is_directory || entry.size > 0 {
                let reason = "a restore keeps its own mark under this name: `holdall dump` gives what the snapshot has";
                self.context.problem(&path.to_absolute(), reason);
            }
            return Planned::Done(Plan::SkipBelow);
        }
        let attributes = self.reader.bring_in_attributes(&mut entry);
        let attributes = attributes.or_else(|error| self.tell_lack(path, "attributes", error));
        let extents = self.reader.bring_in_extents(&mut entry);
        if attributes.is_err() || extents.is_err() {
            let _ = extents.or_else(|error| self.tell_lack(path, "extents", error));
            return Planned::Done(Plan::SkipBelow);
        }
        if self.context.options.dry_run && !is_directory {
            self.count(&parent.path_below_target(path.name()), &entry);
            return Planned::Done(Plan::Taken);
        }
        if is_directory {
            self.enter(path, &parent, entry, selected);
            return Planned::Done(Plan::Taken);
        }
        self.plan_item(path, parent, entry)
    }

    /// Says that a part of an entry is damaged, or ends the restore.
    fn tell_lack(&self, path: &PathKey, what: &str, error: EngineError) -> Result<(), Ended> {
        if !is_damaged(&error) {
            self.context.fail(error);
            return Err(Ended);
        }
        let reason = format!("its {what} cannot be read: {error}");
        self.context.run.damage(&path.to_absolute(), reason);
        Ok(())
    }

    /// Finds the directory that holds this key, leaving those that the walk is past. One that the
    /// tree lacks, because a node is damaged, is made up.
    fn parent_of(&mut self, key: &[u8]) -> Directory<'a> {
        while let [_, .., last] = &self.levels[..]
            && name_below(self.key.get(..last.key_bytes).unwrap_or_default(), key).is_none()
        {
            self.levels.pop();
        }
        loop {
            let level = &self.levels[self.levels.len() - 1];
            let directory = level.directory.clone();
            let prefix = self.key.get(..level.key_bytes).unwrap_or_default();
            let name = name_below(prefix, key).unwrap_or_default();
            let Some(end) = name.iter().position(|&byte| byte == 0) else { return directory };
            let directory = directory.child(&name[..end], None, false);
            let reason = "it is not in the snapshot; made without owner, mode and time";
            self.context.run.damage(&directory.path(b""), reason);
            let key_bytes = key.len() - name.len() + end;
            self.key.clear();
            self.key.extend_from_slice(&key[..key_bytes]);
            self.levels.push(Level { key_bytes, directory });
        }
    }

    fn enter(&mut self, path: &PathKey, parent: &Directory<'a>, entry: Entry, selected: Selected) {
        if self.context.options.dry_run {
            add(&self.context.tally.dirs, u64::from(selected == Selected::Yes));
        }
        let held = held_bytes(&entry);
        let directory = parent.child(path.name(), Some(entry), selected == Selected::Below);
        if selected == Selected::Yes && !self.context.options.dry_run {
            self.output.window.weigh(held);
            self.output.window.push(Work::Directory(directory.clone()));
        }
        self.key.clear();
        self.key.extend_from_slice(path.as_bytes());
        self.levels.push(Level { key_bytes: self.key.len(), directory });
    }

    fn plan_item(&mut self, path: &PathKey, directory: Directory<'a>, entry: Entry) -> Planned<'a> {
        let layout = match entry.kind {
            EntryKind::File => Layout::of(&entry),
            _ => Ok(Layout::Dense),
        };
        let layout = match layout {
            Ok(layout) => layout,
            Err(error) => {
                self.context.run.damage(&path.to_absolute(), error.to_string());
                return Planned::Done(Plan::SkipBelow);
            }
        };
        let name = path.name();
        let below_target = || directory.path_below_target(name);
        let membership = self.groups.join(&entry, &self.context.links, below_target);
        let membership = membership.unwrap_or_else(|error| {
            self.context.fail(EngineError::io("keeping track of hard links", error));
            Membership::None
        });
        let chunks = (0, 0);
        let item =
            Box::new(Item { directory, name: name.into(), entry, layout, membership, chunks });
        let is_file = item.entry.kind == EntryKind::File;
        if is_file && !matches!(membership, Membership::Later(_)) {
            return Planned::File(item);
        }
        self.output.window.weigh(held_bytes(&item.entry));
        self.output.window.push(Work::Item(item));
        Planned::Done(Plan::Taken)
    }

    /// Adds a file with its chunks: to this window, the next, or to as many as it takes.
    fn add_file(&mut self, mut item: Item<'a>) -> Result<(), Ended> {
        let bytes = match &item.entry.content {
            Content::Inline(_) => 0,
            content => content.len_bytes(),
        };
        let held = held_bytes(&item.entry);
        if !self.output.window.has_room_for(bytes.saturating_add(held)) {
            self.output.pass_on()?;
        }
        if bytes > WINDOW_BYTES {
            return self.split_file(item);
        }
        self.output.window.weigh(held);
        let first = self.output.window.chunk_count();
        let content = std::mem::take(&mut item.entry.content);
        let added = self.add_chunks(&content);
        item.entry.content = content;
        item.chunks = (first, self.output.window.chunk_count());
        match added {
            Ok(()) => self.output.window.push(Work::Item(Box::new(item))),
            Err(error) if is_damaged(&error) => {
                let path = item.directory.path(&item.name);
                self.context.run.damage(&path, error.to_string());
                self.context.links.first_is_done(item.membership, false);
            }
            Err(error) => self.context.fail(error),
        }
        self.output.pass_on_full()
    }

    fn add_chunks(&mut self, content: &Content) -> Result<(), EngineError> {
        let window = &mut self.output.window;
        match content {
            Content::Inline(_) => {}
            Content::Chunks(chunks) => chunks.iter().for_each(|chunk| {
                window.push_chunk(*chunk);
            }),
            Content::List { .. } => {
                let mut list = ContentReader::new(self.reader.nodes(), content);
                while let Some(chunk) = list.next()? {
                    window.push_chunk(chunk);
                }
            }
        }
        Ok(())
    }

    /// Spreads a large file over windows, a chunk at a time.
    fn split_file(&mut self, item: Item<'a>) -> Result<(), Ended> {
        let Item { directory, name, entry, layout, membership, .. } = item;
        let content = entry.content.clone();
        let (parent, settle) = (directory.clone(), self.settle.clone());
        let file = SplitFile::new(self.context, parent, &name, entry, layout, membership, settle);
        let file = Arc::new(file);
        let mut list = ContentReader::new(self.reader.nodes(), &content);
        let mut position = 0;
        loop {
            if self.context.stopping() {
                return Err(Ended);
            }
            match self.meter.working(|| list.next()).map_err(EngineError::from) {
                Ok(Some(chunk)) => {
                    let at = self.output.window.push_chunk(chunk);
                    let file = Arc::clone(&file);
                    self.output.window.push(Work::Piece { file, position, chunk: at });
                    position += u64::from(chunk.len_bytes);
                }
                Ok(None) => return Ok(()),
                Err(error) if is_damaged(&error) => {
                    self.context.run.damage(&directory.path(&name), error.to_string());
                    file.give_up();
                    return Ok(());
                }
                Err(error) => {
                    self.context.fail(error);
                    return Err(Ended);
                }
            }
            self.output.pass_on_full()?;
        }
    }

    /// Counts what a dry run would restore.
    fn count(&mut self, path: &[u8], entry: &Entry) {
        let tally = &self.context.tally;
        if self.foreseen.keeps(path, entry, self.context) {
            add(&tally.skipped, 1);
        } else {
            add(&tally.files, 1);
            add(&tally.bytes, entry.counted_bytes());
        }
        self.context.run.advance(1, entry.counted_bytes());
    }
}

enum Planned<'a> {
    Done(Plan),
    /// A file, which may take more than one window.
    File(Box<Item<'a>>),
}

/// What of a key is below the directory with the key `prefix`; nothing if it is elsewhere.
fn name_below<'k>(prefix: &[u8], key: &'k [u8]) -> Option<&'k [u8]> {
    let rest = key.strip_prefix(prefix)?;
    if prefix.is_empty() { Some(rest) } else { rest.strip_prefix(b"\0") }
}

//! The plan: the source's tree becomes windows of work. What a copy from before has already is taken
//! from there, and only what differs is looked at.

use std::sync::Arc;

use holdall_format::{ObjectId, SessionId};
use holdall_meter::StageMeter;
use holdall_tree::{
    Change as Differs, Content, ContentReader, Cursor, Entry, Node, NodeSource, PathKey, diff,
};

use super::known::Known;
use super::window::{Output, Step};
use crate::EngineError;
use crate::blocks::{Nodes, SharedNodeCache};
use crate::storing::{Change, Shared};
use crate::{Snapshot, UnlockedRepository};

/// A repository whose nodes are read.
pub(super) struct Reading<'a> {
    pub(super) access: &'a UnlockedRepository,
    pub(super) session: SessionId,
    pub(super) cache: &'a SharedNodeCache,
    pub(super) shared: &'a Shared<'a>,
    pub(super) meter: &'a StageMeter,
}

impl<'a> Reading<'a> {
    fn nodes(&self) -> NodesWhileRunning<'a> {
        let cache = SharedNodeCache::clone(self.cache);
        let nodes = Nodes::with_cache(self.access, self.session, cache);
        NodesWhileRunning::new(nodes, self.shared, self.meter)
    }
}

/// Nodes that are given only while the run goes on, so that whatever reads them ends soon after it.
pub(crate) struct NodesWhileRunning<'a> {
    nodes: Nodes,
    shared: &'a Shared<'a>,
    meter: &'a StageMeter,
}

impl<'a> NodesWhileRunning<'a> {
    pub(crate) fn new(nodes: Nodes, shared: &'a Shared<'a>, meter: &'a StageMeter) -> Self {
        Self { nodes, shared, meter }
    }
}

impl NodeSource for NodesWhileRunning<'_> {
    type Error = EngineError;

    fn node(&mut self, id: &ObjectId) -> Result<Arc<Node>, EngineError> {
        self.shared.check()?;
        self.meter.working(|| self.nodes.node(id))
    }
}

/// What there is already.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Before {
    /// The root of another snapshot in the source, and that of its copy in the destination.
    pub(super) copy: Option<(ObjectId, ObjectId)>,
    /// The root of a checkpoint: the first entries of this very copy, which was cut short.
    pub(super) checkpoint: Option<ObjectId>,
}

/// The planning thread.
pub(super) struct Plan<'a> {
    pub(super) source: Reading<'a>,
    pub(super) destination: Reading<'a>,
    pub(super) shared: &'a Shared<'a>,
    pub(super) known: &'a Known,
    /// Nodes of lists of chunks.
    pub(super) lists: NodesWhileRunning<'a>,
    pub(super) out: Output<'a>,
    /// The last entry of the checkpoint.
    pub(super) done: Option<PathKey>,
}

impl<'a> Plan<'a> {
    /// Nothing is planned yet.
    pub(super) fn new(
        source: Reading<'a>,
        destination: Reading<'a>,
        shared: &'a Shared<'a>,
        known: &'a Known,
        out: Output<'a>,
    ) -> Self {
        let lists = source.nodes();
        Self { source, destination, shared, known, lists, out, done: None }
    }

    /// Plans the copy of a snapshot: the body of the planning thread.
    ///
    /// # Errors
    /// A tree that cannot be read; [`EngineError::Interrupted`].
    pub(super) fn run(&mut self, snapshot: &Snapshot, before: Before) -> Result<(), EngineError> {
        if let Some(root) = before.checkpoint {
            self.checkpoint(root)?;
        }
        match before.copy {
            Some((source, copy)) => self.changes(snapshot, source, copy)?,
            None => self.whole(snapshot)?,
        }
        self.out.pass_on()
    }

    /// A tree of the destination.
    fn copied(&self, root: ObjectId) -> Cursor<NodesWhileRunning<'a>> {
        Cursor::new(self.destination.nodes(), root).noting_visited()
    }

    /// Takes over what was copied before the run was cut short.
    fn checkpoint(&mut self, root: ObjectId) -> Result<(), EngineError> {
        let mut checkpoint = self.copied(root);
        while let Some((path, entry)) = checkpoint.next()? {
            self.shared.check()?;
            self.shared.note_parents(&checkpoint.take_visited());
            self.done = Some(path.clone());
            self.out.push(Step::Keep { path, entry: Box::new(entry) })?;
        }
        Ok(())
    }

    fn whole(&mut self, snapshot: &Snapshot) -> Result<(), EngineError> {
        let mut cursor = Cursor::new(self.source.nodes(), snapshot.root);
        if let Some(done) = &self.done {
            cursor.seek(done)?;
        }
        while let Some((path, entry)) = cursor.next()? {
            self.shared.check()?;
            if !self.is_done(&path) {
                self.entry(path, entry, Change::New)?;
            }
        }
        Ok(())
    }

    /// Takes what is in both of two snapshots from the copy of the one, and the rest from the other.
    fn changes(
        &mut self,
        snapshot: &Snapshot,
        source: ObjectId,
        copy: ObjectId,
    ) -> Result<(), EngineError> {
        let mut copy = self.copied(copy);
        if let Some(done) = &self.done {
            copy.seek(done)?;
            if copy.peek()?.is_some_and(|(path, _)| path == done) {
                copy.advance();
            }
        }
        let (first, second) = (self.source.nodes(), self.source.nodes());
        diff((first, source), (second, snapshot.root), |differs| {
            if let Err(error) = self.change(&mut copy, differs) {
                self.shared.fail(error);
            }
        })?;
        self.shared.check()?;
        self.keep_before(&mut copy, None)
    }

    fn change(
        &mut self,
        copy: &mut Cursor<NodesWhileRunning<'_>>,
        differs: Differs,
    ) -> Result<(), EngineError> {
        self.shared.check()?;
        let Differs { path, after, .. } = differs;
        if self.is_done(&path) {
            return Ok(());
        }
        self.keep_before(copy, Some(&path))?;
        let before = match copy.peek()? {
            Some((at, _)) if *at == path => copy.next()?,
            _ => None,
        };
        let change = before.map_or(Change::New, |(_, entry)| Change::Maybe(Box::new(entry)));
        after.map_or(Ok(()), |entry| self.entry(path, entry, change))
    }

    /// Takes over entries of the destination, up to `end` or all.
    fn keep_before(
        &mut self,
        copy: &mut Cursor<NodesWhileRunning<'_>>,
        end: Option<&PathKey>,
    ) -> Result<(), EngineError> {
        while copy.peek()?.is_some_and(|(path, _)| end.is_none_or(|end| path < end)) {
            self.shared.check()?;
            self.shared.note_parents(&copy.take_visited());
            let Some((path, entry)) = copy.next()? else { break };
            self.out.push(Step::Keep { path, entry: Box::new(entry) })?;
        }
        Ok(())
    }

    fn is_done(&self, path: &PathKey) -> bool {
        self.done.as_ref().is_some_and(|done| path <= done)
    }

    fn entry(&mut self, path: PathKey, entry: Entry, change: Change) -> Result<(), EngineError> {
        let contents = [Some(&entry.attributes), entry.extents.as_ref(), Some(&entry.content)];
        contents.into_iter().flatten().try_for_each(|content| self.content(content))?;
        self.out.push(Step::Entry { path, entry: Box::new(entry), change })
    }

    fn content(&mut self, content: &Content) -> Result<(), EngineError> {
        if matches!(content, Content::Inline(_)) {
            return Ok(());
        }
        let mut list = ContentReader::new(&mut self.lists, content);
        while let Some(chunk) = list.next()? {
            match self.known.find(&chunk) {
                Some(known) => self.out.push(Step::Known(known))?,
                None => self.out.fetch(chunk)?,
            }
        }
        self.out.push(Step::EndContent)
    }
}

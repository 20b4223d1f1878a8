//! A repository with other keys: a snapshot and its copy are walked side by side.
//!
//! What can be read of the own tree is taken from there, and lost chunks of it come from the same place
//! of the same file of the copy. Where a part of the own tree is lost, the copy's entries stand in, with
//! their content named anew. All entries together give the tree once more, and with it its lost nodes.

use std::cmp::Ordering;
use std::collections::HashSet;

use bytes::Bytes;
use holdall_crypto::Opener;
use holdall_format::ObjectId;
use holdall_tree::{
    BuildError, BuiltNode, ChunkRef, Content, ContentBuilder, ContentReader, Cursor, Entry,
    PathKey, TreeBuilder,
};

use super::Repairing;
use super::outlet::{Outlet, Putting, Rehearsal};
use super::reach::Reach;
use super::repaired::Repaired;
use crate::blocks::Nodes;
use crate::error::is_damaged;
use crate::restore::ChunkSource;
use crate::storing::Putter;
use crate::verify::stored_nodes;
use crate::{EngineError, Run, Snapshot, UnlockedRepository};

/// Why something of a path could not be had.
type Note = (PathKey, String);

impl Repairing<'_> {
    /// Puts again what of `lost` comes out of the copy of a snapshot.
    pub(super) fn rebuild_by_path(
        &mut self,
        snapshot: &Snapshot,
        copy: &Snapshot,
        lost: &HashSet<ObjectId>,
    ) -> Result<Repaired, EngineError> {
        let mut rehearsal = Rehearsal::default();
        let notes = self.walk(snapshot, copy, &mut rehearsal)?;
        for (path, reason) in notes {
            self.note(snapshot, &path.to_absolute(), &reason);
        }
        let mut repaired = rehearsal.repaired(lost, &self.reach);
        if !self.dry_run && repaired.objects > 0 {
            let mut putting = Putting::new(Putter::new(self.access, self.session), &repaired);
            self.walk(snapshot, copy, &mut putting)?;
            repaired = putting.finish()?;
        }
        Ok(repaired)
    }

    fn walk<O: Outlet>(
        &self,
        snapshot: &Snapshot,
        copy: &Snapshot,
        outlet: &mut O,
    ) -> Result<Vec<Note>, EngineError> {
        let ours = || stored_nodes(self.access, self.session);
        let theirs = || stored_nodes(self.second, self.second_session);
        let (keys, leaf_bits) = (&self.access.keys, self.access.config.leaf_bits);
        let walk = Walk {
            ours: Cursor::new(ours(), snapshot.root),
            theirs: Cursor::new(theirs(), copy.root),
            our_lists: ours(),
            their_lists: theirs(),
            in_gap: false,
            named: Named {
                access: self.access,
                reach: &self.reach,
                chunks: ChunkSource::new(self.second, self.second_session),
                opener: ChunkSource::opener(self.second),
                outlet,
                notes: Vec::new(),
            },
        };
        walk.run(TreeBuilder::new(keys.ids().clone(), *keys.boundary_key(), leaf_bits), self.run)
    }
}

struct Walk<'a, O> {
    ours: Cursor<Nodes>,
    theirs: Cursor<Nodes>,
    our_lists: Nodes,
    their_lists: Nodes,
    /// Whether part of the own tree between the last entry and the next cannot be read.
    in_gap: bool,
    named: Named<'a, O>,
}

impl<O: Outlet> Walk<'_, O> {
    fn run(mut self, mut builder: TreeBuilder, run: &Run) -> Result<Vec<Note>, EngineError> {
        loop {
            run.check()?;
            self.find_ours()?;
            self.find_theirs()?;
            let next = match (self.ours.current(), self.theirs.current()) {
                (None, None) => break,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some((ours, _)), Some((theirs, _))) => ours.cmp(theirs),
            };
            let entry = match next {
                Ordering::Less => self.only_ours()?,
                Ordering::Equal => self.both()?,
                Ordering::Greater => self.only_theirs()?,
            };
            let Some((path, entry)) = entry else { continue };
            match builder.push(&path, &entry, &mut |node| self.named.node(node)) {
                Err(BuildError::InvalidEntry { reason }) => self.named.note(&path, reason),
                pushed => pushed?,
            }
        }
        builder.finish(&mut |node| self.named.node(node))?;
        Ok(self.named.notes)
    }

    /// Goes on to the next entry of the own tree that can be read.
    fn find_ours(&mut self) -> Result<(), EngineError> {
        while let Err(error) = self.ours.peek().map_err(EngineError::from) {
            skip_damaged(error)?;
            self.in_gap = true;
            self.ours.skip_unreadable();
        }
        Ok(())
    }

    /// The same of the copy.
    fn find_theirs(&mut self) -> Result<(), EngineError> {
        while let Err(error) = self.theirs.peek().map_err(EngineError::from) {
            let reason = format!("part of the copy's tree is damaged: {}", skip_damaged(error)?);
            self.named.note(&PathKey::root(), &reason);
            self.theirs.skip_unreadable();
        }
        Ok(())
    }

    fn only_ours(&mut self) -> Result<Option<(PathKey, Entry)>, EngineError> {
        self.in_gap = false;
        let Some((path, entry)) = self.ours.next()? else { return Ok(None) };
        if self.named.is_needed_by(&entry) {
            self.named.note(&path, "the second repository's copy does not have it");
        }
        Ok(Some((path, entry)))
    }

    fn both(&mut self) -> Result<Option<(PathKey, Entry)>, EngineError> {
        self.in_gap = false;
        let (Some((path, ours)), Some((_, theirs))) = (self.ours.next()?, self.theirs.next()?)
        else {
            return Ok(None);
        };
        let contents = |entry: &Entry| {
            let Entry { attributes, extents, content, .. } = entry;
            [Some(attributes.clone()), extents.clone(), Some(content.clone())]
        };
        for (ours, theirs) in contents(&ours).into_iter().zip(contents(&theirs)) {
            if let (Some(ours), Some(theirs)) = (ours, theirs) {
                self.content(&path, &ours, &theirs)?;
            }
        }
        Ok(Some((path, ours)))
    }

    /// An entry of the copy, if it may be one that is lost.
    fn only_theirs(&mut self) -> Result<Option<(PathKey, Entry)>, EngineError> {
        let Some((path, mut entry)) = self.theirs.next()? else { return Ok(None) };
        if !self.in_gap {
            return Ok(None);
        }
        let Entry { attributes, extents, content, .. } = &mut entry;
        for content in [Some(attributes), extents.as_mut(), Some(content)].into_iter().flatten() {
            let mut theirs = ContentReader::new(&mut self.their_lists, content);
            let Some(named) = self.named.content(&path, &mut theirs)? else { return Ok(None) };
            if !matches!(content, Content::Inline(_)) {
                *content = named;
            }
        }
        Ok(Some((path, entry)))
    }

    /// Brings up the lost chunks of a content from the same places of the copy's; all of them where its
    /// list is lost.
    fn content(
        &mut self,
        path: &PathKey,
        ours: &Content,
        theirs: &Content,
    ) -> Result<(), EngineError> {
        let Self { our_lists, their_lists, named, .. } = self;
        if !named.may_lack(ours) {
            return Ok(());
        }
        let mut our_chunks = ContentReader::new(our_lists, ours);
        let mut their_chunks = ContentReader::new(&mut *their_lists, theirs);
        loop {
            let chunk = match our_chunks.next().map_err(EngineError::from) {
                Ok(Some(chunk)) => chunk,
                Ok(None) => return Ok(()),
                Err(error) => {
                    skip_damaged(error)?;
                    break;
                }
            };
            let Some(from) = named.next_of(path, &mut their_chunks)? else {
                return Ok(());
            };
            named.lost_chunk(path, &chunk, &from)?;
        }
        drop(named.content(path, &mut ContentReader::new(their_lists, theirs))?);
        Ok(())
    }
}

/// Objects on their way from the copy, and the names that the own keys give them.
struct Named<'a, O> {
    access: &'a UnlockedRepository,
    reach: &'a Reach,
    /// The second repository's.
    chunks: ChunkSource,
    opener: Opener,
    outlet: &'a mut O,
    notes: Vec<Note>,
}

impl<O: Outlet> Named<'_, O> {
    /// Notes why a path cannot be repaired; the first reason is enough.
    fn note(&mut self, path: &PathKey, reason: &str) {
        let is_noted = self.notes.last().is_some_and(|(noted, _)| noted == path);
        if !is_noted && self.notes.len() < super::PATHS_KEPT {
            self.notes.push((path.clone(), reason.to_owned()));
        }
    }

    /// Takes a node that was built, if it is one that is lost.
    fn node(&mut self, node: BuiltNode) -> Result<(), EngineError> {
        if self.reach.lacks_node(&node.id) { self.outlet.node(node) } else { Ok(()) }
    }

    /// Whether something of a content may be lost. What a list has, only the list tells.
    fn may_lack(&self, content: &Content) -> bool {
        match content {
            Content::Inline(_) => false,
            Content::Chunks(chunks) => chunks.iter().any(|chunk| self.reach.lacks_chunk(&chunk.id)),
            Content::List { .. } => true,
        }
    }

    /// Whether something that an entry names itself is lost.
    fn is_needed_by(&self, entry: &Entry) -> bool {
        [Some(&entry.attributes), entry.extents.as_ref(), Some(&entry.content)]
            .into_iter()
            .flatten()
            .any(|content| matches!(content, Content::Chunks(_)) && self.may_lack(content))
    }

    /// The next chunk of the copy's content.
    fn next_of(
        &mut self,
        path: &PathKey,
        chunks: &mut ContentReader<&mut Nodes>,
    ) -> Result<Option<ChunkRef>, EngineError> {
        match chunks.next().map_err(EngineError::from) {
            Ok(Some(chunk)) => Ok(Some(chunk)),
            Ok(None) => {
                self.note(path, "the second repository's copy has other content there");
                Ok(None)
            }
            Err(error) => {
                let reason = format!("the copy's list of chunks: {}", skip_damaged(error)?);
                self.note(path, &reason);
                Ok(None)
            }
        }
    }

    /// Brings up a chunk of the own tree, if it is lost and that of the copy is the same.
    fn lost_chunk(
        &mut self,
        path: &PathKey,
        chunk: &ChunkRef,
        from: &ChunkRef,
    ) -> Result<(), EngineError> {
        if !self.reach.lacks_chunk(&chunk.id) || !self.outlet.wants(&chunk.id) {
            return Ok(());
        }
        let Some(bytes) = self.fetch(path, from)? else { return Ok(()) };
        if self.access.keys.ids().chunk_id(&bytes) == chunk.id {
            return self.outlet.chunk(chunk.id, &bytes);
        }
        self.note(path, "the second repository's copy has other content there");
        Ok(())
    }

    /// Names a content of the copy anew; `None` if it cannot be read.
    fn content(
        &mut self,
        path: &PathKey,
        chunks: &mut ContentReader<&mut Nodes>,
    ) -> Result<Option<Content>, EngineError> {
        let keys = &self.access.keys;
        let mut builder = ContentBuilder::new(keys.ids().clone(), *keys.boundary_key());
        loop {
            let from = match chunks.next().map_err(EngineError::from) {
                Ok(Some(from)) => from,
                Ok(None) => return Ok(Some(builder.finish(&mut |node| self.node(node))?)),
                Err(error) => {
                    let reason = format!("the copy's list of chunks: {}", skip_damaged(error)?);
                    self.note(path, &reason);
                    return Ok(None);
                }
            };
            let Some(bytes) = self.fetch(path, &from)? else { return Ok(None) };
            let id = keys.ids().chunk_id(&bytes);
            if self.reach.lacks_chunk(&id) {
                self.outlet.chunk(id, &bytes)?;
            }
            let named = ChunkRef { id, len_bytes: from.len_bytes };
            builder.push(named, &mut |node| self.node(node))?;
        }
    }

    /// A chunk of the second repository, whose id there is checked.
    fn fetch(&mut self, path: &PathKey, from: &ChunkRef) -> Result<Option<Bytes>, EngineError> {
        let got = self.chunks.get(&mut self.opener, std::slice::from_ref(from), None)?;
        match got.into_iter().next() {
            Some(Ok(bytes)) => Ok(Some(bytes)),
            Some(Err(reason)) => {
                self.note(path, &format!("in the second repository, {reason}"));
                Ok(None)
            }
            None => Ok(None),
        }
    }
}

/// Gives back what is damage, and goes on then; ends with everything else.
fn skip_damaged(error: EngineError) -> Result<EngineError, EngineError> {
    if is_damaged(&error) { Ok(error) } else { Err(error) }
}

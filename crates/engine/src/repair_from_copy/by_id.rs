//! A repository with the same keys, such as a copy of the directory: what is lost has the same id there.

use std::collections::HashSet;

use holdall_crypto::{IdKeys, OpenedBlock, OpenedObject, Opener};
use holdall_format::{Block, BlockKind, ObjectId};
use holdall_tree::NodeKind;

use super::Repairing;
use super::reach::Reach;
use super::repaired::Repaired;
use crate::error::is_damaged;
use crate::restore::ChunkSource;
use crate::storing::Putter;
use crate::{EngineError, Snapshot};

/// Copies of an object that are tried.
const COPIES_TRIED: u32 = 4;

impl Repairing<'_> {
    /// Puts again what the second repository has of `lost`, and of what that refers to.
    pub(super) fn fetch_by_id(
        &mut self,
        snapshot: &Snapshot,
        lost: HashSet<ObjectId>,
    ) -> Result<Repaired, EngineError> {
        let mut notes = Vec::new();
        let mut taking = Taking {
            ids: self.access.keys.ids(),
            reach: &self.reach,
            seen: lost.clone(),
            wanted: lost,
            putter: (!self.dry_run).then(|| Putter::new(self.access, self.session)),
            repaired: Repaired::default(),
        };
        let mut opener = ChunkSource::opener(self.second);
        while let Some(id) = taking.wanted.iter().next().copied() {
            self.run.check()?;
            match self.fetch(&mut opener, &id)? {
                Some((kind, opened)) => taking.take(kind, &opened)?,
                None => {
                    taking.wanted.remove(&id);
                    notes.push(format!("the second repository has no good copy of {id}"));
                }
            }
        }
        taking.putter.map(Putter::finish).transpose()?;
        let repaired = taking.repaired;
        notes.iter().for_each(|reason| self.note(snapshot, b"/", reason));
        Ok(repaired)
    }

    /// A block of the second repository that has an object which is what its id says.
    fn fetch(
        &self,
        opener: &mut Opener,
        id: &ObjectId,
    ) -> Result<Option<(BlockKind, OpenedBlock)>, EngineError> {
        for copy in 0..COPIES_TRIED {
            let session = &self.second_session;
            let fetched = self.second.repository.fetch_objects(session, &[*id], copy);
            let blocks = match fetched.map_err(EngineError::from) {
                Err(error) if is_damaged(&error) => continue,
                fetched => fetched?.blocks,
            };
            for bytes in blocks {
                let Ok(block) = Block::decode(bytes) else { continue };
                let kind = block.header().kind;
                let Ok(opened) = opener.open(&block, kind) else { continue };
                let ids = self.access.keys.ids();
                let is_right = |object| opened.check_id(object, ids, kind).is_ok();
                if opened.find_object(id).is_some_and(is_right) {
                    return Ok(Some((kind, opened)));
                }
            }
        }
        Ok(None)
    }
}

/// Taking what is lost out of blocks.
struct Taking<'a> {
    ids: &'a IdKeys,
    reach: &'a Reach,
    wanted: HashSet<ObjectId>,
    /// What was wanted at any time.
    seen: HashSet<ObjectId>,
    /// None in a dry run.
    putter: Option<Putter<'a>>,
    repaired: Repaired,
}

impl Taking<'_> {
    /// Takes everything that is wanted, also what only shows to be while it is taken.
    fn take(&mut self, kind: BlockKind, opened: &OpenedBlock) -> Result<(), EngineError> {
        let mut took_any = true;
        while std::mem::take(&mut took_any) {
            for object in &opened.objects {
                let is_right = || opened.check_id(object, self.ids, kind).is_ok();
                if self.wanted.contains(&object.id) && is_right() {
                    took_any = self.wanted.remove(&object.id);
                    self.put(kind, object, opened.body(object))?;
                }
            }
        }
        Ok(())
    }

    fn put(
        &mut self,
        kind: BlockKind,
        object: &OpenedObject,
        body: &[u8],
    ) -> Result<(), EngineError> {
        let (id, len_bytes) = (object.id, body.len() as u64);
        if kind != BlockKind::Nodes {
            self.putter.as_mut().map_or(Ok(()), |putter| putter.chunk(id, body))?;
            self.repaired.add_chunk(id, len_bytes);
            return Ok(());
        }
        // Which kind of node it is only matters for what it lies beside.
        let put =
            |putter: &mut Putter<'_>| putter.node(NodeKind::Leaf, id, object.refs.clone(), body);
        self.putter.as_mut().map_or(Ok(()), put)?;
        let is_new = |id: &&ObjectId| self.reach.lacks(id) && self.seen.insert(**id);
        self.wanted.extend(object.refs.iter().filter(is_new));
        self.repaired.add_node(id, object.refs.clone(), len_bytes);
        Ok(())
    }
}

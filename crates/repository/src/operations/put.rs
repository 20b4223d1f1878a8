//! Which objects are there, and storing blocks.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use bytes::Bytes;
use holdall_format::{BlockKind, MachineId, ObjectId, SessionId};
use holdall_protocol::{MAX_IDS, MAX_PUT_BYTES, RepositoryError, RequestTimes};

use crate::index::{Holder, Lookup, ObjectCopy};
use crate::opening::session::ReliedOn;
use crate::store::Store;
use crate::tails::checked_block::Checked;

/// Refuses a request with more ids than one may have.
pub(crate) fn limit_ids(ids: &[ObjectId]) -> Result<(), RepositoryError> {
    if ids.len() > MAX_IDS {
        let reason = format!("{} ids in one request, at most {MAX_IDS} are allowed", ids.len());
        return Err(RepositoryError::Refused { reason });
    }
    Ok(())
}

impl Store {
    /// Answers [`holdall_protocol::Repository::missing`] for a machine.
    pub(crate) fn missing(
        &self,
        machine: &MachineId,
        session: &SessionId,
        ids: &[ObjectId],
    ) -> Result<Vec<bool>, RepositoryError> {
        self.sessions().check(session, machine, self.clock())?;
        limit_ids(ids)?;
        let watermark = self.sessions().watermark(machine, self.clock());
        let lookup = self.lookup(ids.to_vec())?;
        let (mut packs, mut arrivals) = (BTreeSet::new(), BTreeSet::new());
        let mut is_there = |id: &ObjectId| {
            let copies = lookup.copies_of_id(id);
            let came_lately =
                |copy: &ObjectCopy| watermark.is_some_and(|start| copy.arrival >= start);
            let closed = copies.first().filter(|first| lookup.is_closed(first));
            match closed.map(|first| (first.holder, first.arrival)) {
                Some((holder @ Holder::Pack(_), _)) => drop(packs.insert(holder)),
                Some((Holder::Tail(_), arrival)) => drop(arrivals.insert(arrival)),
                None => {}
            }
            closed.is_some() || copies.iter().any(came_lately)
        };
        let missing = ids.iter().map(|id| !is_there(id)).collect();
        let packs = packs.into_iter().filter_map(|holder| lookup.state.pack_of(holder));
        let packs = packs.map(|pack| pack.name).collect();
        self.sessions().rely_on(session, ReliedOn { packs, arrivals });
        Ok(missing)
    }

    /// Answers [`holdall_protocol::Repository::put_blocks`] for a machine.
    pub(crate) fn put_blocks(
        &self,
        machine: &MachineId,
        session: &SessionId,
        blocks: &[Bytes],
    ) -> Result<RequestTimes, RepositoryError> {
        let began = Instant::now();
        self.sessions().check_backup(session, machine, self.clock())?;
        let bytes: usize = blocks.iter().map(Bytes::len).sum();
        if bytes > MAX_PUT_BYTES {
            let reason = format!("{bytes} bytes in one put, at most {MAX_PUT_BYTES} are allowed");
            return Err(RepositoryError::Refused { reason });
        }
        let checked = blocks
            .iter()
            .map(|bytes| Checked::new(bytes.clone(), &self.repository()))
            .collect::<Result<Vec<_>, _>>()?;
        let (nodes, chunks): (Vec<_>, Vec<_>) = checked.into_iter().partition(Checked::is_nodes);
        self.refuse_other_references(&nodes)?;
        let _place = self.room().take(bytes as u64, || self.quota_used_bytes())?;
        // What others put into the same repository meanwhile goes to the same disk.
        let mut disk = Duration::ZERO;
        for (is_nodes, blocks) in [(false, &chunks), (true, &nodes)] {
            if !blocks.is_empty() {
                let appending = Instant::now();
                let appended = self.appender()?.append(is_nodes, blocks);
                // Whoever took the lease over may be the reason, and is the one to name.
                appended.or_else(|error| {
                    self.room().note_want(&error);
                    self.lease().renew().and(Err(error))
                })?;
                disk += appending.elapsed();
            }
        }
        self.tend_index();
        let cpu = began.elapsed().saturating_sub(disk);
        Ok(RequestTimes {
            receive_seconds: 0.0,
            queue_seconds: 0.0,
            cpu_seconds: cpu.as_secs_f64(),
            disk_seconds: disk.as_secs_f64(),
        })
    }

    /// A node that somebody sent with other references than a commit reached, and that was refused: no honest
    /// client does that. It is known until it is forgotten, or this is opened anew.
    pub fn forged_node(&self) -> Option<ObjectId> {
        *self.forged()
    }

    /// Forgets what [`Self::forged_node`] tells.
    pub fn forget_forged_node(&self) {
        *self.forged() = None;
    }

    /// Refuses nodes that a commit reached with other references than these.
    fn refuse_other_references(&self, nodes: &[Checked]) -> Result<(), RepositoryError> {
        let entries = || nodes.iter().flat_map(|checked| &checked.block.table().entries);
        if nodes.is_empty() {
            return Ok(());
        }
        let lookup = self.lookup(entries().map(|entry| entry.id).collect())?;
        let known = self.closed_references(&lookup);
        for entry in entries() {
            if known.get(&entry.id).is_some_and(|refs| *refs != entry.refs) {
                *self.forged() = Some(entry.id);
                let reason = format!("node {} is committed with other references", entry.id);
                return Err(RepositoryError::Refused { reason });
            }
        }
        Ok(())
    }

    /// The references of those nodes of a lookup that are closed.
    fn closed_references(&self, lookup: &Lookup) -> BTreeMap<ObjectId, Vec<ObjectId>> {
        let firsts = lookup.ids.iter().enumerate().filter_map(|(question, id)| {
            let first = lookup.copies_of(question).first()?;
            let is_closed_node = lookup.kind(first) == BlockKind::Nodes && lookup.is_closed(first);
            is_closed_node.then_some((*first, *id))
        });
        let mut closed: Vec<_> = firsts.collect();
        closed.sort_unstable_by_key(|(copy, id)| (copy.holder, copy.block, *id));
        let mut references = BTreeMap::new();
        for of_block in closed.chunk_by(|(a, _), (b, _)| (a.holder, a.block) == (b.holder, b.block))
        {
            let Some((copy, _)) = of_block.first() else { continue };
            // One that cannot be read holds nobody to it, or it could never be healed.
            let Ok(table) = self.blocks().table(&lookup.state, copy.holder, copy.block) else {
                continue;
            };
            for entry in table.entries {
                if of_block.binary_search_by_key(&entry.id, |(_, id)| *id).is_ok() {
                    references.entry(entry.id).or_insert(entry.refs);
                }
            }
        }
        references
    }
}

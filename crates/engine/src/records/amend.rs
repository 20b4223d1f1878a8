//! Amending: other tags or another pin for snapshots that are committed.
//!
//! A record is never changed. An amendment is a record of its own behind the machine's head, with
//! the whole new state; [`crate::snapshots`] shows the newest one. Nothing is put for it, so it needs
//! no session to back up.

use bytes::Bytes;
use holdall_crypto::{RecordSecret, Sealer, SystemEntropy};
use holdall_format::RecordKind;
use holdall_protocol::SessionPurpose;

use crate::records::record::{ChainEnd, NewRecord, publish};
use crate::{EngineError, Snapshot, UnlockedRepository};

/// Tags are sealed without being compressed: they are few bytes.
const LEVEL: i32 = 1;

/// What a snapshot's tags and pin shall be.
#[derive(Debug, Clone)]
pub struct Amendment<'a> {
    /// The snapshot.
    pub snapshot: &'a Snapshot,
    /// All of its tags: at most 256 of 1024 bytes.
    pub tags: Vec<String>,
    /// Whether retention must keep it.
    pub pinned: bool,
}

/// Amends snapshots, one after the other. Gives the last amendment as it was stored, with its receipt.
///
/// # Errors
/// [`EngineError::Crypto`] for tags over their limits; what keeps a record from being published.
/// Those before it are amended then.
pub fn amend(
    access: &UnlockedRepository,
    amendments: &[Amendment<'_>],
) -> Result<Option<Bytes>, EngineError> {
    let grant = access.repository.open_session(&SessionPurpose::Read)?;
    let mut chain = ChainEnd { head: grant.head, sequence: grant.sequence };
    let (config, entropy) = (&access.config, Box::new(SystemEntropy));
    let keys = access.keys.sealing();
    let mut sealer = Sealer::new(keys, config.suite, LEVEL, entropy);
    let published = amendments.iter().try_fold(None, |_, amendment| {
        let new = NewRecord {
            kind: RecordKind::Amendment,
            series: amendment.snapshot.series,
            root: amendment.snapshot.root,
            secret: &RecordSecret { tags: amendment.tags.clone(), ..RecordSecret::default() },
            pinned: amendment.pinned,
            amends: Some(amendment.snapshot.id),
        };
        publish(access, &mut sealer, &grant.session, &mut chain, &new).map(Some)
    });
    let closed = access.repository.close_session(&grant.session);
    let published = published?;
    closed?;
    Ok(published)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::snapshots::snapshots;
    use crate::test_world::World;

    fn backed_up() -> (World, tempfile::TempDir) {
        let (world, source) = (World::new(), tempfile::tempdir().unwrap());
        world.back_up(source.path());
        world.back_up(source.path());
        (world, source)
    }

    #[test]
    fn the_newest_amendment_of_each_snapshot_counts() {
        let (world, _source) = backed_up();
        let before = world.snapshots();
        let amend_first = |tags: &[&str], pinned| {
            let tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
            amend(&world.access, &[Amendment { snapshot: &before[0], tags, pinned }]).unwrap();
        };
        amend_first(&["work", "old"], true);
        amend_first(&["kept"], true);
        let after = world.snapshots();
        assert_eq!(after.len(), 2);
        assert_eq!((after[0].id, &after[0].secret.tags[..]), (before[0].id, &["kept".into()][..]));
        assert!(after[0].pinned && !after[1].pinned);
        assert_eq!(after[0].secret.paths, before[0].secret.paths);
        assert_eq!(after[1].secret, before[1].secret);
        amend_first(&[], false);
        let last = world.snapshots();
        assert!(last[0].secret.tags.is_empty() && !last[0].pinned);
    }

    #[test]
    fn an_amendment_with_another_root_is_damage() {
        let (world, _source) = backed_up();
        let listed = world.snapshots();
        let forged = Snapshot { root: world.snapshot(&[]).root, ..listed[0].clone() };
        let amendment = Amendment { snapshot: &forged, tags: Vec::new(), pinned: true };
        // This repository checks nothing.
        amend(&world.access, &[amendment]).unwrap();
        let told = snapshots(&world.access).unwrap();
        assert_eq!(told.snapshots.len(), 2);
        assert!(matches!(&told.damaged[..], [one] if one.position == 3), "{:?}", told.damaged);
    }

    #[test]
    fn an_amendment_of_a_checkpoint_is_damage() {
        let (world, _source) = backed_up();
        let access = &world.access;
        let grant = access.repository.open_session(&SessionPurpose::Read).unwrap();
        let mut chain = ChainEnd { head: grant.head, sequence: grant.sequence };
        let (config, entropy) = (&access.config, Box::new(SystemEntropy));
        let keys = access.keys.sealing();
        let mut sealer = Sealer::new(keys, config.suite, LEVEL, entropy);
        let Snapshot { series, root, .. } = world.snapshots()[0];
        let (secret, kind) = (&RecordSecret::default(), RecordKind::Checkpoint);
        let new = NewRecord { kind, series, root, secret, pinned: false, amends: None };
        publish(access, &mut sealer, &grant.session, &mut chain, &new).unwrap();
        let checkpoint = snapshots(access).unwrap().checkpoints.pop().unwrap();
        assert!(checkpoint.checkpoint);
        amend(access, &[Amendment { snapshot: &checkpoint, tags: Vec::new(), pinned: true }])
            .unwrap();
        let told = snapshots(access).unwrap().damaged;
        assert!(matches!(&told[..], [one] if one.position == 4), "{told:?}");
    }

    #[test]
    fn an_amendment_of_a_snapshot_that_is_gone_says_nothing() {
        let (world, _source) = backed_up();
        let gone =
            Snapshot { id: holdall_format::RecordHash::from_bytes([9; 32]), ..world.snapshot(&[]) };
        amend(&world.access, &[Amendment { snapshot: &gone, tags: Vec::new(), pinned: true }])
            .unwrap();
        assert!(world.snapshots().iter().all(|one| !one.pinned));
    }

    #[test]
    fn a_record_goes_behind_one_that_came_in_between() {
        let (world, source) = backed_up();
        let listed = world.snapshots();
        world.repository.move_head_once();
        let amendment = Amendment { snapshot: &listed[0], tags: Vec::new(), pinned: true };
        amend(&world.access, &[amendment]).unwrap();
        assert!(world.snapshots()[0].pinned);
        world.repository.move_head_once();
        world.back_up(source.path());
    }
}

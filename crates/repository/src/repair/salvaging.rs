//! Taking what is sound out of a pack that cannot be restored.
//!
//! What stays behind counts as missing from then on, which is what lets a backup send it again: an id
//! whose only copy is damaged must not be answered with "have".

use std::collections::BTreeSet;

use holdall_format::{BlockName, PackName};
use holdall_protocol::{Repair, RepositoryError};

use crate::append::appender::Unreadable;
use crate::prune::move_blocks::IfDamaged;
use crate::scrub::is_sound_pack;
use crate::state_files::condemned::{self, Condemned};
use crate::storage::layout::TailName;
use crate::storage::retry::retry_read;
use crate::store::Store;

impl Store {
    /// Stores what is sound of a pack elsewhere and puts its file aside; `None` if there is nothing
    /// left to be done for it.
    pub(super) fn salvage_pack(
        &self,
        pack: &PackName,
        dry_run: bool,
        quarantined: &mut Vec<String>,
    ) -> Result<Option<Repair>, RepositoryError> {
        let path = self.layout().pack(pack);
        let state = self.index().state();
        let known = state.packs.iter().find(|known| known.name == *pack);
        let Some(file) = retry_read(|| self.packs().get(pack))? else {
            return self.put_aside(pack, dry_run, quarantined);
        };
        let Some(known) = known else {
            // One that could not be read when the repository was opened, and can be now, is there at the
            // next opening.
            return match is_sound_pack(&path, path.open(), pack, &self.repository())? {
                true => Ok(None),
                false => self.put_aside(pack, dry_run, quarantined),
            };
        };
        let places = file.blocks().iter();
        let salvaged = |kept_blocks: u64| {
            let lost_blocks = file.blocks().len() as u64 - kept_blocks;
            Some(Repair::Salvaged { pack: *pack, kept_blocks, lost_blocks })
        };
        if dry_run {
            let mut sound = 0;
            for place in places {
                sound += u64::from(retry_read(|| self.read_sound(&file, place))?.is_some());
            }
            return Ok(salvaged(sound));
        }
        let _commit = self.lock_commit();
        let moved = self.move_blocks(known.kind, &file, places, IfDamaged::LeaveOut)?;
        self.lease().renew()?;
        let aside = self.quarantine(pack)?;
        path.keep_as(&aside)?;
        quarantined.push(aside.display().to_string());
        quarantined.extend(self.put_parity_aside(pack, &aside)?);
        if moved.blocks < file.blocks().len() as u64 {
            // What reached the lost blocks is no longer closed.
            self.index().forget_closed();
            self.appender()?.invalidate_saved_indexes()?;
        }
        let mark = Condemned { since_ns: self.now_ns(), log_position: self.log().next() };
        condemned::write(self.layout(), pack, &mark)?;
        self.index().condemn(*pack);
        Ok(salvaged(moved.blocks))
    }

    /// A pack of which not even the footer can be read: its file is put aside, so that it is in
    /// nobody's way.
    fn put_aside(
        &self,
        pack: &PackName,
        dry_run: bool,
        quarantined: &mut Vec<String>,
    ) -> Result<Option<Repair>, RepositoryError> {
        let path = self.layout().pack(pack);
        if !path.exists() {
            return Ok(None);
        }
        if !dry_run {
            let aside = self.quarantine(pack)?;
            self.index().forget_closed();
            self.appender()?.invalidate_saved_indexes()?;
            path.rename(&aside)?;
            self.packs().forget(|name| name == pack);
            self.forget_unreadable(path.path());
            quarantined.push(aside.display().to_string());
        }
        // How many blocks there were, only the footer knew.
        Ok(Some(Repair::Salvaged { pack: *pack, kept_blocks: 0, lost_blocks: 0 }))
    }

    /// Stores what is sound of the blocks anew that are in no pack yet; `None` if `lost` are in none
    /// of the tails.
    pub(super) fn salvage_tail(
        &self,
        lost: &BTreeSet<BlockName>,
        dry_run: bool,
        quarantined: &mut Vec<String>,
    ) -> Result<Option<Repair>, RepositoryError> {
        let appender = self.appender()?;
        // A tail that is full becomes a pack, whatever is in it.
        appender.close_full();
        let (mut kept_blocks, mut lost_blocks) = (0, 0);
        for tail in &self.index().state().tails {
            let blocks = tail.all_clear();
            let damaged = blocks.iter().filter(|block| lost.contains(&block.name)).count() as u64;
            if damaged == 0 {
                continue;
            }
            kept_blocks += blocks.len() as u64 - damaged;
            lost_blocks += damaged;
            if !dry_run {
                self.lease().renew()?;
                appender.renew(tail, Unreadable::IsLost)?;
                let payload = self.layout().payload(tail.name()).display().to_string();
                quarantined.push(format!("{payload}.damaged"));
            }
        }
        Ok((lost_blocks > 0).then_some(Repair::Tail { kept_blocks, lost_blocks }))
    }

    /// Puts the tails aside whose journals are not what was written: nothing is let go while they are there, since
    /// nobody knows what they hold. What the disk did not give stays, since it may the next time. `None` if there is
    /// none.
    pub(super) fn put_unread_tails_aside(
        &self,
        dry_run: bool,
        quarantined: &mut Vec<String>,
    ) -> Result<Option<Repair>, RepositoryError> {
        let appender = self.appender()?;
        let unreadable_files = self.unreadable_files();
        let of_tails = unreadable_files
            .iter()
            .filter(|(path, _)| path.starts_with(self.layout().tails().path()));
        let names =
            of_tails.filter_map(|(path, _)| TailName::of_journal(path.file_name()?.to_str()?));
        let state = self.index().state();
        let is_unread = |name: &TailName| {
            self.layout().journal(*name).exists()
                && !self.is_unopened(*name)
                && state.tails.iter().all(|tail| tail.name() != *name)
        };
        let unread: Vec<TailName> = names.filter(is_unread).collect();
        if !dry_run {
            for name in &unread {
                let files = [self.layout().journal(*name), self.layout().payload(*name)];
                let there: Vec<_> = files.iter().filter(|file| file.exists()).collect();
                appender.put_lost_aside(*name)?;
                there.iter().for_each(|file| self.forget_unreadable(file.path()));
                quarantined.extend(there.iter().map(|file| format!("{}.damaged", file.display())));
            }
        }
        Ok((!unread.is_empty()).then_some(Repair::Tail { kept_blocks: 0, lost_blocks: 0 }))
    }
}

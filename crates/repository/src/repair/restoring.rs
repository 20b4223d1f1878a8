//! Restoring a pack from its parity.

use std::fs;

use holdall_format::PackName;
use holdall_protocol::{Repair, RepositoryError};

use crate::parity::PackParity;
use crate::publish::{failed, make_dir, sync_parent};
use crate::reread::of_the_file;
use crate::scrub::is_sound_pack;
use crate::store::Store;

use super::keeping::keep_as;

impl Store {
    /// Makes a pack what it was; `None` if its parity does not suffice or there is none.
    pub(super) fn restore_pack(
        &self,
        pack: &PackName,
        dry_run: bool,
        quarantined: &mut Vec<String>,
    ) -> Result<Option<Repair>, RepositoryError> {
        let path = self.layout().pack(pack);
        // Parity that can not be read is as good as none.
        let opened = of_the_file(PackParity::open(self.layout(), pack))?;
        let Ok(Some(parity)) = opened else { return Ok(None) };
        let soundness = parity.compare(&path)?;
        if !soundness.suffices() {
            return Ok(None);
        }
        let repair = Repair::Restored { pack: *pack, pieces: soundness.damaged_data() as u64 };
        let restored = parity.restore(&path, &soundness, &self.layout().tmp())?;
        if !is_sound_pack(&restored, pack, &self.repository())? {
            // It was made of something that was damaged already.
            fs::remove_file(&restored).map_err(failed("removing", &restored))?;
            return Ok(None);
        }
        if dry_run {
            fs::remove_file(&restored).map_err(failed("removing", &restored))?;
            return Ok(Some(repair));
        }
        self.lease().renew()?;
        path.parent().map_or(Ok(()), make_dir)?;
        if path.exists() {
            let aside = self.quarantine(pack)?;
            keep_as(&path, &aside)?;
            quarantined.push(aside.display().to_string());
        }
        fs::rename(&restored, &path).map_err(failed("renaming to", &path))?;
        sync_parent(&path)?;
        self.packs().forget(|name| name == pack);
        self.no_longer_strange(&path);
        Ok(Some(repair))
    }
}

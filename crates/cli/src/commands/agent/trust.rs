//! Who else than root could change what root runs: hooks and commands of a `config.toml` that other users may write.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use holdall_sys::users;

use crate::config::{FILE, Set};

/// Permission of all but the owner to write. A group is one of root's alone if its number is 0.
const OTHERS_WRITE: u32 = 0o002;
const GROUP_WRITES: u32 = 0o020;

/// Why what a set has run is not root's alone to say; `None` for other users, and for a set that runs nothing.
pub(super) fn doubt(set: &Set, config: &Path) -> Option<String> {
    let hooks = [&set.hooks.before, &set.hooks.after, &set.hooks.failed, &set.hooks.finally];
    let runs_something = !set.command.is_empty() || hooks.into_iter().any(Option::is_some);
    if users::effective_uid() != 0 || !runs_something {
        return None;
    }
    [&config.join(FILE), config].into_iter().find_map(writable_by_others)
}

fn writable_by_others(path: &Path) -> Option<String> {
    let about = fs::metadata(path).ok()?;
    let by_group = about.mode() & GROUP_WRITES != 0 && about.gid() != 0;
    let path = path.display();
    if about.uid() != 0 {
        let owner = about.uid();
        return Some(format!(
            "{path} belongs to user {owner}, who can have root run anything by it"
        ));
    }
    (by_group || about.mode() & OTHERS_WRITE != 0).then(|| {
        format!("others than root can write {path}, and have root run anything by it: `chmod go-w`")
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, chown};

    use super::*;

    #[test]
    fn root_is_told_who_else_may_write_what_it_runs() {
        if users::effective_uid() != 0 {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(FILE);
        fs::write(&file, "").unwrap();
        let [quiet, runs] = ["paths = [\"/\"]", "hooks.before = \"true\""]
            .map(|text| toml::from_str::<Set>(text).unwrap());
        assert_eq!(doubt(&runs, folder.path()), None);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o646)).unwrap();
        assert!(doubt(&runs, folder.path()).unwrap().contains("chmod go-w"));
        assert_eq!(doubt(&quiet, folder.path()), None);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        chown(folder.path(), Some(1), None).unwrap();
        assert!(doubt(&runs, folder.path()).unwrap().contains("belongs to user 1"));
    }
}

//! Names of users and groups, from `/etc/passwd` and `/etc/group`.
//!
//! Names that only a directory service knows (LDAP, `systemd-homed`) are not found: asking the name
//! service switch needs the C library's plugins. Ids are always recorded beside names.

use std::collections::HashMap;
use std::io;
use std::path::Path;

/// The most that is read of either file, in bytes.
const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;

/// The computer's users and groups at one moment.
#[derive(Debug, Clone, Default)]
pub struct Users {
    users: Names,
    groups: Names,
}

/// Names and ids of one kind; where one appears twice, the first counts, as in the C library.
#[derive(Debug, Clone, Default)]
struct Names {
    by_id: HashMap<u32, Box<[u8]>>,
    by_name: HashMap<Box<[u8]>, u32>,
}

impl Users {
    /// Reads both files; one that is missing has no names.
    ///
    /// # Errors
    ///
    /// What the system says of one of them, other than that it is missing.
    pub fn load() -> io::Result<Self> {
        Self::load_from(Path::new("/etc/passwd"), Path::new("/etc/group"))
    }

    fn load_from(passwd: &Path, group: &Path) -> io::Result<Self> {
        let users = Names::parse(&read_bounded(passwd)?);
        let groups = Names::parse(&read_bounded(group)?);
        Ok(Self { users, groups })
    }

    /// All names of ids, in one order: equal for tables that name every id alike.
    #[must_use]
    pub fn canonical(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for names in [&self.users, &self.groups] {
            let mut names: Vec<_> = names.by_id.iter().collect();
            names.sort_unstable();
            bytes.extend_from_slice(&(names.len() as u64).to_le_bytes());
            for (id, name) in names {
                bytes.extend_from_slice(&id.to_le_bytes());
                bytes.extend_from_slice(&(name.len() as u64).to_le_bytes());
                bytes.extend_from_slice(name);
            }
        }
        bytes
    }

    /// The name of a user id.
    #[must_use]
    pub fn user_name(&self, uid: u32) -> Option<&[u8]> {
        self.users.by_id.get(&uid).map(|name| &**name)
    }

    /// The name of a group id.
    #[must_use]
    pub fn group_name(&self, gid: u32) -> Option<&[u8]> {
        self.groups.by_id.get(&gid).map(|name| &**name)
    }

    /// The id of a user.
    #[must_use]
    pub fn uid_of(&self, name: &[u8]) -> Option<u32> {
        self.users.by_name.get(name).copied()
    }

    /// The id of a group.
    #[must_use]
    pub fn gid_of(&self, name: &[u8]) -> Option<u32> {
        self.groups.by_name.get(name).copied()
    }
}

impl Names {
    /// Reads lines of `name:password:id:...`, as both files have them; others are skipped.
    fn parse(text: &[u8]) -> Self {
        let mut names = Self::default();
        for line in text.split(|&byte| byte == b'\n') {
            let mut fields = line.split(|&byte| byte == b':');
            let (Some(name), Some(id)) = (fields.next(), fields.nth(1)) else { continue };
            let id = std::str::from_utf8(id).ok().and_then(|id| id.parse().ok());
            let (false, Some(id)) = (name.is_empty() || name.starts_with(b"#"), id) else {
                continue;
            };
            names.by_id.entry(id).or_insert_with(|| name.into());
            names.by_name.entry(name.into()).or_insert(id);
        }
        names
    }
}

/// The user id that this process acts with; 0 is root.
#[must_use]
pub fn effective_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// The group id that this process acts with.
#[must_use]
pub fn effective_gid() -> u32 {
    rustix::process::getegid().as_raw()
}

/// Makes this thread act as another user for good, in no other group than that one; threads that it
/// starts do so too, and all others go on as they are.
///
/// # Errors
///
/// What the system says; only root may do it.
pub fn become_user(uid: u32, gid: u32) -> io::Result<()> {
    use rustix::process::{Gid, Uid};
    use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};
    let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
    set_thread_groups(&[])?;
    set_thread_res_gid(gid, gid, gid)?;
    Ok(set_thread_res_uid(uid, uid, uid)?)
}

fn read_bounded(path: &Path) -> io::Result<Vec<u8>> {
    use std::io::Read;
    let mut text = Vec::new();
    let read =
        std::fs::File::open(path).and_then(|file| file.take(MAX_FILE_BYTES).read_to_end(&mut text));
    match read {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_first_of_two_lines_with_one_id_or_name_counts() {
        let text = b"root:x:0:0:r:/root:/bin/sh\ntoor:x:0:0::/:\nann:x:1000:\nann:x:1001:\n\
            #off:x:7:\nbroken:x\n:x:8:\nb\xffb:x:9:\n";
        let names = Names::parse(text);
        assert_eq!(names.by_id.get(&0).map(|name| &**name), Some(b"root".as_slice()));
        assert_eq!(names.by_name.get(b"toor".as_slice()), Some(&0));
        assert_eq!(names.by_name.get(b"ann".as_slice()), Some(&1000));
        assert_eq!(names.by_id.get(&9).map(|name| &**name), Some(b"b\xffb".as_slice()));
        assert!(!names.by_id.contains_key(&7) && !names.by_id.contains_key(&8));
    }

    #[test]
    fn tables_are_alike_only_if_every_id_has_the_same_name() {
        let table = |users: &str, groups: &str| {
            let [users, groups] = [users, groups].map(|text| Names::parse(text.as_bytes()));
            Users { users, groups }.canonical()
        };
        let one = table("ann:x:7:\nbob:x:8:\n", "staff:x:9:\n");
        assert_eq!(one, table("bob:x:8:\nann:x:7::/home/ann:\n", "staff:x:9:ann\n"));
        for (users, groups) in [
            ("anna:x:7:\nbob:x:8:\n", "staff:x:9:\n"),
            ("ann:x:7:\nbob:x:8:\n", "team:x:9:\n"),
            ("ann:x:7:\n", "bob:x:8:\nstaff:x:9:\n"),
        ] {
            assert_ne!(one, table(users, groups), "{users}{groups}");
        }
    }

    #[test]
    fn files_that_are_missing_have_no_names() {
        let nowhere = Path::new("/proc/self/no-such-file");
        let users = Users::load_from(nowhere, nowhere).expect("missing files are no error");
        assert_eq!(users.user_name(0), None);
    }

    #[test]
    fn this_computer_knows_root() {
        let users = Users::load().expect("the files can be read");
        assert_eq!(users.uid_of(b"root"), Some(0));
        assert_eq!(users.user_name(0), Some(b"root".as_slice()));
        assert_eq!(users.gid_of(users.group_name(0).expect("group 0 has a name")), Some(0));
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_fail(text in proptest::collection::vec(any::<u8>(), 0..300)) {
            let names = Names::parse(&text);
            prop_assert!(names.by_name.len() <= text.len());
        }
    }
}

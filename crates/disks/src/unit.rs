//! The unit by which systemd mounts a disk whenever it is there (systemd.mount(5)).

/// By this a unit of ours is known again.
pub(crate) const MARK: &str = "# Written by `holdall disk prepare`.";

/// How a disk is mounted that has nothing but what a server keeps.
pub(crate) const OPTIONS: &str = "noatime,nodev,nosuid,noexec";

/// A unit that mounts a file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit {
    /// Its name, such as `srv-backup.mount`: systemd asks for one that follows from the place.
    pub name: String,
    /// What is in it.
    pub text: String,
}

impl Unit {
    /// The one that mounts the file system of that number, which is called `label`, at `point`.
    ///
    /// It is started with the disk and not with the system, so that a disk that is missing keeps nothing from starting.
    #[must_use]
    pub fn new(label: &str, uuid: &str, kind: &str, point: &str) -> Self {
        let device = format!("/dev/disk/by-uuid/{uuid}");
        let started_with = format!("{}.device", escaped(&device));
        let text = format!(
            "{MARK}\n\
             [Unit]\n\
             Description=The disk {label}\n\
             \n\
             [Mount]\n\
             What={device}\n\
             Where={point}\n\
             Type={kind}\n\
             Options=nofail,{OPTIONS}\n\
             \n\
             [Install]\n\
             WantedBy={started_with}\n"
        );
        Self { name: format!("{}.mount", escaped(point)), text }
    }
}

/// A path as a part of a unit's name: `/` becomes `-`, and what is neither a letter, a digit, `:`, `_` nor `.` a number
/// (systemd.unit(5), "String escaping for inclusion in unit names").
fn escaped(path: &str) -> String {
    let path = path.trim_matches('/');
    let mut name = String::new();
    for (at, byte) in path.bytes().enumerate() {
        match byte {
            b'/' => name.push('-'),
            b'.' if at == 0 => name.push_str("\\x2e"),
            b':' | b'_' | b'.' => name.push(char::from(byte)),
            byte if byte.is_ascii_alphanumeric() => name.push(char::from(byte)),
            byte => name.push_str(&format!("\\x{byte:02x}")),
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use holdall_testkit::is_there;

    use super::*;

    #[test]
    fn a_path_is_escaped_as_systemd_does_it() {
        let paths =
            ["/srv/backup", "/srv/my-disk_1.a", "/.hidden/x", "/dev/disk/by-uuid/a-b", "/a b/ä"];
        let Ok(output) = Command::new("systemd-escape").arg("--path").args(paths).output() else {
            let _ = is_there("systemd-escape (systemd)", false);
            return;
        };
        let theirs = String::from_utf8(output.stdout).unwrap();
        let ours = paths.map(escaped).join(" ");
        assert_eq!(theirs.trim(), ours);
    }
}

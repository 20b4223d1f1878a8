//! The units by which systemd runs the agent. They are those of `packaging/systemd`, for the program's own place.

use std::path::{Path, PathBuf};

/// What the agent's unit is called.
pub const UNIT: &str = "holdall-agent.service";
/// The timers whose work the agent does.
pub const REPLACED_TIMERS: [&str; 2] = ["holdall-backup.timer", "holdall-overdue.timer"];

const SYSTEM: &str = include_str!("../../../packaging/systemd/holdall-agent.service");
const USER: &str = include_str!("../../../packaging/systemd/user/holdall-agent.service");
/// Where `packaging/install` puts the program.
const PROGRAM: &str = "/usr/local/bin/holdall";

/// What of this computer the unit names.
#[derive(Debug, Clone, Default)]
pub struct Place {
    /// The program.
    pub program: PathBuf,
    /// Variables that name folders of holdall, with these.
    pub variables: Vec<(&'static str, PathBuf)>,
    /// Folders that the agent of the system may write to, once they are there. A user's agent writes what the user may.
    pub writable: Vec<PathBuf>,
}

/// The unit of a user's own manager.
#[must_use]
pub fn user_unit(place: &Place) -> String {
    unit(USER, place)
}

/// The unit of the system's manager.
#[must_use]
pub fn system_unit(place: &Place) -> String {
    unit(SYSTEM, place)
}

fn unit(shipped: &str, place: &Place) -> String {
    let mut unit = String::new();
    for line in shipped.lines() {
        unit += &match line.split_once(PROGRAM) {
            Some((key, rest)) => format!("{key}{}{rest}\n", word(&place.program)),
            None => format!("{line}\n"),
        };
        if line == "[Service]" {
            let named = |(name, folder): &(&str, PathBuf)| {
                format!(
                    "Environment={}\n",
                    word(&PathBuf::from(format!("{name}={}", folder.display())))
                )
            };
            unit.extend(place.variables.iter().map(named));
        }
        if line.starts_with("ReadWritePaths=") {
            let writable = |folder: &PathBuf| format!("ReadWritePaths=-{}\n", word(folder));
            unit.extend(place.writable.iter().map(writable));
        }
    }
    unit
}

/// A path as a word of a unit (systemd.syntax(7)): `%` begins a specifier, and `$` a variable.
fn word(path: &Path) -> String {
    let escaped = path.display().to_string().replace('%', "%%").replace('$', "$$");
    match escaped.contains([' ', '\'', '"', '\\']) {
        true => format!("\"{}\"", escaped.replace('\\', "\\\\").replace('"', "\\\"")),
        false => escaped,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_names_the_program_and_the_folders_whatever_they_are_called() {
        let place = Place {
            program: "/opt/a b/100%/holdall".into(),
            variables: vec![("HOLDALL_CONFIG_DIR", "/my config".into())],
            writable: vec!["/mnt/x".into()],
        };
        let unit = system_unit(&place);
        assert!(unit.contains("ExecStart=\"/opt/a b/100%%/holdall\" agent\n"), "{unit}");
        assert!(unit.contains("\nReadWritePaths=-/mnt/x\n") && !unit.contains(PROGRAM), "{unit}");
        assert!(unit.contains("\nEnvironment=\"HOLDALL_CONFIG_DIR=/my config\"\n"), "{unit}");
        let shipped = Place { program: PROGRAM.into(), ..Place::default() };
        assert_eq!([user_unit(&shipped), system_unit(&shipped)], [USER, SYSTEM]);
    }
}

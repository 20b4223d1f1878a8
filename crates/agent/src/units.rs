//! The units by which systemd runs the agent. They are those of `packaging/systemd`, for the program's own place.

use std::fmt::Write;
use std::path::{Path, PathBuf};

/// What the agent's unit is called.
pub const UNIT: &str = "holdall-agent.service";
/// The timers whose work the agent does.
pub const REPLACED_TIMERS: [&str; 2] = ["holdall-backup.timer", "holdall-overdue.timer"];

const SYSTEM: &str = include_str!("../../../packaging/systemd/holdall-agent.service");
const USER: &str = include_str!("../../../packaging/systemd/user/holdall-agent.service");
/// Where `packaging/install` puts the program.
const PROGRAM: &str = "/usr/local/bin/holdall";

/// The unit of a user's own manager.
#[must_use]
pub fn user_unit(program: &Path) -> String {
    with_program(USER, program)
}

/// The unit of the system's manager, which lets the agent write to these folders, too, once they are there.
#[must_use]
pub fn system_unit(program: &Path, repositories: &[PathBuf]) -> String {
    let mut unit = String::new();
    for line in with_program(SYSTEM, program).lines() {
        // Writing to a string does not fail.
        let _ = writeln!(unit, "{line}");
        if line.starts_with("ReadWritePaths=") {
            for folder in repositories {
                let _ = writeln!(unit, "ReadWritePaths=-{}", word(folder));
            }
        }
    }
    unit
}

fn with_program(unit: &str, program: &Path) -> String {
    match program == Path::new(PROGRAM) {
        true => unit.to_owned(),
        false => unit.replace(PROGRAM, &word(program)),
    }
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
    fn a_unit_names_the_program_and_the_repositories_whatever_they_are_called() {
        let unit = system_unit(Path::new("/opt/a b/100%/holdall"), &[PathBuf::from("/mnt/x")]);
        assert!(unit.contains("ExecStart=\"/opt/a b/100%%/holdall\" agent\n"), "{unit}");
        assert!(unit.contains("\nReadWritePaths=-/mnt/x\n") && !unit.contains(PROGRAM), "{unit}");
        assert_eq!(user_unit(Path::new(PROGRAM)), USER);
        assert_eq!(system_unit(Path::new(PROGRAM), &[]), SYSTEM);
    }
}

//! What drives the browser in tests of pages: packages of npm, as their lock file names them.
//!
//! They go into `target/tools/browser`, and their scripts do not run. The browser itself is the system's.

use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

use crate::root;

/// The folder that lists them.
pub(crate) const LISTED: &str = "crates/cli/tests/browser";
const LOCK: &str = "package-lock.json";
const FILES: [&str; 2] = ["package.json", LOCK];

/// Installs them where the lock file is another than that of the last time; says whether they are there.
pub(crate) fn ensure() -> bool {
    ensure_by(&root().join(LISTED), &root().join("target/tools/browser"), install)
}

/// The same by `install`, which fills a folder that has the `FILES`.
fn ensure_by(listed: &Path, folder: &Path, install: impl Fn(&Path) -> io::Result<bool>) -> bool {
    let done = folder.join("node_modules").join(LOCK);
    let is_done = || Ok::<_, io::Error>(fs::read(listed.join(LOCK))? == fs::read(&done)?);
    if is_done().unwrap_or(false) {
        return true;
    }
    let renew = || {
        fs::create_dir_all(folder)?;
        for file in FILES {
            fs::copy(listed.join(file), folder.join(file))?;
        }
        let is_installed = install(folder)?;
        if is_installed {
            fs::copy(listed.join(LOCK), &done)?;
        }
        Ok::<_, io::Error>(is_installed)
    };
    renew().unwrap_or(false)
}

fn install(folder: &Path) -> io::Result<bool> {
    let mut npm = Command::new("npm");
    npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]).current_dir(folder);
    println!("{npm:?}");
    Ok(npm.status()?.success())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn packages_are_installed_again_when_their_lock_file_changed_and_after_a_failure() {
        let place = std::env::temp_dir().join(format!("holdall-xtask-{}", std::process::id()));
        let (listed, folder) = (place.join("listed"), place.join("folder"));
        fs::create_dir_all(&listed).unwrap();
        let lock =
            |text: &str| FILES.iter().for_each(|file| fs::write(listed.join(file), text).unwrap());
        let times = Cell::new(0);
        let ensure = |works: bool| {
            ensure_by(&listed, &folder, |folder| {
                times.set(times.get() + 1);
                fs::create_dir_all(folder.join("node_modules"))?;
                Ok(works)
            })
        };
        lock("1");
        assert!(!ensure(false));
        assert!(ensure(true) && ensure(true));
        assert_eq!(times.get(), 2);
        lock("2");
        assert!(ensure(true));
        assert_eq!(times.get(), 3);
        fs::remove_dir_all(place).unwrap();
    }
}

//! Packages of others that tests call, as their lock files name them. They go into `target/tools`.

use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

use crate::root;

/// Packages of one kind, for one purpose.
pub(crate) struct Packages {
    /// The folder that lists them.
    listed: &'static str,
    /// The lock file in it, and what else is needed beside it.
    files: &'static [&'static str],
    /// Where they go.
    folder: &'static str,
    /// What is in that folder once they are installed.
    made: &'static str,
    /// Installs what the files list into the folder that it is called in.
    install: &'static [&'static str],
}

/// What drives the browser in tests of pages; scripts of packages do not run. The browser itself is the system's.
const BROWSER: Packages = Packages {
    listed: "crates/cli/tests/browser",
    files: &["package-lock.json", "package.json"],
    folder: "target/tools/browser",
    made: "node_modules",
    install: &["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"],
};
/// What asks a server's API for all that its document allows, and for what it does not.
const CONTRACT: Packages = Packages {
    listed: "crates/cli/tests/contract",
    files: &["requirements.txt"],
    folder: "target/tools/contract",
    made: "lib",
    install: &[
        "/usr/bin/python3",
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--root-user-action=ignore",
        "--no-deps",
        "--upgrade",
        "--target",
        "lib",
        "-r",
        "requirements.txt",
    ],
};

/// Installs all of them where a lock file is another than that of the last time; says how to get what is not there.
pub(crate) fn ensure() -> Vec<String> {
    let missing =
        [BROWSER, CONTRACT].into_iter().filter(|packages| !packages.ensure_below(&root(), run));
    missing
        .map(|one| format!("`{}` with what {} lists", one.install.join(" "), one.listed))
        .collect()
}

impl Packages {
    /// Installs them below `root` by `install`; says whether they are there.
    fn ensure_below(
        &self,
        root: &Path,
        install: impl Fn(&Self, &Path) -> io::Result<bool>,
    ) -> bool {
        let (listed, folder) = (root.join(self.listed), root.join(self.folder));
        let [lock, ..] = self.files else { return false };
        let done = folder.join(self.made).join(lock);
        let lock = listed.join(lock);
        let is_done = || Ok::<_, io::Error>(fs::read(&lock)? == fs::read(&done)?);
        if is_done().unwrap_or(false) {
            return true;
        }
        let renew = || {
            fs::create_dir_all(&folder)?;
            for file in self.files {
                fs::copy(listed.join(file), folder.join(file))?;
            }
            let is_installed = install(self, &folder)?;
            if is_installed {
                fs::copy(&lock, &done)?;
            }
            Ok::<_, io::Error>(is_installed)
        };
        renew().unwrap_or(false)
    }
}

fn run(packages: &Packages, folder: &Path) -> io::Result<bool> {
    let [program, args @ ..] = packages.install else { return Ok(false) };
    let mut command = Command::new(program);
    command.args(args).current_dir(folder);
    println!("{command:?}");
    Ok(command.status()?.success())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn packages_are_installed_again_when_their_lock_file_changed_and_after_a_failure() {
        let place = std::env::temp_dir().join(format!("holdall-xtask-{}", std::process::id()));
        let listed = place.join(BROWSER.listed);
        fs::create_dir_all(&listed).unwrap();
        let lock = |text: &str| {
            BROWSER.files.iter().for_each(|file| fs::write(listed.join(file), text).unwrap());
        };
        let times = Cell::new(0);
        let ensure = |works: bool| {
            BROWSER.ensure_below(&place, |packages, folder| {
                times.set(times.get() + 1);
                fs::create_dir_all(folder.join(packages.made))?;
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

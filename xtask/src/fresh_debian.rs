//! A fresh Debian in a folder, in which tests install the package: `target/tools/debian`, made by debootstrap from where this
//! computer gets its own packages.

use std::fs;
use std::process::Command;

use crate::root;

const RELEASE: &str = "bookworm";
/// What the package recommends and the smallest system lacks.
const INCLUDED: &str = "--include=adduser";

/// Makes it where it is missing; says whether it is there.
pub(crate) fn ensure() -> bool {
    let folder = root().join("target/tools/debian");
    let made = folder.join("made");
    if made.is_file() {
        return true;
    }
    let Some(site) = site() else { return false };
    let _ = fs::remove_dir_all(&folder);
    let mut make = Command::new("debootstrap");
    make.args(["--variant=minbase", INCLUDED, RELEASE]).arg(folder.join("root")).arg(site);
    println!("{make:?}");
    // It tells every package; why it failed is in its own log.
    let is_made = fs::create_dir_all(&folder).is_ok()
        && make.stdout(std::process::Stdio::null()).status().is_ok_and(|status| status.success());
    is_made && fs::write(made, RELEASE).is_ok()
}

/// Where this computer gets packages of that release.
fn site() -> Option<String> {
    let format = ["indextargets", "--format", "$(SITE) $(RELEASE)"];
    let output = Command::new("apt-get").args(format).output().ok()?;
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut lines = told.lines().filter_map(|line| line.split_once(' '));
    lines.find(|(_, release)| *release == RELEASE).map(|(site, _)| site.to_owned())
}

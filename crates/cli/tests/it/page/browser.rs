//! A real browser that takes pictures.

use std::path::Path;
use std::process::Command;

use super::picture::Picture;
use super::site::{SITE, Site};
use crate::house::Outcome;
use holdall_testkit::is_there;

/// Whether there is a browser; where there has to be one, it fails.
pub(super) fn has_browser() -> bool {
    is_there("chromium", Path::new("/usr/bin/chromium").exists())
}

/// Lets the browser show the site in a window of that width and height, and takes a picture.
pub(super) fn shoot(site: &Site, folder: &Path, (width, height): (u32, u32)) -> Picture {
    let picture = folder.join("picture.png");
    let mut command = Command::new("chromium");
    command.args(["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]);
    command.args([
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--no-first-run",
    ]);
    command.arg(format!("--window-size={width},{height}")).arg("--proxy-bypass-list=<-loopback>");
    command.arg(format!("--proxy-server=http://{}", site.address));
    command.arg(format!("--user-data-dir={}", folder.join("profile").display()));
    command.arg(format!("--screenshot={}", picture.display())).arg(SITE);
    let shown = Outcome::of(command.env("HOME", folder));
    assert!(picture.is_file(), "{shown:?}");
    Picture::read(&picture)
}

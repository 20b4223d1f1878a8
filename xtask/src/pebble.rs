//! Pebble, the authority that Let's Encrypt tests clients with: a small program in Go, which tests ask for a certificate.
//!
//! No distribution has it. Go builds it from its own proxy into `target/tools`, in the version that is named here.

use std::fs;
use std::process::Command;

use crate::root;

/// What Go builds, and in which version.
pub(crate) const MODULE: &str = "github.com/letsencrypt/pebble/v2/cmd/pebble@v2.10.3";
/// Where Go may be, besides where the system finds it.
const ALSO: &str = "/usr/local/go/bin/go";

/// Builds it where it is missing or of another version; says whether it is there.
pub(crate) fn ensure() -> bool {
    let folder = root().join("target/tools/pebble");
    let (bin, built) = (folder.join("bin"), folder.join("built"));
    let is_built = fs::read_to_string(&built).is_ok_and(|module| module == MODULE);
    if is_built && bin.join("pebble").is_file() {
        return true;
    }
    let install = |go: &str| {
        let mut install = Command::new(go);
        install.args(["install", MODULE]).env("GOBIN", &bin);
        println!("{install:?}");
        install.status().is_ok_and(|status| status.success())
    };
    let is_built = ["go", ALSO].into_iter().any(install);
    is_built && fs::write(built, MODULE).is_ok()
}

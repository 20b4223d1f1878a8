//! Pages in a real browser, walked by keyboard. Scripts in `tests/browser` drive the browser and judge what it sees; a test
//! says where to go, does what has to happen elsewhere, and judges the whole.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use holdall_testkit::is_there;
use serde_json::{Value, json};

use crate::house::Machine;

fn below(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)
}

fn packages() -> PathBuf {
    below("../../target/tools/browser")
}

/// Whether there is what drives a browser; `cargo xtask test` brings it.
pub(crate) fn is_equipped() -> bool {
    is_there("chromium", Path::new("/usr/bin/chromium").exists())
        && is_there("node's packages for browser tests", packages().join("node_modules").is_dir())
}

/// The browser that walks. It asks for what has to happen elsewhere by a line, and is answered by a line.
pub(crate) struct Walk(Child);

impl Walk {
    /// Begins the walk of a script, which keeps its pictures in a folder of that name.
    pub(crate) fn begin(machine: &Machine, script: &str, pictures: &str, mut told: Value) -> Self {
        let pictures = Path::new(env!("CARGO_TARGET_TMPDIR")).join(pictures);
        let home = machine.path("browser");
        std::fs::create_dir_all(&home).expect("room");
        (told["packages"], told["pictures"]) = (json!(packages()), json!(pictures));
        let mut command = Command::new("node");
        command.arg(below("tests/browser").join(script)).env("HOME", home);
        let walk = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut walk = walk.expect("node starts");
        writeln!(walk.stdin.as_mut().expect("a pipe"), "{told}").expect("it reads");
        Self(walk)
    }

    /// Does what it asks for until it reports. Fails if something was wrong with a page, or others than `pages` were seen.
    pub(crate) fn report(mut self, pages: &[&str], mut help: impl FnMut(&Value)) -> Value {
        let mut answers = self.0.stdin.take().expect("a pipe");
        let lines = BufReader::new(self.0.stdout.take().expect("a pipe")).lines();
        let mut report = None;
        for line in lines {
            let line = line.expect("UTF-8");
            let said: Value = serde_json::from_str(&line).expect(&line);
            if said["asks"].is_string() {
                help(&said);
                writeln!(answers, "done").expect("it waits");
            } else {
                report = Some(said);
            }
        }
        let ended = self.0.wait().expect("it ends");
        let report = report.unwrap_or_else(|| panic!("the walk ended with {ended} and no report"));
        let problems = report["problems"].as_array().expect("a list");
        let lines: Vec<_> = problems.iter().map(ToString::to_string).collect();
        assert!(lines.is_empty(), "{}", lines.join("\n"));
        let mut pages = pages.to_vec();
        pages.sort_unstable();
        assert_eq!(sorted(&report["pages"]), pages);
        report
    }
}

impl Drop for Walk {
    fn drop(&mut self) {
        // One that ended concerns nobody.
        let _ = self.0.kill();
    }
}

/// Names of a report, in order.
pub(crate) fn sorted(names: &Value) -> Vec<&str> {
    let mut names: Vec<_> =
        names.as_array().expect("a list").iter().filter_map(Value::as_str).collect();
    names.sort_unstable();
    names
}

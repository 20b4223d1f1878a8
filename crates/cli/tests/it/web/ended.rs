//! What a machine does on a server, and that somebody there has end.

use std::io::Read as _;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

use serde_json::json;

use super::Place;
use crate::house::{Outcome, text};
use crate::repair::noise;

const LARGE_BYTES: usize = 150_000_000;
const PATIENCE: Duration = Duration::from_secs(60);

impl Place {
    /// The number of the session in which something was moved, once there is one.
    fn session(&self, moved: &str) -> u64 {
        let begun = Instant::now();
        loop {
            let told = self.told(&["jobs"]);
            let session =
                told.iter().find(|one| one[moved].as_u64().is_some_and(|bytes| bytes > 0));
            if let Some(session) = session {
                return session["number"].as_u64().expect("a number");
            }
            assert!(begun.elapsed() < PATIENCE, "{told:?}");
            thread::sleep(Duration::from_millis(50));
        }
    }
}

/// How a process ended, which has to be with 1.
fn of_child(child: Child) -> Outcome {
    let output = child.wait_with_output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    Outcome { code: output.status.code(), stdout, stderr }.expect(1)
}

#[test]
fn a_run_that_is_ended_at_the_server_ends_with_1_and_says_why() {
    let place = Place::new("attic");
    let (source, machine) = (place.machine.path("source"), &place.machine);
    fs::write(source.join("large"), noise(1, 24_000_000)).unwrap();

    let mut backup = machine.command(["backup", text(&source), "--limit-upload", "3M"]);
    let backup = backup.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let number = place.session("taken_bytes");
    let token = place.token("operator", "operate");
    place.command(&token, "end-session", &json!({ "number": number })).expect(200);
    let ended = of_child(backup);
    assert!(
        ended.stderr.contains("an administrator of the server had this run ended"),
        "{ended:?}"
    );
    place.command(&token, "end-session", &json!({ "number": number })).expect(409);
    // More than a reader fetches ahead.
    fs::write(source.join("large"), noise(1, LARGE_BYTES)).unwrap();
    machine.ok(["backup", text(&source)]);

    let what = format!("latest:{}", text(&source.join("large")));
    let mut dump = machine.command(["dump", &what]);
    let mut dump = dump.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let number = place.session("given_bytes");
    place.told(&["jobs", "--end-session", &number.to_string()]);
    let mut given = Vec::new();
    dump.stdout.take().unwrap().read_to_end(&mut given).unwrap();
    let ended = of_child(dump);
    assert!(
        ended.stderr.contains("an administrator of the server had this run ended"),
        "{ended:?}"
    );
    assert!(given.len() < LARGE_BYTES, "it was cut");
}

//! What the server's document says of its API, held against the server by Schemathesis: it asks for what the document allows and for
//! what it does not, and judges every answer by it.

use std::path::Path;
use std::process::Command;

use holdall_testkit::is_there;

use super::Place;

/// What would ask others, or end the token that it asks by.
const LEFT_OUT: &str = "(test-channel|set-channel|revoke-api-token)$";
/// Requests made up for each command, beside those at the edges.
const EXAMPLES: &str = "4";

#[test]
fn every_answer_of_the_api_is_as_its_document_says() {
    let packages = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../tools/contract/lib");
    if !is_there("Schemathesis", packages.join("schemathesis").is_dir()) {
        return;
    }
    let place = Place::new("attic");
    let token = place.token("a name that nobody makes up", "administer");
    let mut asking = Command::new("/usr/bin/python3");
    asking.env("PYTHONPATH", &packages).current_dir(place.machine.path("source"));
    asking.args(["-m", "schemathesis.cli", "run", "--no-color", "--checks", "all"]);
    // The same requests in each run; what they find, another run has to find again.
    asking.args(["--seed", "1", "--max-examples", EXAMPLES, "--tls-verify", "false"]);
    // A server closes connections that it needs the room of; what is asked again is answered all the same.
    asking.args(["--request-retries", "3"]);
    asking.args([
        "--exclude-path-regex",
        LEFT_OUT,
        "-H",
        &format!("Authorization: Bearer {token}"),
    ]);
    asking.arg(format!("https://{}/api/v1/openapi.json", place.server.address()));
    let asked = asking.output().expect("it runs");
    let said = String::from_utf8_lossy(&asked.stdout);
    assert!(asked.status.success(), "{said}{}", String::from_utf8_lossy(&asked.stderr));
    assert!(said.contains("No issues found") || said.contains("passed"), "{said}");
    place.told(&["machines"]);
}

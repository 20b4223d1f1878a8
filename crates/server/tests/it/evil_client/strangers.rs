//! Keys that may not, and what is somebody else's.

use holdall_protocol::wire::encode_ids;

use super::stage::{OWN, chunk, framed, nothing, request};
use super::{Row, Who, hold};

const BACK_UP: &[u8] = br#"{"purpose":"backup","parents":[]}"#;

pub(super) const ROWS: &[Row] = &[
    refused(
        "no key asks for a repository",
        Who::Nobody,
        |_| request("GET", OWN, b""),
        "404",
        "no-such-route",
    ),
    refused(
        "a stranger asks what there is",
        Who::Stranger,
        |_| request("GET", OWN, b""),
        "401",
        "unknown-machine",
    ),
    refused(
        "a stranger opens a session",
        Who::Stranger,
        |_| request("POST", &format!("{OWN}/sessions"), BACK_UP),
        "401",
        "unknown-machine",
    ),
    refused(
        "a stranger makes a repository",
        Who::Stranger,
        |stage| {
            let forge = stage.forge();
            request("PUT", OWN, &framed(&[forge.config(), forge.wrappings(1)]))
        },
        "401",
        "unknown-machine",
    ),
    refused(
        "a stranger uses somebody's session",
        Who::Stranger,
        |stage| {
            let name = &stage.victim.paired.repository;
            let path = format!(
                "/api/v1/repositories/{name}/sessions/{}/fetch?copy=0",
                stage.victims_session
            );
            request("POST", &path, &encode_ids(&[chunk()]))
        },
        "401",
        "unknown-machine",
    ),
    refused(
        "a locked out machine reads",
        Who::Revoked,
        |_| request("GET", OWN, b""),
        "403",
        "not-allowed",
    ),
    refused(
        "a locked out machine opens a session",
        Who::Revoked,
        |_| request("POST", &format!("{OWN}/sessions"), BACK_UP),
        "403",
        "not-allowed",
    ),
    refused(
        "a reader opens a session to back up",
        Who::Reader,
        |_| request("POST", &format!("{OWN}/sessions"), BACK_UP),
        "403",
        "not-allowed",
    ),
    refused(
        "a reader changes the keys",
        Who::Reader,
        |stage| request("PUT", &format!("{OWN}/wrappings"), &stage.forge().wrappings(2)),
        "403",
        "not-allowed",
    ),
    refused(
        "a reader makes a repository",
        Who::Reader,
        |stage| {
            let forge = stage.forge();
            request("PUT", OWN, &framed(&[forge.config(), forge.wrappings(1)]))
        },
        "403",
        "not-allowed",
    ),
    refused(
        "a recovery kit opens a session to back up",
        Who::Kit,
        |_| request("POST", &format!("{OWN}/sessions"), BACK_UP),
        "403",
        "not-allowed",
    ),
    refused(
        "a recovery kit puts",
        Who::Kit,
        |stage| stage.put(&[stage.forge().chunks(&[nothing()])]),
        "403",
        "not-allowed",
    ),
    refused(
        "a recovery kit changes the keys",
        Who::Kit,
        |stage| request("PUT", &format!("{OWN}/wrappings"), &stage.forge().wrappings(2)),
        "403",
        "not-allowed",
    ),
    refused(
        "a recovery kit uses its machine's session",
        Who::Kit,
        |stage| stage.in_session("fetch?copy=0", &encode_ids(&[chunk()])),
        "404",
        "no-session",
    ),
    refused(
        "a recovery kit asks for proofs in its machine's session",
        Who::Kit,
        |stage| stage.in_session("proofs", &[7; 68]),
        "404",
        "no-session",
    ),
    refused(
        "a recovery kit asks for a deletion",
        Who::Kit,
        |_| request("POST", &format!("{OWN}/deletions"), &[7; 64]),
        "403",
        "not-allowed",
    ),
    own(
        "a deletion with a token that is none",
        |stage| {
            let body = [&[7; 32][..], stage.head().unwrap().0.as_bytes()].concat();
            request("POST", &format!("{OWN}/deletions"), &body)
        },
        "403",
        "administrator's token",
    ),
    own(
        "a deletion with half a token",
        |_| request("POST", &format!("{OWN}/deletions"), &[7; 16]),
        "400",
        "refused",
    ),
    own(
        "a prune with a token that is none",
        |_| request("POST", &format!("{OWN}/prune?dry=0"), &[7; 32]),
        "403",
        "administrator's token",
    ),
    own(
        "which blocks are dead, with a token that is none",
        |_| request("POST", &format!("{OWN}/sparse?from=0"), &[7; 32]),
        "403",
        "administrator's token",
    ),
    own(
        "which blocks are dead, from nowhere",
        |_| request("POST", &format!("{OWN}/sparse?from=-1"), &[7; 32]),
        "404",
        "",
    ),
    own(
        "blocks give way, with a token that is none",
        |stage| stage.in_session("superseded", &[7; 40]),
        "403",
        "administrator's token",
    ),
    own(
        "blocks give way, cut in the middle of a position",
        |stage| stage.in_session("superseded", &[7; 41]),
        "400",
        "refused",
    ),
    own(
        "more blocks give way than may be named",
        |stage| stage.in_session("superseded", &[7; 32 + 8 * 16_385]),
        "413",
        "too-large",
    ),
    refused(
        "a recovery kit has blocks give way",
        Who::Kit,
        |stage| stage.in_session("superseded", &[7; 40]),
        "403",
        "not-allowed",
    ),
    own(
        "another's blocks give way",
        |stage| {
            let path = "/sessions/00000000000000000000000000000000/superseded";
            request("POST", &of_victim(stage, path), &[7; 40])
        },
        "403",
        "not-allowed",
    ),
    own(
        "another's deletions",
        |stage| request("GET", &of_victim(stage, "/deletions"), b""),
        "403",
        "not-allowed",
    ),
    own(
        "another's repository",
        |stage| request("GET", &of_victim(stage, ""), b""),
        "403",
        "not-allowed",
    ),
    own(
        "another's records",
        |stage| request("GET", &of_victim(stage, "/records?after=0&limit=10"), b""),
        "403",
        "not-allowed",
    ),
    own(
        "another's scrub",
        |stage| request("POST", &of_victim(stage, "/scrub"), b""),
        "403",
        "not-allowed",
    ),
    own(
        "another's size",
        |stage| request("GET", &of_victim(stage, "/usage"), b""),
        "403",
        "not-allowed",
    ),
    own(
        "another's keys replaced",
        |stage| request("PUT", &of_victim(stage, "/wrappings"), &stage.victim.forge().wrappings(2)),
        "403",
        "not-allowed",
    ),
    own(
        "a repository under a name that nobody has",
        |stage| {
            let forge = stage.forge();
            request(
                "PUT",
                "/api/v1/repositories/free",
                &framed(&[forge.config(), forge.wrappings(1)]),
            )
        },
        "403",
        "not-allowed",
    ),
    own(
        "another's session in one's own repository",
        |stage| {
            let path = format!("{OWN}/sessions/{}/fetch?copy=0", stage.victims_session);
            request("POST", &path, &encode_ids(&[chunk()]))
        },
        "404",
        "no-session",
    ),
    own(
        "a put into another's session",
        |stage| {
            let path = format!("{OWN}/sessions/{}/blocks", stage.victims_session);
            request("POST", &path, &framed(&[stage.forge().chunks(&[nothing()])]))
        },
        "404",
        "no-session",
    ),
    own(
        "a session that was never opened",
        |stage| {
            let path = format!("{OWN}/sessions/{}/blocks", "ab".repeat(16));
            request("POST", &path, &framed(&[stage.forge().chunks(&[nothing()])]))
        },
        "404",
        "no-session",
    ),
    own(
        "a session that was closed",
        |stage| {
            let path = format!("{OWN}/sessions/{}/fetch?copy=0", stage.closed);
            request("POST", &path, &encode_ids(&[chunk()]))
        },
        "404",
        "no-session",
    ),
    own(
        "a put into a session to read",
        |stage| {
            let path = format!("{OWN}/sessions/{}/blocks", stage.reading);
            request("POST", &path, &framed(&[stage.forge().chunks(&[nothing()])]))
        },
        "400",
        "refused",
    ),
    own(
        "a commit in a session to read",
        |stage| {
            let record = stage.forge().record(
                holdall_format::RecordKind::Snapshot,
                super::stage::node(),
                stage.head(),
            );
            request("POST", &format!("{OWN}/sessions/{}/records", stage.reading), &record)
        },
        "400",
        "refused",
    ),
    own(
        "another's session closed",
        |stage| {
            // No error, since what is not there may be closed; that it is still open is seen afterwards.
            request("POST", &format!("{OWN}/sessions/{}/close", stage.victims_session), b"")
        },
        "200",
        "",
    ),
];

#[test]
fn keys_that_may_not_and_what_is_somebody_elses() {
    hold(ROWS);
}

const fn refused(
    name: &'static str,
    who: Who,
    asks: fn(&super::Stage) -> super::Asked,
    status: &'static str,
    says: &'static str,
) -> Row {
    Row { name, who, asks, status, says }
}

const fn own(
    name: &'static str,
    asks: fn(&super::Stage) -> super::Asked,
    status: &'static str,
    says: &'static str,
) -> Row {
    refused(name, Who::Machine, asks, status, says)
}

fn of_victim(stage: &super::Stage, verb: &str) -> String {
    format!("/api/v1/repositories/{}{verb}", stage.victim.paired.repository)
}

//! Servers that are older or newer than the client. `docs/server.md` has what comes of it as a table, whose rows are run
//! here as they stand there.

use std::sync::Arc;

use holdall_protocol::tls;

use super::stage::Stage;
use super::{Answer, Ask, Lie, Reply, honest};

/// Requests that were not there from the beginning, by the ends of their paths.
const LATER: [&str; 5] = ["/deletions", "/clear-parts", "/proofs", "/scrub", "/runs"];

/// A server that knows nothing of what came later: neither requests nor fields.
fn older() -> Lie {
    Arc::new(|request: &Ask, ask| {
        let path = request.path.split('?').next().unwrap();
        let is_later = LATER.iter().any(|later| path.ends_with(later))
            || (request.method == "PUT" && path.ends_with("/records"));
        if is_later {
            let body = br#"{"error":"no-such-route","message":"nothing is served there"}"#.to_vec();
            return Reply::Answer(Answer { status: 404, body });
        }
        Reply::Answer(with_fields(ask(), |fields| {
            for later in ["quota_bytes", "free_bytes", "cause", "version"] {
                fields.remove(later);
            }
        }))
    })
}

/// A server that says more than this client knows.
fn newer() -> Lie {
    Arc::new(|_, ask| {
        Reply::Answer(with_fields(ask(), |fields| {
            fields.insert("of-tomorrow".into(), serde_json::json!({ "nested": [1, null] }));
        }))
    })
}

/// The same answer with other fields, if it is an object of JSON.
fn with_fields(
    answer: Answer,
    change: impl Fn(&mut serde_json::Map<String, serde_json::Value>),
) -> Answer {
    let Ok(mut fields) = serde_json::from_slice(&answer.body) else { return answer };
    change(&mut fields);
    Answer { body: serde_json::to_vec(&fields).unwrap(), ..answer }
}

/// Has the server be what a row of the table says.
fn show(stage: &Stage, server: &str) {
    let own = std::fs::read(stage.data.join("identity.key")).unwrap().try_into().unwrap();
    let speaking = |protocols: &[&[u8]]| {
        let mut config = tls::machine_server_config(&own).unwrap();
        config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        Some(config)
    };
    match server {
        "older, `holdall/1`" => stage.evil.lie(older()),
        "newer, `holdall/1`" => stage.evil.lie(newer()),
        "newer, `holdall/2` and `holdall/1`" => {
            stage.evil.show(speaking(&[b"holdall/2", tls::ALPN]), newer());
        }
        "newer, `holdall/2` alone" => stage.evil.show(speaking(&[b"holdall/2"]), honest()),
        other => panic!("no such server is staged: {other}"),
    }
}

/// The rows of the table: the server, the commands, how they end and what they say.
fn rows() -> Vec<[&'static str; 4]> {
    let page = include_str!("../../../../../docs/server.md");
    let (_, table) = page.split_once("| server | commands | exit code | says |").unwrap();
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let cells = |row: &'static str| {
        let cells: Vec<_> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        cells.try_into().expect("four cells")
    };
    rows.map(cells).collect()
}

#[test]
fn what_older_and_newer_servers_lead_to_is_as_the_table_says() {
    let stage = Stage::new();
    let rows = rows();
    assert!(rows.len() >= 5, "{rows:?}");
    for [server, commands, exit, says] in rows {
        for command in commands.split(", ") {
            let command = command.trim_matches('`');
            stage.drop_cache();
            show(&stage, server);
            let line = match command {
                "backup" => "backup {source} --host desk",
                "restore" => "restore latest --target {target}",
                command => command,
            };
            let outcome = stage.run(line);
            stage.evil.lie(honest());
            assert_eq!(outcome.code, exit.parse().ok(), "{server}, {command}: {outcome:?}");
            let said = format!("{}{}", outcome.stdout, outcome.stderr).replace('\n', " ");
            assert!(
                said.contains(says.trim_matches(['`', '"'])),
                "{server}, {command}: {outcome:?}"
            );
            let _ = std::fs::remove_dir_all(stage.target());
        }
    }
    assert_eq!(stage.run("check").code, Some(0));
}

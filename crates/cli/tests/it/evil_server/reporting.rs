//! Servers that do not take what a machine tells of a run: the backup is as good as if they had.

use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

use super::stage::Stage;
use super::{Answer, BACKUP, Lie, Reply, at, honest};

/// Does not answer until the sender of that is gone.
fn silent(until: std::sync::mpsc::Receiver<()>) -> Lie {
    let until = Mutex::new(until);
    at("runs", move |_, answer| {
        let _ = until.lock().map(|until| until.recv());
        Reply::Answer(answer)
    })
}

#[test]
fn a_backup_whose_report_is_refused_garbled_or_not_answered_is_good() {
    let stage = Stage::new();
    let (answer, until) = channel();
    let refused = |status, kind: &str| {
        let body = format!("{{\"error\":\"{kind}\",\"message\":\"m\",\"reason\":\"r\"}}");
        at("runs", move |_, _| Reply::Answer(Answer { status, body: body.clone().into_bytes() }))
    };
    let garbled: Lie = at("runs", |_, _| Reply::Raw(b"HTTP/1.1 999 what\r\n\r\n".to_vec()));
    let endless: Lie = at("runs", |_, _| Reply::Endless);
    for (name, lie) in [
        ("it does not know the request", refused(404, "no-such-route")),
        ("it does not allow it", refused(403, "not-allowed")),
        ("it is broken", refused(500, "io")),
        ("it is busy for ever", refused(503, "busy")),
        ("no HTTP", garbled),
        ("no end", endless),
        ("no answer", silent(until)),
    ] {
        let before = stage.records().len();
        let outcome = stage.run_under(lie, BACKUP);
        assert_eq!(outcome.code, Some(0), "{name}: {outcome:?}");
        assert!(!outcome.stderr.contains("warning"), "{name}: {outcome:?}");
        assert_eq!(stage.records().len(), before + 1, "{name}");
    }
    drop(answer);
}

/// Should there be more in a report than numbers and words of the protocol, this sees it.
#[test]
fn a_report_has_no_name_no_path_and_no_exact_size() {
    let stage = Stage::new();
    let (tell, told) = channel();
    let (honest, tell) = (honest(), Mutex::new(tell));
    let listening: Lie = Arc::new(move |asked, ask: &mut dyn FnMut() -> Answer| {
        if asked.verb() == "runs" {
            tell.lock().unwrap().send(asked.body.clone()).unwrap();
        }
        honest(asked, ask)
    });
    assert_eq!(stage.run_under(listening, BACKUP).code, Some(0));
    let told = told.try_recv().expect("it tells of each backup");
    let report: serde_json::Value = serde_json::from_slice(&told).unwrap();
    let mut words = Vec::new();
    let mut left = vec![&report];
    while let Some(value) = left.pop() {
        match value {
            serde_json::Value::Object(fields) => left.extend(fields.values()),
            serde_json::Value::Array(values) => left.extend(values),
            serde_json::Value::String(word) => words.push(word.as_str()),
            _ => {}
        }
    }
    let is_known = |word: &&str| *word == "backup" || holdall_meter::Layer::of_word(word).is_some();
    assert!(words.iter().all(is_known), "{words:?}");
    let (bytes, items) = (report["bytes"].as_u64().unwrap(), report["items"].as_u64().unwrap());
    assert!(bytes > 0 && bytes == holdall_format::padded_len(bytes as usize) as u64, "{bytes}");
    assert!(items > 0, "{report}");
}

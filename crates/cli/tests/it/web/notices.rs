//! That somebody is told: by what listens on loopback as a webhook, an ntfy server or a mail server would.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use super::{HOSTILE, PASSWORD, Place};
use crate::house::text;

/// Longer than the server takes to look, with room for a loaded computer.
const PATIENCE: Duration = Duration::from_secs(240);

/// What came over one connection: a head and a body, or what a mail server was told.
type Came = (String, String);

/// Listens as long as the test runs, and has each connection answered by `answer`.
fn listen(answer: fn(TcpStream, &Sender<Came>)) -> (u16, Receiver<Came>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let port = listener.local_addr().expect("bound").port();
    let (sender, receiver) = channel();
    thread::spawn(move || listener.incoming().flatten().for_each(|one| answer(one, &sender)));
    (port, receiver)
}

fn take_request(stream: TcpStream, sender: &Sender<Came>) {
    let mut reader = BufReader::new(stream);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).expect("a line");
        if line.trim().is_empty() {
            break;
        }
        let lower = line.to_ascii_lowercase();
        if let Some(value) = lower.strip_prefix("content-length:") {
            length = value.trim().parse().expect("a length");
        }
        head += &line;
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("a body");
    let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    reader.get_mut().write_all(answer).expect("it listens");
    let _ = sender.send((head, String::from_utf8(body).expect("UTF-8")));
}

/// As much of a mail server as a letter without a password needs.
fn take_letter(stream: TcpStream, sender: &Sender<Came>) {
    let mut reader = BufReader::new(stream);
    let say = |reader: &mut BufReader<TcpStream>, line: &str| {
        reader.get_mut().write_all(format!("{line}\r\n").as_bytes()).expect("it listens");
    };
    say(&mut reader, "220 here");
    let (mut talk, mut letter) = (String::new(), String::new());
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).is_ok_and(|bytes| bytes == 0) {
            return;
        }
        talk += &line;
        match line.get(..4).unwrap_or_default() {
            "DATA" => {
                say(&mut reader, "354 go on");
                while !letter.ends_with("\r\n.\r\n") {
                    reader.read_line(&mut letter).expect("a line");
                }
                say(&mut reader, "250 taken");
            }
            "QUIT" => {
                say(&mut reader, "221 bye");
                let _ = sender.send((talk, letter));
                return;
            }
            _ => say(&mut reader, "250 yes"),
        }
    }
}

#[test]
fn a_trial_arrives_by_each_way_and_nothing_shows_its_address() {
    let place = Place::new("attic");
    let (port, requests) = listen(take_request);
    let (mail_port, letters) = listen(take_letter);
    let secret = format!("http://127.0.0.1:{port}/secret-topic");
    let came = || requests.recv_timeout(PATIENCE).expect("it arrives");

    place.told(&["notify", "hook", "--webhook", &secret, "--test"]);
    let (head, body) = came();
    assert!(head.starts_with("POST /secret-topic "), "{head}");
    let body: serde_json::Value = serde_json::from_str(&body).expect("JSON");
    assert_eq!(body["level"], "good");
    place.told(&["notify", "phone", "--ntfy", &secret, "--test"]);
    let (head, body) = came();
    assert!(head.to_ascii_lowercase().contains("\r\ntitle: holdall on "), "{head}");
    assert!(body.contains("wanted to see"), "{body}");
    place.told(&["notify", "checks", "--ping", &secret, "--test"]);
    assert!(came().0.starts_with("POST /secret-topic "));
    let server = format!("127.0.0.1:{mail_port}");
    let email = ["--email", "me@example.org", "--from", "nas@example.org", "--smtp", &server];
    place.told(&[&["notify", "me"], &email[..], &["--test"]].concat());
    let (talk, letter) = letters.recv_timeout(PATIENCE).expect("it arrives");
    assert!(talk.contains("RCPT TO:<me@example.org>"), "{talk}");
    assert!(letter.contains("Subject: holdall on ") && letter.contains("They do."), "{letter}");

    let listed = format!("{:?}", place.told(&["notify"]));
    let noted = format!("{:?}", place.told(&["audit"]));
    let settings = place.signed_in().get("/settings").expect(200).body;
    for shown in [listed, noted, settings] {
        assert!(shown.contains("hook") && !shown.contains("secret-topic"), "{shown}");
    }
    let data = place.machine.path("data");
    let failed = place
        .machine
        .administer(&data, &["notify", "gone", "--webhook", "http://127.0.0.1:1/x", "--test"]);
    let failed = failed.expect(1);
    assert!(failed.stdout.contains("could not be used: Connection refused"), "{failed:?}");
}

#[test]
fn somebody_is_told_once_that_a_backup_failed_and_that_it_is_well_again() {
    let place = Place::new(HOSTILE);
    let (port, requests) = listen(take_request);
    place.told(&["notify", "phone", "--ntfy", &format!("http://127.0.0.1:{port}/x")]);
    // Nothing is told of what is well. A backup that cannot read all there is changes that.
    let missing = place.machine.path("source").join("gone");
    let source = place.machine.path("source");
    place.machine.run(["backup", text(&source), text(&missing)]);
    let (head, body) = requests.recv_timeout(PATIENCE).expect("it is told");
    let head = head.to_ascii_lowercase();
    assert!(head.contains("needs a look") && head.contains("priority: high"), "{head}");
    assert!(body.contains("Its last backup"), "{body}");
    place.machine.ok(["backup", text(&source)]);
    let (head, _) = requests.recv_timeout(PATIENCE).expect("it is told");
    assert!(head.contains("is well again"), "{head}");
    assert!(requests.try_recv().is_err(), "nothing is told twice");
    let mut browser = place.signed_in();
    let token = browser.get("/settings").expect(200).token();
    browser.post("/notices/test", &[("token", &token), ("name", "phone")]).expect(200);
    assert!(requests.recv_timeout(PATIENCE).is_ok());
    assert!(!browser.get("/settings").expect(200).body.contains(PASSWORD));
}

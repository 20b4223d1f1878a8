//! A certificate for browsers that an authority gives: Pebble, the one that Let's Encrypt tests clients with.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use holdall_testkit::is_there;
use serde_json::{Value, json};

use super::client::{Browser, connect};
use super::lab::until;
use super::{PASSWORD, set_up};
use crate::house::{Machine, Server};

/// An authority that runs, asked at `localhost`.
struct Authority {
    process: Child,
    directory: String,
    trusted: PathBuf,
}

/// A port that nobody has at the moment.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}

impl Authority {
    /// One that looks at that port whether a name leads there; nothing without Pebble.
    fn start(folder: &Path, looks_at: u16) -> Option<Self> {
        let program =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/pebble/bin/pebble");
        if !is_there("pebble", program.is_file()) {
            return None;
        }
        fs::create_dir_all(folder).expect("room");
        let made =
            rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
        let (trusted, key) = (folder.join("trusted.pem"), folder.join("key.pem"));
        fs::write(&trusted, made.cert.pem()).expect("room");
        fs::write(&key, made.signing_key.serialize_pem()).expect("room");
        let port = free_port();
        let config = json!({ "pebble": {
            "listenAddress": format!("127.0.0.1:{port}"),
            "managementListenAddress": format!("127.0.0.1:{}", free_port()),
            "certificate": trusted, "privateKey": key,
            "httpPort": free_port(), "tlsPort": looks_at,
        } });
        let written = folder.join("pebble.json");
        fs::write(&written, config.to_string()).expect("room");
        let mut command = Command::new(program);
        command.arg("-config").arg(written).env("PEBBLE_VA_NOSLEEP", "1");
        let process =
            command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
        let started = Self { process, directory: format!("https://localhost:{port}/dir"), trusted };
        until(|| std::net::TcpStream::connect(("127.0.0.1", port)).ok());
        Some(started)
    }
}

impl Drop for Authority {
    fn drop(&mut self) {
        // One that ended concerns nobody.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A server that asks that authority for a certificate of a name.
fn serve(authority: &Authority, port: u16, data: &Path, name: &str) -> Server {
    let mut command = Server::command_at(&format!("127.0.0.1:{port}"), data);
    command.args(["--web-acme", name, "--web-acme-contact", "mailto:me@example.org"]);
    command.args(["--web-acme-directory", &authority.directory]);
    Server::start_by(command.env("SSL_CERT_FILE", &authority.trusted), data)
}

fn status(machine: &Machine, data: &Path) -> Value {
    machine.administer(data, &["certificate"]).expect(0).objects()[0].clone()
}

/// What a browser is shown.
fn shown(server: &Server) -> Vec<u8> {
    let mut tls = connect(server.address());
    tls.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .expect("it takes requests");
    let _ = tls.read(&mut [0; 16]);
    tls.conn.peer_certificates().expect("it shows one")[0].to_vec()
}

fn has(certificate: &[u8], words: &str) -> bool {
    certificate.windows(words.len()).any(|part| part == words.as_bytes())
}

#[test]
fn an_authority_gives_a_certificate_that_is_shown_without_a_restart_and_kept() {
    let machine = Machine::new().with_password(None);
    let (port, data) = (free_port(), machine.path("data"));
    let Some(mut authority) = Authority::start(&machine.path("authority"), port) else { return };
    let server = serve(&authority, port, &data, "localhost");
    let told = until(|| Some(status(&machine, &data)).filter(|told| told["until"].is_string()));
    assert_eq!((&told["names"], &told["problem"]), (&json!(["localhost"]), &json!(null)));
    let first = until(|| Some(shown(&server)).filter(|certificate| has(certificate, "Pebble")));
    assert!(has(&first, "localhost"));
    for (file, mode) in
        [("acme", 0o700), ("acme/certificate.pem", 0o600), ("acme/account.json", 0o600)]
    {
        let found = data.join(file).metadata().expect("it is there");
        assert_eq!(found.permissions().mode() & 0o777, mode, "{file}");
    }
    // It is shown from the first connection on, and the authority is not needed for it.
    drop(server);
    authority.process.kill().expect("it lives");
    let server = serve(&authority, port, &data, "localhost");
    assert_eq!(shown(&server), first);
}

#[test]
fn a_name_that_leads_elsewhere_is_told_on_the_overview_and_the_server_s_own_is_shown() {
    let machine = Machine::new().with_password(None);
    let (port, data) = (free_port(), machine.path("data"));
    // It looks where nobody listens.
    let Some(authority) = Authority::start(&machine.path("authority"), free_port()) else { return };
    let server = serve(&authority, port, &data, "localhost");
    let told = until(|| Some(status(&machine, &data)).filter(|told| told["problem"].is_string()));
    assert!(told["problem"].as_str().expect("words").contains("Failed to connect"), "{told}");
    assert!(has(&shown(&server), "holdall server"));
    let code = machine.administer(&data, &["web-code"]).expect(0).objects();
    let code = code[0]["code"].as_str().expect("a code").to_owned();
    let mut browser = Browser::at(server.address());
    set_up(&mut browser, &code, PASSWORD).expect(303);
    let overview = browser.get("/").expect(200).body;
    assert!(overview.contains("certificate for browsers could not be renewed"), "{overview}");
    assert!(!data.join("acme/certificate.pem").exists());
}

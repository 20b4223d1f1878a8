//! Servers that are silent, lost, somebody else's, or in each other's way, and invites that are not
//! good.
//!
//! That a run outlives a server which restarts is tested in `kill`, malformed requests in the tests
//! of the server itself.

use std::fs;
use std::net::TcpListener;

use holdall_testkit::{ChaosProxy, Process, Random};

use super::{listing, tells};
use crate::house::{HOLDALL, Machine, Outcome, Server, small_tree};

const START: &str = "is `holdall serve` running there";
/// What lets a machine in again whose key was revoked.
const LET_IN: &str = "`holdall invite --for ";

/// A machine that is paired with a server; its invite is used up.
fn paired() -> (Machine, Server, String) {
    let machine = Machine::new().with_password(None);
    let server = Server::start(&machine.path("data"));
    let invite = server.invite();
    machine.pair(&invite);
    (machine, server, invite)
}

/// Ends a server in good order; its address is free then.
fn stop(mut server: Server) -> String {
    server.process().terminate().unwrap();
    assert!(server.process().wait().unwrap().0.success());
    server.address().to_owned()
}

#[test]
fn a_peer_that_takes_connections_and_never_answers() {
    let (machine, server, _) = paired();
    let address = stop(server);
    let _silent = TcpListener::bind(&address).unwrap();
    tells(&machine.run(["snapshots"]), 14, &address, START);
}

#[test]
fn a_server_that_is_lost_on_the_way_is_waited_for_as_long_as_was_said() {
    let machine = Machine::new().with_password(None);
    let server = Server::start(&machine.path("data"));
    let proxy = ChaosProxy::start(server.address().parse().unwrap()).unwrap();
    let address = proxy.address().to_string();
    machine.pair(&server.invite_with(&["--address", &address]));
    let source = machine.path("source");
    fs::create_dir(&source).unwrap();
    fs::write(source.join("large"), Random::new(4).bytes(24 << 20)).unwrap();
    let source = source.to_str().unwrap();
    // At that rate it would take a minute.
    let args = ["backup", source, "--json", "--retry-for", "1s", "--limit-upload", "400k"];
    let mut running = Process::spawn(&mut machine.command(args)).unwrap();
    running.wait_for_line("{\"message_type\":\"status\"").unwrap();
    proxy.refuse(true);
    proxy.cut_now();
    let (status, lines) = running.wait().unwrap();
    let told = Outcome { code: status.code(), stdout: lines.join("\n"), stderr: String::new() };
    let error = told.expect(14).of_type("error").pop().unwrap();
    assert!(error["message"].as_str().unwrap().contains(&address), "{error}");
    assert!(error["hint"].as_str().unwrap().contains(START), "{error}");

    proxy.refuse(false);
    assert_eq!(machine.ok(["snapshots", "--json"]).of_type("snapshot"), [0; 0]);
    machine.ok(["backup", source]);
}

#[test]
fn another_server_at_the_same_address() {
    let (machine, server, _) = paired();
    let address = stop(server);
    let other = machine.path("other-data");
    let _other = Server::start_by(&mut Server::command_at(&address, &other), &other);
    let before = listing(&machine.path("config"));
    let told = machine.run(["snapshots"]);
    tells(&told, 13, &address, "`holdall pair --again`; otherwise somebody may be listening in");
    assert_eq!(listing(&machine.path("config")), before);
}

/// Seen: all of them used the paired server without a word.
#[test]
fn a_server_that_is_named_and_is_not_the_paired_one() {
    let (machine, server, _) = paired();
    let other = Server::start(&machine.path("other-data"));
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let nobody = free.local_addr().unwrap().to_string();
    drop(free);
    let source = machine.path("source");
    small_tree(&source);
    let (source, copies) = (source.to_str().unwrap(), machine.path("copies"));
    let copies = copies.to_str().unwrap();
    let before = listing(&machine.path("config"));
    let another = "`holdall pair`, with --again if it is the paired one";
    for (address, code, names, advises) in [
        (&nobody[..], 14, &nobody[..], START),
        ("nosuchhost.invalid", 14, "nosuchhost.invalid:7443", START),
        (other.address(), 13, other.address(), another),
    ] {
        let named = format!("https://{address}");
        for args in [
            &["snapshots", "-r", &named][..],
            &["backup", source, "-r", &named],
            &["copy", "--from", &named, "-r", copies],
            &["lab", "net", &named, "--time", "1"],
        ] {
            tells(&machine.run(args), code, names, if args[0] == "lab" { "" } else { advises });
        }
    }
    assert_eq!(listing(&machine.path("config")), before);

    // The same server by a name that was not known is found, and remembered.
    let port = server.address().rsplit_once(':').unwrap().1;
    machine.ok(["snapshots", "-r", &format!("https://localhost:{port}")]);
    let pairings = fs::read_to_string(machine.path("config/state/pairings.json")).unwrap();
    assert!(pairings.contains(&format!("localhost:{port}")), "{pairings}");
    assert!(pairings.contains(server.address()), "{pairings}");
}

#[test]
fn another_repository_of_the_paired_server() {
    let machine = Machine::new().with_password(Some("correct horse"));
    let server = Server::start(&machine.path("data"));
    machine.pair(&server.invite_with(&["--name", "laptop"]));
    let before = listing(&machine.path("config"));
    let [own, other] =
        ["laptop", "other"].map(|name| format!("https://{}/{name}", server.address()));
    for args in [&["snapshots", "-r", &other][..], &["init", "-r", &other]] {
        let told = machine.run(args);
        tells(&told, 13, "laptop, and no other repository, such as other", &own);
    }
    assert_eq!(listing(&machine.path("config")), before);
    machine.ok(["snapshots", "-r", &own]);
}

#[test]
fn an_invite_that_was_used_or_mistyped() {
    let (machine, server, invite) = paired();
    let other = Machine::new().with_password(None);
    tells(&other.run(["pair", &invite]), 13, "used", "`holdall invite` prints another one");
    // Whoever was let in by it may come again.
    machine.ok(["pair", &invite]);
    let fresh = server.invite();
    for mangled in [&fresh[..fresh.len() - 1], &fresh.replace("holdall1", "holdall9"), "", "x"] {
        tells(&other.run(["pair", mangled]), 2, "invite", "on the server");
    }
    assert!(!other.path("config/state/pairings.json").exists());
    other.ok(["pair", &fresh, "--name", "other"]);
}

#[test]
fn a_machine_that_was_replaced() {
    let (machine, server, _) = paired();
    let source = machine.path("source");
    small_tree(&source);
    let name = "old";
    let old = Machine::new().with_password(None);
    old.ok(["pair", &server.invite(), "--name", name, "--recovery-kit"]
        .iter()
        .map(std::ffi::OsStr::new)
        .chain([old.path("kit.txt").as_os_str()]));
    old.ok(["backup", source.to_str().unwrap()]);
    let new = Machine::new().with_password(None);
    let invite = server.invite_with(&["--for", name]);
    // Without a password or the kit the new computer cannot open it, and the old one may not.
    new.run(["pair", &invite]);
    for args in [&["snapshots"][..], &["backup", source.to_str().unwrap()], &["check"]] {
        tells(&old.run(args), 13, "not allowed", LET_IN);
    }
}

#[test]
fn a_machine_that_was_revoked() {
    let (machine, server, _) = paired();
    let data = machine.path("data");
    let source = machine.path("source");
    small_tree(&source);
    let source = source.to_str().unwrap();
    machine.ok(["backup", source]);
    let state = listing(&machine.path("config"));
    let name = machine.administer(&data, &["machines"]).objects()[0]["name"].clone();
    machine.administer(&data, &["revoke", name.as_str().unwrap()]).expect(0);
    for args in [&["snapshots"][..], &["backup", source], &["check"], &["ls", "latest"]] {
        tells(&machine.run(args), 13, "revoked", LET_IN);
    }
    let told = machine.run(["pair", &server.invite()]);
    tells(&told, 13, "revoked", "only an invite for its own machine lets it in again");
    assert_eq!(listing(&machine.path("config")), state);
}

#[test]
fn two_servers_in_each_others_way() {
    let (machine, server, _) = paired();
    let data = machine.path("data");
    let mut command = Server::command(&data);
    let told = Outcome::of(command.stderr(std::process::Stdio::piped()));
    tells(&told, 1, data.to_str().unwrap(), "name another folder with --data");
    let other = machine.path("other-data");
    let mut command = Server::command_at(server.address(), &other);
    let told = Outcome::of(command.stderr(std::process::Stdio::piped()));
    tells(&told, 1, server.address(), "name another address with --listen");
    machine.ok(["snapshots"]);
}

#[test]
fn a_data_folder_that_is_somebody_elses() {
    let machine = Machine::new();
    let data = machine.path("music");
    fs::create_dir(&data).unwrap();
    fs::write(data.join("song.ogg"), "la la la").unwrap();
    let before = listing(&data);
    for verb in ["serve", "invite"] {
        let mut command = std::process::Command::new(HOLDALL);
        command.env_clear().env("HOME", machine.path("home")).arg(verb).arg("--data").arg(&data);
        let told = Outcome::of(&mut command);
        match verb {
            "serve" => tells(&told, 1, "it has song.ogg", "name a folder of its own with --data"),
            _ => tells(&told, 1, "no server's data folder", "name its folder with --data"),
        }
        assert_eq!(listing(&data), before, "{verb}");
    }
}

#[test]
fn damaged_files_of_a_server() {
    let (machine, server, _) = paired();
    stop(server);
    let data = machine.path("data");
    for name in ["identity.key", "server.redb"] {
        let whole = fs::read(data.join(name)).unwrap();
        fs::write(data.join(name), &whole[..whole.len() / 2]).unwrap();
        let before = listing(&data);
        let told = Outcome::of(Server::command(&data).stderr(std::process::Stdio::piped()));
        tells(&told, 1, name, "put back a copy of it");
        assert_eq!(listing(&data).get(name), before.get(name), "{name} was overwritten");
        fs::write(data.join(name), whole).unwrap();
    }
    let _again = Server::start(&data);
}

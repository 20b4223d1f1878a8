//! Finding a server on a network of two computers, and pairing with it by a short code.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use holdall_testkit::{End, Links, Process, is_there};
use serde_json::{Value, json};

use crate::house::{Machine, Outcome, Server, run_by, small_tree, text};
use crate::linked::links;

const MULTICAST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/multicast.py");
const GIGABIT: u64 = 1_000_000_000;
/// A link needs a moment before multicast passes, and a question may be lost: so often it is looked.
const LOOKS: usize = 5;

/// A machine, and a network with room for servers at its other end.
struct Place {
    machine: Machine,
    links: Links,
}

impl Place {
    /// `None` where there can be none.
    fn new() -> Option<Self> {
        let links = links(&[GIGABIT])?;
        Some(Self { machine: Machine::new().with_password(None), links })
    }

    /// A server at the other end, which listens at all of its addresses, and where its log is.
    fn server(&self, name: &str, more: &[&str]) -> (Server, std::path::PathBuf) {
        let (data, log) = (self.machine.path(name), self.machine.path(&format!("{name}.log")));
        let mut command = Server::command_at(":0", &data);
        command.args(more).stderr(File::create(&log).expect("a log"));
        let mut command = run_by(&self.links.prefix(End::Server), &command);
        command.stderr(File::create(&log).expect("a log"));
        (Server::start_by(&mut command, &data), log)
    }

    fn command(&self, args: &[&str]) -> Command {
        run_by(&self.links.prefix(End::Client), &self.machine.command(args))
    }

    fn run(&self, args: &[&str]) -> Outcome {
        Outcome::of(&mut self.command(args))
    }

    /// Runs a command at the machine's end with that on its standard input.
    fn run_with(&self, input: &str, args: &[&str]) -> Outcome {
        let path = self.machine.path("input");
        fs::write(&path, input).expect("a file");
        Outcome::of(self.command(args).stdin(File::open(&path).expect("it is there")))
    }

    /// What is found, once there are so many.
    #[track_caller]
    fn found(&self, count: usize) -> Vec<Value> {
        let mut last = Vec::new();
        for _ in 0..LOOKS {
            last = self.run(&["discover", "--json"]).expect(0).of_type("server");
            if last.len() == count {
                return last;
            }
        }
        panic!("{count} servers are not found, but {last:?}");
    }
}

fn said(log: &Path) -> String {
    fs::read_to_string(log).expect("a log")
}

/// The identity that a server shows at its start.
fn identity(server: &mut Server) -> String {
    let line = server.process().wait_for_line("identity ").expect("it says so");
    line.trim_start_matches("identity ").to_owned()
}

fn port(server: &Server) -> u16 {
    server.address().rsplit(':').next().expect("a port").parse().expect("a number")
}

/// Nine digits that are not those.
fn wrong(code: &str) -> String {
    let number: u64 = code.replace('-', "").parse().expect("digits");
    format!("{:09}", (number + 1) % 1_000_000_000)
}

#[test]
fn a_server_is_found_and_lets_a_machine_in_by_its_short_code() {
    let Some(place) = Place::new() else { return };
    let (mut server, log) = place.server("server", &[]);
    let found = place.found(1);
    let (address, port) = (Links::address(0, End::Server), port(&server));
    let expected = json!([&address]);
    assert_eq!((&found[0]["addresses"], &found[0]["port"]), (&expected, &json!(port)));
    assert_eq!(found[0]["fingerprint"], identity(&mut server));

    let code = server.invite_with(&["--short", "--name", "lap"]);
    let refused = place.run_with(&wrong(&code), &["pair", "-"]).expect(13).stderr;
    assert!(refused.contains("is wrong") && refused.contains("invite --short"), "{refused}");
    let refused = place.run_with(&code, &["pair", "-"]).expect(13).stderr;
    assert!(refused.contains("no short code is open"), "{refused}");
    assert!(said(&log).contains("a short code was typed wrong"), "{}", said(&log));

    let kit = place.machine.path("kit.txt");
    let (code, pair) = (server.invite_with(&["--short", "--name", "lap"]), ["pair", "-"]);
    // What is wrong with the kit's file costs no code.
    fs::write(&kit, "").expect("a file");
    let pair_with_kit = [&pair[..], &["--write-kit", text(&kit)]].concat();
    place.run_with(&code, &pair_with_kit).expect(1);
    fs::remove_file(&kit).expect("it is there");
    let paired = place.run_with(&code, &pair_with_kit).expect(0).stdout;
    assert!(paired.contains(&format!("https://{address}:{port}/lap")), "{paired}");
    let source = place.machine.path("source");
    small_tree(&source);
    place.run(&["backup", text(&source)]).expect(0);
    assert!(!said(&log).contains(&code), "the log has the code");
}

#[test]
fn of_several_servers_one_is_chosen_or_named() {
    let Some(place) = Place::new() else { return };
    let (mut first, _) = place.server("first", &[]);
    let (second, _) = place.server("second", &[]);
    let (third, log) = place.server("third", &["--no-discovery"]);
    let identity = identity(&mut first);
    let found = place.found(2);
    assert!(found.iter().any(|server| server["fingerprint"] == identity[..]), "{found:?}");
    assert!(!said(&log).contains("announced"), "{}", said(&log));

    let code = second.invite_with(&["--short"]);
    let refused = place.run_with(&code, &["pair", "-"]).expect(2).stderr;
    assert!(refused.contains("several servers were found"), "{refused}");
    assert!(refused.contains("pair -r https://HOST"), "{refused}");
    let named = format!("https://{}:{}", Links::address(0, End::Server), port(&second));
    let kit = place.machine.path("kit.txt");
    let pair = ["pair", "-", "-r", &named, "--write-kit", text(&kit)];
    place.run_with(&code, &pair).expect(0);

    // One that is not found is named in the same way.
    let code = third.invite_with(&["--short"]);
    let named = format!("https://{}:{}", Links::address(0, End::Server), port(&third));
    let kit = place.machine.path("kit-2.txt");
    let pair = ["pair", "-", "-r", &named, "--write-kit", text(&kit)];
    place.run_with(&code, &pair).expect(0);
}

/// At a terminal, by keys that are typed.
#[test]
fn pair_at_a_terminal_lists_servers_asks_which_and_for_the_code() {
    let Some(place) = Place::new() else { return };
    let (mut first, _) = place.server("first", &[]);
    let (second, _) = place.server("second", &[]);
    let firsts = identity(&mut first);
    let found = place.found(2);
    let code = first.invite_with(&["--short"]);
    // They are listed in the order of the fingerprints, for the names are the same.
    let number = 1 + usize::from(found[0]["fingerprint"] != firsts[..]);
    let kit = place.machine.path("kit.txt");
    let pair = place.machine.command(["pair", "--write-kit", text(&kit)]);
    let mut line = Vec::new();
    for word in [pair.get_program()].into_iter().chain(pair.get_args()) {
        line.push(word.to_str().expect("UTF-8"));
    }
    let mut terminal = Command::new("script");
    terminal.args(["-qec", &line.join(" "), "/dev/null"]);
    pair.get_envs().for_each(|(name, value)| {
        terminal.env(name, value.unwrap_or_default());
    });
    let mut terminal = run_by(&place.links.prefix(End::Client), &terminal);
    let mut typing =
        terminal.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("script runs");
    let mut keys = typing.stdin.take().expect("a pipe");
    keys.write_all(format!("{number}\n{code}\n").as_bytes()).expect("it reads");
    let output = typing.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}");
    assert!(said.contains("1. ") && said.contains("which one, 1 to 2"), "{said}");
    assert!(said.contains("short code or invite: ") && said.contains(&firsts), "{said}");
    assert!(said.contains(&format!(":{}/", port(&first))), "{said}");
    drop((keys, second));
}

#[test]
fn where_no_server_is_found_it_says_why_that_may_be() {
    let Some(place) = Place::new() else { return };
    let nothing = place.run(&["discover"]).expect(0);
    assert!(nothing.stdout.is_empty(), "{}", nothing.stdout);
    for word in ["no server was found", "same network", "firewall", "UDP port 5353"] {
        assert!(nothing.stderr.contains(word), "{}", nothing.stderr);
    }
    let refused = place.run_with("123-456-789", &["pair", "-"]).expect(14).stderr;
    assert!(refused.contains("no server was found on the network for the short code"), "{refused}");
}

/// Says things by multicast at the servers' end.
fn multicast(place: &Place, args: &[&str]) -> Process {
    let mut command = Command::new("python3");
    command.arg(MULTICAST).args(args).arg(Links::address(0, End::Server));
    let mut command = run_by(&place.links.prefix(End::Server), &command);
    let mut process = Process::spawn(&mut command).expect("python3 runs");
    process.wait_for_line("ready").expect("it says all of it");
    process
}

#[test]
fn a_thousand_servers_of_hostile_names_are_cut_short_and_shown_harmlessly() {
    let Some(place) = Place::new() else { return };
    let mut hostile = multicast(&place, &["servers", "1000"]);
    let found = place.found(64);
    let is_cut = |server: &Value| server["name"].as_str().expect("a name").chars().count() <= 64;
    assert!(found.iter().all(is_cut), "{found:?}");
    let listed = place.run(&["discover"]).expect(0);
    let seen = listed.stdout.chars().all(|letter| letter == '\n' || !letter.is_control());
    assert!(seen && !listed.stdout.contains(['\u{202e}', '\u{200b}']), "{}", listed.stdout);
    assert_eq!(listed.stdout.lines().count(), 2 * 64);
    assert!(listed.stderr.contains("more servers were announced"), "{}", listed.stderr);
    hostile.kill().expect("it runs");
}

#[test]
fn a_server_forgets_what_others_make_it_remember() {
    let Some(place) = Place::new() else { return };
    let (mut server, log) = place.server("server", &[]);
    place.found(1);
    let mut hostile = multicast(&place, &["flood", "60000"]);
    hostile.wait().expect("it ends");
    let (own, mut looks) = (identity(&mut server), 0..LOOKS);
    // Every look takes longer than the server needs to notice.
    while looks.next().is_some() && !said(&log).contains("were forgotten") {
        place.found(1);
    }
    assert!(said(&log).contains("were forgotten"), "{}", said(&log));
    // By what it says since it began anew.
    assert_eq!(place.found(1)[0]["fingerprint"], own[..]);
}

/// Avahi answers on the same port of the same computers, and announces a server of its own.
#[test]
fn servers_are_found_beside_avahi_at_both_ends() {
    let has_avahi = Path::new("/usr/sbin/avahi-daemon").exists();
    if !is_there("avahi-daemon, to run beside it", has_avahi) {
        return;
    }
    let Some(place) = Place::new() else { return };
    let folder = place.machine.path("avahi");
    fs::create_dir(&folder).expect("a folder");
    fs::write(folder.join("conf"), "[server]\nenable-dbus=no\nuse-ipv6=no\n").expect("a file");
    let service = format!(
        "<service-group><name>by Avahi</name><service><type>_holdall._tcp</type><port>7443</port>\
         <txt-record>v=1</txt-record><txt-record>id={}</txt-record><txt-record>name=by Avahi</txt-record>\
         </service></service-group>",
        ["abcd"; 8].join("-")
    );
    fs::create_dir(folder.join("services")).expect("a folder");
    let [at_server, at_client] = [End::Server, End::Client].map(|end| {
        if end == End::Server {
            fs::write(folder.join("services/holdall.service"), &service).expect("a file");
        }
        avahi(&place, end, &folder)
    });
    let (mut server, _) = place.server("server", &[]);
    let found = place.found(2);
    let names: Vec<_> = found.iter().map(|one| one["name"].as_str().expect("a name")).collect();
    assert!(names.contains(&"by Avahi"), "{names:?}");
    let own = identity(&mut server);
    assert!(found.iter().any(|one| one["fingerprint"] == own[..]), "{found:?}");
    for mut avahi in [at_server, at_client] {
        avahi.kill().expect("it runs");
        avahi.wait().expect("it ends");
    }
}

/// Avahi at one end, with what it keeps elsewhere, and those services at the servers' end.
fn avahi(place: &Place, end: End, folder: &Path) -> std::process::Child {
    let services = match end {
        End::Server => "mount --bind \"$1/services\" /etc/avahi/services && ",
        End::Client => "",
    };
    let script = format!(
        "mkdir -p /run/avahi-daemon && mount -t tmpfs holdall-test /run/avahi-daemon && {services}\
         exec avahi-daemon --file \"$1/conf\" --no-drop-root --no-chroot --no-rlimits"
    );
    let mut command = Command::new("sh");
    command.args(["-c", &script, "sh"]).arg(folder);
    let mut command = run_by(&place.links.prefix(end), &command);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts")
}

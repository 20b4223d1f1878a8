//! Lost computers and lost servers: what is left brings everything back, and nobody else.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use holdall_testkit::{
    ChaosProxy, CompareOptions, FidelitySizes, Process, compare_trees, copy_folder, fidelity_tree,
};
use serde_json::Value;

use crate::house::{Machine, Server, small_tree, text};
use crate::mounts::ManyFiles;

/// What a server that is set up anew from its repositories lacks.
const KNOWN_TO_IT_ALONE: [&str; 2] = ["identity.key", "server.redb"];

/// A server at an address that stays, whatever becomes of it.
pub(crate) struct Attic {
    server: Option<Server>,
    proxy: ChaosProxy,
    pub(crate) data: PathBuf,
}

impl Attic {
    fn new(data: PathBuf) -> Self {
        let server = Server::start(&data);
        let proxy = ChaosProxy::start(upstream(&server)).expect("a free port");
        Self { server: Some(server), proxy, data }
    }

    pub(crate) fn stop(&mut self) {
        if let Some(mut server) = self.server.take() {
            server.process().terminate().unwrap();
            assert!(server.process().wait().unwrap().0.success());
        }
    }

    pub(crate) fn start(&mut self) {
        let server = Server::start(&self.data);
        self.proxy.set_upstream(upstream(&server));
        self.server = Some(server);
    }

    /// Comes back without some of its files.
    pub(crate) fn lose(&mut self, files: &[&str]) {
        self.stop();
        files.iter().for_each(|file| fs::remove_file(self.data.join(file)).unwrap());
        self.start();
    }

    pub(crate) fn address(&self) -> String {
        self.proxy.address().to_string()
    }

    pub(crate) fn invite(&self, more: &[&str]) -> String {
        let address = self.address();
        let server = self.server.as_ref().expect("it runs");
        server.invite_with(&[&["--address", &address], more].concat())
    }

    /// A machine called desk without a password, paired, with its kit, and a tree that it backed up.
    pub(crate) fn with_desk(data: PathBuf, desk: &Machine) -> Self {
        let attic = Self::new(data);
        desk.pair(&attic.invite(&["--name", "desk"]));
        small_tree(&desk.path("source"));
        desk.ok(["backup", &source_of(desk), "--host", "desk"]);
        attic
    }
}

fn upstream(server: &Server) -> SocketAddr {
    server.address().parse().expect("an address")
}

pub(crate) fn computer() -> Machine {
    Machine::new().with_password(None)
}

fn source_of(machine: &Machine) -> String {
    text(&machine.path("source")).to_owned()
}

fn kit_of(machine: &Machine) -> String {
    text(&machine.path("kit.txt")).to_owned()
}

pub(crate) fn snapshots(machine: &Machine) -> Vec<Value> {
    machine.ok(["snapshots", "--json"]).of_type("snapshot")
}

fn number(summary: &Value, field: &str) -> u64 {
    summary[field].as_u64().unwrap_or_else(|| panic!("{field} in {summary}"))
}

/// Restores the newest snapshot whole, and compares it with the source.
fn assert_restores(machine: &Machine, source: &str, options: &CompareOptions) {
    let target = machine.path("target");
    machine.ok(["restore", "latest", "--target", text(&target)]);
    let restored = target.join(source.trim_start_matches('/'));
    let differences = compare_trees(source.as_ref(), &restored, options);
    assert!(differences.is_empty(), "{:#?}", &differences[..differences.len().min(20)]);
    remove(&target);
}

fn assert_whole(machine: &Machine) {
    let checked = machine.summary(["check", "--verify", "all"]);
    assert_eq!(checked["damaged"], serde_json::json!([]));
}

/// Removes a tree with paths that may be longer than the system takes at once.
pub(crate) fn remove(path: &Path) {
    assert!(Command::new("rm").arg("-rf").arg(path).status().unwrap().success());
}

#[test]
fn with_the_kit_alone_a_new_computer_gets_everything_back() {
    let place = ManyFiles::new();
    let lost = place.machine("lost");
    let mut attic = Attic::new(lost.path("data"));
    lost.pair(&attic.invite(&[]));
    let source = lost.path("source");
    fs::create_dir(&source).unwrap();
    fidelity_tree(&source, &FidelitySizes::small()).expect("the tree can be made");
    assert_eq!(lost.summary(["backup", text(&source)])["errors"], 0);
    // No machine will use the server any more: it must know the kit by itself.
    attic.lose(&["server.redb"]);
    remove(&lost.path("config"));
    remove(&lost.path("cache"));

    let new = place.machine("new");
    new.ok(["pair", "--recovery-kit", &kit_of(&lost)]);
    let listed = snapshots(&new);
    assert_eq!((listed.len(), &listed[0]["paths"][0]), (1, &text(&source).into()));
    assert!(new.ok(["ls", "latest", text(&source)]).stdout.lines().count() > 5);
    let owners = holdall_sys::users::effective_uid() == 0;
    assert_restores(&new, text(&source), &CompareOptions { owners, ..CompareOptions::default() });
    assert_whole(&new);
    let refused = new.run(["backup", "/etc/hostname"]).expect(13);
    assert!(refused.stderr.contains("may only restore"), "{}", refused.stderr);
}

#[test]
fn a_replacement_goes_on_from_the_lost_computer_s_last_snapshot_and_sends_nothing_again() {
    let lost = computer();
    let attic = Attic::with_desk(lost.path("data"), &lost);
    let source = source_of(&lost);
    let new = computer();
    let invite = attic.invite(&["--for", "desk"]);
    new.ok(["pair", &invite, "--recovery-kit", &kit_of(&lost)]);
    lost.run(["snapshots"]).expect(13);

    let last = snapshots(&new);
    let found = new.ok(["ls", "latest", &source]).stdout;
    assert!(found.contains("large.bin"), "{found}");
    remove(source.as_ref());
    new.ok(["restore", &format!("latest:{source}"), "--target", &source]);
    let first = new.summary(["backup", &source, "--host", "another"]);
    assert!(number(&first, "total_bytes_processed") > 3_000_000, "{first}");
    assert!(number(&first, "bytes_sent") < 100_000, "sent again: {first}");
    assert_eq!(number(&first, "files_new"), 0, "it had no parent: {first}");

    let all = snapshots(&new);
    assert_eq!(all.len(), 2);
    assert_eq!(all[0], last[0]);
    assert_eq!(all[1]["machine"], all[0]["machine"]);
    assert_eq!((number(&all[0], "sequence"), number(&all[1], "sequence")), (1, 2));
    assert_whole(&new);
}

#[test]
fn a_lost_computer_loses_its_rights_in_the_middle_of_a_backup() {
    let lost = computer();
    let attic = Attic::with_desk(lost.path("data"), &lost);
    let source = source_of(&lost);
    let more = holdall_testkit::Random::new(8).bytes(24 << 20);
    fs::write(lost.path("source/more.bin"), more).unwrap();
    let slow = ["backup", &source, "--host", "desk", "--json", "--limit-upload", "1M"];
    let mut running = Process::spawn(&mut lost.command(slow)).unwrap();
    running.wait_for_line("{\"message_type\":\"status\"").unwrap();

    let new = computer();
    let invite = attic.invite(&["--for", "desk"]);
    new.ok(["pair", &invite, "--recovery-kit", &kit_of(&lost)]);
    let (status, said) = running.wait().unwrap();
    assert_eq!(status.code(), Some(13), "{said:?}");
    assert_eq!(snapshots(&new).len(), 1);
    lost.run(["restore", "latest", "--target", text(&lost.path("stolen"))]).expect(13);
}

#[test]
fn an_invite_for_a_repository_that_exists_reads_the_kit_and_writes_none() {
    let lost = computer();
    let attic = Attic::with_desk(lost.path("data"), &lost);
    let other = computer();
    other.pair(&attic.invite(&["--name", "other"]));

    let new = computer();
    let invite = attic.invite(&["--for", "desk"]);
    let pair = |kit: &Path| new.run(["pair", &invite, "--recovery-kit", text(kit)]);
    let missing = pair(&new.path("missing.txt")).expect(1);
    assert!(missing.stderr.contains("missing.txt is not there"), "{}", missing.stderr);
    assert!(!new.path("missing.txt").exists());
    let another_s = pair(&other.path("kit.txt")).expect(12);
    assert!(another_s.stderr.contains("the recovery kit is for"), "{}", another_s.stderr);
    fs::write(new.path("letter.txt"), "Dear reader,\n").unwrap();
    pair(&new.path("letter.txt")).expect(2);
    let kit = fs::read(lost.path("kit.txt")).unwrap();
    pair(&lost.path("kit.txt")).expect(0);
    assert_eq!(fs::read(lost.path("kit.txt")).unwrap(), kit);
    new.ok(["backup", &source_of(&lost)]);
}

#[test]
fn a_computer_that_reads_with_the_kit_may_write_after_an_invite() {
    let lost = computer();
    let attic = Attic::with_desk(lost.path("data"), &lost);
    let source = source_of(&lost);
    let new = computer();
    new.ok(["pair", "--recovery-kit", &kit_of(&lost)]);
    assert_restores(&new, &source, &CompareOptions::default());
    new.run(["backup", &source]).expect(13);
    new.ok(["pair", &attic.invite(&["--for", "desk"])]);
    new.ok(["backup", &source]);
    let machines: Vec<_> = snapshots(&new).iter().map(|one| one["machine"].clone()).collect();
    assert_eq!(machines.len(), 2);
    assert_eq!(machines[0], machines[1]);
}

#[test]
fn a_server_that_lost_what_it_alone_knew_is_paired_again_and_the_chain_goes_on() {
    let desk = computer();
    let mut attic = Attic::with_desk(desk.path("data"), &desk);
    let source = source_of(&desk);
    for (round, lost) in (1..).zip([&KNOWN_TO_IT_ALONE[..1], &["server.redb"], &KNOWN_TO_IT_ALONE])
    {
        attic.lose(lost);
        let refused = desk.run(["backup", &source, "--host", "desk"]).expect(13);
        assert!(refused.stderr.contains("holdall pair --again"), "{}", refused.stderr);
        desk.ok(["pair", &attic.invite(&[]), "--again"]);
        let goes_on = desk.summary(["backup", &source, "--host", "desk"]);
        assert!(number(&goes_on, "bytes_sent") < 100_000, "{lost:?}: {goes_on}");
        assert_eq!(number(&goes_on, "files_new"), 0, "{lost:?}: {goes_on}");
        let all = snapshots(&desk);
        let sequences: Vec<_> = all.iter().map(|one| number(one, "sequence")).collect();
        assert_eq!(sequences, (1..=round + 1).collect::<Vec<_>>(), "{lost:?}");
        assert!(all.iter().all(|one| one["machine"] == all[0]["machine"]), "{all:?}");
    }
    assert_restores(&desk, &source, &CompareOptions::default());
    assert_whole(&desk);
}

#[test]
fn a_server_that_was_rolled_back_is_told_when_it_is_paired_again() {
    let desk = computer();
    let mut attic = Attic::with_desk(desk.path("data"), &desk);
    let source = source_of(&desk);
    attic.stop();
    copy_folder(&attic.data, &desk.path("older"));
    attic.start();
    desk.ok(["backup", &source, "--host", "desk"]);
    attic.stop();
    remove(&attic.data);
    copy_folder(&desk.path("older"), &attic.data);
    attic.lose(&KNOWN_TO_IT_ALONE);
    let told = desk.run(["pair", &attic.invite(&[]), "--again"]).expect(20);
    assert!(told.stderr.contains("rolled back"), "{}", told.stderr);
    // It goes on all the same, is told once more, and is whole with the next snapshot.
    desk.run(["backup", &source, "--host", "desk"]).expect(20);
    desk.ok(["backup", &source, "--host", "desk"]);
}

#[test]
fn another_repository_of_that_name_is_not_taken_for_the_one_that_was() {
    let (desk, other) = (computer(), computer());
    let mut attic = Attic::with_desk(desk.path("data"), &desk);
    other.pair(&attic.invite(&["--name", "other"]));
    attic.stop();
    let repositories = attic.data.join("repositories");
    remove(&repositories.join("desk"));
    attic.lose(&KNOWN_TO_IT_ALONE);
    let gone = desk.run(["pair", &attic.invite(&[]), "--again"]).expect(13);
    assert!(gone.stderr.contains("nothing on this server proves"), "{}", gone.stderr);

    attic.stop();
    copy_folder(&repositories.join("other"), &repositories.join("desk"));
    attic.start();
    let swapped = desk.run(["pair", &attic.invite(&[]), "--again"]).expect(13);
    assert!(swapped.stderr.contains("nothing on this server proves"), "{}", swapped.stderr);
    // Not even an administrator's word makes it the same.
    let invite = attic.invite(&["--repository", "desk"]);
    remove(&desk.path("config/state/receipts"));
    let swapped = desk.run(["pair", &invite, "--again"]).expect(20);
    assert!(swapped.stderr.contains("another one than"), "{}", swapped.stderr);
    desk.run(["snapshots"]).expect(13);
    let never = computer().run(["pair", &invite, "--again"]).expect(2);
    assert!(never.stderr.contains("not paired"), "{}", never.stderr);
}

#[test]
fn a_kit_finds_a_server_that_was_set_up_anew_only_when_told_to() {
    let desk = computer();
    let mut attic = Attic::with_desk(desk.path("data"), &desk);
    attic.lose(&KNOWN_TO_IT_ALONE);
    let (new, kit) = (computer(), kit_of(&desk));
    let refused = new.run(["pair", "--recovery-kit", &kit]).expect(13);
    assert!(refused.stderr.contains("--kit FILE --again"), "{}", refused.stderr);

    attic.stop();
    let mut serving = Process::spawn(&mut Server::command(&attic.data)).unwrap();
    let address = serving.wait_for_line("listening on https://").unwrap();
    let address = address.trim_start_matches("listening on ").trim().to_owned();
    let printed = serving.wait_for_line("identity ").unwrap();
    let printed = printed.trim_start_matches("identity ").trim();
    new.run(["pair", "--recovery-kit", &kit, "-r", &address]).expect(13);
    let said = new.ok(["pair", "--recovery-kit", &kit, "--again", "-r", &address, "--json"]);
    let shown = said.of_type("server_identity").pop().expect("whom it shows");
    assert_eq!(shown["identity"], printed);
    assert_ne!(shown["former_identity"], printed);
    assert_restores(&new, &source_of(&desk), &CompareOptions::default());
    serving.kill().unwrap();
}

#[test]
fn a_server_s_repository_is_used_as_a_directory_and_given_back() {
    let desk = computer();
    let mut attic = Attic::with_desk(desk.path("data"), &desk);
    let (source, kit) = (source_of(&desk), kit_of(&desk));
    attic.stop();
    let repository = attic.data.join("repositories/desk");
    let repository = text(&repository);
    let new = computer();
    new.ok(["pair", "--recovery-kit", &kit, "-r", repository]);
    new.ok(["restore", "latest", "-r", repository, "--target", text(&new.path("all"))]);
    desk.ok(["backup", "-r", repository, &source, "--host", "desk"]);

    attic.start();
    desk.ok(["backup", &source, "--host", "desk"]);
    assert_eq!(snapshots(&desk).len(), 3);
    new.ok(["pair", "--recovery-kit", &kit]);
    assert_eq!(snapshots(&new).len(), 3);
    assert_whole(&new);
}

#[test]
fn a_server_is_copied_and_moved_and_its_new_address_is_remembered() {
    let desk = computer();
    let mut server = Server::start(&desk.path("data"));
    desk.pair_with(&server);
    small_tree(&desk.path("source"));
    let source = source_of(&desk);
    desk.ok(["backup", &source]);
    server.process().terminate().unwrap();
    assert!(server.process().wait().unwrap().0.success());
    copy_folder(&desk.path("data"), &desk.path("another-disk"));
    remove(&desk.path("data"));
    desk.run(["backup", &source]).expect(14);

    let moved = Server::start(&desk.path("another-disk"));
    let address = format!("https://{}", moved.address());
    let goes_on = desk.summary(["backup", &source, "-r", &address]);
    assert!(number(&goes_on, "bytes_sent") < 100_000, "{goes_on}");
    desk.ok(["backup", &source]);
    assert_eq!(snapshots(&desk).len(), 3);
    assert_whole(&desk);
}

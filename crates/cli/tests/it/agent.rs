//! `holdall agent` as a process: it backs up by itself, one at a time, heeds what the computer is like, and ends in good order.

use std::fs;
use std::process::{Command, Stdio};

use holdall_agent::Outlook;
use holdall_state::{AgentFiles, SetLock};
use holdall_testkit::Process;
use serde_json::Value;

use crate::house::{HOLDALL, Machine, Server, small_tree, text};

/// A machine with a repository in a directory, and a set with these lines.
pub(crate) fn machine(set: &str) -> Machine {
    let machine = Machine::new();
    let (repo, source) = (machine.path("repo"), machine.path("source"));
    machine.init(&["-r", text(&repo)]);
    small_tree(&source);
    let usual = format!(
        "repository = {:?}\n[agent]\nrandom_delay = \"0s\"\n[sets.home]\npaths = [{:?}]\n",
        text(&repo),
        text(&source)
    );
    write_settings(&machine, &format!("{usual}{set}"));
    machine
}

pub(crate) fn write_settings(machine: &Machine, text: &str) {
    fs::write(machine.path("config").join("config.toml"), text).unwrap();
}

pub(crate) fn settings(machine: &Machine) -> String {
    fs::read_to_string(machine.path("config").join("config.toml")).unwrap()
}

fn agent(machine: &Machine) -> Process {
    Process::spawn(machine.command(["agent", "--json"]).stderr(Stdio::null())).unwrap()
}

/// Waits until the agent says of itself what is wanted; returns that.
pub(crate) fn wait_until(agent: &mut Process, is_wanted: impl Fn(&Value) -> bool) -> Value {
    loop {
        let line = agent.wait_for_line("{\"message_type\":\"agent_outlook\"").expect("it goes on");
        let outlook: Value = serde_json::from_str(&line).unwrap();
        crate::schema::check(&outlook);
        if is_wanted(&outlook) {
            return outlook;
        }
    }
}

/// Whether the set has been backed up, and waits for its schedule.
pub(crate) fn is_done(outlook: &Value) -> bool {
    let set = &outlook["sets"][0];
    set["is_running"] == false && set["cause"] == "schedule" && set["hold"].is_null()
}

pub(crate) fn stop(mut agent: Process) {
    agent.terminate().unwrap();
    assert!(agent.wait().unwrap().0.success());
}

#[test]
fn a_set_is_backed_up_by_itself_and_the_agent_is_one() {
    let machine = machine("");
    let mut agent = agent(&machine);
    wait_until(&mut agent, is_done);
    assert_eq!(machine.ok(["snapshots", "--json"]).of_type("snapshot").len(), 1);
    let status = machine.ok(["agent", "status", "--json"]).objects().remove(0);
    assert_eq!(status["sets"][0]["exit_code"], 0);
    assert!(status["agent"].as_str().unwrap().contains("holdall agent"), "{status}");
    let next = machine.ok(["status"]).stdout;
    assert!(next.contains("(holdall agent)"), "{next}");
    let other = machine.run(["agent"]).expect(11);
    assert!(other.stderr.contains("is the agent already"), "{}", other.stderr);
    stop(agent);
    let status = machine.ok(["agent", "status"]).stdout;
    assert!(status.contains("does not run") && status.contains(": done"), "{status}");
}

#[test]
fn a_server_is_told_by_the_backup_when_the_agent_makes_the_next_one() {
    let machine = Machine::new().with_password(None);
    let server = Server::start(&machine.path("data"));
    machine.pair(&server.invite_with(&["--name", "desk"]));
    let source = machine.path("source");
    small_tree(&source);
    write_settings(&machine, &format!("[sets.home]\npaths = [{:?}]\n", text(&source)));
    // The test is the agent.
    let files = AgentFiles::in_state(&machine.path("config/state"));
    let _is_agent = files.be_the_agent().unwrap();
    let mut report = files.report().unwrap();
    let next = "2100-01-01T00:00:00Z".parse().unwrap();
    let outlook = Outlook { next: Some(next), ..Outlook::default() };
    report.outlook = vec![outlook];
    files.write_report(&report).unwrap();
    machine.ok(["agent", "run", "home"]);
    let told = machine.administer(&machine.path("data"), &["runs", "desk"]).expect(0);
    assert!(told.stdout.contains("2100-01-01T00:00:00Z"), "{}", told.stdout);
}

#[test]
fn a_pause_and_other_settings_are_noticed_at_once() {
    let machine = machine("");
    machine.ok(["agent", "pause"]);
    let mut agent = agent(&machine);
    wait_until(&mut agent, |outlook| outlook["sets"][0]["hold"]["reason"] == "paused");
    assert_eq!(machine.ok(["snapshots", "--json"]).of_type("snapshot").len(), 0);
    machine.ok(["agent", "resume"]);
    wait_until(&mut agent, is_done);

    let before = settings(&machine);
    write_settings(&machine, &format!("{before}schedule = \"never\"\n"));
    wait_until(&mut agent, |outlook| outlook["sets"][0]["next"].is_null());
    // What makes no sense is not followed, nor is a file that is just being written.
    write_settings(&machine, "");
    write_settings(&machine, &format!("{before}schedule = \"often\"\n"));
    write_settings(&machine, &format!("{before}schedule = \"Mon 10:00\"\n"));
    wait_until(&mut agent, |outlook| outlook["sets"][0]["schedule"] == "Mon 10:00");
    write_settings(&machine, &format!("{before}schedule = \"often\"\n"));
    let status = machine.ok(["agent", "status"]).stdout;
    assert!(status.contains("nothing is backed up: "), "{status}");
    assert!(status.contains("sets.home.schedule: `often` is no calendar expression"), "{status}");
    wait_until(&mut agent, |outlook| outlook["sets"][0]["hold"]["reason"] == "settings");
    let status = machine.ok(["agent", "status"]).stdout;
    assert!(status.contains("(Mon 10:00); it would wait now: config.toml is wrong"), "{status}");
    write_settings(&machine, &before);
    wait_until(&mut agent, |outlook| outlook["sets"][0]["hold"].is_null());
    stop(agent);
}

#[test]
fn a_backup_that_goes_on_ends_with_the_agent_and_is_made_by_the_next_one() {
    let machine = machine("hooks.before = \"echo > began; test -e go || exec sleep 600\"\n");
    let mut agent = agent_in(&machine);
    wait_until(&mut agent, |outlook| outlook["sets"][0]["is_running"] == true);
    stop(agent);
    let status = machine.ok(["agent", "status"]).stdout;
    assert!(status.contains(": interrupted"), "{status}");
    fs::write(machine.path("go"), "").unwrap();
    let state = machine.path("config/state/agent/state.json");
    let mut kept: Value = serde_json::from_str(&fs::read_to_string(&state).unwrap()).unwrap();
    // A minute later.
    kept["sets"]["home"]["retry_at"] = "2026-01-01T00:00:00Z".into();
    fs::write(&state, kept.to_string()).unwrap();
    let mut agent = agent_in(&machine);
    wait_until(&mut agent, is_done);
    stop(agent);
}

#[test]
fn a_run_that_somebody_else_began_is_waited_for() {
    let machine = machine("");
    let lock = SetLock::in_state(&machine.path("config/state"), "home");
    // The test is the other run.
    let held = lock.take().unwrap().expect("nothing else runs");
    let mut agent = agent_in(&machine);
    wait_until(&mut agent, |outlook| outlook["sets"][0]["cause"] == "retry");
    let status = machine.ok(["agent", "status"]).stdout;
    assert!(status.contains("the set home is being backed up already, by"), "{status}");
    assert!(status.contains("(another attempt, after 1 failure)"), "{status}");
    drop(held);
    stop(agent);
}

#[test]
fn a_damaged_pause_is_none_and_damaged_files_are_told() {
    let machine = machine("");
    let folder = machine.path("config/state/agent");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("pause.json"), "{\"until\": ").unwrap();
    fs::write(folder.join("state.json"), "?").unwrap();
    let status = machine.ok(["agent", "status"]).stdout;
    for file in ["state.json is damaged: ", "pause.json is damaged: "] {
        assert!(status.contains(file), "{status}");
    }
    let mut agent = agent_that_says(&machine);
    for file in ["state.json is damaged: ", "pause.json is damaged: "] {
        agent.wait_for_line(&format!("{}/{file}", text(&folder))).unwrap();
    }
    agent.wait_for_line("home is backed up").unwrap();
    stop(agent);
}

#[test]
fn a_state_that_cannot_be_kept_is_told_once_with_its_reason_and_the_agent_sleeps() {
    let machine = machine("");
    let folder = machine.path("config/state/agent");
    // In the place of the file: a folder that cannot be replaced by one.
    fs::create_dir_all(folder.join("state.json/in-use")).unwrap();
    let mut agent = agent_that_says(&machine);
    let told = agent.wait_for_line("the agent's state is not kept: ").unwrap();
    assert!(told.contains("state.json: "), "{told}");
    agent.wait_for_line("home is backed up").unwrap();
    sleeps(&agent);
    agent.terminate().unwrap();
    let (status, said) = agent.wait().unwrap();
    assert!(status.success(), "{said:?}");
    let told = said.iter().filter(|line| line.contains("is not kept")).count();
    assert_eq!(told, 1, "{said:?}");
}

/// An agent whose log can be read.
fn agent_that_says(machine: &Machine) -> Process {
    let usual = machine.command(["agent"]);
    let mut command = Command::new("/bin/sh");
    command.args(["-c", "exec \"$0\" \"$@\" 2>&1 >/dev/null", HOLDALL]).args(usual.get_args());
    command.env_clear();
    command.envs(usual.get_envs().filter_map(|(name, value)| Some((name, value?))));
    Process::spawn(&mut command).unwrap()
}

/// Waits until all threads of a process wait for something to happen, and do so whenever they are looked at.
pub(crate) fn sleeps(process: &Process) {
    let threads = format!("/proc/{}/task", process.id());
    let is_asleep = || {
        std::thread::yield_now();
        let mut stats = fs::read_dir(&threads).unwrap().map(|thread| {
            // One that has just ended is none.
            fs::read_to_string(thread.unwrap().path().join("stat")).unwrap_or_default()
        });
        stats.all(|stat| !stat.rsplit(')').next().unwrap().trim_start().starts_with('R'))
    };
    let mut in_a_row = 0;
    for _ in 0..100_000 {
        in_a_row = if is_asleep() { in_a_row + 1 } else { 0 };
        if in_a_row == 1000 {
            return;
        }
    }
    panic!("it never sleeps");
}

/// An agent whose hooks find the machine's folder as their current one.
fn agent_in(machine: &Machine) -> Process {
    let mut command = machine.command(["agent", "--json"]);
    Process::spawn(command.current_dir(machine.path("")).stderr(Stdio::null())).unwrap()
}

#[test]
fn a_program_that_was_replaced_makes_the_next_backup() {
    let machine = machine("");
    machine.ok(["agent", "pause"]);
    let program = machine.path("holdall");
    fs::hard_link(HOLDALL, &program).unwrap();
    let usual = machine.command(["agent", "--json"]);
    let mut command = Command::new(&program);
    command.args(usual.get_args()).env_clear().stderr(Stdio::null());
    command.envs(usual.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let mut agent = Process::spawn(&mut command).unwrap();
    wait_until(&mut agent, |outlook| outlook["sets"][0]["hold"]["reason"] == "paused");
    fs::remove_file(&program).unwrap();
    fs::hard_link(HOLDALL, &program).unwrap();
    machine.ok(["agent", "resume"]);
    wait_until(&mut agent, is_done);
    stop(agent);
}

/// The most that the agent may have in memory of its own while it waits. What of the program's file is mapped comes on top:
/// little of what is shipped, much of what is built for tests.
const IDLE_KIB: u64 = 8 << 10;

#[test]
fn an_agent_that_waits_is_small_and_stands_back() {
    let machine = machine("hooks.before = \"nice > nice\"\n");
    let mut agent = agent_in(&machine);
    wait_until(&mut agent, is_done);
    let status = fs::read_to_string(format!("/proc/{}/status", agent.id())).unwrap();
    let resident = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    let resident: u64 = resident.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(resident < IDLE_KIB, "{resident} KiB");
    let nice = fs::read_to_string(machine.path("nice")).unwrap();
    assert!(nice.trim().parse::<i32>().unwrap() >= 10, "{nice}");
    stop(agent);
}

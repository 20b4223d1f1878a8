//! A day in the life of a laptop, and nine more: the schedule by a clock that the test moves, and real backups to a real
//! server. `holdall agent status` explains each state, and no edit is lost.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use holdall_agent::{Ending, Manners, Notice, Plan, PlannedSet, Report, Scheduler, Step};
use holdall_state::{AgentFiles, IsAgent};
use holdall_testkit::{ChaosProxy, Random};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::Value;

use crate::clocks;
use crate::house::{Machine, Outcome, Server, text};
use crate::mounts::Mount;

/// A laptop with an agent, and its server behind a network that breaks when it is told to.
struct Laptop {
    machine: Machine,
    source: PathBuf,
    proxy: ChaosProxy,
    _server: Server,
    disk: Mount,
    scheduler: Scheduler,
    files: AgentFiles,
    /// The test's own process is the agent.
    _is_agent: IsAgent,
    now: Timestamp,
    /// What the next run meets.
    trouble: Option<fn(&Self)>,
    /// Whether all runs end as one did that found no server, for days.
    is_away: bool,
    edits: u64,
    notices: Vec<Notice>,
}

impl Laptop {
    /// `None` for who may not mount the server's disk.
    fn new() -> Option<Self> {
        let machine = Machine::new().with_password(None);
        let disk = Mount::in_memory(&machine.path("disk"), 256 << 20)?;
        let server = Server::start(&disk.point().join("data"));
        let proxy = ChaosProxy::start(server.address().parse().unwrap()).unwrap();
        let reached_at = proxy.address().to_string();
        machine.pair(&server.invite_with(&["--name", "laptop", "--address", &reached_at]));
        let source = machine.path("source");
        fs::create_dir_all(&source).unwrap();
        let settings = format!("[sets.home]\npaths = [{:?}]\nretry_for = \"0s\"\n", text(&source));
        fs::write(machine.path("config").join("config.toml"), settings).unwrap();

        let now = "2026-11-30T07:46:00Z".parse().unwrap();
        let files = AgentFiles::in_state(&machine.path("config/state"));
        let is_agent = files.be_the_agent().unwrap().expect("no other agent");
        let mut scheduler = Scheduler::new(files.report().unwrap().state, TimeZone::UTC, now);
        let set = PlannedSet {
            name: "home".to_owned(),
            schedule: "hourly".parse().unwrap(),
            uses_network: true,
        };
        let manners = Manners { random_delay: Duration::ZERO, ..Manners::default() };
        scheduler.follow(Plan { manners, sets: vec![set] }, now);
        Some(Self {
            machine,
            source,
            proxy,
            _server: server,
            disk,
            scheduler,
            files,
            _is_agent: is_agent,
            now,
            trouble: None,
            is_away: false,
            edits: 0,
            notices: Vec::new(),
        })
    }

    /// The user edits a file, and makes a new one.
    fn edit(&mut self) {
        self.edits += 1;
        fs::write(self.source.join("diary"), format!("{} edits\n", self.edits)).unwrap();
        let content = Random::new(self.edits).bytes(300_000);
        fs::write(self.source.join(format!("photo-{}", self.edits)), content).unwrap();
    }

    /// Time passes with the computer on; returns when runs began, and their exit codes.
    fn until(&mut self, time: &str) -> Vec<(String, i32)> {
        let end = at(time);
        let mut runs = Vec::new();
        loop {
            match self.scheduler.next(self.now) {
                Step::Start { set, .. } => {
                    let began = self.now.strftime("%d %H:%M").to_string();
                    let ending = self.run(&set);
                    runs.push((began, ending.exit_code.unwrap().into()));
                    self.scheduler.ended(ending, self.now);
                }
                Step::Tell(notice) => self.notices.push(notice),
                // What that says is no matter of this test.
                Step::Measure => self.scheduler.ended(Ending::default(), self.now),
                Step::Stop(hold) => panic!("nothing holds it: {hold}"),
                Step::Wait(next) => match next.filter(|next| *next <= end) {
                    Some(next) => self.now = next.max(self.now),
                    None => break,
                },
            }
        }
        self.now = end;
        self.keep();
        runs
    }

    /// Runs what the agent would, in the midst of the trouble that was planned.
    fn run(&mut self, set: &str) -> Ending {
        if self.is_away {
            return Ending { exit_code: Some(14), message: None };
        }
        if let Some(trouble) = self.trouble {
            trouble(self);
        }
        let outcome = self.machine.run(["agent", "run", set, "--json"]);
        let message = outcome.of_type("error").pop();
        let message = message.and_then(|told| Some(told["message"].as_str()?.to_owned()));
        Ending { exit_code: outcome.code.and_then(|code| u8::try_from(code).ok()), message }
    }

    fn keep(&self) {
        let report = Report {
            state: self.scheduler.state().clone(),
            conditions: self.scheduler.conditions().clone(),
            outlook: self.scheduler.outlook(self.now),
            settings_problem: None,
            walks: BTreeMap::new(),
        };
        self.files.write_report(&report).unwrap();
    }

    /// What the status says of the set, in words.
    fn explained(&self) -> String {
        let command = self.machine.command(["agent", "status"]);
        let now = self.now.strftime("%F %T").to_string();
        let Outcome { stdout, .. } = Outcome::of(&mut clocks::at(&now, &command)).expect(0);
        assert!(stdout.starts_with("agent            runs ("), "{stdout}");
        stdout.lines().skip(1).map(str::trim).collect::<Vec<_>>().join("\n")
    }

    fn snapshots(&self) -> Vec<Value> {
        self.machine.ok(["snapshots", "--json"]).of_type("snapshot")
    }

    /// Whether the newest snapshot has every edit.
    fn nothing_is_lost(&self) {
        let diary = self.machine.ok(["dump", &format!("latest:{}/diary", text(&self.source))]);
        assert_eq!(diary.stdout, format!("{} edits\n", self.edits));
        let listed = self.machine.ok(["ls", "latest", text(&self.source)]).stdout;
        assert_eq!(listed.matches("photo-").count() as u64, self.edits, "{listed}");
    }
}

/// A time of 30 November, or of a day of December as in `1 08:00`.
fn at(time: &str) -> Timestamp {
    let text = match time.split_once(' ') {
        Some((day, time)) => format!("2026-12-{day:0>2}T{time}:00Z"),
        None => format!("2026-11-30T{time}:00Z"),
    };
    text.parse().unwrap()
}

fn codes(runs: &[(String, i32)]) -> Vec<i32> {
    runs.iter().map(|(_, code)| *code).collect()
}

#[test]
fn a_day_in_the_life_of_a_laptop_loses_nothing_and_each_state_is_explained() {
    if !clocks::has_faketime() {
        return;
    }
    let Some(mut laptop) = Laptop::new() else { return };
    laptop.keep();
    assert!(laptop.explained().contains("the first one"), "{}", laptop.explained());

    // 24 runs, with an edit before each.
    for hour in 8..32 {
        laptop.edit();
        let time = match hour {
            0..24 => format!("{hour:02}:10"),
            _ => format!("1 {:02}:10", hour - 24),
        };
        assert_eq!(codes(&laptop.until(&time)).last(), Some(&0), "{time}");
    }
    assert_eq!(laptop.snapshots().len(), 25, "the first one came before its schedule");
    laptop.nothing_is_lost();
    assert!(
        laptop.explained().contains("done\nnext 2026-12-01 08:00 UTC (hourly)"),
        "{}",
        laptop.explained()
    );

    // The lid is closed over lunch.
    laptop.edit();
    laptop.now = at("1 13:20");
    laptop.scheduler.woke_up(laptop.now);
    laptop.keep();
    assert!(
        laptop.explained().contains("but the computer or the agent just started"),
        "{}",
        laptop.explained()
    );
    assert_eq!(laptop.until("1 13:30"), [("01 13:20".to_owned(), 0)], "one run makes up for five");

    // The network goes away in the middle of a run, and comes back.
    laptop.edit();
    laptop.trouble = Some(|laptop| {
        laptop.proxy.cut_after(150_000);
        laptop.proxy.refuse(true);
    });
    let runs = laptop.until("1 14:05");
    assert_eq!(codes(&runs), [14, 14, 14], "{runs:?}");
    let explained = laptop.explained();
    assert!(
        explained.contains("failed (14)")
            && explained.contains("last good backup 2026-12-01 13:20"),
        "{explained}"
    );
    assert!(explained.contains("(another attempt, after 3 failures)"), "{explained}");
    laptop.trouble = Some(|laptop| {
        laptop.proxy.cut_after(1 << 40);
        laptop.proxy.refuse(false);
    });
    assert_eq!(codes(&laptop.until("1 14:10")), [0]);
    laptop.nothing_is_lost();
    assert_eq!(laptop.notices, [], "that passed by itself");

    // The server's disk is full, until somebody makes room.
    laptop.edit();
    let filler = laptop.disk.fill_but(64 << 10);
    laptop.trouble = None;
    let runs = laptop.until("1 15:05");
    assert!(codes(&runs).iter().all(|code| *code == 1) && runs.len() > 1, "{runs:?}");
    let explained = laptop.explained();
    assert!(explained.contains("failed (1): ") && explained.contains("room"), "{explained}");
    assert!(
        matches!(&laptop.notices[..], [Notice::Failed { .. }]),
        "told once: {:?}",
        laptop.notices
    );
    fs::remove_file(filler).unwrap();
    assert_eq!(codes(&laptop.until("1 15:50")).last(), Some(&0));
    laptop.nothing_is_lost();

    // The clock jumps ahead for a moment, and is set right again.
    laptop.edit();
    laptop.now = "2031-01-01T00:30:00Z".parse().unwrap();
    assert_eq!(
        laptop.scheduler.next(laptop.now),
        Step::Start { set: "home".to_owned(), slow: false }
    );
    let ending = laptop.run("home");
    laptop.scheduler.ended(ending, laptop.now);
    laptop.now = at("1 15:52");
    assert_eq!(laptop.until("1 15:55"), []);
    assert!(
        laptop.explained().contains("next 2026-12-01 16:00 UTC (hourly)"),
        "{}",
        laptop.explained()
    );
    assert_eq!(codes(&laptop.until("1 17:30")), [0, 0]);

    // It stays away from its server for nine days, and is used.
    laptop.edit();
    laptop.notices.clear();
    laptop.trouble = Some(|laptop| laptop.proxy.refuse(true));
    assert_eq!(codes(&laptop.until("1 18:00")), [14]);
    laptop.is_away = true;
    let runs = laptop.until("10 17:30");
    assert!(codes(&runs).iter().all(|code| *code == 14), "{runs:?}");
    let warned = laptop.notices.iter().map(Notice::title).collect::<Vec<_>>();
    let expected = (3..=9).map(|days| format!("No backup of `home` for {days} days"));
    assert_eq!(warned, expected.collect::<Vec<_>>());
    let explained = laptop.explained();
    assert!(explained.contains("last good backup 2026-12-01 17:00 UTC"), "{explained}");

    // Home again.
    laptop.is_away = false;
    laptop.trouble = Some(|laptop| laptop.proxy.refuse(false));
    assert_eq!(codes(&laptop.until("10 18:05")), [0]);
    assert!(
        laptop.explained().contains("done\nnext 2026-12-10 19:00 UTC (hourly)"),
        "{}",
        laptop.explained()
    );
    laptop.nothing_is_lost();
    laptop.machine.ok(["check"]);
}

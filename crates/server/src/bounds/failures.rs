//! What requests fail with, and what sessions were for, told to the log in few lines however many there are.
//!
//! Strangers are refused as often as they ask, so each second has one line for all that they are refused, and a
//! few lines for each machine: what matters is not buried, nor does a system's log drop it for having had too
//! much.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use holdall_sys::Clock;
use tokio::sync::Notify;
use tokio::time::sleep;

use crate::LogSink;
use crate::bounds::source::Source;

/// Lines in a second before what else fails is counted.
const LINES_OF_MACHINE: u32 = 10;
const SECOND_NS: i64 = 1_000_000_000;
/// More addresses than these are not told apart in one line.
const MAX_SOURCES: usize = 1000;
/// Most letters that are told of one failure.
const MAX_LETTERS: usize = 300;

/// Whose failures they are.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Whose {
    /// Those of all keys that are not paired, or not any more, and of who shows none.
    Strangers,
    /// Those of who signs in by a browser, and is not let in.
    #[cfg(feature = "web")]
    Browsers,
    /// Those of a repository's machine and its recovery kits.
    Repository(String),
    /// No failures: snapshots and readings of a repository.
    Sessions(String),
    /// Those of accepting connections.
    Listener,
}

/// Counts failures and tells them.
pub(crate) struct FailureLog {
    log: LogSink,
    clock: Arc<dyn Clock>,
    of: Mutex<HashMap<Whose, Second>>,
    /// Told when something was counted and not told.
    counted: Notify,
}

/// What was told in the second that goes on, and what was not.
#[derive(Default)]
struct Second {
    began_ns: i64,
    lines: u32,
    untold: Untold,
}

#[derive(Default)]
struct Untold {
    count: u64,
    sources: HashSet<Source>,
    /// The source of the last one, and what it was.
    last: (Option<Source>, String),
}

impl FailureLog {
    pub(crate) fn new(log: LogSink, clock: Arc<dyn Clock>) -> Self {
        Self { log, clock, of: Mutex::default(), counted: Notify::new() }
    }

    /// Tells that something failed, now or together with what fails in the same second.
    pub(crate) fn note(&self, whose: Whose, source: Option<Source>, what: &str) {
        let now_ns = self.clock.running_ns();
        let line = {
            let mut of = self.of.lock().unwrap_or_else(PoisonError::into_inner);
            let second = of.entry(whose.clone()).or_default();
            second.untold.add(source, what);
            if second.is_over(now_ns) {
                (second.began_ns, second.lines) = (now_ns, 0);
            }
            (second.lines < whose.most_lines()).then(|| second.tell(&whose))
        };
        match line {
            Some(line) => (self.log)(&line),
            None => self.counted.notify_one(),
        }
    }

    /// Tells what was counted, each second in which something was. Never ends by itself.
    pub(crate) async fn tell_counted(&self) {
        loop {
            self.counted.notified().await;
            while self.tell_those(|second, now_ns| second.is_over(now_ns)) {
                sleep(Duration::from_secs(1)).await;
            }
        }
    }

    /// Tells everything that was counted.
    pub(crate) fn tell_all(&self) {
        self.tell_those(|_, _| true);
    }

    /// Tells what was counted in those seconds; true if anything is left.
    fn tell_those(&self, is_due: impl Fn(&Second, i64) -> bool) -> bool {
        let now_ns = self.clock.running_ns();
        let mut lines = Vec::new();
        let mut is_left = false;
        let mut of = self.of.lock().unwrap_or_else(PoisonError::into_inner);
        for (whose, second) in of.iter_mut().filter(|(_, second)| second.untold.count > 0) {
            match is_due(second, now_ns) {
                true => {
                    (second.began_ns, second.lines) = (now_ns, 0);
                    lines.push(second.tell(whose));
                }
                false => is_left = true,
            }
        }
        drop(of);
        lines.iter().for_each(|line| (self.log)(line));
        is_left
    }
}

impl Whose {
    fn most_lines(&self) -> u32 {
        match self {
            #[cfg(feature = "web")]
            Self::Browsers => 1,
            Self::Strangers | Self::Listener => 1,
            Self::Repository(_) | Self::Sessions(_) => LINES_OF_MACHINE,
        }
    }
}

impl Second {
    fn is_over(&self, now_ns: i64) -> bool {
        !(0..SECOND_NS).contains(&now_ns.saturating_sub(self.began_ns))
    }

    /// The line of what was not told, which counts as told from now on.
    fn tell(&mut self, whose: &Whose) -> String {
        self.lines += 1;
        std::mem::take(&mut self.untold).line(whose)
    }
}

impl Untold {
    fn add(&mut self, source: Option<Source>, what: &str) {
        self.count += 1;
        self.last = (source, what.chars().take(MAX_LETTERS).collect());
        if self.sources.len() < MAX_SOURCES {
            self.sources.extend(source);
        }
    }

    fn line(self, whose: &Whose) -> String {
        let (count, what) = (self.count, self.last.1);
        let several = match whose {
            Whose::Strangers if count == 1 => "refused a request of an unpaired key".to_owned(),
            Whose::Strangers => format!("refused {count} requests of unpaired keys"),
            #[cfg(feature = "web")]
            Whose::Browsers if count == 1 => "refused a sign-in in a browser".to_owned(),
            #[cfg(feature = "web")]
            Whose::Browsers => format!("refused {count} sign-ins in a browser"),
            Whose::Repository(_) | Whose::Sessions(_) | Whose::Listener if count == 1 => {
                return what;
            }
            Whose::Repository(name) => format!("{count} requests for {name} failed"),
            Whose::Sessions(name) => format!("{count} snapshots and readings of {name}"),
            Whose::Listener => format!("{count} connections could not be accepted"),
        };
        let from = match (self.last.0, self.sources.len()) {
            (None, _) => String::new(),
            (Some(source), 1) => format!(", from {source}"),
            (Some(source), many) => format!(", from {many} addresses, last {source}"),
        };
        format!("{several}{from}: {what}")
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use holdall_testkit::FakeClock;

    use super::*;

    /// A log, its clock, and what it was told.
    fn failure_log() -> (FailureLog, Arc<FakeClock>, Arc<Mutex<Vec<String>>>) {
        let (clock, lines) =
            (Arc::new(FakeClock::at(1_900_000_000)), Arc::<Mutex<Vec<_>>>::default());
        let told = Arc::clone(&lines);
        let log: LogSink = Arc::new(move |line| told.lock().unwrap().push(line.to_owned()));
        (FailureLog::new(log, clock.clone()), clock, lines)
    }

    fn from(address: u8) -> Option<Source> {
        Some(Source::from(IpAddr::from([10, 0, 0, address])))
    }

    #[test]
    fn strangers_have_a_line_a_second_that_says_how_many_and_from_where() {
        let (failures, clock, lines) = failure_log();
        failures.note(Whose::Strangers, from(1), "pair: no such invite");
        for number in 0..14_209 {
            failures.note(Whose::Strangers, from(1 + (number % 3) as u8), "describe: unknown key");
        }
        assert!(failures.tell_those(|second, now_ns| second.is_over(now_ns)), "not yet");
        clock.advance(Duration::from_secs(1));
        failures.note(Whose::Strangers, from(7), "pair: no such invite");
        failures.note(Whose::Strangers, from(8), "pair: no such invite");
        assert!(failures.tell_those(|second, now_ns| second.is_over(now_ns)));
        clock.advance(Duration::from_secs(1));
        assert!(!failures.tell_those(|second, now_ns| second.is_over(now_ns)));
        failures.tell_all();
        assert_eq!(
            *lines.lock().unwrap(),
            [
                "refused a request of an unpaired key, from 10.0.0.1: pair: no such invite",
                "refused 14210 requests of unpaired keys, from 4 addresses, last 10.0.0.7: pair: no such \
                 invite",
                "refused a request of an unpaired key, from 10.0.0.8: pair: no such invite",
            ]
        );
    }

    #[test]
    fn a_machine_has_a_few_lines_and_takes_none_from_others() {
        let (failures, _, lines) = failure_log();
        let of = |name: &str| Whose::Repository(name.into());
        (0..100)
            .for_each(|number| failures.note(of("laptop"), from(1), &format!("fault {number}")));
        failures.note(of("desk"), from(1), "another");
        failures.note(Whose::Sessions("laptop".into()), from(1), "snapshot 1");
        failures.note(Whose::Listener, None, "too many open files");
        failures.tell_all();
        let lines = lines.lock().unwrap();
        assert_eq!(lines[..2], ["fault 0", "fault 1"]);
        assert_eq!(
            lines[10..],
            [
                "another",
                "snapshot 1",
                "too many open files",
                "90 requests for laptop failed, from 10.0.0.1: fault 99"
            ]
        );
    }

    #[test]
    fn what_one_failure_and_many_addresses_take_is_bounded() {
        let (failures, clock, lines) = failure_log();
        failures.note(Whose::Strangers, None, &"x".repeat(100_000));
        for number in 0..2000u32 {
            let source = Source::from(IpAddr::from(number.to_be_bytes()));
            failures.note(Whose::Strangers, Some(source), "y");
        }
        clock.advance(Duration::from_secs(1));
        failures.tell_all();
        let lines = lines.lock().unwrap();
        assert!(lines[0].len() < 400, "{}", lines[0].len());
        assert!(
            lines[1].contains("2000 requests of unpaired keys, from 1000 addresses"),
            "{}",
            lines[1]
        );
    }
}

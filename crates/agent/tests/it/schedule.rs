//! What the agent decides, hour by hour, by a clock that the test moves.

use std::time::Duration;

use holdall_agent::{
    Cause, Conditions, Ending, Hold, Manner, Manners, Notice, Outlook, Pause, Plan, PlannedSet,
    Scheduler, State, Step,
};
use jiff::Timestamp;
use jiff::tz::TimeZone;

/// A computer with an agent, from the morning of 30 November 2026 on.
struct Day {
    scheduler: Scheduler,
    now: Timestamp,
    plan: Plan,
    /// When disk and network were measured.
    measured: Vec<String>,
}

impl Day {
    /// One with sets of these names and schedules, without random delays.
    fn with(sets: &[(&str, &str)]) -> Self {
        let set = |(name, schedule): &(&str, &str)| PlannedSet {
            name: (*name).to_owned(),
            schedule: schedule.parse().unwrap(),
            uses_network: true,
        };
        let manners = Manners { random_delay: Duration::ZERO, ..Manners::default() };
        let plan = Plan { manners, sets: sets.iter().map(set).collect() };
        let now = time("07:46");
        let scheduler = Scheduler::new(State::default(), TimeZone::UTC, now);
        let mut day = Self { scheduler, now, plan, measured: Vec::new() };
        day.scheduler.follow(day.plan.clone(), now);
        day
    }

    fn hourly() -> Self {
        Self::with(&[("home", "hourly")])
    }

    /// Changes the manners.
    fn minding(mut self, change: impl FnOnce(&mut Manners)) -> Self {
        change(&mut self.plan.manners);
        self.scheduler.follow(self.plan.clone(), self.now);
        self
    }

    /// The computer is on until that time; what was done meanwhile is collected, and each run ends at once as `code` says.
    fn until(&mut self, at: Timestamp, code: u8) -> Vec<(String, Step)> {
        let mut done = Vec::new();
        loop {
            let step = self.scheduler.next(self.now);
            let shown = self.now.strftime("%d %H:%M:%S").to_string();
            match step {
                Step::Wait(next) => match next.filter(|next| *next <= at) {
                    Some(next) => self.now = next.max(self.now),
                    None => break,
                },
                Step::Start { .. } => {
                    done.push((shown, step));
                    self.end(code);
                }
                // Of these, a test of their own tells.
                Step::Measure => {
                    self.measured.push(shown);
                    self.end(0);
                }
                step => done.push((shown, step)),
            }
            assert!(done.len() < 1000, "it does the same for ever: {:?}", &done[990..]);
        }
        self.now = at;
        done
    }

    /// The moments at which runs begin until then.
    fn starts_until(&mut self, at: &str, code: u8) -> Vec<String> {
        let done = self.until(time(at), code).into_iter();
        done.filter(|(_, step)| matches!(step, Step::Start { .. })).map(|(at, _)| at).collect()
    }

    /// Starts the run that is due, and leaves it running.
    fn start(&mut self) {
        let step = self.scheduler.next(self.now);
        assert!(matches!(step, Step::Start { .. }), "{step:?}");
    }

    fn end(&mut self, code: u8) {
        let ending = Ending { exit_code: Some(code), message: None };
        self.scheduler.ended(ending, self.now);
    }

    fn outlook(&self) -> Outlook {
        self.scheduler.outlook(self.now).remove(0)
    }

    fn is(&mut self, conditions: Conditions) {
        self.scheduler.conditions_are(conditions, self.now);
    }
}

/// A time of 30 November, or of another day as in `4 08:00` for 4 December.
fn time(text: &str) -> Timestamp {
    let at = match text.split_once(' ') {
        Some((day, time)) => format!("2026-12-{day:0>2}T{time}:00Z"),
        None => format!("2026-11-30T{text}:00Z"),
    };
    at.parse().unwrap()
}

fn on(connection: &str) -> Conditions {
    Conditions { connection: Some(connection.to_owned()), ..Conditions::default() }
}

#[test]
fn a_set_that_was_never_backed_up_is_so_once_the_network_had_time_and_then_by_its_schedule() {
    let mut day = Day::hourly();
    assert_eq!(day.outlook().cause, Some(Cause::First));
    assert_eq!(day.outlook().hold, Some(Hold::Settling));
    let expected = ["30 07:46:30", "30 08:00:00", "30 09:00:00", "30 10:00:00"];
    assert_eq!(day.starts_until("10:59", 0), expected);
    assert_eq!(day.outlook().next, Some(time("11:00")));
    assert_eq!((day.outlook().cause, day.outlook().hold), (Some(Cause::Schedule), None));
}

#[test]
fn what_a_sleeping_computer_missed_is_made_up_for_by_one_run() {
    let mut day = Day::hourly();
    day.until(time("08:30"), 0);
    day.now = time("2 17:20");
    day.scheduler.woke_up(day.now);
    assert_eq!(day.starts_until("2 19:30", 0), ["02 17:20:30", "02 18:00:00", "02 19:00:00"]);
}

#[test]
fn a_restarted_agent_goes_on_where_it_was() {
    let mut day = Day::hourly();
    day.until(time("08:30"), 0);
    let kept = serde_json::to_string(day.scheduler.state()).unwrap();
    let state: State = serde_json::from_str(&kept).unwrap();
    day.scheduler = Scheduler::new(state, TimeZone::UTC, day.now);
    day.scheduler.follow(day.plan.clone(), day.now);
    assert_eq!(day.starts_until("09:30", 0), ["30 09:00:00"]);
}

#[test]
fn a_failure_that_may_pass_is_tried_again_ever_less_often_and_others_with_the_schedule() {
    let mut day = Day::with(&[("home", "daily")]);
    let expected = ["30 07:46:30", "30 07:47:30", "30 07:49:30", "30 07:53:30", "30 08:01:30"];
    assert_eq!(day.starts_until("08:10", 14), expected);
    assert_eq!(day.outlook().cause, Some(Cause::Retry));
    let mut day = Day::with(&[("home", "daily")]);
    assert_eq!(day.starts_until("1 12:00", 12), ["30 07:46:30", "01 00:00:00"]);
}

#[test]
fn another_network_ends_the_waiting_for_the_next_attempt() {
    let mut day = Day::with(&[("home", "daily")]);
    day.is(on("Cafe"));
    day.until(time("11:00"), 14);
    let waiting = day.outlook().next.unwrap();
    assert!(waiting > time("11:01"), "{waiting}");
    day.is(on("Home"));
    assert_eq!(day.starts_until("11:02", 0), ["30 11:00:05"]);
}

#[test]
fn runs_wait_for_power_and_for_a_connection_that_costs_nothing() {
    let battery = Conditions { on_battery: Some(true), battery_percent: Some(12), ..on("Home") };
    let metered = Conditions { metered: Some(true), ..on("Phone") };
    for (held, hold) in [(battery, Hold::LowBattery { percent: 12 }), (metered, Hold::Metered)] {
        let mut day = Day::hourly();
        day.is(held);
        assert_eq!(day.starts_until("09:20", 0), [""; 0]);
        assert_eq!(day.outlook().hold, Some(hold));
        assert_eq!(day.outlook().next, Some(time("07:46")), "it is due all the time");
        day.is(on("Home"));
        assert_eq!(day.starts_until("09:30", 0), ["30 09:20:00"]);
    }
}

#[test]
fn a_run_is_stopped_by_what_would_have_kept_it_from_beginning_and_done_again() {
    let mut day = Day::hourly();
    day.now = time("07:50");
    day.start();
    day.is(Conditions { metered: Some(true), ..on("Phone") });
    assert_eq!(day.scheduler.next(day.now), Step::Stop(Hold::Metered));
    assert_eq!(day.scheduler.next(day.now), Step::Wait(None), "it is asked to end once");
    day.end(130);
    assert_eq!(day.until(time("08:20"), 0), [], "that is no failure to tell of");
    assert_eq!(day.scheduler.state().sets["home"].stopped_by, Some(Hold::Metered));
    day.is(on("Home"));
    assert_eq!(day.starts_until("08:30", 0), ["30 08:20:00"]);
    assert_eq!(day.scheduler.state().sets["home"].stopped_by, None);
}

#[test]
fn a_run_that_was_done_before_it_could_be_stopped_counts() {
    let mut day = Day::hourly();
    day.now = time("07:50");
    day.start();
    day.scheduler.pause_is(Some(Pause { until: None }));
    assert!(matches!(day.scheduler.next(day.now), Step::Stop(Hold::Paused { .. })));
    day.end(0);
    assert_eq!(day.scheduler.state().sets["home"].last_good, Some(day.now));
}

#[test]
fn a_pause_ends_by_itself_or_when_it_is_ended() {
    let mut day = Day::hourly();
    day.until(time("08:30"), 0);
    day.scheduler.pause_is(Some(Pause { until: Some(time("10:20")) }));
    assert_eq!(day.starts_until("10:30", 0), ["30 10:20:00"]);
    day.scheduler.pause_is(Some(Pause { until: None }));
    assert_eq!(day.starts_until("12:30", 0), [""; 0]);
    assert_eq!(day.outlook().hold, Some(Hold::Paused { until: None }));
    day.scheduler.pause_is(None);
    assert_eq!(day.starts_until("12:40", 0), ["30 12:30:00"]);
}

#[test]
fn a_clock_that_was_wrong_neither_stops_backups_nor_repeats_them() {
    let mut day = Day::hourly();
    day.until(time("08:30"), 0);
    day.now = "2099-01-01T00:10:00Z".parse().unwrap();
    assert_eq!(day.until(day.now, 0).len(), 1, "one run makes up for 72 years");
    day.now = time("08:31");
    assert_eq!(day.starts_until("10:30", 0), ["30 09:00:00", "30 10:00:00"]);
    day.now = time("04:15");
    assert_eq!(day.starts_until("06:30", 0), ["30 05:00:00", "30 06:00:00"]);
}

#[test]
fn a_clock_that_was_wrong_while_runs_failed_does_not_keep_the_next_attempt_away() {
    let mut day = Day::with(&[("home", "daily")]);
    day.now = "2099-01-01T00:10:00Z".parse().unwrap();
    day.until(day.now, 14);
    day.now = time("08:31");
    let retries = day.starts_until("09:40", 0);
    assert_eq!(retries, ["30 09:31:00"], "an hour is the most");
}

#[test]
fn one_set_runs_at_a_time_and_the_one_that_is_due_for_longest_is_first() {
    let mut day = Day::with(&[("home", "hourly"), ("mail", "*:50")]);
    day.until(time("08:30"), 0);
    day.now = time("09:05");
    assert_eq!(day.scheduler.next(day.now), Step::Start { set: "mail".to_owned(), slow: false });
    assert_eq!(day.scheduler.next(day.now), Step::Wait(None));
    assert_eq!(day.outlook().hold, Some(Hold::Busy { set: "mail".to_owned() }));
    day.end(0);
    assert_eq!(day.starts_until("09:10", 0), ["30 09:05:00"]);
}

#[test]
fn a_set_that_never_runs_by_itself_is_neither_run_nor_warned_of() {
    let mut day = Day::with(&[("home", "never")]);
    assert_eq!(day.until(time("30 08:00"), 0), []);
    assert_eq!(day.outlook().next, None);
}

#[test]
fn the_user_is_told_of_a_failure_once_and_again_after_it_was_mended() {
    let mut day = Day::hourly();
    let told = |done: Vec<(String, Step)>| {
        done.into_iter().filter(|(_, step)| matches!(step, Step::Tell(_))).count()
    };
    assert_eq!(told(day.until(time("12:30"), 12)), 1);
    assert_eq!(told(day.until(time("13:30"), 0)), 0);
    assert_eq!(told(day.until(time("15:30"), 3)), 1, "what cannot be read is told, too");
    assert_eq!(told(day.until(time("16:30"), 14)), 0, "a server may be away for a while");
    assert_eq!(told(day.until(time("17:30"), 12)), 1, "a failure of another kind");
    assert_eq!(told(day.until(time("19:30"), 3)), 0, "told before");
}

#[test]
fn hours_without_a_backup_are_told_as_hours() {
    let mut day = Day::with(&[("home", "daily")]);
    day = day.minding(|manners| manners.warn_after = Duration::from_hours(2));
    day.is(Conditions { metered: Some(true), ..on("Phone") });
    let warned = day.until(time("10:00"), 0);
    let titles = warned.iter().map(|(_, step)| match step {
        Step::Tell(notice) => notice.title(),
        step => panic!("{step:?}"),
    });
    assert_eq!(titles.collect::<Vec<_>>(), ["No backup of `home` for 2 hours"]);
}

#[test]
fn nothing_begins_while_the_settings_cannot_be_read_and_what_goes_on_is_left_alone() {
    let mut day = Day::hourly();
    day.now = time("07:50");
    day.start();
    day.scheduler.settings_are(false);
    assert_eq!(day.scheduler.next(day.now), Step::Wait(None));
    day.end(0);
    assert_eq!(day.until(time("09:20"), 0), []);
    assert_eq!(day.outlook().hold, Some(Hold::Settings));
    day.scheduler.settings_are(true);
    assert_eq!(day.starts_until("09:30", 0), ["30 09:20:00"]);
}

#[test]
fn days_without_a_backup_are_told_once_a_day_and_after_a_sleep_a_backup_comes_first() {
    let mut day = Day::hourly();
    day.until(time("08:30"), 0);
    day.is(Conditions { metered: Some(true), ..on("Phone") });
    let warned = day.until(time("5 10:00"), 0);
    let moments: Vec<_> = warned.iter().map(|(at, _)| at.as_str()).collect();
    assert_eq!(moments, ["03 08:00:00", "04 08:00:00", "05 08:00:00"]);
    let Step::Tell(notice) = &warned[2].1 else { panic!("{warned:?}") };
    let expected = Notice::Overdue { set: "home".to_owned(), since: time("08:00"), hours: 120 };
    assert_eq!(*notice, expected);
    assert_eq!(notice.title(), "No backup of `home` for 5 days");

    day.is(on("Home"));
    day.until(time("5 11:30"), 0);
    day.now = time("15 11:30");
    day.scheduler.woke_up(day.now);
    let done = day.until(time("15 11:50"), 0);
    assert!(matches!(&done[..], [(at, Step::Start { .. })] if at == "15 11:30:30"), "{done:?}");
}

#[test]
fn a_random_delay_shifts_runs_and_skips_none() {
    let mut day = Day::hourly().minding(|manners| manners.random_delay = Duration::from_mins(10));
    let starts = day.starts_until("1 07:46", 0);
    assert_eq!(starts.len(), 25, "{starts:?}");
    assert!(starts.iter().any(|at| !at.ends_with(":00:00")), "{starts:?}");
}

#[test]
fn disk_and_network_are_measured_once_a_day_and_on_another_network() {
    let mut day = Day::hourly();
    day.is(on("Home"));
    day.until(time("1 09:00"), 0);
    assert_eq!(day.measured, ["30 07:46:30", "01 07:46:30"]);
    day.is(Conditions { metered: Some(true), ..on("Phone") });
    day.until(time("1 10:00"), 0);
    assert_eq!(day.measured.len(), 2, "that would cost money");
    day.is(on("Cafe"));
    day.until(time("1 10:01"), 0);
    day.is(on("Home"));
    day.until(time("1 12:00"), 0);
    assert_eq!(day.measured[2..], ["01 10:00:00", "01 11:00:00"], "at most once an hour");
    let kept = serde_json::to_string(day.scheduler.state()).unwrap();
    assert_eq!(serde_json::from_str::<State>(&kept).unwrap(), *day.scheduler.state());
}

#[test]
fn little_of_the_line_is_used_where_that_is_wished() {
    let mut day = Day::hourly().minding(|manners| manners.on_metered = Manner::Slow);
    day.is(Conditions { metered: Some(true), ..on("Phone") });
    day.now = time("07:50");
    assert_eq!(day.scheduler.next(day.now), Step::Start { set: "home".to_owned(), slow: true });
}

#[test]
fn sets_come_and_go_with_the_settings() {
    let mut day = Day::hourly();
    day.until(time("08:30"), 0);
    let mut other = day.plan.clone();
    other.sets[0].name = "mail".to_owned();
    day.scheduler.follow(other, day.now);
    assert_eq!(day.starts_until("08:40", 0), ["30 08:30:00"], "a new one");
    day.scheduler.follow(Plan::default(), day.now);
    assert_eq!(day.starts_until("08:50", 0), [""; 0]);
    day.scheduler.follow(day.plan.clone(), day.now);
    assert_eq!(day.starts_until("09:10", 0), ["30 09:00:00"], "one that was known before");
}

#[test]
fn what_is_kept_may_be_of_another_version() {
    let state: State =
        serde_json::from_str(r#"{"seed": 7, "more": [], "sets": {"home": {}}}"#).unwrap();
    assert_eq!((state.seed, state.sets["home"].failures), (7, 0));
}

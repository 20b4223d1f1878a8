//! Calendar expressions: what they mean, and that systemd means the same by them.

use std::process::Command;

use holdall_agent::Calendar;
use holdall_testkit::is_there;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use proptest::prelude::*;
use proptest::sample::select;

fn calendar(text: &str) -> Calendar {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

/// The moments after `after`, as a person in Berlin reads them.
fn in_berlin(text: &str, after: &str, count: usize) -> Vec<String> {
    let zone = TimeZone::get("Europe/Berlin").expect("it is known");
    let calendar = calendar(text);
    let mut at = after.parse::<DateTime>().unwrap().to_zoned(zone.clone()).unwrap().timestamp();
    let mut found = Vec::new();
    while found.len() < count {
        let Some(next) = calendar.next_after(at, &zone) else { break };
        found.push(next.to_zoned(zone.clone()).strftime("%F %T %z").to_string());
        at = next;
    }
    found
}

#[test]
fn a_schedule_names_its_next_moments() {
    for (text, expected) in [
        ("hourly", ["2026-11-30 08:00:00 +0100", "2026-11-30 09:00:00 +0100"]),
        ("Mon..Fri 18:00", ["2026-11-30 18:00:00 +0100", "2026-12-01 18:00:00 +0100"]),
        ("*:0/30", ["2026-11-30 08:00:00 +0100", "2026-11-30 08:30:00 +0100"]),
        ("monthly", ["2026-12-01 00:00:00 +0100", "2027-01-01 00:00:00 +0100"]),
        ("*-*~1 03:00", ["2026-12-31 03:00:00 +0100", "2027-01-31 03:00:00 +0100"]),
        ("Mon *-05~07/1", ["2027-05-31 00:00:00 +0200", "2028-05-29 00:00:00 +0200"]),
        ("Fri *-*-13", ["2027-08-13 00:00:00 +0200", "2028-10-13 00:00:00 +0200"]),
        ("*-02-29", ["2028-02-29 00:00:00 +0100", "2032-02-29 00:00:00 +0100"]),
        ("12:00 UTC", ["2026-11-30 13:00:00 +0100", "2026-12-01 13:00:00 +0100"]),
        ("daily America/New_York", ["2026-12-01 06:00:00 +0100", "2026-12-02 06:00:00 +0100"]),
    ] {
        assert_eq!(in_berlin(text, "2026-11-30 07:46", 2), expected, "{text}");
    }
}

#[test]
fn a_moment_is_later_than_the_one_that_was_asked_about() {
    assert_eq!(in_berlin("*:*:5", "2026-11-30 07:46:05", 1), ["2026-11-30 07:47:05 +0100"]);
    assert_eq!(in_berlin("*:*:5", "2026-11-30 07:46:04.9", 1), ["2026-11-30 07:46:05 +0100"]);
}

#[test]
fn what_summer_time_skips_is_left_out_and_what_it_repeats_happens_once() {
    let expected = ["2026-03-28 02:30:00 +0100", "2026-03-30 02:30:00 +0200"];
    assert_eq!(in_berlin("02:30", "2026-03-28 00:00", 2), expected);
    let expected = ["2026-10-25 02:30:00 +0200", "2026-10-26 02:30:00 +0100"];
    assert_eq!(in_berlin("02:30", "2026-10-25 00:00", 2), expected);
    let expected = ["2026-10-25 02:00:00 +0200", "2026-10-25 03:00:00 +0100"];
    assert_eq!(in_berlin("hourly", "2026-10-25 01:30", 2), expected);
}

#[test]
fn what_can_never_be_has_no_next_moment() {
    for never in ["*-02-30", "2026-11-29", "Mon 2026-12-01", "1999-1-1"] {
        assert_eq!(in_berlin(never, "2026-11-30 07:46", 1), Vec::<String>::new(), "{never}");
    }
}

/// Texts that are close to expressions.
const REFUSED: [&str; 26] = [
    "",
    "*",
    "10",
    "*:*/5",
    "24:00",
    "10:60",
    "*-13-1",
    "*-0-1",
    "*-1-32",
    "*-*~29",
    "2..1:00",
    "5/0:00",
    "Fri..Mon",
    "Funday",
    "Mon,,Tue",
    "10:00:00:00",
    "hourly daily",
    "daily daily",
    "2200-1-1",
    "1969-1-1",
    "12:00 Mon",
    "12:00 Europe/Nowhere",
    "100-01-01",
    "-1:00",
    "1 2 3",
    "*-*-*T10:00",
];

#[test]
fn what_is_no_expression_is_refused_and_named() {
    for text in REFUSED {
        let error = text.parse::<Calendar>().map(|_| ()).expect_err(text).to_string();
        assert!(error.starts_with(&format!("`{text}` is no calendar expression: ")), "{error}");
    }
    "1,".repeat(1000).parse::<Calendar>().map(|_| ()).expect_err("it is too long");
}

/// The next moments of an expression as systemd has them; `None` if it refuses it.
fn systemd(text: &str, after: Timestamp, zone: &str) -> Option<Vec<Timestamp>> {
    let base = after.to_zoned(TimeZone::UTC).strftime("%F %T UTC").to_string();
    let mut command = Command::new("systemd-analyze");
    command.args(["calendar", "--iterations=4", "--base-time", &base, "--", text]);
    let output = command.env("TZ", zone).env("LC_ALL", "C").output().expect("it is there");
    let said = String::from_utf8(output.stdout).unwrap();
    // At the end of a month in another zone, it may go round in circles, and notices that.
    let gives_up = String::from_utf8_lossy(&output.stderr).contains("determine next elapse");
    (output.status.success() || gives_up).then(|| moments(&said, zone == "UTC"))
}

/// What lines such as `(in UTC): Tue 2026-12-01 01:30:00 UTC` name. Where the computer's zone is UTC, other lines have it.
fn moments(said: &str, is_utc: bool) -> Vec<Timestamp> {
    let beginnings: &[&str] = if is_utc { &["Next elapse: ", "Iter. #"] } else { &["(in UTC): "] };
    let is_moment = |line: &&str| beginnings.iter().any(|beginning| line.starts_with(beginning));
    let lines = said.lines().map(str::trim).filter(is_moment);
    let read = |line: &str| {
        let words: Vec<_> = line.split_whitespace().collect();
        let [.., date, time, "UTC"] = words[..] else { return None };
        let at: DateTime = format!("{date}T{time}").parse().expect(line);
        Some(at.to_zoned(TimeZone::UTC).unwrap().timestamp())
    };
    lines.filter_map(read).collect()
}

fn has_systemd() -> bool {
    is_there("systemd-analyze", Command::new("systemd-analyze").arg("--version").output().is_ok())
}

#[test]
fn what_systemd_says_is_read() {
    let after = "2026-11-30T07:46:00Z".parse().unwrap();
    let expected = ["2026-11-30T08:00:00Z", "2026-11-30T09:00:00Z"].map(|at| at.parse().unwrap());
    for zone in if has_systemd() { &["UTC", "Europe/Berlin"][..] } else { &[] } {
        assert_eq!(systemd("hourly", after, zone).expect("it takes it")[..2], expected, "{zone}");
    }
}

#[test]
fn systemd_refuses_the_same() {
    if !has_systemd() {
        return;
    }
    let is_lenient_there = |text: &str| text.is_empty() || text == "1 2 3";
    for text in REFUSED.iter().filter(|text| !is_lenient_there(text)) {
        assert_eq!(systemd(text, Timestamp::UNIX_EPOCH, "UTC"), None, "{text}");
    }
}

/// A part of an expression, with values of `[least, most]`.
fn part(least: u16, most: u16) -> impl Strategy<Value = String> {
    let value = least..=most;
    let one = prop_oneof![
        value.clone().prop_map(|one| one.to_string()),
        // systemd refuses seconds that end where they begin.
        (least..most)
            .prop_flat_map(move |first| (Just(first), first + 1..=most))
            .prop_map(|(first, last)| format!("{first}..{last}")),
        (value, 1..=(most - least).div_ceil(2))
            .prop_filter("it comes again", move |(first, every)| first + every <= most)
            .prop_map(|(first, every)| format!("{first}/{every}")),
    ];
    prop_oneof![
        2 => Just("*".to_owned()),
        3 => prop::collection::vec(one, 1..3).prop_map(|all| all.join(",")),
    ]
}

fn expression() -> impl Strategy<Value = String> {
    let days = select(vec!["", "Mon ", "Tue,Sat..Sun ", "Mon..Fri ", "wednesday, "]);
    let date = (
        select(vec!["", "*-", "2026,2028-", "26..30/2-"]),
        part(1, 12),
        prop_oneof![
            part(1, 31).prop_map(|days| format!("-{days}")),
            (1..=28_u16).prop_map(|day| format!("~{day}")),
            (1..=14_u16).prop_map(|day| format!("~{day}..{}", day + 9)),
            (3..=28_u16).prop_map(|day| format!("~{day}/2")),
        ],
    );
    let date = date.prop_map(|(years, months, days)| format!("{years}{months}{days} "));
    let time = (part(0, 23), part(0, 59), prop::option::of(part(0, 59)));
    let time = time.prop_map(|(hours, minutes, seconds)| match seconds {
        Some(seconds) => format!("{hours}:{minutes}:{seconds}"),
        None => format!("{hours}:{minutes}"),
    });
    let zone = select(vec!["", " UTC", " America/New_York"]);
    (days, prop_oneof![Just(String::new()), date], time, zone)
        .prop_map(|(days, date, time, zone)| format!("{days}{date}{time}{zone}"))
}

/// Whether a wall in that zone shows this time twice: which of both systemd takes depends on what it looked at before.
fn is_repeated(at: Timestamp, zone: &str) -> bool {
    let zone = TimeZone::get(zone).unwrap();
    let shown = zone.to_datetime(at);
    zone.to_ambiguous_timestamp(shown).is_ambiguous()
}

/// Whether systemd 252 passes over that midnight: after 23:54 it names 00:09 for `*:0/9`, though 13:00 after 12:54.
fn is_passed_over(text: &str, next: Timestamp, expected: Timestamp, zone: &str) -> bool {
    let shown = TimeZone::get(zone).unwrap().to_datetime(next);
    text.contains('/') && (shown.hour(), shown.minute()) == (0, 0) && next < expected
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn systemd_names_the_same_moments(
        text in expression(),
        second in 1_780_000_000_i64..1_900_000_000,
        zone in select(vec!["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"]),
    ) {
        if !has_systemd() {
            return Ok(());
        }
        let after = Timestamp::from_second(second).unwrap();
        let calendar = calendar(&text);
        let local = TimeZone::get(zone).unwrap();
        let mut at = after;
        for expected in systemd(&text, after, zone).expect("systemd takes it, too") {
            let own = if text.ends_with("New_York") { "America/New_York" } else { zone };
            if is_repeated(expected, own) || is_repeated(at, own) {
                break;
            }
            let next = calendar.next_after(at, &local);
            if next.is_some_and(|next| is_passed_over(&text, next, expected, own)) {
                break;
            }
            prop_assert_eq!(next, Some(expected), "{} after {}", text, at);
            at = expected;
        }
    }

    #[test]
    fn whatever_is_written_is_refused_or_has_its_moments_in_order(text in "[*0-9:./, ~a-zA-Z-]{0,24}") {
        if let Ok(calendar) = text.parse::<Calendar>() {
            let mut at = Timestamp::from_second(1_796_000_000).unwrap();
            for _ in 0..3 {
                let Some(next) = calendar.next_after(at, &TimeZone::UTC) else { break };
                prop_assert!(next > at);
                at = next;
            }
        }
    }
}

//! Figures as people write them: sizes, numbers and times.

/// A size for people: `512 B`, `1.5 kB`, `2.34 GB`.
pub fn size(bytes: u64) -> String {
    let value = bytes as f64;
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{:.1} kB", value / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", value / 1e6),
        1_000_000_000..1_000_000_000_000 => format!("{:.2} GB", value / 1e9),
        _ => format!("{:.2} TB", value / 1e12),
    }
}

/// A whole number with commas: `1,234,567`.
pub fn count(number: u64) -> String {
    in_groups(&number.to_string())
}

/// So many of what is called `one`: `1 item`, `1,234 items`, `2 copies`, `2 days`.
pub fn counted(number: u64, one: &str) -> String {
    let stem = one.strip_suffix('y').filter(|stem| !stem.ends_with(['a', 'e', 'o', 'u']));
    let many = match stem {
        _ if number == 1 => one.to_owned(),
        Some(stem) => format!("{stem}ies"),
        None => format!("{one}s"),
    };
    format!("{} {many}", count(number))
}

/// `value` rounded to a whole number, with a comma between groups of three digits.
pub fn grouped(value: f64) -> String {
    in_groups(&format!("{:.0}", value.max(0.0)))
}

fn in_groups(digits: &str) -> String {
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A duration for people: `0.42 s`, `12.3 s`, `3 min 5 s`, `2 h 4 min`.
pub fn duration(seconds: f64) -> String {
    let whole = seconds.max(0.0).round() as u64;
    match whole {
        0..10 => format!("{:.2} s", seconds.max(0.0)),
        10..60 => format!("{seconds:.1} s"),
        60..3600 => format!("{} min {} s", whole / 60, whole % 60),
        _ => format!("{} h {} min", whole / 3600, whole % 3600 / 60),
    }
}

/// How far something is, of which `done` is the share: `[#######-------]`.
pub fn bar(done: f64) -> String {
    const CELLS: usize = 14;
    let full = (done.clamp(0.0, 1.0) * CELLS as f64) as usize;
    format!("[{}{}]", "#".repeat(full), "-".repeat(CELLS - full))
}

/// Text for a line of at most that many columns: the parts that fit, those that come first before the others.
pub fn fitting(parts: impl IntoIterator<Item = String>, columns: usize) -> String {
    let letters = |text: &str| text.chars().count();
    parts.into_iter().fold(String::new(), |line, part| {
        let gap = if line.is_empty() { "" } else { "  " };
        let fits = letters(&line) + gap.len() + letters(&part) <= columns;
        if fits { line + gap + &part } else { line }
    })
}

/// A time that nobody needs more exactly than in seconds: `3 s`.
pub fn whole_duration(seconds: f64) -> String {
    if seconds < 59.5 { format!("{:.0} s", seconds.max(0.0)) } else { duration(seconds) }
}

/// How much of something a second; 0 for no time at all.
pub fn per_second(amount: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { amount as f64 / seconds } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_no_plural() {
        let said = [0, 1, 2, 1_234].map(|number| counted(number, "item"));
        assert_eq!(said, ["0 items", "1 item", "2 items", "1,234 items"]);
        assert_eq!(
            [1, 2].map(|number| counted(number, "directory")),
            ["1 directory", "2 directories"]
        );
        assert_eq!([1, 2].map(|number| counted(number, "day")), ["1 day", "2 days"]);
    }

    #[test]
    fn a_bar_and_a_line_say_what_fits() {
        assert_eq!([0.0, 0.5, 1.0, 7.0].map(bar)[1..3], ["[#######-------]", "[##############]"]);
        let parts = || ["12 %", "a long sentence", "3 s"].map(str::to_owned);
        assert_eq!(fitting(parts(), 80), "12 %  a long sentence  3 s");
        assert_eq!(fitting(parts(), 20), "12 %  3 s");
    }

    #[test]
    fn sizes_numbers_and_durations_read_well() {
        assert_eq!([size(999), size(1_500), size(2_340_000_000)], ["999 B", "1.5 kB", "2.34 GB"]);
        assert_eq!([count(7), count(1_234_567)], ["7", "1,234,567"]);
        assert_eq!(duration(0.421), "0.42 s");
        assert_eq!(duration(185.2), "3 min 5 s");
        assert_eq!(grouped(-1.0) + &grouped(999.6), "01,000");
    }
}

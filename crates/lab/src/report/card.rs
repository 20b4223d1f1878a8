//! The text card: what one pastes into a forum, in lines of at most 100 letters.

use holdall_meter::{Layer, Verdict};

use super::{Report, escape, shown};
use crate::Measurement;

const WIDTH: usize = 100;

/// The columns of the names of steps.
const STEP_COLUMNS: usize = 24;

/// How each card begins.
const BEGINNING: &str = "holdall lab, ";

/// Whether a file is such a card.
pub(super) fn is_one(content: &[u8]) -> bool {
    content.starts_with(BEGINNING.as_bytes())
}

/// A report as a card.
pub(super) fn of(report: &Report) -> String {
    let mut card = format!("{BEGINNING}{}\n{}\n\n", line(&report.made), line(&report.command));
    for fact in report.circumstances.iter().chain(&report.facts) {
        paragraph(&mut card, &format!("{}: {}", fact.name, fact.value));
    }
    if !report.answers.is_empty() {
        card.push('\n');
        report.answers.iter().for_each(|answer| paragraph(&mut card, answer));
    }
    rows(&mut card, &report.measurements);
    ladder(&mut card, report);
    for words in report.verdicts.iter().filter_map(Verdict::words) {
        paragraph(&mut card, &format!("\n{words}"));
    }
    for note in &report.notes {
        paragraph(&mut card, &format!("- {note}"));
    }
    card
}

fn line(text: &str) -> String {
    escape::line(text)
}

/// Adds text in lines of at most [`WIDTH`] letters, the later ones set in.
fn paragraph(card: &mut String, text: &str) {
    let (lead, text) = match text.strip_prefix('\n') {
        Some(rest) => ("\n", rest),
        None => ("", text),
    };
    card.push_str(lead);
    let mut length = 0;
    for word in line(text).split_whitespace() {
        let letters = word.chars().count();
        if length > 0 && length + 1 + letters > WIDTH {
            card.push_str("\n  ");
            length = 2;
        } else if length > 0 {
            card.push(' ');
            length += 1;
        }
        card.push_str(word);
        length += letters;
    }
    card.push('\n');
}

/// Adds a line without the spaces at its end.
fn trimmed(card: &mut String, line: &str) {
    card.push_str(line.trim_end());
    card.push('\n');
}

/// A column of figures: its head, its letters with the space before it, and what a row has there.
type Column = (&'static str, usize, fn(&Measurement) -> Option<String>);

const COLUMNS: [Column; 6] = [
    ("items", 11, |row| row.items.map(shown::count)),
    ("speed", 13, |row| row.bytes_per_second.map(shown::rate)),
    ("each core", 13, |row| row.bytes_per_core_second.map(shown::rate)),
    ("each second", 13, |row| row.operations_per_second.map(shown::frequency)),
    ("p50", 10, |row| row.latency_ns.map(|latency| shown::time(latency.p50))),
    ("p99", 10, |row| row.latency_ns.map(|latency| shown::time(latency.p99))),
];

/// All rows, in the columns that any of them has something in.
fn rows(card: &mut String, rows: &[Measurement]) {
    if rows.is_empty() {
        return;
    }
    let has_any = |(_, _, of): &Column| rows.iter().any(|row| of(row).is_some());
    let columns: Vec<_> = COLUMNS.into_iter().filter(has_any).collect();
    let names: Vec<_> = rows.iter().map(|row| line(&shown::row(row))).collect();
    let figures: usize = columns.iter().map(|(_, letters, _)| letters).sum();
    let longest = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let width = longest.min(WIDTH - figures);
    let heads = columns.iter().map(|(head, letters, _)| cell(head, *letters));
    card.push('\n');
    trimmed(card, &format!("{:width$}{}", "", heads.collect::<String>()));
    for (name, row) in names.iter().zip(rows) {
        let cells = columns.iter();
        let cells = cells.map(|(_, letters, of)| cell(&of(row).unwrap_or_default(), *letters));
        named(card, (name, width), &cells.collect::<String>());
        // They are rare: a column would be empty.
        if let Some(count @ 1..) = row.retransmits {
            trimmed(card, &format!("  {} retransmits", shown::count(count)));
        }
        if let Some(layer) = row.limited_by.filter(|layer| *layer != Layer::Nothing) {
            trimmed(card, &format!("  limited by {layer}"));
        }
    }
}

/// Adds a row with a name in so many columns. A longer name has lines of its own, so that figures stay below each other.
fn named(card: &mut String, (name, width): (&str, usize), figures: &str) {
    let beside = if name.chars().count() <= width { name } else { "" };
    if beside != name {
        paragraph(card, name);
    }
    trimmed(card, &format!("{beside:width$}{figures}"));
}

/// Text at the right of its column, with at least a space before it.
fn cell(text: &str, letters: usize) -> String {
    format!(" {text:>width$}", width = letters.saturating_sub(1))
}

/// A step a line, with how much of that the backup reached, and a bar of hashes.
fn ladder(card: &mut String, report: &Report) {
    let most = report.ladder.iter().filter_map(|rung| rung.bytes_per_second).fold(0.0, f64::max);
    if most <= 0.0 {
        return;
    }
    card.push('\n');
    for rung in &report.ladder {
        let rate = rung.bytes_per_second.unwrap_or(0.0).max(0.0);
        let bar = "#".repeat((rate / most * 30.0).round() as usize);
        let mark = if rung.reached { " <" } else { "" };
        let speed = rung.bytes_per_second.map(shown::rate).unwrap_or_default();
        let often = rung.items_per_second.map(shown::frequency).unwrap_or_default();
        let (name, used) = (line(&rung.name), rung.beside().unwrap_or_default());
        let figures = format!(" {speed:>12} {often:>11} {used:>13} {bar}{mark}");
        named(card, (&name, STEP_COLUMNS), &figures);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture;

    #[test]
    fn rows_of_a_processor_have_the_speed_of_each_core() {
        let mut report = fixture::report();
        report.measurements.truncate(1);
        assert!(!of(&report).contains("each core"));
        report.measurements[0].bytes_per_core_second = Some(5e8);
        let card = of(&report);
        assert!(card.contains("110.0 MB/s   500.0 MB/s        105/s"), "{card}");
        assert!(card.lines().all(|line| line.chars().count() <= WIDTH), "{card}");
    }

    #[test]
    fn items_have_a_column_where_they_are_counted_and_retransmits_a_line_where_there_are_any() {
        let mut report = fixture::report();
        report.measurements[1].retransmits = Some(0);
        let has_items =
            |card: &str| card.lines().any(|line| line.trim_start().starts_with("items "));
        let plain = of(&report);
        assert!(!plain.contains("retransmits") && !has_items(&plain), "{plain}");
        report.measurements[0].retransmits = Some(1234);
        let card = of(&report);
        assert_eq!(card.replacen("  1,234 retransmits\n", "", 1), plain, "no row is wider");
        report.measurements[0].limited_by = Some(holdall_meter::Layer::ServerDisk);
        assert!(of(&report).contains("  limited by server-disk\n"), "{}", of(&report));
        report.measurements[0].items = Some(1_000_000);
        report.measurements[0].bytes_per_core_second = Some(5e8);
        let card = of(&report);
        let row = "sequential write 1M direct     1,000,000   110.0 MB/s   500.0 MB/s ";
        assert!(card.contains(row), "{card}");
        assert!(has_items(&card), "{card}");
        assert!(card.lines().all(|line| line.chars().count() <= WIDTH), "{card}");
    }

    /// Seen: the figures of a long name stood beside those of the others.
    #[test]
    fn figures_stand_below_each_other_whatever_rows_and_steps_are_called() {
        let mut report = fixture::report();
        report.measurements[0].operation = "a rather long name ".repeat(6);
        report.ladder[1].name = "a step with a rather long name of its own".to_owned();
        let card = of(&report);
        let tables: Vec<_> = card.split("\n\n").filter(|part| part.contains("MB/s")).collect();
        assert_eq!(tables.len(), 2, "{card}");
        for table in tables {
            let ends: Vec<_> = table.lines().filter_map(|line| line.find("MB/s")).collect();
            assert!(ends.len() > 1 && ends.iter().all(|end| *end == ends[0]), "{card}");
        }
        assert!(card.lines().all(|line| line.chars().count() <= WIDTH), "{card}");
    }

    #[test]
    fn the_card_has_the_figures_the_circumstances_and_no_control_characters() {
        let mut report = fixture::report();
        report.facts[0].value = "\x1b[2J".into();
        report.notes.push("word ".repeat(60));
        let card = of(&report);
        for words in [
            "kernel: Linux 6.12",
            "random read 4K direct",
            "1.2 MB/s",
            "293/s",
            "900 µs",
            "backup",
            "<\n",
            "limited by network (90 % sure)",
        ] {
            assert!(card.contains(words), "{words} is not in\n{card}");
        }
        assert!(card.lines().all(|line| line.chars().count() <= WIDTH), "{card}");
        assert!(card.lines().all(|line| line.trim_end() == line), "{card}");
        assert!(!card.chars().any(|letter| letter.is_control() && letter != '\n'));
    }
}

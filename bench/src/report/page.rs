//! `RESULTS.md`: where and with what it was measured, and a table for every measure.

use std::path::Path;

use super::growth;
use super::stats::{distinct, runs, shown_sessions};
use super::table::table;
use crate::measure::Measure;
use crate::record::{Record, Row, Session};

/// What the page is made of.
pub(super) struct Page<'a> {
    pub(super) records: &'a [Record],
    pub(super) rows: &'a [Row],
    pub(super) growth_rows: &'a [Row],
}

const READING: &str = "\
Each run has a fresh server and an empty repository, and the tools take turns. Sources are read once before each run, so
caches are warm; client, server and kernel share the cores. All tools run with their defaults. CPU and peak memory of the
client include its children, those of the server all its processes. Restores are made on the computer that backed up, with
what each tool keeps in its cache there: holdall, directories and the content of the smallest files. bupstash and borg talk
through a socat pair where ssh would stand, so they pay for no cipher of a transport; restic and rustic talk to rest-server
without TLS unless the name says so; rsync neither encrypts nor keeps history, and is the floor. \"2 writers\" are two threads that know
all names and sizes and only create files, write them and set their times: the file system's share of a restore, of which holdall's
column tells how much it reaches. \"other CPU s\" is what everything else used meanwhile, the kernel's own work included: where it
is high for the time, the row was disturbed. \"sent / new content\" is what holdall sent over what it sealed of contents that were new
or changed, whole files where they are one chunk, without those that lie in directories. Of each tool the newest session counts that
measured it, and it is compared with holdall in that session.
";

const SHARES: &str = "\
\"wire / ceiling\" is what the client's interfaces sent (in a restore, received) over what iperf3 got through the same link
for as long; \"MB/s / ceiling\" is the same for the bytes of the files, which compression can take past 1.
";

impl Page<'_> {
    /// The page, made from `file`.
    pub(super) fn markdown(&self, file: &Path, has_chart: bool, has_growth: bool) -> String {
        let mut page = format!(
            "# Results\n\nMade by `cargo xtask bench report {}`; every figure was measured.\n\n{}\n{READING}",
            file.display(),
            self.origin()
        );
        if has_chart {
            page += "\n![Speed of each tool relative to holdall](chart.svg)\n";
        }
        for link in distinct(self.rows.iter().map(|row| row.link.as_str())) {
            page += &self.link(link);
        }
        if !self.growth_rows.is_empty() {
            page += "\n## How it grows with the number of files\n\n";
            page += &growth::table(self.growth_rows);
        }
        if has_growth {
            page += "\n![Time and memory over the number of files](growth.svg)\n";
        }
        page
    }

    /// Machine, versions, dates and commands.
    fn origin(&self) -> String {
        let shown = [self.rows, self.growth_rows].map(shown_sessions).concat();
        let sessions: Vec<&Session> = (1..)
            .zip(self.records.iter().filter_map(|record| match record {
                Record::Session(session) => Some(session),
                _ => None,
            }))
            .filter_map(|(number, session)| shown.contains(&number).then_some(session))
            .collect();
        let list = |items: Vec<String>| {
            distinct(items.into_iter()).into_iter().map(|item| format!("- {item}\n")).collect()
        };
        let machines: String =
            list(sessions.iter().map(|session| session.machine.words()).collect());
        let all_rows = || self.rows.iter().chain(self.growth_rows);
        let versions: String =
            list(all_rows().map(|row| format!("{}: {}", row.tool, row.version)).collect());
        let commands: String = list(
            sessions
                .iter()
                .map(|session| format!("`{}` ({})", session.command, session.date))
                .collect(),
        );
        format!("Machine:\n\n{machines}\nTools:\n\n{versions}\nTo repeat it:\n\n{commands}")
    }

    fn link(&self, link: &str) -> String {
        let rows = || self.rows.iter().filter(|row| row.link == link);
        let mut text = String::new();
        if let Some(ceiling) = self.ceiling(link) {
            text += &format!("\n## {link}\n\n{ceiling}\n\n{SHARES}");
        }
        for set in distinct(rows().map(|row| row.set.as_str())) {
            for row in rows().filter(|row| row.set == set).take(1) {
                let megabytes = row.bytes as f64 / 1e6;
                text += &format!("\n## {set}, {link}: {} files, {megabytes:.0} MB\n", row.files);
            }
            for measure in Measure::ALL {
                let all = runs(self.rows, link, set, measure);
                if !all.is_empty() {
                    text += &format!("\n### {set}, {link}: {}\n\n", measure.words());
                    text += &table(measure, &all);
                }
            }
        }
        text
    }

    /// What iperf3 got over a link, in the newest session that asked.
    fn ceiling(&self, link: &str) -> Option<String> {
        let is_meant = |record: &&Record| {
            matches!(record, Record::Link(found) if link == found.link
                || link.strip_prefix(&found.link).is_some_and(|rest| rest.starts_with(", ")))
        };
        match self.records.iter().rev().find(is_meant)? {
            Record::Link(found) => Some(format!(
                "iperf3 gets {:.4} MB/s to the server and {:.4} MB/s from it.",
                found.up_bytes_per_second / 1e6,
                found.down_bytes_per_second / 1e6
            )),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Machine;
    use crate::record::Ceiling;
    use crate::record::tests::row;

    #[test]
    fn a_page_has_its_origin_and_a_table_for_each_measure() {
        let rows = [
            row("holdall", "D1", Measure::First, 2.0),
            row("restic", "D1", Measure::First, 4.0),
            row("holdall", "D1", Measure::Restore, 2.0),
        ];
        let session = Session {
            date: "2026-01-31".into(),
            command: "cargo xtask bench D1".into(),
            machine: Machine::here("ext4"),
        };
        let link = Ceiling {
            link: "loopback".into(),
            up_bytes_per_second: 1e8,
            down_bytes_per_second: 9e7,
        };
        let records =
            [Record::Session(session.clone()), Record::Session(session), Record::Link(link)];
        let page = Page { records: &records, rows: &rows, growth_rows: &[] };
        let text = page.markdown(Path::new("rows.jsonl"), true, false);
        assert_eq!(text.matches("- `cargo xtask bench D1` (2026-01-31)\n").count(), 1);
        assert_eq!(text.matches("- restic: restic 1.0\n").count(), 1);
        assert!(text.contains("\n### D1, loopback: first full\n\n| tool |"));
        assert!(text.contains("\n### D1, loopback: restore\n\n| tool |"));
        assert!(text.contains("iperf3 gets 100.0000 MB/s to the server and 90.0000 MB/s from it."));
        assert!(text.contains("](chart.svg)") && !text.contains("growth.svg"));
    }
}

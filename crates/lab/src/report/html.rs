//! The page: one file, no scripts, nothing fetched, with a policy that says so to the browser.

use std::fmt::Write;

use holdall_meter::{Layer, Verdict};

use super::escape::html as escaped;
use super::{Fact, Report, curves, shown};
use crate::Measurement;

/// Nothing may be loaded or run, whatever slipped through.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

const STYLE: &str = "\
:root{color-scheme:light dark;--text:#222;--back:#fff;--line:#ddd;--aside:#57606a}\
@media(prefers-color-scheme:dark){:root{--text:#e6edf3;--back:#0d1117;--line:#30363d;--aside:#9198a1}}\
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:var(--text);\
background:var(--back)}\
h1{font-size:1.4rem}h2{font-size:1.1rem;margin-top:2rem}.on{color:var(--aside)}.answer{font-size:1.1rem}\
table{border-collapse:collapse}td,th{padding:.2rem .8rem .2rem 0;text-align:left;vertical-align:top}\
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}\
tbody tr{border-top:1px solid var(--line)}.wide{overflow-x:auto}\
svg{width:100%;height:auto;font:13px system-ui,sans-serif;fill:var(--text)}.grid{stroke:var(--line)}\
code{overflow-wrap:anywhere}.verdict{border-left:.3rem solid #d1495b;padding:.2rem 1rem}\
@media print{:root{--text:#000;--back:#fff;--line:#bbb;--aside:#333}body{max-width:none;margin:0;font-size:11px}\
h2,svg,tr{break-inside:avoid}h2{break-after:avoid}.wide{overflow-x:visible}thead{display:table-header-group}}";

/// How each page begins, and what its title begins with, by which one is known.
const BEGINNING: &str = "<!doctype html>\n";
const TITLE: &str = "<title>holdall lab: ";
/// So far behind the beginning is the title at most.
const HEAD_BYTES: usize = 1024;

/// Whether a file is such a page.
pub(super) fn is_one(content: &[u8]) -> bool {
    let head = String::from_utf8_lossy(&content[..content.len().min(HEAD_BYTES)]);
    head.starts_with(BEGINNING) && head.contains(TITLE)
}

/// A report as a page.
pub(super) fn of(report: &Report) -> String {
    let mut page = format!(
        "{BEGINNING}<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         {TITLE}{command}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
         <h1>{what}</h1>\n<p class=\"on\">{on}<br>{made}, <code>{command}</code></p>\n",
        what = escaped(&report.command.split(' ').take(3).collect::<Vec<_>>().join(" ")),
        on = escaped(&hardware(report)),
        command = escaped(&report.command),
        made = escaped(&report.made),
    );
    page += &content(report);
    page + "</body>\n</html>\n"
}

/// What is below the head of the page, for a page of somebody else that has a style for it: without a script or a style.
pub(super) fn content(report: &Report) -> String {
    let mut page = String::new();
    if !report.answers.is_empty() {
        let answers = report.answers.iter().map(|answer| escaped(answer)).collect::<Vec<_>>();
        let _ = writeln!(page, "<p class=\"answer\">{}</p>", answers.join("<br>\n"));
    }
    let limited = report.verdicts.iter().filter(|found| found.limited_by != Layer::Nothing);
    limited.for_each(|found| verdict(&mut page, found));
    if !report.notes.is_empty() {
        let items = report.notes.iter().map(|note| format!("<li>{}</li>", escaped(note)));
        let _ = writeln!(page, "<ul>{}</ul>", items.collect::<String>());
    }
    for picture in curves::pictures(report) {
        let _ = writeln!(page, "<h2>{}</h2>\n{}", escaped(&picture.title), picture.svg);
    }
    rows(&mut page, report);
    facts(&mut page, "What it was measured on", &report.facts);
    facts(&mut page, "Circumstances", &report.circumstances);
    page
}

/// What was measured on what, in a line: the processor, memory, disks and links, as far as they are known.
fn hardware(report: &Report) -> String {
    const TELLING: [&str; 8] =
        ["computer", "processor", "cores", "memory", "file system", "disk", "link", "server"];
    let facts = || report.circumstances.iter().chain(&report.facts);
    let told = TELLING.iter().flat_map(|name| facts().filter(move |fact| fact.name == *name));
    let words = told.map(|fact| match fact.name.as_str() {
        "cores" => format!("{} cores", fact.value),
        _ => fact.value.clone(),
    });
    words.collect::<Vec<_>>().join(" · ")
}

fn verdict(page: &mut String, verdict: &Verdict) {
    // Writing to a String cannot fail, here and below.
    let _ = writeln!(
        page,
        "<p class=\"verdict\"><strong>Limited by {}</strong> ({:.0} % sure): {}.<br>{} {}</p>",
        escaped(verdict.limited_by.word()),
        verdict.confidence * 100.0,
        escaped(&verdict.unit.show(verdict.achieved)),
        escaped(&verdict.explanation),
        escaped(verdict.help.as_deref().unwrap_or_default()),
    );
}

/// A column of figures: its head, and what a row has there.
type Column = (&'static str, fn(&Measurement) -> Option<String>);

const COLUMNS: [Column; 12] = [
    ("items", |row| row.items.map(shown::count)),
    ("speed", |row| row.bytes_per_second.map(shown::rate)),
    ("each core", |row| row.bytes_per_core_second.map(shown::rate)),
    ("each second", |row| row.operations_per_second.map(shown::frequency)),
    ("p50", |row| row.latency_ns.map(|latency| shown::time(latency.p50))),
    ("p90", |row| row.latency_ns.map(|latency| shown::time(latency.p90))),
    ("p99", |row| row.latency_ns.map(|latency| shown::time(latency.p99))),
    ("p99.9", |row| row.latency_ns.map(|latency| shown::time(latency.p99_9))),
    ("retransmits", |row| row.retransmits.map(shown::count)),
    ("flushes", |row| row.device.map(|device| device.flushes.to_string())),
    ("moved for each byte", |row| row.device.map(|work| shown::ratio(work.bytes_for_each_asked))),
    ("limited by", |row| row.limited_by.map(|layer| layer.word().to_owned())),
];

/// All rows, in the columns that any of them has something in.
fn rows(page: &mut String, report: &Report) {
    let rows = &report.measurements;
    if rows.is_empty() {
        return;
    }
    let has_any = |(_, of): &Column| rows.iter().any(|row| of(row).is_some());
    let columns: Vec<_> = COLUMNS.into_iter().filter(has_any).collect();
    *page += "<h2>Rows</h2>\n<div class=\"wide\" role=\"region\" aria-label=\"Rows\" tabindex=\"0\"><table><thead><tr><th>what</th>";
    for (head, _) in &columns {
        let _ = write!(page, "<th class=\"n\">{head}</th>");
    }
    *page += "</tr></thead><tbody>\n";
    for row in rows {
        let _ = write!(page, "<tr><td>{}</td>", escaped(&shown::row(row)));
        for (_, of) in &columns {
            let _ = write!(page, "<td class=\"n\">{}</td>", escaped(&of(row).unwrap_or_default()));
        }
        *page += "</tr>\n";
    }
    *page += "</tbody></table></div>\n";
}

fn facts(page: &mut String, title: &str, facts: &[Fact]) {
    if facts.is_empty() {
        return;
    }
    let _ = writeln!(page, "<h2>{title}</h2>\n<table><tbody>");
    for Fact { name, value } in facts {
        let _ = writeln!(page, "<tr><th>{}</th><td>{}</td></tr>", escaped(name), escaped(value));
    }
    *page += "</tbody></table>\n";
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture;

    #[test]
    fn nothing_that_is_shown_becomes_a_tag_and_nothing_is_fetched() {
        let mut report = fixture::report();
        let nasty = "\"><img src=http://x.example/ onerror='alert(1)'>";
        report.command = nasty.into();
        report.made = nasty.into();
        report.circumstances.push(Fact::new(nasty, nasty));
        report.measurements[0].operation = nasty.into();
        report.ladder[0].name = nasty.into();
        report.verdicts[0].explanation = nasty.into();
        let page = of(&report);
        for tag in ["<img", "<script", "<link", "<iframe", "<a ", "url(", "@import", " onerror='"] {
            assert!(!page.contains(tag), "{tag} is in the page");
        }
        // All quotes and brackets of what came from outside are escaped.
        assert!(page.matches("&lt;img src=http://x.example/ onerror=&#39;").count() >= 7);
        assert_eq!(page.matches("http").count() - page.matches("http://x.example").count(), 1);
        assert!(
            page.contains("http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'")
        );
    }

    #[test]
    fn what_another_page_shows_of_it_has_no_style_of_its_own() {
        let part = content(&fixture::report());
        assert!(part.contains("<svg ") && part.contains("<h2>Rows</h2>"), "{part}");
        for never in ["<style", "style=", "<script", "<h1", "<html", "href"] {
            assert!(!part.contains(never), "{never} in {part}");
        }
    }

    #[test]
    fn tags_that_are_opened_are_closed() {
        let page = of(&fixture::report());
        for tag in
            ["html", "head", "body", "table", "tbody", "tr", "td", "ul", "li", "svg", "text", "p"]
        {
            let opened = page.matches(&format!("<{tag}>")).count()
                + page.matches(&format!("<{tag} ")).count();
            assert_eq!(opened, page.matches(&format!("</{tag}>")).count(), "{tag}");
        }
        assert!(page.contains("Limited by network"));
    }

    #[test]
    fn a_page_begins_with_what_it_comes_to_on_which_hardware_and_suits_dark_and_print() {
        let mut report = fixture::report();
        report.circumstances.push(Fact::new("processor", "AMD EPYC"));
        report.circumstances.push(Fact::new("cores", "2"));
        report.facts.push(Fact::new("link", "eth0, 1000 Mb/s"));
        report.answers = vec!["4 KB random reads: 12,000 a second, like a SATA SSD.".into()];
        let page = of(&report);
        let (head, _) = page.split_once("<svg ").unwrap();
        for said in [
            "<h1>holdall lab disk</h1>",
            "attic · AMD EPYC · 2 cores · eth0, 1000 Mb/s",
            "like a SATA SSD",
        ] {
            assert!(head.contains(said), "{said}: {head}");
        }
        assert!(!head.contains("at most"), "no figure that nothing on the page explains");
        for style in ["prefers-color-scheme:dark", "@media print", "white-space:nowrap"] {
            assert!(head.contains(style), "{style}");
        }
        assert!(
            !page.contains("#ccc") && page.contains("class=\"grid\""),
            "lines are seen on black, too"
        );
    }

    #[test]
    fn a_column_is_there_where_a_row_has_something_in_it() {
        let mut report = fixture::report();
        assert!(!of(&report).contains("each core"));
        report.measurements[0].bytes_per_core_second = Some(5e8);
        let page = of(&report);
        assert!(page.contains("<th class=\"n\">each core</th>") && page.contains("500.0 MB/s"));
        assert!(!page.contains("flushes"));
        report.measurements[1].device = Some(fixture::device());
        let page = of(&report);
        assert!(page.contains("<td class=\"n\">250</td><td class=\"n\">1.50</td>"), "{page}");
        assert!(!page.contains("items</th>") && !page.contains("retransmits"));
        (report.measurements[0].items, report.measurements[1].retransmits) = (Some(1000), Some(0));
        let page = of(&report);
        assert!(page.contains("items</th>") && page.contains("retransmits</th>"), "{page}");
        assert!(!page.contains("limited by</th>"));
        report.measurements[0].limited_by = Some(holdall_meter::Layer::ServerDisk);
        let page = of(&report);
        assert!(page.contains("limited by</th>") && page.contains(">server-disk</td>"), "{page}");
        assert!(page.contains("<td class=\"n\">1,000</td>"), "{page}");
        // That nothing was sent again is a figure, too.
        assert!(page.contains("<td class=\"n\">0</td><td class=\"n\">250</td>"), "{page}");
    }
}

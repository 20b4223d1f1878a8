//! The page: one file, no scripts, nothing fetched, with a policy that says so to the browser.

use std::fmt::Write;

use super::escape::html as escaped;
use super::{Fact, Report, curves, shown};
use crate::Verdict;

/// Nothing may be loaded or run, whatever slipped through.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

const STYLE: &str = "\
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222;\
background:#fff}\
h1{font-size:1.4rem}h2{font-size:1.1rem;margin-top:2rem}\
table{border-collapse:collapse}td,th{padding:.2rem .8rem .2rem 0;text-align:left;vertical-align:top}\
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}tbody tr{border-top:1px solid #ddd}\
svg{width:100%;height:auto;font:13px system-ui,sans-serif}code{overflow-wrap:anywhere}\
.verdict{border-left:.3rem solid #d1495b;padding:.2rem 1rem}";

/// A report as a page.
pub(super) fn of(report: &Report) -> String {
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>holdall lab: {command}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
         <h1>holdall lab</h1>\n<p><code>{command}</code><br>{made}</p>\n",
        command = escaped(&report.command),
        made = escaped(&report.made),
    );
    report.verdicts.iter().for_each(|found| verdict(&mut page, found));
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
    page + "</body>\n</html>\n"
}

fn verdict(page: &mut String, verdict: &Verdict) {
    // Writing to a String can not fail, here and below.
    let _ = writeln!(
        page,
        "<p class=\"verdict\"><strong>Limited by {}</strong> ({:.0} % sure): {} of at most {}.<br>{} {}</p>",
        escaped(verdict.limited_by.word()),
        verdict.confidence * 100.0,
        escaped(&verdict.unit.show(verdict.achieved)),
        escaped(&verdict.unit.show(verdict.ceiling)),
        escaped(&verdict.explanation),
        escaped(verdict.help.as_deref().unwrap_or_default()),
    );
}

fn rows(page: &mut String, report: &Report) {
    if report.measurements.is_empty() {
        return;
    }
    *page += "<h2>Rows</h2>\n<table><thead><tr><th>what</th><th class=\"n\">speed</th>\
        <th class=\"n\">each second</th><th class=\"n\">p50</th><th class=\"n\">p90</th>\
        <th class=\"n\">p99</th><th class=\"n\">p99.9</th></tr></thead><tbody>\n";
    for row in &report.measurements {
        let _ = write!(page, "<tr><td>{}</td>", escaped(&shown::row(row)));
        let latency = row.latency_ns;
        let time = |of: Option<u64>| of.map(shown::time);
        for cell in [
            row.bytes_per_second.map(shown::rate),
            row.operations_per_second.map(shown::frequency),
            time(latency.map(|latency| latency.p50)),
            time(latency.map(|latency| latency.p90)),
            time(latency.map(|latency| latency.p99)),
            time(latency.map(|latency| latency.p99_9)),
        ] {
            let _ = write!(page, "<td class=\"n\">{}</td>", escaped(&cell.unwrap_or_default()));
        }
        *page += "</tr>\n";
    }
    *page += "</tbody></table>\n";
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
}

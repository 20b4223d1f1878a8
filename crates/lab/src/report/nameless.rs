//! A report without names: what one shows to strangers.
//!
//! A card for a forum needs figures, hardware and versions. It does not need the computer's name, addresses, paths and
//! ids, by which its owner, or a server, may be found.

use super::Report;

/// Stands for what is left out.
const LEFT_OUT: &str = "...";
/// Facts that are names or places, whatever stands before them.
const NAMES: [&str; 3] = ["computer", "repository", "mounted at"];

/// The same report without them.
pub(super) fn of(report: &Report) -> Report {
    let mut report = report.clone();
    let is_computer = |fact: &&super::Fact| fact.name == "computer";
    let computer = report.circumstances.iter().find(is_computer).map(|fact| fact.value.clone());
    let hide = |text: &str| hidden(text, computer.as_deref());
    report.command = without_arguments(&report.command);
    for facts in [&mut report.circumstances, &mut report.facts] {
        facts.retain(|fact| !NAMES.iter().any(|name| fact.name.ends_with(name)));
        for fact in facts {
            fact.value = match (fact.name.as_str(), fact.value.split_once(", ")) {
                // Its address comes first, and what it runs behind that.
                ("server", Some((_, runs))) => runs.to_owned(),
                ("server", None) => LEFT_OUT.to_owned(),
                _ => hide(&fact.value),
            };
        }
    }
    for verdict in &mut report.verdicts {
        verdict.explanation = hide(&verdict.explanation);
    }
    for text in report.notes.iter_mut().chain(&mut report.answers) {
        *text = hide(text);
    }
    report
}

/// The command's words, and options whose values are numbers, sizes or ways to measure.
fn without_arguments(command: &str) -> String {
    const WAYS: [&str; 7] = ["read", "write", "randread", "randwrite", "each", "end", "never"];
    let is_plain = |word: &str| {
        let starts = word.starts_with(|letter: char| letter.is_ascii_digit());
        let is_list = word.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == ',');
        (starts && (is_list || word.parse::<f64>().is_ok())) || WAYS.contains(&word)
    };
    let mut words = command.split(' ');
    let mut kept: Vec<&str> = words.by_ref().take(3).collect();
    let mut of_option = false;
    for word in words {
        if word.starts_with('-') {
            kept.push(word.split_once('=').map_or(word, |(option, _)| option));
        } else {
            kept.push(if of_option && is_plain(word) { word } else { LEFT_OUT });
        }
        of_option = word.starts_with('-');
    }
    kept.dedup();
    kept.join(" ")
}

/// A sentence without paths, addresses and the computer's name.
fn hidden(text: &str, computer: Option<&str>) -> String {
    let hide = |word: &str| {
        let bare = word.trim_matches(|letter: char| "()[],;:.\"'`".contains(letter));
        let is_path = bare.len() > 1 && bare.starts_with('/');
        let is_address = bare.contains(":/") || bare.parse::<std::net::IpAddr>().is_ok();
        let with_port = bare.rsplit_once(':').is_some_and(|(host, port)| {
            !host.is_empty() && !port.is_empty() && port.bytes().all(|digit| digit.is_ascii_digit())
        });
        let is_name = computer.is_some_and(|name| !name.is_empty() && bare == name);
        if is_path || is_address || with_port || is_name {
            word.replace(bare, LEFT_OUT)
        } else {
            word.to_owned()
        }
    };
    text.split(' ').map(hide).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use crate::report::{Fact, Form, fixture};

    #[test]
    fn a_card_without_names_has_no_host_address_path_or_id() {
        let mut report = fixture::report();
        report.command =
            "holdall lab net nas.example --token ... --streams 1,4 --bind 10.0.0.5 --op=read --report /home/eve/x.txt"
                .into();
        report.facts = vec![
            Fact::new("server", "https://nas.example:7443, holdall 0.1.0"),
            Fact::new("repository", "3f9ad1"),
            Fact::new("source, mounted at", "/home/eve"),
            Fact::new("file system", "nfs4 from nas.example:/export (rw)"),
            Fact::new("link", "eth0, 1000 Mb/s, full duplex"),
        ];
        report.notes = vec![
            "a repository beside /mnt/eve, on attic; [fd00::1]:7443 and 10.0.0.5 do 3.0 MB/s"
                .into(),
        ];
        let card = report.write(Form::Text);
        let shown = report.without_names().write(Form::Text);
        for name in
            ["nas.example", "7443", "3f9ad1", "/home", "/mnt", "/export", "attic", "10.0.0.5"]
        {
            assert!(card.contains(name) && !shown.contains(name), "{name}:\n{shown}");
        }
        for kept in [
            "holdall lab net ... --token ... --streams 1,4 --bind ...",
            "holdall 0.1.0",
            "1000 Mb/s",
        ] {
            assert!(shown.contains(kept), "{kept}:\n{shown}");
        }
        assert!(shown.contains("do 3.0 MB/s") && shown.contains("Linux 6.12"), "{shown}");
    }
}

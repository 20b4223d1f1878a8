//! What the folders above the files are called.

use std::collections::{HashMap, HashSet};

use holdall_format::{RecordHash, portable_name};
use jiff::Timestamp;

use crate::taken::Taken;

/// Bytes that a name may have.
const NAME_MAX_BYTES: usize = 255;
/// Letters of an id that tell a snapshot from all others.
const ID_LETTERS: usize = 10;

/// A host or a tag as one name of a file.
pub(crate) fn file_name(text: &str) -> String {
    let name = portable_name(text.as_bytes()).replace('/', "%2F");
    let end = name.floor_char_boundary(NAME_MAX_BYTES);
    match &name[..end] {
        "" => "%".to_owned(),
        "." => "%2E".to_owned(),
        ".." => "%2E%2E".to_owned(),
        name => name.to_owned(),
    }
}

/// The id of a snapshot, as lists show it.
pub(crate) fn short_id(one: &Taken<'_>) -> String {
    format!("{:.ID_LETTERS$}", one.id.to_string())
}

/// When a snapshot was taken, in UTC.
fn time_of(one: &Taken<'_>) -> String {
    let second = Timestamp::from_second(one.taken_ns.div_euclid(1_000_000_000));
    second.map_or_else(|_| "0000".to_owned(), |at| at.strftime("%Y-%m-%dT%H-%M-%SZ").to_string())
}

/// The names of snapshots: once given, they stay for as long as this lives.
#[derive(Default)]
pub(crate) struct Names {
    /// Whether there were several hosts when the first name was given.
    with_host: Option<bool>,
    by_id: HashMap<RecordHash, String>,
    given: HashSet<String>,
}

impl Names {
    /// Gives names to those that have none: the time, with the host where there are several, and with the beginning of the id
    /// where another one has that name.
    pub(crate) fn add(&mut self, snapshots: &[Taken<'_>]) {
        let several = || {
            let hosts = snapshots.iter().map(|one| one.host);
            hosts.collect::<HashSet<_>>().len() > 1
        };
        let with_host = *self.with_host.get_or_insert_with(several);
        for one in snapshots {
            if self.by_id.contains_key(&one.id) {
                continue;
            }
            let host = with_host.then(|| format!("_{}", one.host));
            let plain = file_name(&(time_of(one) + &host.unwrap_or_default()));
            let name = match self.given.contains(&plain) {
                true => format!("{}_{}", time_of(one), short_id(one)),
                false => plain,
            };
            self.given.insert(name.clone());
            self.by_id.insert(one.id, name);
        }
    }

    /// The name of a snapshot.
    pub(crate) fn of(&self, one: &Taken<'_>) -> &str {
        self.by_id.get(&one.id).map_or("", |name| name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_tags_are_one_name_each_that_leads_nowhere_else() {
        for (text, name) in [
            ("ada", "ada"),
            ("..", "%2E%2E"),
            (".", "%2E"),
            ("", "%"),
            ("a/b", "a%2Fb"),
            ("line\nbreak", "line%0Abreak"),
        ] {
            assert_eq!(file_name(text), name);
        }
        assert!(file_name(&"\u{e9}".repeat(300)).len() <= NAME_MAX_BYTES);
    }
}

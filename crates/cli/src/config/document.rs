//! Where in `config.toml` each key stands, for what is said about them.

use toml::Spanned;
use toml::de::{DeTable, DeValue, Error};

use super::wrong::{Wrong, nearest};

/// What keys a text has, in the order of its tables.
pub(crate) struct Document {
    entries: Vec<Entry>,
}

/// A key.
pub(crate) struct Entry {
    /// With those of the tables around it, and dots between them.
    pub(crate) key: String,
    /// The line, from 1.
    pub(crate) line: usize,
    /// Where it begins, and where its value ends, in bytes; of a table, only its name.
    range: std::ops::Range<usize>,
    /// What it says, unless it is a table.
    pub(crate) value: Option<String>,
}

impl Document {
    /// Reads a text.
    ///
    /// # Errors
    /// If it is no TOML.
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        let table = DeTable::parse(text)?;
        let mut entries = Vec::new();
        collect(text, "", table.get_ref(), &mut entries);
        Ok(Self { entries })
    }

    /// Each key, those of tables too.
    pub(crate) fn keys(&self) -> &[Entry] {
        &self.entries
    }

    /// The line of a key, or of the innermost table around it that is there; 1 where there is none.
    pub(crate) fn line_of(&self, key: &str) -> usize {
        let line =
            |key: &str| self.entries.iter().find(|entry| entry.key == key).map(|entry| entry.line);
        let mut key = key;
        loop {
            match (line(key), key.rsplit_once('.')) {
                (Some(line), _) => return line,
                (None, Some((above, _))) => key = above,
                (None, None) => return 1,
            }
        }
    }

    /// Says where an error is, and what was meant by a key that is unknown.
    pub(super) fn explain(text: &str, error: &Error) -> Wrong {
        let at = error.span().map_or(0, |span| span.start);
        let line = line_at(text, at);
        let key = Self::parse(text).map(|document| document.key_at(at, line)).unwrap_or_default();
        let words = error.message().trim_end();
        Wrong { line, key, reason: meant(words).unwrap_or_else(|| words.replace('\n', ", ")) }
    }

    /// The innermost key whose name or value has that byte; else the table whose head is in that line.
    fn key_at(&self, at: usize, line: usize) -> String {
        let holds = |entry: &&Entry| entry.range.contains(&at);
        let is_head = |entry: &&Entry| entry.value.is_none() && entry.line == line;
        let innermost = self.entries.iter().filter(holds).max_by_key(|entry| entry.range.start);
        let found = innermost.or_else(|| self.entries.iter().rfind(is_head));
        found.map(|entry| entry.key.clone()).unwrap_or_default()
    }
}

/// What is said of an unknown key, from what serde says: ``unknown field `x`, expected one of `a`, `b` ``.
fn meant(words: &str) -> Option<String> {
    let mut quoted = words.strip_prefix("unknown field ")?.split('`').skip(1).step_by(2);
    let unknown = quoted.next()?;
    let known: Vec<_> = quoted.collect();
    Some(match nearest(unknown, known.iter().copied()) {
        Some(near) => format!("there is no such key: did you mean {near}?"),
        None => format!("there is no such key: there are {}", known.join(", ")),
    })
}

fn collect(text: &str, above: &str, table: &DeTable<'_>, entries: &mut Vec<Entry>) {
    for (name, value) in table {
        let key = if above.is_empty() {
            name.get_ref().to_string()
        } else {
            format!("{above}.{}", name.get_ref())
        };
        let begin = name.span().start;
        let (below, end) = match value.get_ref() {
            DeValue::Table(below) => (Some(below), name.span().end),
            _ => (None, value.span().end),
        };
        let value = below.is_none().then(|| words(text, value));
        entries.push(Entry {
            key: key.clone(),
            line: line_at(text, begin),
            range: begin..end,
            value,
        });
        below.into_iter().for_each(|below| collect(text, &key, below, entries));
    }
}

/// A value as it is written; a text without its quotation marks, and a list with commas between its items.
fn words(text: &str, value: &Spanned<DeValue<'_>>) -> String {
    match value.get_ref() {
        DeValue::String(text) => text.to_string(),
        DeValue::Array(items) => {
            items.iter().map(|item| words(text, item)).collect::<Vec<_>>().join(", ")
        }
        _ => {
            let written = text.get(value.span()).unwrap_or_default();
            written.split_whitespace().collect::<Vec<_>>().join(" ")
        }
    }
}

fn line_at(text: &str, at: usize) -> usize {
    text.get(..at).unwrap_or_default().matches('\n').count() + 1
}

//! What is said of a `config.toml` in which something is wrong.

use std::fmt;

use serde::Serialize;

/// What is wrong in `config.toml`, and where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Wrong {
    /// The line, from 1.
    pub(crate) line: usize,
    /// The key with those of the tables around it, and dots between them; empty for what has none.
    pub(crate) key: String,
    /// A sentence.
    pub(crate) reason: String,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, key, reason } = self;
        match &key[..] {
            "" => write!(f, "line {line}: {reason}"),
            key => write!(f, "line {line}: {key}: {reason}"),
        }
    }
}

/// Which of the words somebody may have meant who wrote another.
pub(super) fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    /// Half of this is what words have in common that have nothing to do with each other.
    const LEAST: f64 = 0.65;
    // The one knows what was left out at the end, the other what was swapped.
    let likeness = |known| {
        f64::max(strsim::jaro(word, known), strsim::normalized_damerau_levenshtein(word, known))
    };
    let near = known.map(|known| (likeness(known), known));
    let near = near.filter(|(likeness, _)| *likeness > LEAST);
    near.max_by(|one, other| one.0.total_cmp(&other.0)).map(|(_, known)| known)
}

//! The labels of a kit's lines, and how values are written and compared.

use zeroize::Zeroizing;

/// A line's label, in the order of the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Label {
    Version,
    Server,
    Identity,
    Name,
    Repository,
    Fingerprint,
    Secret,
    Check,
}

impl Label {
    pub(super) const ALL: [Self; 8] = [
        Self::Version,
        Self::Server,
        Self::Identity,
        Self::Name,
        Self::Repository,
        Self::Fingerprint,
        Self::Secret,
        Self::Check,
    ];

    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Version => "Version",
            Self::Server => "Server",
            Self::Identity => "Identity",
            Self::Name => "Name",
            Self::Repository => "Repository",
            Self::Fingerprint => "Fingerprint",
            Self::Secret => "Secret",
            Self::Check => "Check",
        }
    }

    pub(super) fn is_free_text(self) -> bool {
        matches!(self, Self::Server | Self::Name)
    }

    /// The value without what does not matter in it.
    pub(super) fn normal(self, value: &str) -> Zeroizing<String> {
        let mut normal = Zeroizing::new(String::with_capacity(value.len()));
        for word in value.split_whitespace() {
            if !self.is_free_text() {
                normal.extend(word.chars().map(|letter| letter.to_ascii_lowercase()));
                continue;
            }
            if !normal.is_empty() {
                normal.push(' ');
            }
            normal.push_str(word);
        }
        normal
    }

    /// The value broken into groups and lines, as it is easily copied.
    pub(super) fn for_people(self, value: &str) -> Zeroizing<String> {
        match self {
            Self::Identity | Self::Repository => broken(value, 8, 4),
            Self::Secret => broken(value, 4, 6),
            _ => value.to_owned().into(),
        }
    }
}

/// ASCII text in groups, so many to a line.
pub(super) fn broken(value: &str, group_letters: usize, line_groups: usize) -> Zeroizing<String> {
    let mut out = Zeroizing::new(String::with_capacity(2 * value.len() + 8));
    for (at, letter) in value.chars().enumerate() {
        if at > 0 && at % (group_letters * line_groups) == 0 {
            out.push('\n');
        } else if at > 0 && at % group_letters == 0 {
            out.push(' ');
        }
        out.push(letter);
    }
    out
}

pub(super) fn check_group(label: Label, value: &str) -> String {
    let mut hasher = blake3::Hasher::new_derive_key("holdall v1 recovery kit check");
    hasher.update(label.text().as_bytes()).update(&[0]).update(value.as_bytes());
    let hash = hasher.finalize();
    let [first, second, ..] = hash.as_bytes();
    format!("{first:02x}{second:02x}")
}

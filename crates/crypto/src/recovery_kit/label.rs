//! The labels of a kit's lines, and how values are written and compared.

use zeroize::Zeroizing;

/// At so many line ends of a value it is tried whether there was a space: each doubles what a slip of the finger may
/// be taken for.
const OPEN_ENDS_MAX: usize = 6;

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
    Key,
    Check,
}

impl Label {
    pub(super) const ALL: [Self; 9] = [
        Self::Version,
        Self::Server,
        Self::Identity,
        Self::Name,
        Self::Repository,
        Self::Fingerprint,
        Self::Secret,
        Self::Key,
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
            Self::Key => "Key",
            Self::Check => "Check",
        }
    }

    /// Whether upper and lower case are two things in its value.
    pub(super) fn has_case(self) -> bool {
        matches!(self, Self::Server | Self::Name)
    }

    /// Whether white space in its value says something.
    pub(super) fn has_words(self) -> bool {
        self == Self::Name
    }

    /// Whether there may be several lines of it.
    pub(super) fn may_repeat(self) -> bool {
        matches!(self, Self::Server | Self::Key)
    }

    /// The value without what does not matter in it.
    pub(super) fn normal(self, value: &str) -> Zeroizing<String> {
        let mut normal = Zeroizing::new(String::with_capacity(value.len()));
        for word in value.split_whitespace() {
            if !self.has_case() {
                normal.extend(word.chars().map(|letter| letter.to_ascii_lowercase()));
                continue;
            }
            if self.has_words() && !normal.is_empty() {
                normal.push(' ');
            }
            normal.push_str(word);
        }
        normal
    }

    /// Whether a line that begins with no label may go on with a value of it.
    pub(super) fn goes_on_with(self, line: &str) -> bool {
        match (self, line.split_once(':')) {
            (Self::Name, _) | (_, None) => true,
            // A word before a colon, and something behind: a label with a slip of the finger.
            (Self::Server, Some((word, rest))) => {
                let is_word = word.chars().all(|letter| letter.is_ascii_alphabetic());
                !(is_word && rest.starts_with(char::is_whitespace))
            }
            _ => false,
        }
    }

    /// What a value of several lines may stand for, without what does not matter in it: where a line ends there was a
    /// space, or none. Behind the sixth there was one.
    pub(super) fn readings(self, lines: &str) -> impl Iterator<Item = Zeroizing<String>> {
        let ends = if self.has_words() { lines.matches('\n').count() } else { 0 };
        (0..1_u32 << ends.min(OPEN_ENDS_MAX)).map(move |joined| {
            let mut value = Zeroizing::new(String::with_capacity(lines.len()));
            for (at, line) in lines.split('\n').enumerate() {
                let is_joined = (1..=OPEN_ENDS_MAX).contains(&at) && joined >> (at - 1) & 1 == 1;
                value.push_str(if at == 0 || is_joined { "" } else { " " });
                value.push_str(line);
            }
            self.normal(&value)
        })
    }

    /// The value broken into groups and lines, as it is easily copied.
    pub(super) fn for_people(self, value: &str) -> Zeroizing<String> {
        match self {
            Self::Identity | Self::Repository => broken(value, 8, 4),
            Self::Secret | Self::Key => broken(value, 4, 6),
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

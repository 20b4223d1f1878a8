//! Which request asks for what: written by the client and read by the server.

use super::verb::{BEGIN_CODE, CONFIRM_CODE, LabVerb, Method, PAIR, RepositoryVerb, Verb};

/// Stands for the machine's own repository where its name is not known.
pub const OWN_REPOSITORY: &str = "~";
/// Longest path and query that are read, in bytes.
const MAX_PATH_BYTES: usize = 512;
const BASE: &str = "/api/v1";
const LAB: &str = "/lab";
const REPOSITORIES: &str = "/repositories/";

/// What a request asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Route {
    /// Lets a machine in by an invite.
    Pair,
    /// Begins to trade a short code for an invite.
    BeginCode,
    /// Proves that the code is the same, and gets the invite.
    ConfirmCode,
    /// Measures the path between machine and server.
    Lab(LabVerb),
    /// Something of a repository.
    Repository {
        /// Its name on this server, or [`OWN_REPOSITORY`].
        name: String,
        /// What is asked of it.
        verb: RepositoryVerb,
    },
}

impl Route {
    /// What is the same of all such requests.
    pub fn verb(&self) -> &'static Verb {
        match self {
            Self::Pair => PAIR,
            Self::BeginCode => BEGIN_CODE,
            Self::ConfirmCode => CONFIRM_CODE,
            Self::Lab(verb) => verb.verb(),
            Self::Repository { verb, .. } => verb.verb(),
        }
    }

    /// The method.
    pub fn method(&self) -> Method {
        self.verb().method
    }

    /// Path and query.
    pub fn path(&self) -> String {
        match self {
            Self::Pair | Self::BeginCode | Self::ConfirmCode => {
                format!("{BASE}{}", self.verb().path)
            }
            Self::Lab(verb) => format!("{BASE}{LAB}{}", verb.path()),
            Self::Repository { name, verb } => format!("{BASE}{REPOSITORIES}{name}{}", verb.path()),
        }
    }

    /// Reads a method, path and query; `None` for what is not served.
    ///
    /// Untrusted: names are checked by [`is_repository_name`], numbers are decimal.
    pub fn parse(method: &str, path_and_query: &str) -> Option<Self> {
        if path_and_query.len() > MAX_PATH_BYTES {
            return None;
        }
        let (path, query) = path_and_query.split_once('?').unwrap_or((path_and_query, ""));
        let path = path.strip_prefix(BASE)?;
        let is_asked = |route: &Self| route.verb().path == path;
        if let Some(route) =
            [Self::Pair, Self::BeginCode, Self::ConfirmCode].into_iter().find(is_asked)
        {
            return (method == route.method().name() && query.is_empty()).then_some(route);
        }
        if let Some(path) = path.strip_prefix(LAB) {
            let verb = LabVerb::parse(method, path, query)?;
            return verb.is_within_limits().then_some(Self::Lab(verb));
        }
        let rest = path.strip_prefix(REPOSITORIES)?;
        let (name, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let verb = RepositoryVerb::parse(method, path, query)?;
        let is_name = name == OWN_REPOSITORY || is_repository_name(name);
        is_name.then(|| Self::Repository { name: name.to_owned(), verb })
    }
}

/// Whether a text may name a repository: `[a-z0-9][a-z0-9._-]{0,63}`, so that it is also a file
/// name that needs no quoting and never leaves its folder.
pub fn is_repository_name(name: &str) -> bool {
    let plain = |letter: u8| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    name.len() <= 64
        && name.bytes().next().is_some_and(plain)
        && name.bytes().all(|letter| plain(letter) || matches!(letter, b'.' | b'_' | b'-'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RecordQuery, RecordsDigest};
    use proptest::prelude::*;

    /// A request of each verb, below its place: `ab...` for each session, 1 for each number.
    fn requests() -> impl Iterator<Item = (&'static Verb, String)> {
        let repository = format!("{REPOSITORIES}{OWN_REPOSITORY}");
        let below = |place: String| {
            move |verb: &'static Verb| {
                let is_value = |word: &&str| word.bytes().all(|byte| byte.is_ascii_uppercase());
                let mut path = verb.path.to_owned();
                for word in verb.path.split(['/', '=', '&']).filter(is_value) {
                    let value = if word == "ID" { "ab".repeat(16) } else { "1".to_owned() };
                    path = path.replacen(word, &value, usize::from(!word.is_empty()));
                }
                (verb, format!("{BASE}{place}{path}"))
            }
        };
        let of_repository = RepositoryVerb::ALL.iter().map(below(repository));
        let of_lab = LabVerb::ALL.iter().map(below(LAB.to_owned()));
        let of_pairing =
            [PAIR, BEGIN_CODE, CONFIRM_CODE].map(|verb| (verb, format!("{BASE}{}", verb.path)));
        of_repository.chain(of_lab).chain(of_pairing)
    }

    #[test]
    fn every_verb_reads_back_and_none_under_another_method() {
        for (verb, path) in requests() {
            let route = Route::parse(verb.method.name(), &path).expect(&path);
            assert_eq!((route.verb(), route.path()), (verb, path.clone()));
            for other in ["DELETE", "PATCH", "HEAD", "get"] {
                assert_eq!(Route::parse(other, &path), None);
            }
        }
    }

    #[test]
    fn what_is_known_of_records_is_behind_a_query_or_not() {
        for known in [None, Some(RecordsDigest::of(&[]))] {
            let query = RecordQuery { after_position: u64::MAX, limit: 5, known };
            let (name, verb) = (OWN_REPOSITORY.into(), RepositoryVerb::Records(query));
            let route = Route::Repository { name, verb };
            assert_eq!(Route::parse("GET", &route.path()), Some(route));
        }
    }

    /// The document has of each verb of a repository, in a table: how it is asked for, what it needs, and how long its
    /// body may be.
    #[test]
    fn the_document_has_every_verb_as_it_is_here() {
        let text = include_str!("../../../../docs/protocol.md");
        let (_, requests) = text.split_once("\n## Requests\n").unwrap();
        let (requests, _) = requests.split_once("\n## ").unwrap();
        let rows = requests.lines().filter_map(|line| line.strip_prefix("| `"));
        let documented =
            rows.map(|row| row.splitn(4, " | ").take(3).collect::<Vec<_>>().join(" | "));
        let written = RepositoryVerb::ALL
            .iter()
            .map(|verb| format!("{}` | {} | {}", verb.request(), verb.needs, verb.max_body_bytes));
        let (documented, written): (Vec<_>, Vec<_>) = (documented.collect(), written.collect());
        assert_eq!(documented.join("\n"), written.join("\n"));
    }

    #[test]
    fn names_that_leave_their_folder_or_need_quoting_are_refused() {
        for name in ["laptop", "0", "a.b_c-d", &"a".repeat(64)] {
            assert!(is_repository_name(name), "{name}");
        }
        for name in ["", ".", "..", ".a", "-a", "A", "a/b", "a\0", "ä", "a b", &"a".repeat(65)] {
            assert!(!is_repository_name(name), "{name}");
            assert_eq!(Route::parse("GET", &format!("/api/v1/repositories/{name}")), None);
        }
    }

    #[test]
    fn paths_that_are_almost_right_are_refused() {
        let session = "ab".repeat(16);
        for (method, path) in [
            ("POST", "/api/v1/pair/".to_owned()),
            ("POST", "/api/v1/pair?x=1".to_owned()),
            ("POST", "/api/v1/lab/take?bytes=1".to_owned()),
            ("POST", "/api/v1/lab/write?bytes=1".to_owned()),
            ("POST", "/api/v1/lab/give".to_owned()),
            ("POST", format!("/api/v1/lab/give?bytes={}", super::super::MAX_LAB_BYTES + 1)),
            ("POST", format!("/api/v1/lab/read?bytes={}", super::super::MAX_PUT_BODY_BYTES + 1)),
            ("GET", "/api/v1/repositories/a/records".to_owned()),
            ("GET", "/api/v1/repositories/a/records?after=+1&limit=2".to_owned()),
            ("GET", "/api/v1/repositories/a/records?after=99999999999999999999&limit=2".to_owned()),
            ("POST", format!("/api/v1/repositories/a/sessions/{session}/fetch")),
            ("POST", "/api/v1/repositories/a/prune".to_owned()),
            ("POST", "/api/v1/repositories/a/prune?dry=2".to_owned()),
            ("POST", format!("/api/v1/repositories/a/sessions/{session}x/close")),
            ("POST", format!("/api/v1/repositories/a/sessions/{session}/close?copy=1")),
        ] {
            assert_eq!(Route::parse(method, &path), None, "{path}");
        }
    }

    proptest! {
        #[test]
        fn any_path_is_a_route_or_none(method in "GET|PUT|POST", path: String) {
            let _ = Route::parse(&method, &path);
            if let Some(route) = Route::parse(&method, &format!("{BASE}{path}")) {
                prop_assert_eq!(Route::parse(&method, &route.path()), Some(route));
            }
        }
    }
}

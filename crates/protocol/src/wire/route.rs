//! Which request asks for what: written by the client and read by the server from one description.
//!
//! No verb overwrites, and the method DELETE does not occur. What asks for a deletion has an
//! administrator's token in its body.

use holdall_format::SessionId;

use crate::RecordQuery;

/// Stands for the machine's own repository where its name is not known.
pub const OWN_REPOSITORY: &str = "~";
/// Longest path and query that are read, in bytes.
const MAX_PATH_BYTES: usize = 512;
const BASE: &str = "/api/v1/";

/// A method of HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Reads.
    Get,
    /// Does something.
    Post,
    /// Makes what has the path's name.
    Put,
}

impl Method {
    /// Its name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
        }
    }
}

/// What a request asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Route {
    /// Lets a machine in by an invite.
    Pair,
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

/// What may be asked to measure the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LabVerb {
    /// `POST lab/take`: the body is read and forgotten.
    Take,
    /// `POST lab/write`: the body, at most [`MAX_PUT_BODY_BYTES`](super::MAX_PUT_BODY_BYTES), is written
    /// to the server's disk, made durable and forgotten.
    Write,
    /// `POST lab/give?bytes=COUNT`: answers so many bytes, at most
    /// [`MAX_LAB_BYTES`](super::MAX_LAB_BYTES).
    Give(u64),
    /// `POST lab/read?bytes=COUNT`: answers so many bytes that were read from a file on the server's disk, at
    /// most [`MAX_PUT_BODY_BYTES`](super::MAX_PUT_BODY_BYTES).
    Read(u64),
}

impl LabVerb {
    /// Its name in logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Take => "lab take",
            Self::Write => "lab write",
            Self::Give(_) => "lab give",
            Self::Read(_) => "lab read",
        }
    }

    fn parse(verb: &str, query: &str) -> Option<Self> {
        match (verb, query) {
            ("take", "") => Some(Self::Take),
            ("write", "") => Some(Self::Write),
            ("give", query) => {
                let bytes = number(query, "bytes=")?;
                (bytes <= super::MAX_LAB_BYTES as u64).then_some(Self::Give(bytes))
            }
            ("read", query) => {
                let bytes = number(query, "bytes=")?;
                (bytes <= super::MAX_PUT_BODY_BYTES as u64).then_some(Self::Read(bytes))
            }
            _ => None,
        }
    }
}

/// What may be asked of a repository: the methods of [`crate::Repository`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RepositoryVerb {
    /// `PUT repositories/NAME`.
    Create,
    /// `GET repositories/NAME`.
    Describe,
    /// `PUT repositories/NAME/wrappings`.
    PutWrappings,
    /// `PUT repositories/NAME/clear-parts`.
    PutBack,
    /// `PUT repositories/NAME/records`.
    PutBackRecord,
    /// `POST repositories/NAME/sessions`.
    OpenSession,
    /// `POST repositories/NAME/sessions/ID/missing`.
    Missing(SessionId),
    /// `POST repositories/NAME/sessions/ID/blocks`.
    PutBlocks(SessionId),
    /// `POST repositories/NAME/sessions/ID/records`.
    Commit(SessionId),
    /// `POST repositories/NAME/sessions/ID/close`.
    CloseSession(SessionId),
    /// `GET repositories/NAME/records?after=POSITION&limit=COUNT`, and `&known=DIGEST` behind it.
    Records(RecordQuery),
    /// `POST repositories/NAME/sessions/ID/fetch?copy=COPY`.
    Fetch(SessionId, u32),
    /// `POST repositories/NAME/sessions/ID/pages?cursor=CURSOR`.
    ReadBlocks(SessionId, u64),
    /// `POST repositories/NAME/sessions/ID/proofs`.
    ProveBlocks(SessionId),
    /// `POST repositories/NAME/scrub`.
    Scrub,
    /// `GET repositories/NAME/usage`.
    Usage,
    /// `GET repositories/NAME/deletions`.
    Deletions,
    /// `POST repositories/NAME/deletions`.
    Forget,
    /// `POST repositories/NAME/prune?dry=DRY`, 1 to change nothing.
    Prune(bool),
    /// `POST repositories/NAME/sparse?from=POSITION`.
    SparseBlocks(u64),
    /// `POST repositories/NAME/sessions/ID/superseded`.
    Supersede(SessionId),
}

impl RepositoryVerb {
    /// Its name in logs.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Describe => "describe",
            Self::PutWrappings => "put wrappings",
            Self::PutBack => "put back",
            Self::PutBackRecord => "put back a record",
            Self::OpenSession => "open session",
            Self::Missing(_) => "missing",
            Self::PutBlocks(_) => "put blocks",
            Self::Commit(_) => "commit",
            Self::CloseSession(_) => "close session",
            Self::Records(_) => "records",
            Self::Fetch(..) => "fetch",
            Self::ReadBlocks(..) => "read blocks",
            Self::ProveBlocks(_) => "prove blocks",
            Self::Scrub => "scrub",
            Self::Usage => "usage",
            Self::Deletions => "deletions",
            Self::Forget => "forget",
            Self::Prune(_) => "prune",
            Self::SparseBlocks(_) => "sparse blocks",
            Self::Supersede(_) => "supersede",
        }
    }

    fn method(&self) -> Method {
        match self {
            Self::Create | Self::PutWrappings | Self::PutBack | Self::PutBackRecord => Method::Put,
            Self::Describe | Self::Records(_) | Self::Usage | Self::Deletions => Method::Get,
            _ => Method::Post,
        }
    }

    fn path(&self) -> String {
        match self {
            Self::Create | Self::Describe => String::new(),
            Self::PutWrappings => "/wrappings".into(),
            Self::PutBack => "/clear-parts".into(),
            Self::PutBackRecord => "/records".into(),
            Self::OpenSession => "/sessions".into(),
            Self::Missing(session) => format!("/sessions/{session}/missing"),
            Self::PutBlocks(session) => format!("/sessions/{session}/blocks"),
            Self::Commit(session) => format!("/sessions/{session}/records"),
            Self::CloseSession(session) => format!("/sessions/{session}/close"),
            Self::Records(query) => {
                let RecordQuery { after_position, limit, known } = query;
                let known = known.map(|known| format!("&known={known}")).unwrap_or_default();
                format!("/records?after={after_position}&limit={limit}{known}")
            }
            Self::Fetch(session, copy) => format!("/sessions/{session}/fetch?copy={copy}"),
            Self::ReadBlocks(session, cursor) => {
                format!("/sessions/{session}/pages?cursor={cursor}")
            }
            Self::ProveBlocks(session) => format!("/sessions/{session}/proofs"),
            Self::Scrub => "/scrub".into(),
            Self::Usage => "/usage".into(),
            Self::Deletions | Self::Forget => "/deletions".into(),
            Self::Prune(dry) => format!("/prune?dry={}", u8::from(*dry)),
            Self::SparseBlocks(from) => format!("/sparse?from={from}"),
            Self::Supersede(session) => format!("/sessions/{session}/superseded"),
        }
    }

    fn parse(method: &str, path: &[&str], query: &str) -> Option<Self> {
        let verb = match (method, path) {
            ("PUT", []) => Self::Create,
            ("GET", []) => Self::Describe,
            ("PUT", ["wrappings"]) => Self::PutWrappings,
            ("PUT", ["clear-parts"]) => Self::PutBack,
            ("PUT", ["records"]) => Self::PutBackRecord,
            ("POST", ["sessions"]) => Self::OpenSession,
            ("POST", ["scrub"]) => Self::Scrub,
            ("GET", ["usage"]) => Self::Usage,
            ("GET", ["deletions"]) => Self::Deletions,
            ("POST", ["deletions"]) => Self::Forget,
            ("POST", ["prune"]) => Self::Prune(flag(query, "dry=")?),
            ("POST", ["sparse"]) => Self::SparseBlocks(number(query, "from=")?),
            ("GET", ["records"]) => Self::Records(record_query(query)?),
            ("POST", ["sessions", session, verb]) => {
                Self::parse_in_session(session.parse().ok()?, verb, query)?
            }
            _ => return None,
        };
        let takes_query = matches!(
            verb,
            Self::Records(_)
                | Self::Fetch(..)
                | Self::ReadBlocks(..)
                | Self::Prune(_)
                | Self::SparseBlocks(_)
        );
        (takes_query || query.is_empty()).then_some(verb)
    }

    fn parse_in_session(session: SessionId, verb: &str, query: &str) -> Option<Self> {
        Some(match verb {
            "missing" => Self::Missing(session),
            "blocks" => Self::PutBlocks(session),
            "records" => Self::Commit(session),
            "close" => Self::CloseSession(session),
            "proofs" => Self::ProveBlocks(session),
            "superseded" => Self::Supersede(session),
            "fetch" => Self::Fetch(session, number(query, "copy=")?),
            "pages" => Self::ReadBlocks(session, number(query, "cursor=")?),
            _ => return None,
        })
    }
}

impl Route {
    /// The method.
    pub fn method(&self) -> Method {
        match self {
            Self::Pair | Self::Lab(_) => Method::Post,
            Self::Repository { verb, .. } => verb.method(),
        }
    }

    /// Path and query.
    pub fn path(&self) -> String {
        match self {
            Self::Pair => format!("{BASE}pair"),
            Self::Lab(LabVerb::Take) => format!("{BASE}lab/take"),
            Self::Lab(LabVerb::Write) => format!("{BASE}lab/write"),
            Self::Lab(LabVerb::Give(bytes)) => format!("{BASE}lab/give?bytes={bytes}"),
            Self::Lab(LabVerb::Read(bytes)) => format!("{BASE}lab/read?bytes={bytes}"),
            Self::Repository { name, verb } => format!("{BASE}repositories/{name}{}", verb.path()),
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
        let parts: Vec<_> = path.strip_prefix(BASE)?.split('/').collect();
        match parts.as_slice() {
            ["pair"] if method == "POST" && query.is_empty() => Some(Self::Pair),
            ["lab", verb] if method == "POST" => Some(Self::Lab(LabVerb::parse(verb, query)?)),
            ["repositories", name, path @ ..]
                if *name == OWN_REPOSITORY || is_repository_name(name) =>
            {
                let verb = RepositoryVerb::parse(method, path, query)?;
                Some(Self::Repository { name: (*name).to_owned(), verb })
            }
            _ => None,
        }
    }
}

fn record_query(query: &str) -> Option<RecordQuery> {
    let (after, rest) = query.split_once('&')?;
    let (limit, known) = match rest.split_once('&') {
        Some((limit, known)) => (limit, Some(known.strip_prefix("known=")?.parse().ok()?)),
        None => (rest, None),
    };
    let (after_position, limit) = (number(after, "after=")?, number(limit, "limit=")?);
    Some(RecordQuery { after_position, limit, known })
}

fn flag(text: &str, key: &str) -> Option<bool> {
    match text.strip_prefix(key)? {
        "0" => Some(false),
        "1" => Some(true),
        _ => None,
    }
}

fn number<T: std::str::FromStr>(text: &str, key: &str) -> Option<T> {
    let digits = text.strip_prefix(key)?;
    digits.bytes().all(|digit| digit.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
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
    use crate::RecordsDigest;
    use proptest::prelude::*;

    fn verbs() -> Vec<RepositoryVerb> {
        let session = SessionId::from_bytes([0xab; 16]);
        vec![
            RepositoryVerb::Create,
            RepositoryVerb::Describe,
            RepositoryVerb::PutWrappings,
            RepositoryVerb::PutBack,
            RepositoryVerb::PutBackRecord,
            RepositoryVerb::OpenSession,
            RepositoryVerb::Missing(session),
            RepositoryVerb::PutBlocks(session),
            RepositoryVerb::Commit(session),
            RepositoryVerb::CloseSession(session),
            RepositoryVerb::Records(RecordQuery {
                after_position: u64::MAX,
                limit: 5,
                known: None,
            }),
            RepositoryVerb::Records(RecordQuery {
                after_position: 7,
                limit: 5,
                known: Some(RecordsDigest::of(&[])),
            }),
            RepositoryVerb::Fetch(session, 3),
            RepositoryVerb::ReadBlocks(session, 77),
            RepositoryVerb::ProveBlocks(session),
            RepositoryVerb::Scrub,
            RepositoryVerb::Usage,
            RepositoryVerb::Deletions,
            RepositoryVerb::Forget,
            RepositoryVerb::Prune(false),
            RepositoryVerb::Prune(true),
            RepositoryVerb::SparseBlocks(9),
            RepositoryVerb::Supersede(session),
        ]
    }

    #[test]
    fn every_route_reads_back_and_none_under_another_method() {
        let of_own =
            verbs().into_iter().map(|verb| Route::Repository { name: OWN_REPOSITORY.into(), verb });
        let others = [
            Route::Pair,
            Route::Lab(LabVerb::Take),
            Route::Lab(LabVerb::Write),
            Route::Lab(LabVerb::Give(5)),
            Route::Lab(LabVerb::Read(5)),
        ];
        for route in of_own.chain(others) {
            let method = route.method().name();
            assert_eq!(Route::parse(method, &route.path()), Some(route.clone()));
            for other in ["DELETE", "PATCH", "HEAD", "get"] {
                assert_eq!(Route::parse(other, &route.path()), None);
            }
        }
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

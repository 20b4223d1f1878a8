//! Every verb of the wire, once: what it is called, how it is asked for, what it needs, and how long its body may be.
//!
//! Client and server read and write requests by this table, the server checks rights and lengths by it, and a test
//! compares the table in `docs/protocol.md` with it. No verb overwrites, and the method DELETE does not occur.
//!
//! A new one is a row here, a method of a trait, what a client and a directory do for it, and an arm in the server's
//! `http/repository_request.rs`. Tests then ask for its row in the document, and for a request of it by every role.

use std::fmt;

use holdall_format::SessionId;
use holdall_format::limits::RECORD_MAX_BYTES;

use super::{
    MAX_CONTROL_BYTES, MAX_FORGET_BODY_BYTES, MAX_IDS_BODY_BYTES, MAX_LAB_BYTES,
    MAX_PROBES_BODY_BYTES, MAX_PUT_BODY_BYTES, MAX_REPOSITORY_BODY_BYTES, MAX_STORED_RECORD_BYTES,
    MAX_SUPERSEDE_BODY_BYTES,
};
use crate::RecordQuery;

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

/// What a key needs for a verb.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// An invite in the body.
    Invite,
    /// To know the short code that is open.
    Code,
    /// To be a machine's, or a recovery kit's.
    Read,
    /// To be a machine's that has the right to back up.
    Backup,
    /// To be a machine's, and an administrator's token in the body.
    Token,
    /// To be a machine's; no repository is part of it.
    Measure,
    /// The same, and the right to back up.
    MeasureDisk,
}

impl fmt::Display for Needs {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Invite => "invite",
            Self::Code => "short code",
            Self::Read => "read",
            Self::Backup => "back up",
            Self::Token => "token",
            Self::Measure => "measure",
            Self::MeasureDisk => "measure disk",
        })
    }
}

/// What is the same of all requests of a verb.
#[derive(Debug, PartialEq, Eq)]
pub struct Verb {
    /// Its name in logs.
    pub name: &'static str,
    /// The method.
    pub method: Method,
    /// Path and query, with words in capitals in place of values.
    pub path: &'static str,
    /// Who may ask for it.
    pub needs: Needs,
    /// Most bytes of the body.
    pub max_body_bytes: usize,
}

impl Verb {
    const fn new(
        name: &'static str,
        method: Method,
        path: &'static str,
        needs: Needs,
        max_body_bytes: usize,
    ) -> Self {
        Self { name, method, path, needs, max_body_bytes }
    }

    /// Method and path, as the documents have them.
    pub fn request(&self) -> String {
        format!("{} {}", self.method.name(), self.path).trim_end().to_owned()
    }
}

/// Lets a machine in.
pub(super) const PAIR: &Verb =
    &Verb::new("pair", Method::Post, "/pair", Needs::Invite, MAX_CONTROL_BYTES);

/// Begins to trade a short code for an invite.
pub(super) const BEGIN_CODE: &Verb =
    &Verb::new("short code", Method::Post, "/pair/code", Needs::Code, MAX_CONTROL_BYTES);
/// Ends that.
pub(super) const CONFIRM_CODE: &Verb = &Verb::new(
    "confirm short code",
    Method::Post,
    "/pair/code/confirm",
    Needs::Code,
    MAX_CONTROL_BYTES,
);

macro_rules! verbs {
    ($(#[$meta:meta])* $verbs:ident {
        $($variant:ident $(($($value:ident: $type:ty),+))?:
            $name:literal, $method:ident $path:literal, $needs:ident, $max_body_bytes:expr;)+
    }) => {
        $(#[$meta])*
        pub enum $verbs {
            $(#[doc = concat!("`", $path, "`.")] $variant $(($($type),+))?,)+
        }

        impl $verbs {
            /// All there are.
            pub const ALL: &[Verb] =
                &[$(Verb::new($name, Method::$method, $path, Needs::$needs, $max_body_bytes)),+];

            /// What is the same of all requests of this verb.
            pub fn verb(&self) -> &'static Verb {
                match self {
                    $(Self::$variant { .. } => const {
                        &Verb::new($name, Method::$method, $path, Needs::$needs, $max_body_bytes)
                    },)+
                }
            }

            pub(super) fn path(&self) -> String {
                match self {
                    $(Self::$variant $(($($value),+))? => filled($path, &[$($($value.write()),+)?]),)+
                }
            }

            pub(super) fn parse(method: &str, path: &str, query: &str) -> Option<Self> {
                $(if let Some(values) = values_of(Method::$method, $path, method, path, query) {
                    let [$($($value),+)?] = values[..] else { return None };
                    return Some(Self::$variant $(($(<$type>::read($value)?),+))?);
                })+
                None
            }
        }
    };
}

verbs! {
    /// What may be asked of a repository, below `repositories/NAME`: the methods of [`crate::Repository`],
    /// [`crate::ServedRepository`] and [`crate::Compacting`].
    #[derive(Debug, Clone, PartialEq, Eq)]
    RepositoryVerb {
        Create: "create", Put "", Backup, MAX_REPOSITORY_BODY_BYTES;
        Describe: "describe", Get "", Read, 0;
        PutWrappings: "put wrappings", Put "/wrappings", Backup, MAX_REPOSITORY_BODY_BYTES;
        PutBackRecord: "put back a record", Put "/records", Backup, MAX_STORED_RECORD_BYTES;
        PutBack: "put back", Put "/clear-parts", Backup, MAX_REPOSITORY_BODY_BYTES;
        // What it is for is in the body: to back up needs more.
        OpenSession: "open session", Post "/sessions", Read, MAX_CONTROL_BYTES;
        Missing(session: SessionId): "missing", Post "/sessions/ID/missing", Read, MAX_IDS_BODY_BYTES;
        PutBlocks(session: SessionId): "put blocks", Post "/sessions/ID/blocks", Backup, MAX_PUT_BODY_BYTES;
        Commit(session: SessionId): "commit", Post "/sessions/ID/records", Backup, RECORD_MAX_BYTES;
        CloseSession(session: SessionId): "close session", Post "/sessions/ID/close", Read, 0;
        Records(query: RecordQuery): "records", Get "/records?after=POSITION&limit=COUNT", Read, 0;
        Fetch(session: SessionId, copy: u32):
            "fetch", Post "/sessions/ID/fetch?copy=COPY", Read, MAX_IDS_BODY_BYTES;
        ReadBlocks(session: SessionId, cursor: u64):
            "read blocks", Post "/sessions/ID/pages?cursor=CURSOR", Read, 0;
        ProveBlocks(session: SessionId):
            "prove blocks", Post "/sessions/ID/proofs", Read, MAX_PROBES_BODY_BYTES;
        Scrub: "scrub", Post "/scrub", Read, 0;
        Usage: "usage", Get "/usage", Read, 0;
        Deletions: "deletions", Get "/deletions", Read, 0;
        ReportRun: "report a run", Post "/runs", Backup, MAX_CONTROL_BYTES;
        Forget: "forget", Post "/deletions", Token, MAX_FORGET_BODY_BYTES;
        Prune(dry: bool): "prune", Post "/prune?dry=DRY", Token, MAX_FORGET_BODY_BYTES;
        SparseBlocks(from: u64):
            "sparse blocks", Post "/sparse?from=POSITION", Token, MAX_SUPERSEDE_BODY_BYTES;
        Supersede(session: SessionId):
            "supersede", Post "/sessions/ID/superseded", Token, MAX_SUPERSEDE_BODY_BYTES;
    }
}

verbs! {
    /// What may be asked to measure the path, below `lab`. What is sent is forgotten. What `write` is sent was made
    /// durable before, and what `read` answers comes from a file on the server's disk.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    LabVerb {
        Take: "lab take", Post "/take", Measure, MAX_LAB_BYTES;
        Write: "lab write", Post "/write", MeasureDisk, MAX_PUT_BODY_BYTES;
        Give(bytes: u64): "lab give", Post "/give?bytes=COUNT", Measure, 0;
        Read(bytes: u64): "lab read", Post "/read?bytes=COUNT", MeasureDisk, 0;
    }
}

impl RepositoryVerb {
    /// The session that it is asked in.
    pub fn session(&self) -> Option<SessionId> {
        match self {
            Self::Missing(session)
            | Self::PutBlocks(session)
            | Self::Commit(session)
            | Self::CloseSession(session)
            | Self::Fetch(session, _)
            | Self::ReadBlocks(session, _)
            | Self::ProveBlocks(session)
            | Self::Supersede(session) => Some(*session),
            _ => None,
        }
    }
}

impl LabVerb {
    /// Whether it asks for no more than a server answers.
    pub(super) fn is_within_limits(self) -> bool {
        match self {
            Self::Take | Self::Write => true,
            Self::Give(bytes) => bytes <= MAX_LAB_BYTES as u64,
            Self::Read(bytes) => bytes <= MAX_PUT_BODY_BYTES as u64,
        }
    }
}

/// What stands for a value in a path: a part of the path of this name, and the end of the query behind the first `=`.
const IN_PATH: &str = "ID";

/// The path with these values in their places.
fn filled(template: &str, values: &[String]) -> String {
    let mut values = values.iter().map(String::as_str);
    let (path, query) = template.split_once('?').unwrap_or((template, ""));
    let parts = path.split('/').map(|part| match part {
        IN_PATH => values.next().unwrap_or_default(),
        part => part,
    });
    let path = parts.collect::<Vec<_>>().join("/");
    match query.split_once('=') {
        Some((key, _)) => format!("{path}?{key}={}", values.next().unwrap_or_default()),
        None => path,
    }
}

/// The values in a request that is of that form.
fn values_of<'a>(
    method: Method,
    template: &str,
    asked: &str,
    path: &'a str,
    query: &'a str,
) -> Option<Vec<&'a str>> {
    let (template, query_template) = template.split_once('?').unwrap_or((template, ""));
    let is_same_length = template.split('/').count() == path.split('/').count();
    if asked != method.name() || !is_same_length {
        return None;
    }
    let mut values = Vec::new();
    for (part, text) in template.split('/').zip(path.split('/')) {
        match part {
            IN_PATH => values.push(text),
            part if part != text => return None,
            _ => {}
        }
    }
    match query_template.split_once('=') {
        Some((key, _)) => values.push(query.strip_prefix(key)?.strip_prefix('=')?),
        None if !query.is_empty() => return None,
        None => {}
    }
    Some(values)
}

/// A value in a path.
trait Value: Sized {
    /// Untrusted: numbers are decimal, without a sign.
    fn read(text: &str) -> Option<Self>;

    fn write(&self) -> String;
}

macro_rules! numbers {
    ($($type:ty),+) => {
        $(impl Value for $type {
            fn read(text: &str) -> Option<Self> {
                let is_decimal = text.bytes().all(|digit| digit.is_ascii_digit());
                is_decimal.then(|| text.parse().ok()).flatten()
            }

            fn write(&self) -> String {
                self.to_string()
            }
        })+
    };
}
numbers!(u32, u64, usize);

impl Value for SessionId {
    fn read(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    fn write(&self) -> String {
        self.to_string()
    }
}

impl Value for bool {
    fn read(text: &str) -> Option<Self> {
        match text {
            "0" => Some(false),
            "1" => Some(true),
            _ => None,
        }
    }

    fn write(&self) -> String {
        u8::from(*self).to_string()
    }
}

impl Value for RecordQuery {
    fn read(text: &str) -> Option<Self> {
        let (after, rest) = text.split_once("&limit=")?;
        let (limit, known) = match rest.split_once("&known=") {
            Some((limit, known)) => (limit, Some(known.parse().ok()?)),
            None => (rest, None),
        };
        Some(Self { after_position: u64::read(after)?, limit: usize::read(limit)?, known })
    }

    fn write(&self) -> String {
        let Self { after_position, limit, known } = self;
        let known = known.map(|known| format!("&known={known}")).unwrap_or_default();
        format!("{after_position}&limit={limit}{known}")
    }
}

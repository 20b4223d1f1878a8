//! Errors on the wire: one for one those of [`RepositoryError`], and two of the server's own.

use bytes::Bytes;
use holdall_format::{FormatError, ObjectId, RecordHash, SessionId};
use serde::{Deserialize, Serialize};

use super::MAX_ERROR_BYTES;
use super::control::to_json;
use super::text::Text;
use crate::{Denial, RepositoryError};

/// Most missing ids that an error names.
const MAX_NAMED_IDS: usize = 1000;

/// Why a server did not do what it was asked.
#[derive(Debug)]
#[non_exhaustive]
pub enum WireError {
    /// The repository's own answer.
    Repository(RepositoryError),
    /// The key that signed in belongs to no machine.
    UnknownMachine,
    /// The body is over its limit.
    TooLarge {
        /// Most bytes that are taken.
        limit_bytes: u64,
    },
    /// Nothing is served under that method and path.
    NoSuchRoute,
    /// The machine has too many requests under way; later it may succeed.
    TooManyRequests,
    /// The server is ending or cannot take more now; later it may succeed.
    Busy,
}

impl From<RepositoryError> for WireError {
    fn from(error: RepositoryError) -> Self {
        Self::Repository(error)
    }
}

impl From<FormatError> for WireError {
    fn from(error: FormatError) -> Self {
        Self::Repository(error.into())
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "error", rename_all = "kebab-case")]
enum Kind {
    NoRepository {
        place: String,
    },
    AlreadyExists {
        place: String,
    },
    InUse {
        place: String,
    },
    NotAllowed {
        reason: String,
        #[serde(default)]
        cause: Denial,
    },
    Refused {
        reason: String,
    },
    NoSession {
        session: Text<SessionId>,
    },
    HeadMoved {
        head: Option<Text<RecordHash>>,
    },
    OtherRecords,
    MissingObjects {
        ids: Vec<Text<ObjectId>>,
    },
    Damaged {
        what: String,
        reason: String,
    },
    OtherFormat {
        what: String,
        reason: String,
    },
    NoRoom {
        place: String,
    },
    Io {
        what: String,
        reason: String,
    },
    UnknownMachine,
    TooLarge {
        limit_bytes: u64,
    },
    NoSuchRoute,
    TooManyRequests,
    Busy,
}

/// An error's JSON.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Body {
    #[serde(flatten)]
    kind: Kind,
    #[serde(default)]
    message: String,
}

impl From<Body> for WireError {
    fn from(body: Body) -> Self {
        body.kind.into()
    }
}

/// Puts an error into words.
pub(super) fn body_of(error: WireError) -> Body {
    Body { message: message_of(&error), kind: error.into() }
}

/// An error as it is sent.
#[derive(Debug)]
pub struct ErrorAnswer {
    /// The status of HTTP.
    pub status: u16,
    /// The JSON body.
    pub body: Bytes,
}

impl ErrorAnswer {
    /// Puts an error into words and numbers.
    pub fn new(error: WireError) -> Self {
        Self { status: status_of(&error), body: to_json(&body_of(error)) }
    }

    /// Reads the body of a failed request; one that is not of this form counts as refused.
    ///
    /// Untrusted: reads at most [`MAX_ERROR_BYTES`].
    pub fn read(status: u16, body: &[u8]) -> WireError {
        let body = body.get(..MAX_ERROR_BYTES.min(body.len())).unwrap_or_default();
        match serde_json::from_slice::<Body>(body) {
            Ok(body) => body.into(),
            Err(_) if matches!(status, 429 | 503) => WireError::Busy,
            Err(_) => WireError::Repository(RepositoryError::Refused {
                reason: format!("the server answered with status {status}"),
            }),
        }
    }
}

fn status_of(error: &WireError) -> u16 {
    match error {
        WireError::UnknownMachine => 401,
        WireError::TooLarge { .. } => 413,
        WireError::NoSuchRoute => 404,
        WireError::TooManyRequests => 429,
        WireError::Busy => 503,
        WireError::Repository(error) => match error {
            RepositoryError::NoRepository { .. }
            | RepositoryError::NoSession { .. }
            | RepositoryError::MissingObjects { .. } => 404,
            RepositoryError::AlreadyExists { .. }
            | RepositoryError::InUse { .. }
            | RepositoryError::HeadMoved { .. }
            | RepositoryError::OtherRecords => 409,
            RepositoryError::NotAllowed { .. } => 403,
            RepositoryError::Refused { .. } => 400,
            RepositoryError::NoRoom { .. } => 507,
            RepositoryError::Damaged { .. }
            | RepositoryError::OtherFormat { .. }
            | RepositoryError::Io { .. } => 500,
            RepositoryError::Unreachable { .. }
            | RepositoryError::WrongServer { .. }
            | RepositoryError::Interrupted => 503,
        },
    }
}

fn message_of(error: &WireError) -> String {
    match error {
        WireError::Repository(error) => error.to_string(),
        WireError::UnknownMachine => "this machine is not paired with the server".into(),
        WireError::TooLarge { limit_bytes } => format!("the body is over {limit_bytes} bytes"),
        WireError::NoSuchRoute => "nothing is served there".into(),
        WireError::TooManyRequests => "this machine has too many requests under way".into(),
        WireError::Busy => "the server is busy or ending".into(),
    }
}

impl From<WireError> for Kind {
    fn from(error: WireError) -> Self {
        match error {
            WireError::Repository(error) => Self::from(error),
            WireError::UnknownMachine => Self::UnknownMachine,
            WireError::TooLarge { limit_bytes } => Self::TooLarge { limit_bytes },
            WireError::NoSuchRoute => Self::NoSuchRoute,
            WireError::TooManyRequests => Self::TooManyRequests,
            WireError::Busy => Self::Busy,
        }
    }
}

impl From<RepositoryError> for Kind {
    fn from(error: RepositoryError) -> Self {
        match error {
            RepositoryError::NoRepository { place } => Self::NoRepository { place },
            RepositoryError::AlreadyExists { place } => Self::AlreadyExists { place },
            RepositoryError::InUse { place, .. } => Self::InUse { place },
            RepositoryError::NotAllowed { reason, cause } => Self::NotAllowed { reason, cause },
            RepositoryError::Refused { reason } => Self::Refused { reason },
            RepositoryError::NoSession { session } => Self::NoSession { session: Text(session) },
            RepositoryError::HeadMoved { head } => Self::HeadMoved { head: head.map(Text) },
            RepositoryError::OtherRecords => Self::OtherRecords,
            RepositoryError::MissingObjects { ids } => {
                let ids = ids.into_iter().take(MAX_NAMED_IDS).map(Text).collect();
                Self::MissingObjects { ids }
            }
            RepositoryError::Damaged { what, reason } => Self::Damaged { what, reason },
            RepositoryError::OtherFormat { what, reason } => Self::OtherFormat { what, reason },
            RepositoryError::NoRoom { place } => Self::NoRoom { place },
            RepositoryError::Io { what, source } => Self::Io { what, reason: source.to_string() },
            RepositoryError::Unreachable { .. }
            | RepositoryError::WrongServer { .. }
            | RepositoryError::Interrupted => Self::Busy,
        }
    }
}

impl From<Kind> for WireError {
    fn from(kind: Kind) -> Self {
        Self::Repository(match kind {
            Kind::UnknownMachine => return Self::UnknownMachine,
            Kind::TooLarge { limit_bytes } => return Self::TooLarge { limit_bytes },
            Kind::NoSuchRoute => return Self::NoSuchRoute,
            Kind::TooManyRequests => return Self::TooManyRequests,
            Kind::Busy => return Self::Busy,
            Kind::NoRepository { place } => RepositoryError::NoRepository { place },
            Kind::AlreadyExists { place } => RepositoryError::AlreadyExists { place },
            Kind::InUse { place } => RepositoryError::in_use(place),
            Kind::NotAllowed { reason, cause } => RepositoryError::NotAllowed { reason, cause },
            Kind::Refused { reason } => RepositoryError::Refused { reason },
            Kind::NoSession { session } => RepositoryError::NoSession { session: session.0 },
            Kind::HeadMoved { head } => {
                RepositoryError::HeadMoved { head: head.map(|Text(head)| head) }
            }
            Kind::OtherRecords => RepositoryError::OtherRecords,
            Kind::MissingObjects { ids } => RepositoryError::MissingObjects {
                ids: ids.into_iter().map(|Text(id)| id).collect(),
            },
            Kind::Damaged { what, reason } => RepositoryError::Damaged { what, reason },
            Kind::OtherFormat { what, reason } => RepositoryError::OtherFormat { what, reason },
            Kind::NoRoom { place } => RepositoryError::NoRoom { place },
            Kind::Io { what, reason } => {
                RepositoryError::Io { what, source: std::io::Error::other(reason) }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn errors() -> Vec<(u16, WireError)> {
        let text = || "x".to_owned();
        let of = WireError::Repository;
        vec![
            (404, of(RepositoryError::NoRepository { place: text() })),
            (409, of(RepositoryError::AlreadyExists { place: text() })),
            (409, of(RepositoryError::in_use(text()))),
            (403, of(RepositoryError::denied(Denial::Quota, text()))),
            (400, of(RepositoryError::Refused { reason: text() })),
            (404, of(RepositoryError::NoSession { session: SessionId::from_bytes([1; 16]) })),
            (409, of(RepositoryError::HeadMoved { head: None })),
            (409, of(RepositoryError::HeadMoved { head: Some(RecordHash::from_bytes([2; 32])) })),
            (404, of(RepositoryError::MissingObjects { ids: vec![ObjectId::from_bytes([3; 32])] })),
            (500, of(RepositoryError::Damaged { what: text(), reason: text() })),
            (500, of(RepositoryError::OtherFormat { what: text(), reason: text() })),
            (507, of(RepositoryError::NoRoom { place: text() })),
            (500, of(RepositoryError::Io { what: text(), source: std::io::Error::other("y") })),
            (401, WireError::UnknownMachine),
            (413, WireError::TooLarge { limit_bytes: 7 }),
            (404, WireError::NoSuchRoute),
            (429, WireError::TooManyRequests),
            (503, WireError::Busy),
        ]
    }

    #[test]
    fn every_error_reads_back_with_its_fields() {
        for (status, error) in errors() {
            let shown = format!("{error:?}");
            let answer = ErrorAnswer::new(error);
            assert_eq!(answer.status, status, "{shown}");
            let read = ErrorAnswer::read(status, &answer.body);
            assert_eq!(format!("{read:?}"), shown);
        }
    }

    #[test]
    fn a_cause_that_an_older_or_newer_server_names_reads_as_another_one() {
        for cause in ["", r#","cause":"of-tomorrow""#] {
            let body = format!(r#"{{"error":"not-allowed","reason":"x"{cause}}}"#);
            let read = ErrorAnswer::read(403, body.as_bytes());
            let shown =
                format!("{:?}", WireError::from(RepositoryError::denied(Denial::Other, "x")));
            assert_eq!(format!("{read:?}"), shown, "{cause}");
        }
    }

    #[test]
    fn an_answer_of_another_form_is_refused_or_busy_by_its_status() {
        assert!(matches!(ErrorAnswer::read(503, b"gateway"), WireError::Busy));
        assert!(matches!(
            ErrorAnswer::read(418, b"{}"),
            WireError::Repository(RepositoryError::Refused { .. })
        ));
    }

    #[test]
    fn an_error_that_names_many_ids_stays_within_its_limit() {
        let ids = vec![ObjectId::from_bytes([1; 32]); 100_000];
        let answer = ErrorAnswer::new(RepositoryError::MissingObjects { ids }.into());
        assert!(answer.body.len() < MAX_ERROR_BYTES);
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_error(status: u16, bytes: Vec<u8>, at: usize, with: u8) {
            let _ = ErrorAnswer::read(status, &bytes);
            for (status, error) in errors() {
                let mut body = ErrorAnswer::new(error).body.to_vec();
                let at = at % body.len();
                body[at] = with;
                let _ = ErrorAnswer::read(status, &body);
            }
        }
    }
}

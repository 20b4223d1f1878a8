//! The JSON bodies: pairing, sessions, times, usage.

use bytes::Bytes;
use holdall_format::wire::Reader;
use holdall_format::{FormatError, MachineId, RecordHash, SessionId};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::MAX_CONTROL_BYTES;
use super::text::Text;
use crate::{FormerAccount, RequestTimes, SessionGrant, SessionPurpose, Usage, base32};

/// Most parents of a session.
const MAX_PARENTS: usize = 256;

/// What a new machine says of itself.
///
/// Secret: has the invite's secret.
#[derive(Serialize, Deserialize)]
pub struct PairRequest {
    /// The invite's secret in base32.
    secret: Zeroizing<String>,
    /// The machine's name for people; empty to take the invite's.
    pub name: String,
    /// What the machine had before the server lost its accounts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    again: Option<Former>,
}

#[derive(Serialize, Deserialize)]
struct Former {
    machine: Text<MachineId>,
    repository: String,
}

impl PairRequest {
    /// Asks with an invite's secret.
    pub fn new(secret: &[u8; 16], name: &str) -> Self {
        let secret = base32::encode(secret);
        Self { secret, name: name.to_owned(), again: None }
    }

    /// The same for a machine that had an account.
    pub fn again(mut self, former: &FormerAccount) -> Self {
        let FormerAccount { machine, repository } = former.clone();
        self.again = Some(Former { machine: Text(machine), repository });
        self
    }

    /// What the machine says that it had; any text may be the repository's name.
    pub fn former(&self) -> Option<FormerAccount> {
        let Former { machine, repository } = self.again.as_ref()?;
        Some(FormerAccount { machine: machine.0, repository: repository.clone() })
    }

    /// The invite's secret, if it is one.
    pub fn secret(&self) -> Option<Zeroizing<[u8; 16]>> {
        let bytes = base32::decode(&self.secret)?;
        bytes.as_slice().try_into().ok().map(Zeroizing::new)
    }

    /// The body.
    pub fn encode(&self) -> Bytes {
        to_json(self)
    }

    /// Reads the body.
    ///
    /// # Errors
    /// [`FormatError`] over [`MAX_CONTROL_BYTES`], or for what is not this JSON.
    pub fn decode(body: &[u8]) -> Result<Self, FormatError> {
        from_json("pairing request", body)
    }
}

/// What a server makes of a new machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairAnswer {
    machine: Text<MachineId>,
    /// The machine's name for people.
    pub name: String,
    /// Its repository, which may not exist yet.
    pub repository: String,
    /// The server's name for people.
    pub server: String,
}

impl PairAnswer {
    /// Answers with a machine's id.
    pub fn new(machine: MachineId, name: String, repository: String, server: String) -> Self {
        Self { machine: Text(machine), name, repository, server }
    }

    /// The machine's id.
    pub fn machine(&self) -> MachineId {
        self.machine.0
    }

    /// The body.
    pub fn encode(&self) -> Bytes {
        to_json(self)
    }

    /// Reads the body.
    ///
    /// # Errors
    /// [`FormatError`] over [`MAX_CONTROL_BYTES`], or for what is not this JSON.
    pub fn decode(body: &[u8]) -> Result<Self, FormatError> {
        from_json("pairing answer", body)
    }
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "purpose", rename_all = "lowercase")]
enum SessionRequest {
    Backup { parents: Vec<Text<RecordHash>> },
    Read,
}

/// The body that opens a session.
pub fn encode_session_request(purpose: &SessionPurpose) -> Bytes {
    to_json(&match purpose {
        SessionPurpose::Backup { parents } => {
            SessionRequest::Backup { parents: parents.iter().copied().map(Text).collect() }
        }
        SessionPurpose::Read => SessionRequest::Read,
    })
}

/// Reads the body that opens a session.
///
/// # Errors
/// [`FormatError`] over [`MAX_CONTROL_BYTES`] or 256 parents, or for what is not this JSON.
pub fn decode_session_request(body: &[u8]) -> Result<SessionPurpose, FormatError> {
    match from_json("session request", body)? {
        SessionRequest::Backup { parents } if parents.len() > MAX_PARENTS => {
            Err(Reader::new("session request", body).invalid("parents", "more than their limit"))
        }
        SessionRequest::Backup { parents } => Ok(SessionPurpose::Backup {
            parents: parents.into_iter().map(|Text(parent)| parent).collect(),
        }),
        SessionRequest::Read => Ok(SessionPurpose::Read),
    }
}

#[derive(Serialize, Deserialize)]
struct SessionAnswer {
    session: Text<SessionId>,
    head: Option<Text<RecordHash>>,
    sequence: u64,
}

/// The answer to opening a session.
pub fn encode_session_answer(grant: &SessionGrant) -> Bytes {
    let SessionGrant { session, head, sequence } = *grant;
    to_json(&SessionAnswer { session: Text(session), head: head.map(Text), sequence })
}

/// Reads the answer to opening a session.
///
/// # Errors
/// [`FormatError`] over [`MAX_CONTROL_BYTES`], or for what is not this JSON.
pub fn decode_session_answer(body: &[u8]) -> Result<SessionGrant, FormatError> {
    let answer: SessionAnswer = from_json("session answer", body)?;
    let head = answer.head.map(|Text(head)| head);
    Ok(SessionGrant { session: answer.session.0, head, sequence: answer.sequence })
}

#[derive(Serialize, Deserialize)]
struct Times {
    receive_seconds: f64,
    queue_seconds: f64,
    cpu_seconds: f64,
    disk_seconds: f64,
}

/// Where a server's time went: the answer to a put, and the head of the answer to a fetch.
pub fn encode_times(times: &RequestTimes) -> Bytes {
    let RequestTimes { receive_seconds, queue_seconds, cpu_seconds, disk_seconds } = *times;
    to_json(&Times { receive_seconds, queue_seconds, cpu_seconds, disk_seconds })
}

/// Reads where a server's time went.
///
/// # Errors
/// [`FormatError`] over [`MAX_CONTROL_BYTES`], or for what is not this JSON.
pub fn decode_times(body: &[u8]) -> Result<RequestTimes, FormatError> {
    let Times { receive_seconds, queue_seconds, cpu_seconds, disk_seconds } =
        from_json("times", body)?;
    Ok(RequestTimes { receive_seconds, queue_seconds, cpu_seconds, disk_seconds })
}

#[derive(Serialize, Deserialize)]
struct UsageAnswer {
    stored_bytes: u64,
    packs: u64,
    blocks: u64,
    objects: u64,
    records: u64,
    quota_bytes: Option<u64>,
    #[serde(default)]
    free_bytes: Option<u64>,
}

/// The answer to a question for usage.
pub fn encode_usage(usage: &Usage) -> Bytes {
    let Usage { stored_bytes, packs, blocks, objects, records, quota_bytes, free_bytes } = *usage;
    to_json(&UsageAnswer { stored_bytes, packs, blocks, objects, records, quota_bytes, free_bytes })
}

/// Reads the answer to a question for usage.
///
/// # Errors
/// [`FormatError`] over [`MAX_CONTROL_BYTES`], or for what is not this JSON.
pub fn decode_usage(body: &[u8]) -> Result<Usage, FormatError> {
    let UsageAnswer { stored_bytes, packs, blocks, objects, records, quota_bytes, free_bytes } =
        from_json("usage answer", body)?;
    Ok(Usage { stored_bytes, packs, blocks, objects, records, quota_bytes, free_bytes })
}

/// Writes JSON; none of the types of this module can fail to be written.
pub(super) fn to_json(value: &impl Serialize) -> Bytes {
    serde_json::to_vec(value).unwrap_or_default().into()
}

/// Reads JSON of at most [`MAX_CONTROL_BYTES`].
pub(super) fn from_json<T: DeserializeOwned>(
    what: &'static str,
    body: &[u8],
) -> Result<T, FormatError> {
    let reader = Reader::new(what, body);
    if body.len() > MAX_CONTROL_BYTES {
        return Err(reader.invalid("length", "over its limit"));
    }
    serde_json::from_slice(body).map_err(|_| reader.invalid("JSON", "not of the expected form"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn requests_and_answers_read_back() {
        let parents = vec![RecordHash::from_bytes([1; 32]), RecordHash::from_bytes([2; 32])];
        for purpose in [SessionPurpose::Backup { parents }, SessionPurpose::Read] {
            let body = encode_session_request(&purpose);
            assert_eq!(decode_session_request(&body), Ok(purpose));
        }
        let session = SessionId::from_bytes([3; 16]);
        for head in [None, Some(RecordHash::from_bytes([4; 32]))] {
            let grant = SessionGrant { session, head, sequence: u64::MAX };
            assert_eq!(decode_session_answer(&encode_session_answer(&grant)), Ok(grant));
        }
        let request = PairRequest::decode(&PairRequest::new(&[5; 16], "desk").encode()).unwrap();
        assert_eq!((request.secret().as_deref(), &request.name[..]), (Some(&[5; 16]), "desk"));
        assert_eq!(request.former(), None);
        let machine = MachineId::from_bytes([6; 16]);
        let former = FormerAccount { machine, repository: "desk".into() };
        let request = PairRequest::new(&[5; 16], "desk").again(&former).encode();
        assert_eq!(PairRequest::decode(&request).unwrap().former(), Some(former));
        let answer = PairAnswer::new(machine, "desk".into(), "desk".into(), "attic".into());
        assert_eq!(PairAnswer::decode(&answer.encode()), Ok(answer));
    }

    #[test]
    fn too_many_parents_and_too_long_bodies_are_refused() {
        let parents = vec![RecordHash::from_bytes([1; 32]); MAX_PARENTS + 1];
        let body = encode_session_request(&SessionPurpose::Backup { parents });
        assert!(decode_session_request(&body).is_err());
        let padded = [&b"{\"purpose\":\"read\"}"[..], &vec![b' '; MAX_CONTROL_BYTES]].concat();
        assert!(decode_session_request(&padded).is_err());
    }

    proptest! {
        #[test]
        fn times_read_back(times: [u32; 4]) {
            let [receive_seconds, queue_seconds, cpu_seconds, disk_seconds] = times.map(f64::from);
            let times = RequestTimes { receive_seconds, queue_seconds, cpu_seconds, disk_seconds };
            prop_assert_eq!(decode_times(&encode_times(&times)), Ok(times));
        }

        #[test]
        fn usage_reads_back(numbers: [u64; 5], quota_bytes: Option<u64>, free_bytes: Option<u64>) {
            let [stored_bytes, packs, blocks, objects, records] = numbers;
            let usage =
                Usage { stored_bytes, packs, blocks, objects, records, quota_bytes, free_bytes };
            prop_assert_eq!(decode_usage(&encode_usage(&usage)), Ok(usage));
        }

        #[test]
        fn any_bytes_are_a_body_or_an_error(bytes: Vec<u8>, at: usize, with: u8) {
            let purpose = SessionPurpose::Backup { parents: vec![RecordHash::from_bytes([1; 32])] };
            let mut mutated = encode_session_request(&purpose).to_vec();
            let at = at % mutated.len();
            mutated[at] = with;
            for body in [bytes, mutated] {
                let _ = decode_session_request(&body);
                let _ = decode_session_answer(&body);
                let _ = decode_times(&body);
                let _ = decode_usage(&body);
                let _ = PairRequest::decode(&body).map(|request| request.secret().is_some());
                let _ = PairAnswer::decode(&body);
            }
        }
    }
}

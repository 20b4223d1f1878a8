//! Deletions: what is asked for with an administrator's token, and what waits.

use bytes::Bytes;
use holdall_format::wire::Reader;
use holdall_format::{FormatError, RecordHash};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::MAX_CONTROL_BYTES;
use super::control::{from_json, to_json};
use crate::{AdminToken, Announced, AskedPrune, MAX_IDS, PruneReport, WaitingDeletion};

/// Most bytes of the body that asks for a deletion.
pub const MAX_FORGET_BODY_BYTES: usize = AdminToken::LEN + RecordHash::LEN * MAX_IDS;
/// What stands in the place of a count of blocks where the repository goes as a whole.
const WHOLE: u64 = u64::MAX;
/// What stands before a deletion's snapshots.
const DELETION_HEAD_BYTES: usize = 8 + 8 + 8 + 8 + 4;
/// Most deletions in one answer.
const MAX_DELETIONS: usize = 4096;
/// Most bytes of the answer with what is announced, or with one deletion.
pub const MAX_DELETIONS_ANSWER_BYTES: usize =
    1 + 8 + MAX_DELETIONS * DELETION_HEAD_BYTES + RecordHash::LEN * MAX_IDS;
/// A snapshot that a prune forgot, and when it was received.
const FORGOTTEN_BYTES: usize = RecordHash::LEN + 8;
/// Most bytes of the answer to a prune.
pub const MAX_PRUNED_ANSWER_BYTES: usize = 4 + MAX_CONTROL_BYTES + FORGOTTEN_BYTES * MAX_IDS;

/// The body that asks for a deletion: the token, then the snapshots, 32 bytes each.
///
/// Secret: has the token.
pub fn encode_forget(token: &AdminToken, snapshots: &[RecordHash]) -> Bytes {
    let mut out = token.as_bytes().to_vec();
    snapshots.iter().for_each(|snapshot| out.extend_from_slice(snapshot.as_bytes()));
    out.into()
}

/// Reads the body that asks for a deletion, or, without snapshots, for a prune.
///
/// Untrusted: at most [`MAX_IDS`] snapshots.
///
/// # Errors
/// [`FormatError`] for more, or another length.
pub fn decode_forget(body: &[u8]) -> Result<(AdminToken, Vec<RecordHash>), FormatError> {
    let mut reader = Reader::new("deletion request", body);
    let token = AdminToken::new(Zeroizing::new(reader.array("token")?));
    let (snapshots, rest) = reader.remaining().as_chunks::<{ RecordHash::LEN }>();
    if !rest.is_empty() || snapshots.len() > MAX_IDS {
        return Err(reader.invalid("snapshots", "cut short, or more than their limit"));
    }
    Ok((token, snapshots.iter().map(|hash| RecordHash::from_bytes(*hash)).collect()))
}

/// The answer with deletions that wait: of each its number (u64), when it was asked for and when it
/// is due (i64 each, nanoseconds since 1970 UTC), how many blocks gave way (u64; all bits set: the repository goes as
/// a whole), the count of its snapshots (u32), and these, 32 bytes each. What is over the limits is left out, from the end.
pub fn encode_deletions(deletions: &[WaitingDeletion]) -> Bytes {
    let (mut out, mut left) = (Vec::new(), MAX_IDS);
    for deletion in deletions.iter().take(MAX_DELETIONS) {
        let WaitingDeletion { number, snapshots, blocks, whole, asked_ns, due_ns } = deletion;
        let blocks = if *whole { WHOLE } else { *blocks };
        let told = snapshots.get(..left).unwrap_or(snapshots);
        left -= told.len();
        out.extend_from_slice(&number.to_le_bytes());
        out.extend_from_slice(&asked_ns.to_le_bytes());
        out.extend_from_slice(&due_ns.to_le_bytes());
        out.extend_from_slice(&blocks.to_le_bytes());
        out.extend_from_slice(&(told.len() as u32).to_le_bytes());
        told.iter().for_each(|snapshot| out.extend_from_slice(snapshot.as_bytes()));
    }
    out.into()
}

/// Reads deletions that wait.
///
/// Untrusted: at most [`MAX_IDS`] snapshots in all.
///
/// # Errors
/// [`FormatError`] for more, or what is cut short.
pub fn decode_deletions(body: &[u8]) -> Result<Vec<WaitingDeletion>, FormatError> {
    let mut reader = Reader::new("deletions", body);
    let (mut deletions, mut left) = (Vec::new(), MAX_IDS);
    while !reader.remaining().is_empty() {
        if deletions.len() == MAX_DELETIONS {
            return Err(reader.invalid("deletions", "more than their limit"));
        }
        let number = reader.u64("number")?;
        let asked_ns = i64::from_le_bytes(reader.array("time")?);
        let due_ns = i64::from_le_bytes(reader.array("time")?);
        let (blocks, whole) = match reader.u64("blocks")? {
            WHOLE => (0, true),
            blocks => (blocks, false),
        };
        let count = reader.length("snapshots", left)?;
        left -= count;
        let hash = |_| reader.array("snapshot").map(RecordHash::from_bytes);
        let snapshots = (0..count).map(hash).collect::<Result<_, _>>()?;
        deletions.push(WaitingDeletion { number, snapshots, blocks, whole, asked_ns, due_ns });
    }
    Ok(deletions)
}

/// The answer with what is announced: whether rules wait that keep less (u8, 1 or 0), if so when they come into
/// force (i64, nanoseconds since 1970 UTC), then the deletions as [`encode_deletions`] has them.
pub fn encode_announced(announced: &Announced) -> Bytes {
    let from_ns = announced.fewer_kept_from_ns;
    let mut out = vec![u8::from(from_ns.is_some())];
    from_ns.iter().for_each(|from_ns| out.extend_from_slice(&from_ns.to_le_bytes()));
    out.extend_from_slice(&encode_deletions(&announced.deletions));
    out.into()
}

/// Reads what is announced.
///
/// # Errors
/// As for [`decode_deletions`].
pub fn decode_announced(body: &[u8]) -> Result<Announced, FormatError> {
    let mut reader = Reader::new("announcement", body);
    let fewer_kept_from_ns = match reader.u8("rules")? {
        0 => None,
        1 => Some(i64::from_le_bytes(reader.array("time")?)),
        _ => return Err(reader.invalid("rules", "neither 0 nor 1")),
    };
    let deletions = decode_deletions(reader.remaining())?;
    Ok(Announced { deletions, fewer_kept_from_ns })
}

/// Reads the answer to asking for a deletion: that one.
///
/// # Errors
/// As for [`decode_deletions`], and for none or several.
pub fn decode_deletion(body: &[u8]) -> Result<WaitingDeletion, FormatError> {
    let mut deletions = decode_deletions(body)?;
    match (deletions.pop(), deletions.is_empty()) {
        (Some(deletion), true) => Ok(deletion),
        _ => Err(Reader::new("deletion", body).invalid("count", "not one")),
    }
}

/// The JSON in the answer to a prune.
#[derive(Serialize, Deserialize)]
struct PrunedJson {
    #[serde(flatten)]
    report: PruneReport,
    alarm: Option<String>,
}

/// The answer to a prune: the length of its JSON (u32), that, and of each snapshot that was forgotten its hash, 32
/// bytes, and when it was received (i64, nanoseconds since 1970 UTC). Snapshots over the limit are left out.
pub fn encode_pruned(pruned: &AskedPrune) -> Bytes {
    let json = to_json(&PrunedJson { report: pruned.report, alarm: pruned.alarm.clone() });
    let mut out = (json.len() as u32).to_le_bytes().to_vec();
    out.extend_from_slice(&json);
    for (snapshot, received_ns) in pruned.forgotten.iter().take(MAX_IDS) {
        out.extend_from_slice(snapshot.as_bytes());
        out.extend_from_slice(&received_ns.to_le_bytes());
    }
    out.into()
}

/// Reads the answer to a prune.
///
/// Untrusted: at most [`MAX_IDS`] snapshots.
///
/// # Errors
/// [`FormatError`] for JSON over [`MAX_CONTROL_BYTES`] or of another form, for more snapshots, and for what is cut
/// short.
pub fn decode_pruned(body: &[u8]) -> Result<AskedPrune, FormatError> {
    let mut reader = Reader::new("prune report", body);
    let len_bytes = reader.length("JSON", MAX_CONTROL_BYTES)?;
    let json: PrunedJson = from_json("prune report", reader.bytes("JSON", len_bytes)?)?;
    let (rows, rest) = reader.remaining().as_chunks::<FORGOTTEN_BYTES>();
    if !rest.is_empty() || rows.len() > MAX_IDS {
        return Err(reader.invalid("snapshots", "cut short, or more than their limit"));
    }
    let forgotten = rows.iter().map(|row| forgotten(row)).collect::<Result<_, _>>()?;
    Ok(AskedPrune { report: json.report, forgotten, alarm: json.alarm })
}

fn forgotten(row: &[u8]) -> Result<(RecordHash, i64), FormatError> {
    let mut reader = Reader::new("forgotten snapshot", row);
    let snapshot = RecordHash::from_bytes(reader.array("snapshot")?);
    Ok((snapshot, i64::from_le_bytes(reader.array("time")?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hashes(count: usize) -> Vec<RecordHash> {
        (0..count).map(|number| RecordHash::from_bytes([number as u8; 32])).collect()
    }

    fn deletion(number: u64, count: usize) -> WaitingDeletion {
        let (snapshots, blocks) = (hashes(count), number % 7);
        let whole = number == 0;
        let blocks = if whole { 0 } else { blocks };
        WaitingDeletion { number, snapshots, blocks, whole, asked_ns: -5, due_ns: i64::MAX }
    }

    #[test]
    fn what_is_asked_and_what_waits_read_back() {
        let token = AdminToken::new(Zeroizing::new([9; 32]));
        for count in [0, 1, 300] {
            let (read, snapshots) = decode_forget(&encode_forget(&token, &hashes(count))).unwrap();
            assert_eq!((read.as_bytes(), snapshots), (&[9; 32], hashes(count)));
        }
        let waiting = [deletion(1, 3), deletion(u64::MAX, 0), deletion(0, 2)];
        assert_eq!(decode_deletions(&encode_deletions(&waiting)).unwrap(), waiting);
        assert_eq!(decode_deletions(b""), Ok(Vec::new()));
        assert_eq!(decode_deletion(&encode_deletions(&waiting[..1])).as_ref(), Ok(&waiting[0]));
        decode_deletion(&encode_deletions(&waiting)).unwrap_err();
        let report = PruneReport { moved_bytes: 7, next_due_ns: Some(-1), ..Default::default() };
        let forgotten = hashes(3).into_iter().zip(-1..).collect();
        let alarm = Some("much was lost".to_owned());
        for pruned in [AskedPrune { report, forgotten, alarm }, AskedPrune::default()] {
            assert_eq!(decode_pruned(&encode_pruned(&pruned)), Ok(pruned));
        }
        for fewer_kept_from_ns in [None, Some(-7)] {
            let announced = Announced { deletions: waiting.to_vec(), fewer_kept_from_ns };
            assert_eq!(decode_announced(&encode_announced(&announced)), Ok(announced));
        }
        decode_announced(&[2]).unwrap_err();
    }

    #[test]
    fn more_than_the_limit_is_left_out_and_refused() {
        let waiting = [deletion(1, MAX_IDS - 1), deletion(2, 5)];
        let read = decode_deletions(&encode_deletions(&waiting)).unwrap();
        assert_eq!((read[0].snapshots.len(), read[1].snapshots.len()), (MAX_IDS - 1, 1));
        let token = AdminToken::new(Zeroizing::new([9; 32]));
        let body = encode_forget(&token, &hashes(MAX_IDS + 1));
        assert!(decode_forget(&body).is_err() && body.len() > MAX_FORGET_BODY_BYTES);
        let many = vec![deletion(1, 0); MAX_DELETIONS];
        let body = encode_deletions(&many);
        assert!(body.len() <= MAX_DELETIONS_ANSWER_BYTES);
        decode_deletions(&[&body[..], &body[..]].concat()).unwrap_err();
        let forgotten = vec![(hashes(1)[0], 1); MAX_IDS + 1];
        let body = encode_pruned(&AskedPrune { forgotten, ..Default::default() });
        assert_eq!(decode_pruned(&body).unwrap().forgotten.len(), MAX_IDS);
        assert!(body.len() <= MAX_PRUNED_ANSWER_BYTES);
        decode_pruned(&[&body[..], &[0; FORGOTTEN_BYTES]].concat()).unwrap_err();
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_body_or_an_error(bytes: Vec<u8>, at: usize, with: u8) {
            let waiting = [deletion(1, 3), deletion(2, 2)];
            let pruned = AskedPrune { forgotten: vec![(hashes(1)[0], 1)], ..Default::default() };
            let mut bodies = vec![bytes];
            for whole in [encode_deletions(&waiting), encode_pruned(&pruned)] {
                let mut mutated = whole.to_vec();
                let at = at % mutated.len();
                mutated[at] = with;
                bodies.push(mutated);
            }
            for body in bodies {
                let _ = decode_deletions(&body);
                let _ = decode_announced(&body);
                let _ = decode_pruned(&body);
                let _ = decode_forget(&body).map(|(_, snapshots)| snapshots.len());
            }
        }
    }
}

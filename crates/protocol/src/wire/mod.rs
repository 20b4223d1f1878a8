//! What goes over the wire, as both ends write and read it. `docs/protocol.md` says it in words.
//!
//! Blocks and ids travel as plain bytes, because there are many of them; everything that a person
//! might want to read (sessions, times, errors) is JSON. A body is decoded from one contiguous
//! buffer whose length was limited before it was allocated, and blocks are slices of that buffer.
//! This module does no I/O and knows nothing of HTTP but methods, paths and status numbers.

mod compacting;
mod control;
mod deletion;
mod error;
mod frames;
mod held;
mod ids;
mod lab;
mod page;
mod probe;
mod route;
mod run;
mod scrub;
mod short_code;
mod text;
mod verb;

pub use compacting::{
    MAX_SPARSE_ANSWER_BYTES, MAX_SUPERSEDE_BODY_BYTES, decode_sparse, decode_supersede,
    decode_superseding, encode_sparse, encode_supersede, encode_superseding,
};
pub use control::{
    PairAnswer, PairRequest, decode_session_answer, decode_session_request, decode_times,
    decode_usage, encode_session_answer, encode_session_request, encode_times, encode_usage,
};
pub use deletion::{
    MAX_DELETIONS_ANSWER_BYTES, MAX_FORGET_BODY_BYTES, MAX_PRUNED_ANSWER_BYTES, decode_announced,
    decode_deletion, decode_deletions, decode_forget, decode_pruned, encode_announced,
    encode_deletions, encode_forget, encode_pruned,
};
pub use error::{ErrorAnswer, WireError};
pub use frames::{Frames, decode_frames, decode_whole_frames};
pub use held::{HELD_FIELD, Held};
pub use ids::{decode_bitmap, decode_ids, encode_bitmap, encode_ids};
pub use lab::{
    LabTaken, LabWritten, decode_lab_taken, decode_lab_written, encode_lab_taken,
    encode_lab_written,
};
pub use page::{
    decode_block_page, decode_commit_answer, decode_description, decode_fetched,
    decode_new_repository, decode_records, encode_block_page, encode_commit_answer,
    encode_description, encode_fetched, encode_new_repository, encode_records,
};
pub use probe::{
    MAX_PROBES_BODY_BYTES, MAX_PROOFS_ANSWER_BYTES, decode_probes, decode_proofs, encode_probes,
    encode_proofs,
};
pub use route::{OWN_REPOSITORY, Route, is_repository_name};
pub use run::{LayerWork, ReportedKind, RunReport, decode_run_report, encode_run_report};
pub use scrub::{ScrubGathering, ScrubLine};
pub use short_code::{
    CONFIRMATION_BYTES, CodeAnswer, CodeConfirmed, ConfirmRequest, Confirmation, EXCHANGE_BYTES,
    ExchangeMessage, ExchangeRequest, SEALED_INVITE_MAX_BYTES,
};
pub use verb::{LabVerb, Method, Needs, RepositoryVerb, Verb};

use holdall_format::limits::{BLOCK_MAX_BYTES, RECORD_MAX_BYTES, WRAPPING_SET_MAX_BYTES};

use crate::{FETCH_TARGET_BYTES, MAX_IDS, MAX_PUT_BYTES};

/// Most frames in one body.
pub const MAX_FRAMES: usize = 16_384;
/// Most bytes of a JSON body.
pub const MAX_CONTROL_BYTES: usize = 64 << 10;
/// Most bytes of the answer to a request that failed.
pub const MAX_ERROR_BYTES: usize = 256 << 10;
/// Most bytes of one line of a scrub's answer.
pub const MAX_LINE_BYTES: usize = 64 << 10;
/// Stored records are answered until their bytes pass this; the last may pass it by
/// [`RECORDS_STEP`] records.
pub const RECORDS_TARGET_BYTES: usize = 8 << 20;
/// How many records a server reads at a time.
pub const RECORDS_STEP: usize = 4;

/// Most bytes of the body of a put: blocks and the lengths before them.
pub const MAX_PUT_BODY_BYTES: usize = MAX_PUT_BYTES + 4 * MAX_FRAMES;
/// Most bytes that one request of a measurement moves.
pub const MAX_LAB_BYTES: usize = 64 << 20;
/// Most bytes of a body of ids.
pub const MAX_IDS_BODY_BYTES: usize = 32 * MAX_IDS;
/// Most bytes of the body that makes a repository, and of a description.
pub const MAX_REPOSITORY_BODY_BYTES: usize = WRAPPING_SET_MAX_BYTES + MAX_CONTROL_BYTES;
/// Most bytes of a fetch's answer: the target, one block over it, and what is around them.
pub const MAX_FETCH_ANSWER_BYTES: usize =
    FETCH_TARGET_BYTES + BLOCK_MAX_BYTES + 4 * MAX_FRAMES + (1 << 20);
/// Most bytes of a stored record: record and receipt.
pub const MAX_STORED_RECORD_BYTES: usize = RECORD_MAX_BYTES + 1024;
/// Most bytes of a listed record: its position, and what lies there.
const MAX_LISTED_RECORD_BYTES: usize = 8 + MAX_STORED_RECORD_BYTES;
/// Most bytes of one answer with records.
pub const MAX_RECORDS_ANSWER_BYTES: usize =
    RECORDS_TARGET_BYTES + RECORDS_STEP * MAX_LISTED_RECORD_BYTES + 4 * MAX_FRAMES;

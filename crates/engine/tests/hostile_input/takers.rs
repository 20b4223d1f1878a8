//! What the targets of wire and files begin with: each vector is what it is called, so that what
//! becomes of it when it is changed gets past the first field.

use std::collections::BTreeSet;
use std::path::Path;

use bytes::Bytes;
use holdall_engine::caches::{CacheHits, SERIES};
use holdall_format::limits::BLOCK_MAX_BYTES;
use holdall_lab::net::Token;
use holdall_lab::net::decoders::Message;
use holdall_lab::report::Report;
use holdall_protocol::wire::{
    CodeAnswer, CodeConfirmed, ConfirmRequest, ErrorAnswer, ExchangeRequest, PairAnswer,
    PairRequest, Route, ScrubGathering, WireError, decode_announced, decode_block_page,
    decode_commit_answer, decode_deletion, decode_deletions, decode_description, decode_fetched,
    decode_forget, decode_frames, decode_ids, decode_lab_taken, decode_lab_written,
    decode_new_repository, decode_probes, decode_proofs, decode_pruned, decode_records,
    decode_session_answer, decode_session_request, decode_sparse, decode_supersede,
    decode_superseding, decode_times, decode_usage,
};
use holdall_repository::decoders::{StoredFile, found_in_run, lease_holder};

use crate::{id, vectors};

/// Says whether bytes are what they are called.
type Taker = fn(&[u8]) -> bool;

const WIRE: &[(&str, Taker)] = &[
    ("lab_messages greeting", |bytes| is_same(bytes, Message::Greeting.rewritten(bytes))),
    ("lab_messages ask", |bytes| is_same(bytes, Message::Ask.rewritten(bytes))),
    ("lab_messages answer", |bytes| is_same(bytes, Message::Answer.rewritten(bytes))),
    ("lab_messages counted", |bytes| is_same(bytes, Message::Counted.rewritten(bytes))),
    ("lab_messages token", |bytes| text(bytes).parse::<Token>().is_ok()),
    ("lab_report report", |bytes| Report::from_json(bytes).is_ok()),
    ("wire_control pairing request", is_pairing_request),
    ("wire_control pairing answer", |bytes| PairAnswer::decode(bytes).is_ok()),
    ("wire_control short code request", |bytes| ExchangeRequest::decode(bytes).is_ok()),
    ("wire_control short code answer", |bytes| CodeAnswer::decode(bytes).is_ok()),
    ("wire_control short code confirmation", |bytes| ConfirmRequest::decode(bytes).is_ok()),
    ("wire_control sealed invite", |bytes| CodeConfirmed::decode(bytes).is_ok()),
    ("wire_control times", |bytes| decode_times(bytes).is_ok()),
    ("wire_control usage", |bytes| decode_usage(bytes).is_ok()),
    ("wire_control session request", |bytes| decode_session_request(bytes).is_ok()),
    ("wire_control session answer", |bytes| decode_session_answer(bytes).is_ok()),
    ("wire_control error", |bytes| {
        matches!(ErrorAnswer::read(400, bytes), WireError::UnknownMachine)
    }),
    ("wire_deletion deletion request", |bytes| decode_forget(bytes).is_ok()),
    ("wire_deletion deletions", |bytes| decode_deletions(bytes).is_ok()),
    ("wire_deletion announcement", |bytes| decode_announced(bytes).is_ok()),
    ("wire_deletion deletion", |bytes| decode_deletion(bytes).is_ok()),
    ("wire_deletion compaction request", |bytes| decode_supersede(bytes).is_ok()),
    ("wire_deletion sparse blocks", |bytes| decode_sparse(bytes).is_ok()),
    ("wire_deletion compaction", |bytes| decode_superseding(bytes).is_ok()),
    ("wire_deletion prune report", |bytes| decode_pruned(bytes).is_ok()),
    ("wire_frames new repository", |bytes| {
        decode_frames(&body(bytes), BLOCK_MAX_BYTES).is_ok()
            && decode_new_repository(&body(bytes)).is_ok()
    }),
    ("wire_frames description", |bytes| decode_description(&body(bytes)).is_ok()),
    ("wire_frames commit answer", |bytes| decode_commit_answer(&body(bytes), b"record").is_ok()),
    ("wire_frames records", |bytes| decode_records(&body(bytes)).is_ok()),
    ("wire_frames fetched", |bytes| decode_fetched(&body(bytes)).is_ok()),
    ("wire_frames block page", |bytes| decode_block_page(&body(bytes)).is_ok()),
    ("wire_frames ids", |bytes| decode_ids(bytes).is_ok()),
    ("wire_lab taken", |bytes| decode_lab_taken(bytes).is_ok()),
    ("wire_lab written", |bytes| decode_lab_written(bytes).is_ok()),
    ("wire_probe probes", |bytes| decode_probes(bytes).is_ok()),
    // The first byte is for the target: how many there are.
    ("wire_probe proofs", |bytes| decode_proofs(&body(&bytes[1..]), bytes[0].into()).is_ok()),
    ("wire_route records", |bytes| Route::parse("GET", text(bytes)).is_some()),
    ("wire_scrub answer", is_scrub_answer),
];

const FILES: &[(&str, Taker)] = &[
    ("cache_files nodes", |bytes| in_cache("nodes", bytes).nodes == 1),
    ("cache_files leaves", |bytes| in_cache(&format!("leaves-{SERIES}"), bytes).leaves == 3),
    ("cache_files records", |bytes| in_cache("records", bytes).records == 2),
    ("cache_files blocks", |bytes| in_cache("blocks", bytes).blocks == 3),
    ("stored_index manifest", |bytes| is_file(bytes, StoredFile::IndexManifest)),
    ("stored_index run front", |bytes| is_file(bytes, StoredFile::IndexRunFront)),
    ("stored_index run", |bytes| {
        in_folder(|folder| found_in_run(folder, bytes, &[0x11, 0x22].map(id)) == Some(2))
    }),
    ("stored_journal journal", |bytes| is_file(bytes, StoredFile::Journal)),
    ("stored_marks condemn mark", |bytes| is_file(bytes, StoredFile::CondemnMark)),
    ("stored_marks superseded mark", |bytes| is_file(bytes, StoredFile::SupersededMark)),
    ("stored_marks session", |bytes| is_file(bytes, StoredFile::Session)),
    ("stored_parity head", |bytes| is_file(bytes, StoredFile::ParityHead)),
    ("stored_words probes", |bytes| is_file(bytes, StoredFile::Probes)),
    ("stored_words scrub round", |bytes| is_file(bytes, StoredFile::ScrubRound)),
    ("stored_words lease", |bytes| lease_holder(bytes).starts_with("attic, for ")),
];

fn is_same(bytes: &[u8], again: Option<Vec<u8>>) -> bool {
    again.as_deref() == Some(bytes)
}

fn is_file(bytes: &[u8], file: StoredFile) -> bool {
    is_same(bytes, file.rewritten(bytes))
}

fn is_pairing_request(bytes: &[u8]) -> bool {
    let request = PairRequest::decode(bytes);
    request.is_ok_and(|request| request.secret().is_some() && request.former().is_some())
}

fn is_scrub_answer(bytes: &[u8]) -> bool {
    let mut gathering = ScrubGathering::default();
    // The first byte is for the target: in how long pieces it comes.
    let is_sound = gathering.push(&bytes[1..], &mut |_| ()).is_ok();
    is_sound && gathering.finish().is_some_and(|end| end.is_ok_and(|one| one.damaged.len() == 3))
}

fn text(bytes: &[u8]) -> &str {
    str::from_utf8(bytes).expect("text")
}

fn body(bytes: &[u8]) -> Bytes {
    Bytes::copy_from_slice(bytes)
}

fn in_folder<T>(look: impl FnOnce(&Path) -> T) -> T {
    let folder = tempfile::tempdir().unwrap();
    look(folder.path())
}

fn in_cache(name: &str, bytes: &[u8]) -> CacheHits {
    in_folder(|folder| {
        std::fs::write(folder.join(name), bytes).unwrap();
        CacheHits::within(folder, &[0xb1, 0xb2, 0xc1, 0x11].map(id))
    })
}

#[test]
fn every_vector_of_a_target_is_what_it_is_called() {
    for (file, takers) in [("wire.txt", WIRE), ("files.txt", FILES)] {
        let vectors = vectors(&[file]);
        let found: BTreeSet<_> = vectors.iter().map(|(name, _)| name.as_str()).collect();
        let expected: BTreeSet<_> = takers.iter().map(|(name, _)| *name).collect();
        assert_eq!(found, expected, "{file}");
        for (name, is_taken) in takers {
            let vector = vectors.iter().find(|(found, _)| found == name);
            assert!(vector.is_some_and(|(_, bytes)| is_taken(bytes)), "{file}: {name}");
        }
    }
}

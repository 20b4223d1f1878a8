//! Measuring the path to this server and the disk behind it.

use std::sync::Arc;
use std::time::Instant;

use holdall_format::PublicKey;
use holdall_protocol::RequestTimes;
use holdall_protocol::wire::{self, Frames, LabTaken, LabVerb, LabWritten, WireError};
use hyper::Response;
use hyper::body::Incoming;
use tokio::sync::OwnedSemaphorePermit;

use super::body::Answer;
use super::read_body::{ReadBody, read_body};
use super::respond::{BYTES, JSON, respond};
use crate::auth::rights;
use crate::measure;
use crate::state::ServerState;

/// Takes or gives bytes that nobody needs.
pub(super) async fn answer(
    state: &Arc<ServerState>,
    key: PublicKey,
    verb: LabVerb,
    body: &mut Option<Incoming>,
) -> Result<Response<Answer>, WireError> {
    rights::check_measuring(&state.accounts.role(&key), verb.verb())?;
    state.measuring.go_on(key, Instant::now())?;
    let slot = Arc::new(state.request_slot(&key)?);
    let mut response = match verb {
        LabVerb::Take => {
            let bytes = match body.take() {
                Some(body) => measure::forget(body).await?,
                None => 0,
            };
            let version = Some(env!("CARGO_PKG_VERSION").to_owned());
            let taken = wire::encode_lab_taken(&LabTaken { bytes, version });
            respond(JSON, Frames::plain(taken), None)
        }
        LabVerb::Write => {
            let written = write_to_measure(state, &key, Arc::clone(&slot), body).await?;
            respond(JSON, Frames::plain(wire::encode_lab_written(&written)), None)
        }
        LabVerb::Give(bytes) => respond(BYTES, measure::bytes(bytes), None),
        LabVerb::Read(bytes) => read_to_measure(state, &key, Arc::clone(&slot), bytes).await?,
    };
    response.body_mut().hold(slot);
    Ok(response)
}

/// Writes a body to the disk as a put does, and keeps nothing of it.
async fn write_to_measure(
    state: &Arc<ServerState>,
    key: &PublicKey,
    slot: Arc<OwnedSemaphorePermit>,
    body: &mut Option<Incoming>,
) -> Result<LabWritten, WireError> {
    let begun = state.pressure.begin();
    let ReadBody { bytes, permits, queued, received } =
        read_body(state, key, body, LabVerb::Write.verb().max_body_bytes).await?;
    let (inner, written) = (Arc::clone(state), bytes.clone());
    let call = move || {
        let _held = (permits, slot);
        inner.measuring.write(&inner.stores.folder_of_all(), &written)
    };
    let (disk, waited) = state.work.run(call).await?;
    let times = state.pressure.reattribute_cpu_wait(
        &begun,
        RequestTimes {
            receive_seconds: received.as_secs_f64(),
            queue_seconds: (queued + waited).as_secs_f64(),
            cpu_seconds: 0.0,
            disk_seconds: disk.as_secs_f64(),
        },
    );
    let length = bytes.len() as u64;
    state.buffers.give_back(bytes);
    Ok(LabWritten {
        bytes: length,
        queue_seconds: times.queue_seconds,
        cpu_seconds: times.cpu_seconds,
        disk_seconds: times.disk_seconds,
        process_cpu_seconds: holdall_sys::cpu::process_cpu_seconds(),
        cores: Some(holdall_sys::cpu::available_cores()),
    })
}

/// Reads as much as that from a file on the disk, which is there for as long as the measurement.
async fn read_to_measure(
    state: &Arc<ServerState>,
    key: &PublicKey,
    slot: Arc<OwnedSemaphorePermit>,
    bytes: u64,
) -> Result<Response<Answer>, WireError> {
    let permits = state.answer_permits(key, bytes).await?;
    let inner = Arc::clone(state);
    let call = move || {
        let read = inner.measuring.read(&inner.stores.folder_of_all(), bytes)?;
        drop(slot);
        Ok((read, permits))
    };
    let ((read, permits), _) = state.work.run(call).await?;
    Ok(respond(BYTES, Frames::plain(read), Some(permits)))
}

//! A scrub that is watched from afar.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use holdall_protocol::Repository;
use holdall_protocol::wire::ScrubLine;
use holdall_repository::EmbeddedRepository;
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use crate::measure::pressure::OwnWork;

/// How often progress is told at most.
const PROGRESS_EVERY: Duration = Duration::from_millis(100);
/// Lines that wait for a slow client; then the scrub waits too.
const LINES_AHEAD: usize = 64;

/// Starts a scrub on a thread of its own and returns its lines. It ends when nobody listens any more: whoever
/// comes back begins another one.
pub(crate) fn start(
    repository: EmbeddedRepository,
    slots: [OwnedSemaphorePermit; 2],
    own_work: Arc<OwnWork>,
) -> mpsc::Receiver<Bytes> {
    let (lines, receiver) = mpsc::channel(LINES_AHEAD);
    // The task ends by itself; its end is the end of the lines.
    drop(tokio::task::spawn_blocking(move || {
        let gone = Arc::new(AtomicBool::new(false));
        let repository = repository.stopped_by(Arc::clone(&gone));
        own_work.count(|| run(&repository, &lines, &gone));
        drop(slots);
    }));
    receiver
}

/// A line that cannot be sent has no reader any more, so it is dropped, and all is `gone`.
fn run(repository: &dyn Repository, lines: &mpsc::Sender<Bytes>, gone: &AtomicBool) {
    let mut told: Option<Instant> = None;
    let mut untold = None;
    let scrubbed = repository.scrub(&mut |progress| {
        gone.store(lines.is_closed(), Ordering::Release);
        untold = Some(progress);
        if told.is_none_or(|told| told.elapsed() >= PROGRESS_EVERY) {
            told = Some(Instant::now());
            drop(lines.try_send(ScrubLine::progress(progress)));
        }
    });
    let tell = |line| drop(lines.blocking_send(line));
    match scrubbed {
        Ok(report) => {
            untold.into_iter().for_each(|last| tell(ScrubLine::progress(last)));
            report.damaged.iter().for_each(|damage| tell(ScrubLine::damaged(damage)));
            tell(ScrubLine::done(&report));
        }
        Err(error) => tell(ScrubLine::failed(error.into())),
    }
}

#[cfg(test)]
mod tests {
    use holdall_format::{MachineId, ObjectId};
    use holdall_protocol::SessionPurpose;
    use holdall_protocol::contract::Forge;
    use holdall_repository::Store;
    use tokio::sync::Semaphore;

    use super::*;
    use crate::auth::identity::ServerIdentity;
    use crate::data_folder::DataFolder;
    use holdall_testkit::FakeClock;

    #[test]
    fn nothing_is_read_for_whom_nobody_listens_to() {
        let temp = tempfile::tempdir().unwrap();
        let (repository, forge) = repository(&temp);
        let session = repository.open_session(&SessionPurpose::Backup { parents: vec![] });
        let block = forge.chunks_of_bytes(&[ObjectId::from_bytes([1; 32])], 1000);
        repository.put_blocks(&session.unwrap().session, &[block]).unwrap();
        for is_gone in [false, true] {
            let (lines, receiver) = mpsc::channel(LINES_AHEAD);
            let _listening = (!is_gone).then_some(receiver);
            let gone = AtomicBool::new(false);
            run(&repository, &lines, &gone);
            assert_eq!(gone.into_inner(), is_gone);
        }
    }

    #[tokio::test]
    async fn what_a_scrub_from_afar_uses_of_the_processor_is_counted() {
        let temp = tempfile::tempdir().unwrap();
        let (repository, _) = repository(&temp);
        let both = Arc::new(Semaphore::new(2));
        let slots = [both.clone(), both].map(|both| both.try_acquire_owned().unwrap());
        let own_work = Arc::new(OwnWork::default());
        let mut lines = start(repository, slots, Arc::clone(&own_work));
        while lines.recv().await.is_some() {}
        assert!(own_work.used().cpu_seconds > 0.0);
    }

    fn repository(temp: &tempfile::TempDir) -> (EmbeddedRepository, Forge) {
        let folder = DataFolder::take(temp.path()).unwrap();
        let machine = MachineId::from_bytes([3; 16]);
        let forge = Forge::new(1, machine, &[8; 32]);
        let (dir, cache) = (folder.repository("laptop"), folder.cache("laptop"));
        Store::create(&dir, &forge.new_repository()).unwrap();
        let signer = Arc::new(ServerIdentity::of(&folder).unwrap());
        let store =
            Store::open(&dir, &cache, signer, Arc::new(FakeClock::at(1_900_000_000))).unwrap();
        (store.for_machine(machine, forge.key.public()), forge)
    }
}

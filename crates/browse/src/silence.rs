//! How long a server that was asked has sent nothing: a page says so long before the request is given up.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use holdall_engine::UnlockedRepository;

use crate::jobs::lock;

/// Who looks less often begins anew.
const LOOKED_WITHIN: Duration = Duration::from_secs(3);

/// When the server was last known to answer.
#[derive(Default)]
pub(crate) struct Silence(Mutex<Option<Since>>);

struct Since {
    at: Instant,
    looked: Instant,
    received_bytes: u64,
}

impl Silence {
    /// How long the server has sent nothing while a request is open, at the last look.
    pub(crate) fn lasts(&self, access: &UnlockedRepository) -> Duration {
        let repository = access.repository();
        let received = repository.is_asking().then(|| repository.traffic().received_bytes);
        self.lasts_at(Instant::now(), received)
    }

    /// The same at a time; `received_bytes` are all that ever came, or nothing where nothing is asked.
    fn lasts_at(&self, now: Instant, received_bytes: Option<u64>) -> Duration {
        let mut since = lock(&self.0);
        let Some(received_bytes) = received_bytes else {
            *since = None;
            return Duration::ZERO;
        };
        let goes_on = |since: &Since| {
            since.received_bytes == received_bytes && now - since.looked < LOOKED_WITHIN
        };
        let at = since.as_ref().filter(|since| goes_on(since)).map_or(now, |since| since.at);
        *since = Some(Since { at, looked: now, received_bytes });
        now - at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_begins_anew_with_each_byte_and_ends_with_the_question() {
        let (silence, start) = (Silence::default(), Instant::now());
        for (second, received, expected) in [
            (0, Some(5), 0),
            (2, Some(5), 2),
            (4, Some(5), 4),
            (5, Some(6), 0),
            (7, Some(6), 2),
            (8, None, 0),
            (9, Some(6), 0),
            (11, Some(6), 2),
            // Nobody looked meanwhile.
            (20, Some(6), 0),
        ] {
            let now = start + Duration::from_secs(second);
            assert_eq!(silence.lasts_at(now, received).as_secs(), expected, "{second}");
        }
    }
}

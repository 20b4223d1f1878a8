//! Connections that have not shown yet who they are: as many as there is room for, and of more than
//! that, the newest.
//!
//! A handshake takes an honest peer a moment, and a peer that drips its bytes as long as it is let. So
//! where there is no room left, the oldest one goes: however many drip, whoever shakes hands in the
//! time that it takes so many others to arrive is let in.

use std::collections::VecDeque;
use std::convert::Infallible;

use tokio::sync::oneshot;

/// Those who are there now, the oldest first.
pub(crate) struct Arrivals {
    waiting: VecDeque<oneshot::Sender<Infallible>>,
    most: usize,
}

impl Arrivals {
    /// Room for so many.
    pub(crate) fn new(most: usize) -> Self {
        Self { waiting: VecDeque::new(), most }
    }

    /// Lets one more in, in the place of the oldest where there is no other.
    pub(crate) fn admit(&mut self) -> Turn {
        self.waiting.retain(|one| !one.is_closed());
        while self.waiting.len() >= self.most.max(1) {
            self.waiting.pop_front();
        }
        let (place, turn) = oneshot::channel();
        self.waiting.push_back(place);
        Turn(turn)
    }
}

/// The time that one has to show who it is; dropping it gives the place back.
pub(crate) struct Turn(oneshot::Receiver<Infallible>);

impl Turn {
    /// Ends when the place is needed for somebody else.
    pub(crate) async fn is_over(&mut self) {
        let _ = (&mut self.0).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_too_many_the_oldest_goes_and_who_is_done_takes_no_place() {
        let mut arrivals = Arrivals::new(2);
        let (mut first, second) = (arrivals.admit(), arrivals.admit());
        drop(second);
        let (mut third, mut fourth) = (arrivals.admit(), arrivals.admit());
        let over = |turn: &mut Turn| turn.0.try_recv() == Err(oneshot::error::TryRecvError::Closed);
        assert!(over(&mut first), "the oldest stays");
        assert!(!over(&mut third) && !over(&mut fourth), "a newer one goes");
    }
}

//! Connections of peers that nobody knows: as many as there is room for, and of more than that, the newest.
//!
//! An honest peer is done in a moment, and another one stays for as long as it is let. So where there is no room
//! left, the oldest one goes, of those from the address that has the most: however many others hold on, a
//! newcomer gets its moment, and one address does not take it from another.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Mutex, PoisonError};

use tokio::sync::oneshot;

use crate::bounds::source::Source;

/// Those who are there now.
pub(crate) struct StrangerSlots {
    /// The oldest first.
    present: Mutex<Vec<Present>>,
    most: usize,
}

struct Present {
    source: Source,
    place: oneshot::Sender<Infallible>,
}

impl StrangerSlots {
    /// Room for so many, and for one at least.
    pub(crate) fn new(most: usize) -> Self {
        Self { present: Mutex::default(), most: most.max(1) }
    }

    /// Lets one more in, in the place of another where there is no room.
    pub(crate) fn admit(&self, source: Source) -> StrangerSlot {
        let mut present = self.present.lock().unwrap_or_else(PoisonError::into_inner);
        present.retain(|one| !one.place.is_closed());
        while present.len() >= self.most {
            let oldest = oldest_of_the_most(&present);
            present.remove(oldest);
        }
        let (place, turn) = oneshot::channel();
        present.push(Present { source, place });
        StrangerSlot(turn)
    }
}

/// The position of the oldest connection of the address that has the most.
fn oldest_of_the_most(present: &[Present]) -> usize {
    let mut counts = HashMap::<Source, usize>::new();
    present.iter().for_each(|one| *counts.entry(one.source).or_default() += 1);
    let most = counts.values().max();
    present.iter().position(|one| counts.get(&one.source) == most).unwrap_or(0)
}

/// The time that one has; dropping it gives the place back.
pub(crate) struct StrangerSlot(oneshot::Receiver<Infallible>);

impl StrangerSlot {
    /// Ends when the place is needed for another connection.
    pub(crate) async fn is_over(&mut self) {
        let _ = (&mut self.0).await;
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    fn from(address: u8) -> Source {
        Source::from(IpAddr::from([10, 0, 0, address]))
    }

    fn is_over(turn: &mut StrangerSlot) -> bool {
        turn.0.try_recv() == Err(oneshot::error::TryRecvError::Closed)
    }

    #[test]
    fn of_too_many_the_oldest_goes_and_who_is_done_takes_no_place() {
        let crowd = StrangerSlots::new(2);
        let (mut first, second) = (crowd.admit(from(1)), crowd.admit(from(1)));
        drop(second);
        let (mut third, mut fourth) = (crowd.admit(from(1)), crowd.admit(from(1)));
        assert!(is_over(&mut first), "the oldest stays");
        assert!(!is_over(&mut third) && !is_over(&mut fourth), "a newer one goes");
    }

    #[test]
    fn one_address_takes_no_place_from_another() {
        let crowd = StrangerSlots::new(4);
        let mut alone = crowd.admit(from(1));
        let mut many: Vec<_> = (0..20).map(|_| crowd.admit(from(2))).collect();
        assert!(!is_over(&mut alone));
        let over = many.iter_mut().map(is_over).filter(|is_over| *is_over).count();
        assert_eq!(over, 17);
    }
}

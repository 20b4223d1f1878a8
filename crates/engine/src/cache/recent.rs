//! The last so many ids, with something that is known of each.

use std::collections::{HashMap, VecDeque};

use holdall_format::ObjectId;

/// Ids up to a bound; the one that was noted first goes first.
pub(crate) struct Recent<V> {
    limit: usize,
    known: HashMap<ObjectId, V>,
    order: VecDeque<ObjectId>,
}

impl<V> Recent<V> {
    /// None yet, and never more than `limit`.
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, known: HashMap::new(), order: VecDeque::new() }
    }

    /// What is known of an id.
    pub(crate) fn find(&self, id: &ObjectId) -> Option<&V> {
        self.known.get(id)
    }

    /// Notes an id; `false` if it was noted before.
    pub(crate) fn insert(&mut self, id: ObjectId, value: V) -> bool {
        if self.known.insert(id, value).is_some() {
            return false;
        }
        self.order.push_back(id);
        if self.order.len() > self.limit
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_is_forgotten_and_nothing_is_noted_twice() {
        let id = |byte: u8| ObjectId::from_bytes([byte; 32]);
        let mut recent = Recent::new(2);
        assert!(recent.insert(id(1), 'a') && recent.insert(id(2), 'b'));
        assert!(!recent.insert(id(1), 'a'));
        assert!(recent.insert(id(3), 'c'));
        assert_eq!([1, 2, 3].map(|at| recent.find(&id(at)).copied()), [None, Some('b'), Some('c')]);
        assert!(recent.insert(id(1), 'd'));
    }
}

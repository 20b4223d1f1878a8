//! The objects of a tail, in memory: nearly every id has one copy there, and is found by hash.

use std::collections::{BTreeMap, HashMap};

use holdall_format::ObjectId;

/// What is known of one copy of an object in a tail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TailObject {
    /// When it came.
    pub(crate) arrival: u64,
    /// The block that holds it.
    pub(crate) block: u32,
    /// Whether a commit reached it.
    pub(crate) closed: bool,
    /// Whether the commit that is running reached it.
    pub(crate) tentative: bool,
}

/// Which marks say what is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    /// What is closed.
    Closed,
    /// What a descent marked and nobody made closed.
    Tentative,
}

impl Mark {
    /// Whether a copy in a tail is so marked.
    pub(crate) fn is_on(self, object: &TailObject) -> bool {
        match self {
            Self::Closed => object.closed,
            Self::Tentative => object.tentative,
        }
    }
}

/// Objects by id and arrival.
#[derive(Debug, Default)]
pub(crate) struct TailObjects {
    /// The copy of each id that was listed first.
    one: HashMap<ObjectId, TailObject>,
    /// All other copies.
    more: BTreeMap<(ObjectId, u64), TailObject>,
}

impl TailObjects {
    /// Adds a copy; one that came at the same time is there already and stays.
    pub(crate) fn insert(&mut self, id: ObjectId, object: TailObject) {
        let listed = self.one.entry(id).or_insert(object);
        if listed.arrival != object.arrival {
            self.more.entry((id, object.arrival)).or_insert(object);
        }
    }

    /// How many copies there are.
    pub(crate) fn count(&self) -> usize {
        self.one.len() + self.more.len()
    }

    /// All copies of an id, in no order.
    pub(crate) fn copies(&self, id: &ObjectId) -> impl Iterator<Item = &TailObject> {
        let one = self.one.get(id);
        // Where there is none, there are no more.
        let more = one.map(|_| self.more.range((*id, 0)..=(*id, u64::MAX)));
        one.into_iter().chain(more.into_iter().flatten().map(|(_, object)| object))
    }

    /// The copy that came at that time.
    pub(crate) fn get(&self, id: &ObjectId, arrival: u64) -> Option<&TailObject> {
        match self.one.get(id)? {
            one if one.arrival == arrival => Some(one),
            _ => self.more.get(&(*id, arrival)),
        }
    }

    /// The copy that came at that time.
    pub(crate) fn get_mut(&mut self, id: &ObjectId, arrival: u64) -> Option<&mut TailObject> {
        match self.one.get_mut(id)? {
            one if one.arrival == arrival => Some(one),
            _ => self.more.get_mut(&(*id, arrival)),
        }
    }

    /// Everything, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&ObjectId, &TailObject)> {
        self.one.iter().chain(self.more.iter().map(|((id, _), object)| (id, object)))
    }

    /// Everything, in no order, to be marked.
    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut TailObject> {
        self.one.values_mut().chain(self.more.values_mut())
    }

    /// All ids with their arrivals, in ascending order of ids.
    pub(crate) fn ascending(&self) -> Vec<(ObjectId, u64)> {
        let mut all: Vec<_> = self.iter().map(|(id, object)| (*id, object.arrival)).collect();
        all.sort_unstable();
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_answers_as_a_map_by_id_and_arrival(
            listed in proptest::collection::vec((0u8..6, 0u64..5, any::<u32>()), 0..60)
        ) {
            let mut objects = TailObjects::default();
            let mut model = BTreeMap::new();
            for (id, arrival, block) in listed {
                let id = ObjectId::from_bytes([id; 32]);
                let object = TailObject { arrival, block, closed: false, tentative: false };
                objects.insert(id, object);
                model.entry((id, arrival)).or_insert(object);
            }
            prop_assert_eq!(objects.ascending(), model.keys().copied().collect::<Vec<_>>());
            for byte in 0..7 {
                let id = ObjectId::from_bytes([byte; 32]);
                let mut copies: Vec<_> = objects.copies(&id).copied().collect();
                copies.sort_unstable_by_key(|copy| copy.arrival);
                let expected: Vec<_> =
                    model.range((id, 0)..=(id, u64::MAX)).map(|(_, object)| *object).collect();
                prop_assert_eq!(copies, expected);
                for arrival in 0..6 {
                    prop_assert_eq!(objects.get(&id, arrival), model.get(&(id, arrival)));
                    prop_assert_eq!(objects.get_mut(&id, arrival).copied(), model.get(&(id, arrival)).copied());
                }
            }
        }
    }
}

//! What shows that a record lay where no sound one lies, so that it is stored there again.
//!
//! Another may have had its place, in a copy of the repository that went on by itself, or before it was set back.

/// What speaks for a record that is offered where no sound one lies.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Claim {
    /// Whether the root of its tree is stored.
    pub(crate) has_root: bool,
    /// Whether the owner says that it belongs there.
    pub(crate) is_vouched: bool,
}

/// Where a record would come in its machine's chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChainPlace {
    /// One that is there names it: as the one before, or as what it amends.
    Followed,
    /// One that is there names another one, which is lost, in its place or in that of the one before it.
    Contradicted,
    /// It names the newest one that is there, and lies behind it.
    NextOfChain,
    /// Its machine went on without it, or others are missing before it.
    Neither,
}

impl ChainPlace {
    /// Why a record is refused that would come there.
    pub(crate) fn refusal(self) -> &'static str {
        match self {
            Self::Contradicted => {
                "a record of its machine follows another one, which is lost: put that one back, or give it up, first"
            }
            Self::Followed | Self::NextOfChain | Self::Neither => "nothing shows that it was here",
        }
    }
}

/// What is left in the file of a record, compared with what is offered, from the end of the head on: no two records
/// are alike there. Bytes that are zero, cut off or cannot be read are not counted.
pub(crate) struct Left {
    agree: usize,
    differ: usize,
}

impl Left {
    /// Compares what is `left` of a file with what is `offered`, whose head ends at `own_from`.
    pub(crate) fn of(left: &[u8], offered: &[u8], own_from: usize) -> Self {
        let pairs = left.iter().zip(offered).skip(own_from).filter(|(left, _)| **left != 0);
        let (agree, differ): (Vec<_>, Vec<_>) = pairs.partition(|(left, offered)| left == offered);
        Self { agree: agree.len(), differ: differ.len() }
    }

    /// Whether this is what is left of what was offered, and not a mixture of that and of something else.
    fn is_of_the_same(&self) -> bool {
        /// Fewer may agree by chance, and in the fields of receipts.
        const AGREE_BYTES: usize = 128;
        self.agree >= AGREE_BYTES && self.agree >= self.differ.saturating_mul(8)
    }

    fn is_nothing(&self) -> bool {
        self.agree == 0 && self.differ == 0
    }
}

impl Claim {
    /// Whether a record lay where no sound one does: another one follows it, or what is left of the file agrees with it.
    /// Where nothing is left, it must be the next of its machine's chain, and the root of its tree be stored. The owner's
    /// word counts unless the chain contradicts it.
    pub(crate) fn shows(self, place: ChainPlace, left: &Left) -> bool {
        place == ChainPlace::Followed
            || (self.is_vouched && place != ChainPlace::Contradicted)
            || left.is_of_the_same()
            || (left.is_nothing() && self.has_root && place == ChainPlace::NextOfChain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mixture_of_a_record_and_of_another_is_what_is_left_of_neither() {
        const HEAD_BYTES: usize = 300;
        let (right, rival) = ([1; 2000], [2; 2000]);
        let is_of = |left: &[u8], offered| Left::of(left, offered, HEAD_BYTES).is_of_the_same();
        for from_right in [600, 1000, 1500] {
            let mixed = [&right[..from_right], &rival[from_right..]].concat();
            assert!(!is_of(&mixed, &right) && !is_of(&mixed, &rival), "{from_right}");
        }
        for few in [500, 1999] {
            let mut damaged = right;
            damaged[few] = 7;
            damaged[HEAD_BYTES..HEAD_BYTES + 100].fill(0);
            assert!(is_of(&damaged, &right) && !is_of(&damaged, &rival));
            assert!(is_of(&damaged[..1000], &right));
        }
        assert!(!is_of(&right[..HEAD_BYTES + 100], &right), "too few");
    }

    #[test]
    fn where_nothing_is_left_a_record_has_to_be_the_next_with_a_root_or_somebody_vouches() {
        let bytes = [1; 2000];
        let shows = |has_root, is_vouched, place, left: &[u8]| {
            Claim { has_root, is_vouched }.shows(place, &Left::of(left, &bytes, 0))
        };
        for nothing in [&[][..], &[0; 2000]] {
            assert!(shows(true, false, ChainPlace::NextOfChain, nothing));
            assert!(!shows(false, false, ChainPlace::NextOfChain, nothing));
            assert!(!shows(true, false, ChainPlace::Neither, nothing));
            assert!(shows(true, true, ChainPlace::Neither, nothing));
            assert!(shows(false, false, ChainPlace::Followed, nothing));
        }
        assert!(!shows(true, false, ChainPlace::NextOfChain, &[7; 2000]), "another one was there");
        assert!(!shows(true, true, ChainPlace::Contradicted, &[]), "the chain says which one was");
        assert!(shows(true, false, ChainPlace::Contradicted, &bytes), "it is what is left");
    }
}

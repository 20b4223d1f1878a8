//! The values that one part of a calendar expression allows, such as `3..9/2,12` of the months.

/// An arithmetic sequence: `first`, `first + every` and so on, up to `last`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Steps {
    pub(super) first: u16,
    pub(super) last: u16,
    /// At least 1.
    pub(super) every: u16,
}

impl Steps {
    /// The smallest value from `from` on.
    fn next(self, from: u16) -> Option<u16> {
        let beyond = from.saturating_sub(self.first);
        let value = self.first.checked_add(beyond.div_ceil(self.every).checked_mul(self.every)?)?;
        (value <= self.last).then_some(value)
    }

    /// The same counted from the end of a month: 1 is its last day.
    fn on_days_of(self, days_in_month: u16) -> Self {
        let day = |back: u16| (days_in_month + 1).saturating_sub(back);
        Self { first: day(self.last), last: day(self.first), every: self.every }
    }
}

/// The values that a part of an expression allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Field {
    /// `*`
    Any,
    /// Whatever one of these has.
    Of(Vec<Steps>),
}

impl Field {
    /// One value.
    pub(super) fn only(value: u16) -> Self {
        Self::of(&[value])
    }

    /// Several values.
    pub(super) fn of(values: &[u16]) -> Self {
        let only = |&value: &u16| Steps { first: value, last: value, every: 1 };
        Self::Of(values.iter().map(only).collect())
    }

    /// The smallest allowed value in `[from, most]`.
    pub(super) fn next(&self, from: u16, most: u16) -> Option<u16> {
        let next = match self {
            Self::Any => Some(from),
            Self::Of(all) => all.iter().filter_map(|steps| steps.next(from)).min(),
        };
        next.filter(|value| *value <= most)
    }

    /// The same of the days of a month, where values count from its end.
    pub(super) fn next_from_end(&self, from: u16, days_in_month: u16) -> Option<u16> {
        let on_days = match self {
            Self::Any => Self::Any,
            Self::Of(all) => {
                Self::Of(all.iter().map(|steps| steps.on_days_of(days_in_month)).collect())
            }
        };
        on_days.next(from, days_in_month)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_value_is_of_the_sequence_and_not_beyond_its_end() {
        let steps = Steps { first: 3, last: 9, every: 2 };
        let next = |from| steps.next(from);
        assert_eq!([0, 3, 4, 9, 10].map(next), [Some(3), Some(3), Some(5), Some(9), None]);
        assert_eq!(Steps { first: 1, last: 31, every: 40 }.next(2), None);
        assert_eq!(Field::of(&[4, 2]).next(3, 12), Some(4));
        assert_eq!(Field::of(&[4, 2]).next(5, 12), None);
        assert_eq!(Field::Any.next(13, 12), None);
    }

    #[test]
    fn days_count_from_the_end_of_their_month() {
        let last_three = Field::Of(vec![Steps { first: 1, last: 3, every: 1 }]);
        assert_eq!(last_three.next_from_end(1, 31), Some(29));
        assert_eq!(last_three.next_from_end(28, 28), Some(28));
        assert_eq!(Field::only(1).next_from_end(1, 29), Some(29));
    }
}

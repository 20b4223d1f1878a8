//! `--fail-below`: for scripts that want to know whether it is fast enough.

use holdall_lab::Measurement;

use crate::exit::Exit;

/// Remembers what was measured, and the slowest of it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Slowest {
    rate: Option<f64>,
    rows: Vec<Measurement>,
}

impl Slowest {
    /// One more row; one without bytes, such as a time to wait, does not count.
    pub(crate) fn add_bytes(&mut self, row: &Measurement) {
        self.keep(row);
        self.add(row.bytes_per_second);
    }

    /// One more row, by its items.
    pub(crate) fn add_items(&mut self, row: &Measurement) {
        self.keep(row);
        self.add(row.operations_per_second);
    }

    /// One more rate, if it is one.
    pub(crate) fn add(&mut self, rate: Option<f64>) {
        let Some(rate) = rate else { return };
        self.rate = Some(self.rate.map_or(rate, |slowest| slowest.min(rate)));
    }

    /// One more row, which does not count.
    pub(crate) fn keep(&mut self, row: &Measurement) {
        self.rows.push(row.clone());
    }

    /// All rows, for a report.
    pub(crate) fn rows(&self) -> &[Measurement] {
        &self.rows
    }

    /// How the command ends if no rate may be below `limit`.
    pub(crate) fn exit(&self, limit: Option<u64>) -> Exit {
        let is_below = limit.zip(self.rate).is_some_and(|(limit, rate)| rate < limit as f64);
        if is_below { Exit::BelowRate } else { Exit::Done }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_row_decides() {
        let mut slowest = Slowest::default();
        assert_eq!(slowest.exit(Some(5)), Exit::Done);
        [Some(100.0), Some(50.0), None, Some(70.0)].into_iter().for_each(|rate| slowest.add(rate));
        assert_eq!(slowest.exit(Some(50)), Exit::Done);
        assert_eq!(slowest.exit(Some(51)), Exit::BelowRate);
        assert_eq!(slowest.exit(None), Exit::Done);
    }
}

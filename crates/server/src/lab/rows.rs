//! The rows of a measurement: each is told as it comes, and none is begun once it is to end.

use holdall_lab::report::row_name;
use holdall_lab::{Measurement, Stop};

use crate::ServerError;

/// What looks on, and may end it.
pub(crate) struct Watch<'a> {
    /// Set when it is to end.
    pub(crate) stop: Stop,
    /// Asked before each row: why it is not to go on.
    pub(crate) may_go_on: &'a dyn Fn() -> Result<(), ServerError>,
    /// Told of each row: what it was, and of how many it was which.
    pub(crate) told: &'a dyn Fn(&str, usize, usize),
}

/// What was measured so far.
pub(super) struct Rows<'a> {
    pub(super) watch: &'a Watch<'a>,
    pub(super) rows: Vec<Measurement>,
    /// Sentences for the report.
    pub(super) notes: Vec<String>,
    /// How many rows there will be.
    pub(super) total: usize,
}

impl<'a> Rows<'a> {
    /// Nothing yet, with these notes.
    pub(super) fn new(watch: &'a Watch<'a>, notes: Vec<String>) -> Self {
        Self { watch, rows: Vec::new(), notes, total: 0 }
    }

    /// Tells a row, and goes on unless it is to end.
    pub(super) fn add(&mut self, row: Measurement) -> Result<(), ServerError> {
        let name = row_name(&row);
        self.rows.push(row);
        (self.watch.told)(&name, self.rows.len(), self.total);
        self.may_go_on()
    }

    /// # Errors
    /// Why it is not to go on.
    pub(super) fn may_go_on(&self) -> Result<(), ServerError> {
        self.watch.stop.check()?;
        (self.watch.may_go_on)()
    }
}

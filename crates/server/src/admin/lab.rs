//! The server's lab: what is asked of it.

use holdall_lab::Stop;
use holdall_lab::report::compare;
use jiff::Timestamp;

use super::administration::Administration;
use super::entries::{LabComparison, LabEntry, LabReport, LabReports};
use crate::ServerError;
use crate::activity::Activities;
use crate::jobs::{Job, JobSteps};
use crate::lab::{Extent, LabTest, Reports, Watch, measure};

impl Administration<'_> {
    /// What was measured so far. One that is damaged costs itself alone.
    pub(super) fn lab_reports(&self) -> Result<LabReports, ServerError> {
        let kept = self.kept_reports();
        let entry = |number| {
            let report = kept.read(number).ok()?;
            Some(LabEntry { number, command: report.command, made: report.made })
        };
        Ok(LabReports { reports: kept.numbers()?.into_iter().filter_map(entry).collect() })
    }

    pub(super) fn lab_report(&self, number: u64) -> Result<LabReport, ServerError> {
        Ok(LabReport { number, report: self.kept_reports().read(number)? })
    }

    pub(super) fn lab_comparison(
        &self,
        first: u64,
        second: u64,
    ) -> Result<LabComparison, ServerError> {
        let kept = self.kept_reports();
        let compared = compare(&kept.read(first)?, &kept.read(second)?);
        let comparison = serde_json::to_value(compared)
            .map_err(|error| ServerError::Admin { reason: error.to_string() })?;
        Ok(LabComparison { comparison })
    }

    /// Measures, and keeps what was found.
    pub(super) fn measure_lab(&self, test: LabTest, long: bool) -> Result<LabEntry, ServerError> {
        let _turn = self.jobs.turn_to_measure()?;
        let folder = self.stores.folder();
        let scratch = folder.lab_scratch()?;
        let stop = self.job.map_or_else(Stop::default, Job::stop);
        let told = |row: &str, done: usize, total: usize| {
            self.log(&format!("lab {test}: {row}"));
            self.job.into_iter().for_each(|job| job.note_steps(JobSteps { done, total }));
        };
        let watch = Watch { stop, may_go_on: &|| self.nobody_is_here(), told: &told };
        let now = Timestamp::from_nanosecond(self.stores.now_ns().into());
        let made = now.unwrap_or_default().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let report = measure(test, Extent::of(long), &scratch, made, &watch);
        folder.clear_lab_scratch()?;
        let report = report?;
        let number = self.kept_reports().keep(&report)?;
        Ok(LabEntry { number, command: report.command, made: report.made })
    }

    fn kept_reports(&self) -> Reports {
        Reports::in_folder(self.stores.folder().lab_reports())
    }

    /// A backup is worth more than figures, and figures beside one are worth nothing.
    fn nobody_is_here(&self) -> Result<(), ServerError> {
        let here = self.activities.map(Activities::entries).unwrap_or_default();
        let Some(one) = here.first() else { return Ok(()) };
        Err(ServerError::refused(format!(
            "{} stores or reads now, and nothing is measured beside that; try again when it is done",
            one.who
        )))
    }
}

//! What the exit code of a run means to the schedule.

use std::time::Duration;

/// The most that the agent waits before it tries again.
pub(super) const LONGEST_RETRY: Duration = Duration::from_hours(1);
/// What it waits after the first failure.
const FIRST_RETRY: Duration = Duration::from_mins(1);

const DONE: u8 = 0;
const FAILED: u8 = 1;
/// Done, but something could not be read.
const INCOMPLETE: u8 = 3;
const IN_USE: u8 = 11;
pub(super) const UNREACHABLE: u8 = 14;
pub(super) const INTERRUPTED: u8 = 130;

/// How a run ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ending {
    /// Its exit code; none if a signal killed it.
    pub exit_code: Option<u8>,
    /// Why it failed, in words.
    pub message: Option<String>,
}

impl Ending {
    /// Whether everything is in a snapshot.
    pub(super) fn is_good(&self) -> bool {
        self.exit_code == Some(DONE)
    }

    /// Whether there is a snapshot with all that could be read.
    pub(super) fn made_snapshot(&self) -> bool {
        matches!(self.exit_code, Some(DONE | INCOMPLETE))
    }

    /// Whether it may succeed by itself soon. A wrong password and the like do not; nor does reading the same files again.
    fn may_pass(&self) -> bool {
        matches!(self.exit_code, None | Some(FAILED | IN_USE | UNREACHABLE | INTERRUPTED))
    }

    /// Whether it is nothing that the user could do something about, as yet.
    pub(super) fn is_passing(&self) -> bool {
        matches!(self.exit_code, Some(IN_USE | UNREACHABLE | INTERRUPTED))
    }

    /// How long to wait before the next attempt, as the `failures`th in a row.
    pub(super) fn retry_after(&self, failures: u32) -> Option<Duration> {
        let doubled = 1_u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX);
        let wait = FIRST_RETRY.saturating_mul(doubled).min(LONGEST_RETRY);
        (!self.is_good() && self.may_pass()).then_some(wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ending(code: u8) -> Ending {
        Ending { exit_code: Some(code), message: None }
    }

    #[test]
    fn what_may_pass_is_tried_again_ever_less_often() {
        let minutes = |failures| {
            let wait = ending(UNREACHABLE).retry_after(failures);
            wait.map(|wait| wait.as_secs() / 60)
        };
        let waits = [1, 2, 3, 6, 7, 40].map(|failures| minutes(failures).unwrap());
        assert_eq!(waits, [1, 2, 4, 32, 60, 60]);
        for code in [0, 2, 3, 10, 12, 13, 20] {
            assert_eq!(ending(code).retry_after(1), None, "{code}");
        }
        assert!(Ending::default().retry_after(1).is_some(), "it was killed");
    }
}

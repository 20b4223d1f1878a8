//! Lengths of time in `config.toml`, such as `5min`, `36h` or `3d`.

use std::time::Duration;

use jiff::{Span, SpanRelativeTo};
use serde::Deserialize;

/// A length of time, with its unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct TimeSpan(pub(crate) Duration);

impl TryFrom<String> for TimeSpan {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let what = || format!("{text:?} is no length of time: write it as 90s, 5min, 36h or 3d");
        let span: Span = text.parse().map_err(|_| what())?;
        let days_are_24_hours = SpanRelativeTo::days_are_24_hours();
        let length = span.to_duration(days_are_24_hours).map_err(|_| what())?;
        length.try_into().map(Self).map_err(|_| what())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_of_time_has_a_unit_and_is_not_negative() {
        let read = |text: &str| TimeSpan::try_from(text.to_owned()).map(|span| span.0.as_secs());
        for (text, seconds) in [
            ("90s", 90),
            ("5min", 300),
            ("36h", 129_600),
            ("3d", 259_200),
            ("1h 30min", 5400),
            ("0s", 0),
        ] {
            assert_eq!(read(text), Ok(seconds), "{text}");
        }
        for text in ["", "5", "soon", "-5min", "1y"] {
            assert!(read(text).unwrap_err().contains("no length of time"), "{text}");
        }
    }
}

//! Requests for a file that hold only if it is, or is not, what somebody has already. What is at an address never
//! changes: the tag is the snapshot's id.

use axum::http::header::{
    HeaderMap, HeaderName, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE,
    IF_UNMODIFIED_SINCE,
};
use axum::http::{HeaderValue, StatusCode};
use holdall_engine::Time;
use jiff::Timestamp;
use jiff::fmt::rfc2822::{DateTimeParser, DateTimePrinter};

/// What tells one state of a file from another.
pub(crate) struct Validators {
    pub(crate) tag: HeaderValue,
    /// When it was modified, to the second; nothing where no header can say it.
    pub(crate) modified: Option<Timestamp>,
}

impl Validators {
    pub(crate) fn of(snapshot: &str, mtime: Time) -> Self {
        let tag = crate::names::header(&format!("\"{snapshot}\""));
        Self { tag, modified: Timestamp::from_second(mtime.secs).ok() }
    }

    /// When it was modified, as a header has it.
    pub(crate) fn last_modified(&self) -> Option<HeaderValue> {
        let text = DateTimePrinter::new().timestamp_to_rfc9110_string(&self.modified?).ok()?;
        HeaderValue::from_str(&text).ok()
    }

    /// The status of a request that is not carried out since its conditions do not hold.
    pub(crate) fn refuse(&self, headers: &HeaderMap) -> Option<StatusCode> {
        let (known, wanted) =
            (self.is_one_of(headers, &IF_NONE_MATCH), self.is_one_of(headers, &IF_MATCH));
        let is_newer = |than: &HeaderName| {
            let than = date(headers.get(than)?)?;
            self.modified.map(|modified| modified > than)
        };
        // Dates count only where there are no tags.
        let is_other = wanted.map_or_else(|| is_newer(&IF_UNMODIFIED_SINCE), |is| Some(!is));
        let is_known = known.or_else(|| is_newer(&IF_MODIFIED_SINCE).map(|is_newer| !is_newer));
        match (is_other, is_known) {
            (Some(true), _) => Some(StatusCode::PRECONDITION_FAILED),
            (_, Some(true)) => Some(StatusCode::NOT_MODIFIED),
            _ => None,
        }
    }

    /// Whether a piece belongs to what the client has of it.
    pub(crate) fn allow_range(&self, headers: &HeaderMap) -> bool {
        headers.get(IF_RANGE).is_none_or(|known| {
            *known == self.tag || date(known).is_some_and(|known| self.modified == Some(known))
        })
    }

    /// Whether a header names the tag; nothing if there is no such header.
    fn is_one_of(&self, headers: &HeaderMap, name: &HeaderName) -> Option<bool> {
        let mut tags = headers.get_all(name).iter().peekable();
        tags.peek()?;
        let own = self.tag.to_str().ok()?;
        let is_own =
            |tag: &str| matches!(tag.trim(), "*") || tag.trim().trim_start_matches("W/") == own;
        Some(tags.filter_map(|tags| tags.to_str().ok()).any(|tags| tags.split(',').any(is_own)))
    }
}

fn date(text: &HeaderValue) -> Option<Timestamp> {
    DateTimeParser::new().parse_timestamp(text.to_str().ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_hold_as_the_standard_says() {
        let file = Validators::of("abc", Time { secs: 1_000_000_000, nanos: 5 });
        let then = "Sun, 09 Sep 2001 01:46:40 GMT";
        let (before, after) = ("Sun, 09 Sep 2001 01:46:39 GMT", "Sun, 09 Sep 2001 01:46:41 GMT");
        assert_eq!(file.last_modified().unwrap(), then);
        for (name, value, expected) in [
            ("if-none-match", "\"abc\"", 304),
            ("if-none-match", "\"x\", W/\"abc\"", 304),
            ("if-none-match", "*", 304),
            ("if-none-match", "\"x\"", 200),
            ("if-match", "\"abc\"", 200),
            ("if-match", "*", 200),
            ("if-match", "\"x\"", 412),
            ("if-modified-since", then, 304),
            ("if-modified-since", after, 304),
            ("if-modified-since", before, 200),
            ("if-modified-since", "yesterday", 200),
            ("if-unmodified-since", then, 200),
            ("if-unmodified-since", before, 412),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(name, value.parse().unwrap());
            let status = file.refuse(&headers).map_or(200, |status| status.as_u16());
            assert_eq!(status, expected, "{name}: {value}");
        }
        for (value, expected) in [("\"abc\"", true), (then, true), ("\"x\"", false), (after, false)]
        {
            let mut headers = HeaderMap::new();
            headers.insert(IF_RANGE, value.parse().unwrap());
            assert_eq!(file.allow_range(&headers), expected, "{value}");
        }
        assert!(Validators::of("abc", Time { secs: i64::MAX, nanos: 0 }).last_modified().is_none());
    }
}

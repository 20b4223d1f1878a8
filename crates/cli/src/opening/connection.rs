//! How a server is asked, and how fast: options of commands that send much.

use std::net::IpAddr;
use std::time::Duration;

use holdall_protocol::RateLimit;

use crate::app::App;
use crate::arguments::quantity;
use crate::opening::open::{Patience, Where};

/// How a server is asked, and how fast.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Connection {
    /// Waits so long for a server that was lost on the way (such as 90s, 5m, 2h) [default: 5m]. If it is given, a backup
    /// also waits so long for a server that cannot be reached at the start
    #[arg(long, value_name = "DURATION", env = "HOLDALL_RETRY_FOR", value_parser = parse_duration)]
    retry_for: Option<Duration>,
    /// Sends at most so many bytes in a second to a server (such as 500k, 20M), or with `auto` as many as leave the line
    /// to others, such as a call: fewer as soon as packets wait [default: as many as can be]
    #[arg(long, value_name = "RATE", value_parser = upload_limit)]
    limit_upload: Option<RateLimit>,
    /// Connects from these addresses of this computer, in turn [default: any]
    #[arg(long, value_name = "ADDR", value_delimiter = ',')]
    bind: Vec<IpAddr>,
    /// Sends over so many connections, from 1 to 8; over a slow line, over fewer
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..=8))]
    streams: u8,
}

impl Connection {
    /// Connections at the same time.
    pub(crate) fn streams(&self) -> usize {
        usize::from(self.streams)
    }

    /// Most bytes to send in a second, if a number was asked for.
    pub(crate) fn upload_limit(&self) -> Option<u64> {
        match self.limit_upload? {
            RateLimit::BytesPerSecond(rate) => Some(rate),
            RateLimit::Yielding => None,
        }
    }

    /// Whether what is sent leaves the line to others.
    pub(crate) fn is_yielding(&self) -> bool {
        self.limit_upload == Some(RateLimit::Yielding)
    }

    /// Whether what is sent keeps a rate, whichever.
    pub(crate) fn is_limited(&self) -> bool {
        self.limit_upload.is_some()
    }

    /// Says that a repository in a directory is written without a limit, if one was set.
    pub(crate) fn tell_idle_limit(&self, app: &App) {
        let named = app.named_repository().map(Where::parse);
        if self.limit_upload.is_some() && matches!(named, Some(Ok(Where::Directory(_)))) {
            app.output.note(
                "note: --limit-upload is for what is sent to a server; a directory is written \
                 without a limit",
            );
        }
    }

    /// How a server is asked.
    pub(crate) fn patience(&self) -> Patience {
        let usual = Patience::default();
        Patience {
            retry_for: self.retry_for.unwrap_or(usual.retry_for),
            reach_for: usual.reach_for,
            streams: self.streams(),
            bind: self.bind.clone(),
            upload: self.limit_upload,
            may_wait: true,
            ..usual
        }
    }

    /// The same, where the time that was given also holds for reaching the server at the start.
    pub(crate) fn patience_from_the_start(&self) -> Patience {
        let patience = self.patience();
        Patience { reach_for: self.retry_for.unwrap_or(patience.reach_for), ..patience }
    }
}

/// Reads a rate, or `auto`.
fn upload_limit(text: &str) -> Result<RateLimit, String> {
    match text {
        "auto" => Ok(RateLimit::Yielding),
        rate => quantity::rate(rate)
            .map(RateLimit::BytesPerSecond)
            .map_err(|why| format!("{why}; or it is auto")),
    }
}

/// Reads `90`, `90s`, `5m`, `2h` or `1d`.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = match text.char_indices().next_back() {
        Some((at, 's')) => (&text[..at], 1),
        Some((at, 'm')) => (&text[..at], 60),
        Some((at, 'h')) => (&text[..at], 3600),
        Some((at, 'd')) => (&text[..at], 86_400),
        _ => (text, 1),
    };
    let number: u64 = number.parse().map_err(|_| "a duration is a number with s, m, h or d")?;
    number.checked_mul(unit).map(Duration::from_secs).ok_or_else(|| "too long".into())
}

/// Reads a duration that must have a unit: `3` would be three seconds, which nobody means.
pub(crate) fn parse_age(text: &str) -> Result<Duration, String> {
    let age = parse_duration(text)?;
    match !age.is_zero() && text.ends_with(|letter: char| letter.is_ascii_digit()) {
        true => Err(format!("it has no unit: {text}d is days, {text}h hours")),
        false => Ok(age),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_like_people_write_them() {
        assert_eq!(parse_duration("90"), Ok(Duration::from_secs(90)));
        assert_eq!(parse_duration("5m"), Ok(Duration::from_secs(300)));
        assert_eq!(parse_duration("2h"), Ok(Duration::from_secs(7200)));
        for bad in ["", "m", "-1s", "5 m", "5x", "99999999999999999d"] {
            assert!(parse_duration(bad).is_err(), "{bad}");
            assert!(parse_age(bad).is_err(), "{bad}");
        }
        assert_eq!(parse_age("3d"), Ok(Duration::from_secs(3 * 86_400)));
        assert!(parse_age("3").unwrap_err().contains("3d"));
        assert_eq!(parse_age("0"), Ok(Duration::ZERO));
    }
}

//! The kinds of links, as they are typed.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, Error, Result, bail, ensure};

const LINKS_MAX: usize = 8;

/// What a link is to be like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LinkKind {
    Loopback,
    /// So many shaped links side by side.
    Shaped {
        count: usize,
        rate: Rate,
    },
    /// Loopback through a proxy with this round trip time, and this rate.
    Far {
        round_trip: Duration,
        rate: Option<Rate>,
    },
}

/// Bits in a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rate(pub(crate) u64);

const UNITS: [(&str, u64); 3] = [("gbit", 1_000_000_000), ("mbit", 1_000_000), ("kbit", 1_000)];

impl FromStr for LinkKind {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        if text == "loopback" {
            return Ok(Self::Loopback);
        }
        if let Some(far) = text.strip_suffix("ms") {
            let (rate, ms) = match far.split_once('+') {
                Some((rate, ms)) => (Some(rate.parse()?), ms),
                None => (None, far),
            };
            let ms = ms.parse().with_context(|| format!("{text:?} is no delay"))?;
            return Ok(Self::Far { round_trip: Duration::from_millis(ms), rate });
        }
        let (count, rate) = match text.split_once('x') {
            Some((count, rate)) => (count.parse().context("no number of links")?, rate),
            None => (1, text),
        };
        ensure!((1..=LINKS_MAX).contains(&count), "1 to {LINKS_MAX} links, not {count}");
        Ok(Self::Shaped { count, rate: rate.parse()? })
    }
}

impl FromStr for Rate {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        for (unit, bits) in UNITS {
            if let Some(figure) = text.strip_suffix(unit) {
                let figure: u64 = figure.parse().with_context(|| format!("{text:?} is no rate"))?;
                ensure!(figure > 0, "a link needs a rate above 0");
                return figure.checked_mul(bits).map(Self).context("a rate beyond all links");
            }
        }
        bail!("{text:?} is no link (loopback, 1gbit, 2x1gbit, 64kbit, 100ms, 10mbit+100ms)")
    }
}

impl fmt::Display for LinkKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Loopback => f.write_str("loopback"),
            Self::Shaped { count: 1, rate } => rate.fmt(f),
            Self::Shaped { count, rate } => write!(f, "{count}x{rate}"),
            Self::Far { round_trip, rate } => {
                let rate = rate.map(|rate| format!("{rate}+")).unwrap_or_default();
                write!(f, "{rate}{}ms", round_trip.as_millis())
            }
        }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fits = UNITS.iter().find(|(_, bits)| self.0.is_multiple_of(*bits));
        match fits {
            Some((unit, bits)) => write!(f, "{}{unit}", self.0 / bits),
            None => write!(f, "{}bit", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_is_what_is_shown() {
        for text in ["loopback", "1gbit", "2x1gbit", "10mbit", "64kbit", "100ms", "10mbit+100ms"] {
            assert_eq!(text.parse::<LinkKind>().unwrap().to_string(), text);
        }
        for text in
            ["", "fast", "1", "0mbit", "9x1gbit", "x1gbit", "ms", "+1ms", "99999999999999gbit"]
        {
            assert!(text.parse::<LinkKind>().is_err(), "{text}");
        }
    }
}

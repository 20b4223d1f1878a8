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
    /// Loopback with this round trip time.
    Delay(Duration),
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
        if let Some(figure) = text.strip_suffix("ms") {
            let ms = figure.parse().with_context(|| format!("{text:?} is no delay"))?;
            return Ok(Self::Delay(Duration::from_millis(ms)));
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
        bail!("{text:?} is no link (loopback, 1gbit, 2x1gbit, 10mbit, 64kbit, 100ms)")
    }
}

impl fmt::Display for LinkKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Loopback => f.write_str("loopback"),
            Self::Shaped { count: 1, rate } => rate.fmt(f),
            Self::Shaped { count, rate } => write!(f, "{count}x{rate}"),
            Self::Delay(round_trip) => write!(f, "{}ms", round_trip.as_millis()),
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

impl Rate {
    /// How tc's `tbf` is to hold it: the slower, the smaller the bursts and the longer the queue,
    /// which has to hold a few packets at least.
    pub(crate) fn shaping(self) -> String {
        let burst_bytes = (self.0 / 8 / 100).clamp(4 << 10, 256 << 10);
        let latency_ms = match self.0 {
            100_000_000.. => 20,
            5_000_000.. => 50,
            500_000.. => 200,
            _ => 400,
        };
        format!("tbf rate {}bit burst {burst_bytes} latency {latency_ms}ms", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_is_what_is_shown() {
        for text in ["loopback", "1gbit", "2x1gbit", "10mbit", "64kbit", "100ms"] {
            assert_eq!(text.parse::<LinkKind>().unwrap().to_string(), text);
        }
        for text in ["", "fast", "1", "0mbit", "9x1gbit", "x1gbit", "ms", "99999999999999gbit"] {
            assert!(text.parse::<LinkKind>().is_err(), "{text}");
        }
    }

    #[test]
    fn slow_links_have_small_bursts_and_long_queues() {
        let shaping = |text: &str| text.parse::<Rate>().unwrap().shaping();
        assert_eq!(shaping("1gbit"), "tbf rate 1000000000bit burst 262144 latency 20ms");
        assert_eq!(shaping("64kbit"), "tbf rate 64000bit burst 4096 latency 400ms");
    }
}

//! From when until when a certificate is good: the one field of it (X.509, in DER) that the server needs.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;

const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// When a certificate is good, in nanoseconds since 1970 UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Validity {
    pub(super) from_ns: i64,
    pub(super) until_ns: i64,
}

impl Validity {
    /// That of a certificate in DER.
    ///
    /// Untrusted: it may be anything.
    pub(super) fn of(der: &[u8]) -> Option<Self> {
        let (certificate, _) = inside(der, SEQUENCE)?;
        let (mut fields, _) = inside(certificate, SEQUENCE)?;
        if fields.first() == Some(&VERSION) {
            fields = next(fields)?.2;
        }
        // Serial number, algorithm, and who issued it.
        for _ in 0..3 {
            fields = next(fields)?.2;
        }
        let (times, _) = inside(fields, SEQUENCE)?;
        let (kind, from, rest) = next(times)?;
        let from_ns = time(kind, from)?;
        let (kind, until, _) = next(rest)?;
        Some(Self { from_ns, until_ns: time(kind, until)? })
    }

    /// Whether a third of its life or less is left.
    pub(super) fn is_due(&self, now_ns: i64) -> bool {
        let third_ns = self.until_ns.saturating_sub(self.from_ns) / 3;
        now_ns >= self.until_ns.saturating_sub(third_ns)
    }
}

/// What is inside of a value of that kind, and what follows it.
fn inside(der: &[u8], wanted: u8) -> Option<(&[u8], &[u8])> {
    let (kind, value, rest) = next(der)?;
    (kind == wanted).then_some((value, rest))
}

/// The next value: its kind, what is in it, and what follows it.
fn next(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&kind, rest) = der.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81..=0x83 => {
            let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            (bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), rest)
        }
        _ => return None,
    };
    let (value, rest) = rest.split_at_checked(length)?;
    Some((kind, value, rest))
}

/// `261130120000Z`, of 1950 to 2049, or `20261130120000Z`.
fn time(kind: u8, value: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(value).ok()?.strip_suffix('Z')?;
    let digits = match kind {
        UTC_TIME if text < "50" => format!("20{text}"),
        UTC_TIME => format!("19{text}"),
        GENERALIZED_TIME => text.to_owned(),
        _ => return None,
    };
    let time = DateTime::strptime("%Y%m%d%H%M%S", &digits).ok()?;
    let time = time.to_zoned(TimeZone::UTC).ok()?.timestamp();
    // What is good until the year 4096 is good for as long as can be told.
    let most = if time.as_second() > 0 { i64::MAX } else { i64::MIN };
    Some(i64::try_from(time.as_nanosecond()).unwrap_or(most))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY_NS: i64 = 24 * 3600 * 1_000_000_000;

    fn made(years: [i32; 2]) -> Vec<u8> {
        let mut params = rcgen::CertificateParams::new(["a.example.org".to_owned()]).unwrap();
        params.not_before = rcgen::date_time_ymd(years[0], 1, 1);
        params.not_after = rcgen::date_time_ymd(years[1], 1, 1);
        let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).unwrap();
        params.self_signed(&key).unwrap().der().to_vec()
    }

    #[test]
    fn both_forms_of_a_time_are_read_and_it_is_due_when_a_third_is_left() {
        let validity = Validity::of(&made([2026, 2056])).unwrap();
        let day = |ns: i64| ns / DAY_NS;
        assert_eq!([validity.from_ns, validity.until_ns].map(day), [20_454, 31_411]);
        let validity = Validity { from_ns: 0, until_ns: 90 * DAY_NS };
        assert!(!validity.is_due(59 * DAY_NS) && validity.is_due(60 * DAY_NS));
        assert!(validity.is_due(100 * DAY_NS));
    }

    #[test]
    fn what_is_cut_or_changed_is_none_and_does_no_harm() {
        let der = made([2026, 2027]);
        for end in 0..der.len() {
            // What is behind the times is not looked at, but the outer lengths are.
            assert_eq!(Validity::of(&der[..end]), None, "{end}");
        }
        for at in 0..der.len() {
            let mut changed = der.clone();
            changed[at] ^= 0xff;
            let _ = Validity::of(&changed);
        }
    }
}

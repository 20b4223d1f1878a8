//! What a machine tells its server of a run: how long it took, how much it did and when, what held it back, and how it
//! ended. All of it is numbers and words of this table: no name, no path, no message.
//!
//! A server keeps it to show it. Nothing else follows from it, so what an older server does not know, or a newer machine
//! tells beside it, is lost without harm.

use bytes::Bytes;
use holdall_format::FormatError;
use holdall_format::wire::Reader;
use holdall_meter::{Layer, RunCurve, RunPoint};
use serde::{Deserialize, Deserializer, Serialize};

use super::control::{from_json, to_json};

/// No number is greater, so that every reader of JSON has it exactly.
const GREATEST: u64 = (1 << 53) - 1;
/// Ten years: no run takes longer.
const LONGEST_MILLISECONDS: u64 = 10 * 365 * 24 * 3600 * 1000;

/// What kind of run it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum ReportedKind {
    /// A backup, which may have failed.
    #[default]
    Backup,
}

/// A run, as its machine tells it.
///
/// Untrusted: a machine may tell any number within the limits of [`decode_run_report`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RunReport {
    /// What kind of run it was.
    pub kind: ReportedKind,
    /// When it began by the machine's clock, in nanoseconds since 1970 UTC; no other run of the machine did then.
    pub started_ns: i64,
    /// How long it took.
    pub milliseconds: u64,
    /// The exit code of the command.
    pub exit_code: u8,
    /// Files, folders and the like that were backed up, those that had not changed too.
    pub items: u64,
    /// Their plain bytes.
    pub bytes: u64,
    /// Bytes that were sent.
    pub sent_bytes: u64,
    /// How many items could not be read, or need a look.
    pub problems: u64,
    /// What held it back, of a layer that this program does not know [`Layer::Unsure`].
    #[serde(deserialize_with = "layer")]
    pub limited_by: Layer,
    /// What such a run usually takes, where this one took longer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usual_milliseconds: Option<u64>,
    /// For how long its stages worked on each layer, added up over their threads.
    #[serde(default)]
    pub work: Vec<LayerWork>,
    /// How far it was over its time, the oldest first: at most [`RunCurve::MOST_POINTS`].
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = Vec<(u64, u64, u64)>))]
    pub points: Vec<RunPoint>,
    /// When the machine is to begin the next one, where it knows that; in nanoseconds since 1970 UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_ns: Option<i64>,
}

/// For how long a run's stages worked on a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct LayerWork {
    /// The layer.
    #[serde(deserialize_with = "layer")]
    pub layer: Layer,
    /// Milliseconds, added up over threads.
    pub milliseconds: u64,
}

/// The body.
pub fn encode_run_report(report: &RunReport) -> Bytes {
    to_json(report)
}

/// Reads the body.
///
/// # Errors
/// [`FormatError`] over [`MAX_CONTROL_BYTES`](super::MAX_CONTROL_BYTES), for what is not this JSON, for numbers over
/// 2^53 - 1 and times over ten years, for more points than [`RunCurve::MOST_POINTS`] or more entries than there are
/// layers, and for points that go back in time.
pub fn decode_run_report(body: &[u8]) -> Result<RunReport, FormatError> {
    let report: RunReport = from_json("report of a run", body)?;
    let invalid = |field, reason| Err(Reader::new("report of a run", body).invalid(field, reason));
    let work = report.work.iter().map(|work| work.milliseconds);
    let points = report.points.iter().map(|point| point.milliseconds);
    let mut times =
        work.chain(points).chain([report.milliseconds]).chain(report.usual_milliseconds);
    let counts = report.points.iter().flat_map(|point| [point.bytes, point.items]);
    let mut counts = counts.chain([report.items, report.bytes, report.sent_bytes, report.problems]);
    if times.any(|milliseconds| milliseconds > LONGEST_MILLISECONDS) {
        return invalid("a time", "over its limit");
    }
    if counts.any(|count| count > GREATEST) {
        return invalid("a number", "over its limit");
    }
    if report.points.len() > RunCurve::MOST_POINTS || report.work.len() > Layer::ALL.len() {
        return invalid("a list", "over its limit");
    }
    if !report.points.is_sorted_by_key(|point| point.milliseconds) {
        return invalid("points", "they go back in time");
    }
    Ok(report)
}

/// Untrusted: a word of a later version is a layer that is not known.
fn layer<'de, D: Deserializer<'de>>(from: D) -> Result<Layer, D::Error> {
    Ok(Layer::of_word(&String::deserialize(from)?).unwrap_or(Layer::Unsure))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::MAX_CONTROL_BYTES;
    use proptest::prelude::*;

    /// A report with a number in the place of every number.
    fn report(number: u64, points: usize) -> RunReport {
        let point = |at| RunPoint { milliseconds: at as u64, bytes: number, items: number };
        RunReport {
            kind: ReportedKind::Backup,
            started_ns: i64::MAX,
            milliseconds: LONGEST_MILLISECONDS,
            exit_code: 255,
            items: number,
            bytes: number,
            sent_bytes: number,
            problems: number,
            limited_by: Layer::ServerDisk,
            usual_milliseconds: Some(LONGEST_MILLISECONDS),
            work: Layer::ALL
                .map(|layer| LayerWork { layer, milliseconds: LONGEST_MILLISECONDS })
                .to_vec(),
            points: (0..points).map(point).collect(),
            next_ns: Some(i64::MIN),
        }
    }

    fn is_refused(report: &RunReport) -> bool {
        decode_run_report(&encode_run_report(report)).is_err()
    }

    #[test]
    fn the_longest_report_fits_and_reads_back() {
        let longest = report(GREATEST, RunCurve::MOST_POINTS);
        let body = encode_run_report(&longest);
        assert!(body.len() < MAX_CONTROL_BYTES / 2, "{} bytes", body.len());
        assert_eq!(decode_run_report(&body), Ok(longest));
    }

    #[test]
    fn numbers_times_and_lists_over_their_limits_are_refused() {
        let good = report(1, 2);
        assert!(!is_refused(&good));
        assert!(is_refused(&report(GREATEST + 1, 0)), "a count");
        assert!(is_refused(&report(1, RunCurve::MOST_POINTS + 1)), "too many points");
        let late = LONGEST_MILLISECONDS + 1;
        assert!(is_refused(&RunReport { milliseconds: late, ..good.clone() }));
        assert!(is_refused(&RunReport { usual_milliseconds: Some(late), ..good.clone() }));
        let work = vec![LayerWork { layer: Layer::Network, milliseconds: late }];
        assert!(is_refused(&RunReport { work, ..good.clone() }));
        let work = [&good.work[..], &good.work[..1]].concat();
        assert!(is_refused(&RunReport { work, ..good.clone() }), "more layers than there are");
        let point = RunPoint { milliseconds: late, ..RunPoint::default() };
        assert!(is_refused(&RunReport { points: vec![point], ..good.clone() }));
        let points = good.points.iter().rev().copied().collect();
        assert!(is_refused(&RunReport { points, ..good }), "points that go back");
    }

    #[test]
    fn numbers_are_whole_and_words_of_tomorrow_are_a_layer_that_is_not_known() {
        let json = String::from_utf8(encode_run_report(&report(1, 2)).to_vec()).unwrap();
        for (from, to) in [
            ("\"items\":1", "\"items\":1e400"),
            ("\"items\":1", "\"items\":NaN"),
            ("\"items\":1", "\"items\":-1"),
            ("\"items\":1", "\"items\":1.5"),
            ("\"exit_code\":255", "\"exit_code\":256"),
            ("\"kind\":\"backup\"", "\"kind\":\"a check of tomorrow\""),
            ("[0,1,1]", "[0,1]"),
        ] {
            assert!(json.contains(from), "{from} in {json}");
            assert!(decode_run_report(json.replacen(from, to, 1).as_bytes()).is_err(), "{to}");
        }
        let later = json.replace("\"limited_by\":\"server-disk\"", "\"limited_by\":\"the moon\"");
        let later = later.replacen('{', "{\"of-tomorrow\":[1],", 1);
        assert_eq!(decode_run_report(later.as_bytes()).unwrap().limited_by, Layer::Unsure);
        let least = r#"{"kind":"backup","started_ns":1,"milliseconds":2,"exit_code":14,"items":0,
            "bytes":0,"sent_bytes":0,"problems":0,"limited_by":"nothing"}"#;
        let least = decode_run_report(least.as_bytes()).unwrap();
        assert_eq!((least.exit_code, least.next_ns, least.points.len()), (14, None, 0));
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_report_or_an_error(bytes: Vec<u8>, at: usize, with: u8) {
            let mut mutated = encode_run_report(&report(7, 3)).to_vec();
            let at = at % mutated.len();
            mutated[at] = with;
            for body in [bytes, mutated] {
                if let Ok(report) = decode_run_report(&body) {
                    prop_assert_eq!(decode_run_report(&encode_run_report(&report)), Ok(report));
                }
            }
        }
    }
}

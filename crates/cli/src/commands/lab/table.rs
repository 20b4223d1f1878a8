//! Rows for people: names on the left, figures below each other.

use std::io;

use holdall_lab::Measurement;
use holdall_meter::Latency;

use crate::terminal::output::Output;

/// A block or a file: `4 KiB`, `1 MiB`, in the powers of 1024 that they come in.
pub(crate) fn binary_size(bytes: u64) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    let fitting = units.into_iter().find(|(power, _)| bytes >= 1 << power);
    match fitting {
        Some((power, unit)) if bytes.is_multiple_of(1 << power) => {
            format!("{} {unit}", bytes >> power)
        }
        Some((power, unit)) => format!("{:.1} {unit}", bytes as f64 / f64::from(1 << power)),
        None => format!("{bytes} B"),
    }
}

/// `1,234.5`, as many digits as mean something.
pub(crate) fn figure(value: f64) -> String {
    match value {
        ..10.0 => format!("{value:.2}"),
        ..1000.0 => format!("{value:.1}"),
        _ => crate::terminal::output::count(value.round() as u64),
    }
}

/// A rate in MB/s; a dash if it means nothing.
pub(crate) fn megabytes(row: &Measurement) -> String {
    row.bytes_per_second.map_or_else(|| "-".to_owned(), |rate| figure(rate / 1e6))
}

/// Requests or items for each second.
pub(crate) fn operations(row: &Measurement) -> String {
    row.operations_per_second.map_or_else(|| "-".to_owned(), figure)
}

/// A time that a request took: `85.0 µs`, `1.24 ms`, `2.10 s`.
pub(crate) fn time(nanoseconds: u64) -> String {
    let value = nanoseconds as f64;
    match nanoseconds {
        0..1_000_000 => format!("{:.1} µs", value / 1e3),
        1_000_000..1_000_000_000 => format!("{:.2} ms", value / 1e6),
        _ => format!("{:.2} s", value / 1e9),
    }
}

/// The heads of [`latency`]'s columns.
pub(crate) fn latency_heads() -> String {
    format!("{:>9} {:>9}", "p50", "p99")
}

/// The percentiles below each other. There is room for two; JSON and reports have the others.
pub(crate) fn latency(row: &Measurement) -> String {
    let Some(Latency { p50, p99, .. }) = row.latency_ns else { return String::new() };
    let [p50, p99] = [p50, p99].map(time);
    format!("{p50:>9} {p99:>9}")
}

/// Tells a row whose figures are in columns, and what else is to be said of it in a line below, set in.
///
/// # Errors
/// If standard output cannot be written.
pub(crate) fn tell_row(output: &Output, figures: &str, more: &str) -> io::Result<()> {
    output.result(figures.trim_end())?;
    if more.is_empty() { Ok(()) } else { output.result_prose(format_args!("  {more}")) }
}

/// The same of a row with a name in so many columns. A longer name has a line of its own, so that figures stay below
/// each other.
///
/// # Errors
/// If standard output cannot be written.
pub(crate) fn tell_named(
    output: &Output,
    (name, columns): (&str, usize),
    figures: &str,
    more: &str,
) -> io::Result<()> {
    let beside = if name.chars().count() <= columns { name } else { "" };
    if beside != name {
        output.result(name)?;
    }
    tell_row(output, &format!("{beside:<columns$} {figures}"), more)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_figures_and_times_read_well() {
        let sizes = [512, 4096, 128 << 10, 20 << 20, 1536].map(binary_size);
        assert_eq!(sizes, ["512 B", "4 KiB", "128 KiB", "20 MiB", "1.5 KiB"]);
        assert_eq!([0.5, 95.04, 1234.6].map(figure), ["0.50", "95.0", "1,235"]);
        assert_eq!([850, 85_000, 1_240_000].map(time), ["0.8 µs", "85.0 µs", "1.24 ms"]);
    }
}

//! `/metrics`: what Prometheus asks for, in its text format of version 0.0.4. Whoever asks shows a token, which
//! `holdall admin api-token` makes.

use std::fmt::{Display, Write};
use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, HeaderMap, WWW_AUTHENTICATE};
use axum::response::{IntoResponse, Response};

use super::overview::{Overview, read};
use super::problem::Problem;
use super::shared::Shared;
use super::token;
use super::words::Known;
use crate::admin::{Pace, RunEntry};

const FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";
/// Letters of a machine's id, which tells apart machines of one name.
const ID_SHOWN: usize = 12;

pub(super) async fn show(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    // Whoever has a token at all may see these.
    if token::shown(&shared, &headers).await?.is_none() {
        let words = "`holdall admin api-token NAME` makes a token; send it as Bearer.\n";
        let asked = [(WWW_AUTHENTICATE, "Bearer")];
        return Ok((StatusCode::UNAUTHORIZED, asked, words).into_response());
    }
    let overview = shared.read(Pace::Usual, read).await?;
    Ok(([(CONTENT_TYPE, FORMAT)], text(&overview)).into_response())
}

/// Everything, a family after the other.
fn text(overview: &Overview) -> String {
    let mut text = String::new();
    let all = |value: Option<u64>| value.map(|value| (String::new(), value)).into_iter();
    family(&mut text, "holdall_up", "Whether the server answers.", all(Some(1)));
    let free = overview.disk.map(|disk| disk.free_bytes);
    let total = overview.disk.map(|disk| disk.total_bytes);
    family(&mut text, "holdall_disk_total_bytes", "Size of the server's disk.", all(total));
    family(&mut text, "holdall_disk_free_bytes", "Room left on the server's disk.", all(free));
    let waiting = overview.deletions.len() as u64;
    family(&mut text, "holdall_deletions_waiting", "Deletions that wait.", all(Some(waiting)));
    let mut machines = |name: &str, help: &str, value: &dyn Fn(&Known) -> Option<i128>| {
        let values =
            overview.machines.iter().filter_map(|known| Some((labels(known), value(known)?)));
        family(&mut text, name, help, values);
    };
    machines(
        "holdall_backup_last_success_timestamp_seconds",
        "When the machine's newest snapshot came.",
        &|known| known.newest_ns().map(seconds),
    );
    machines(
        "holdall_machine_last_seen_timestamp_seconds",
        "When the machine last asked for something, to the minute.",
        &|known| known.machine.last_seen_ns.map(seconds),
    );
    machines("holdall_machine_revoked", "Whether the machine is locked out.", &|known| {
        Some(known.machine.revoked.into())
    });
    machines("holdall_repository_snapshots", "Snapshots that are kept.", &|known| {
        Some(known.snapshots.len() as i128)
    });
    machines("holdall_repository_stored_bytes", "Bytes of packs, tails and records.", &|known| {
        Some(known.stored_bytes().into())
    });
    machines("holdall_repository_quota_bytes", "Most bytes that may be stored.", &|known| {
        known.repository.as_ref()?.quota_bytes.map(Into::into)
    });
    machines("holdall_repository_damages", "What was found damaged, by number.", &|known| {
        Some(known.repository.as_ref()?.damaged.len() as i128)
    });
    machines("holdall_repository_unreadable", "Whether it cannot be opened.", &|known| {
        Some(known.repository.as_ref()?.problem.is_some().into())
    });
    machines(
        "holdall_retention_paused",
        "Whether automatic deletion is paused by an alarm.",
        &|known| Some(known.repository.as_ref()?.alarm.is_some().into()),
    );
    machines(
        "holdall_scrub_all_read_since_timestamp_seconds",
        "Everything that was stored then was read since.",
        &|known| known.repository.as_ref()?.read_since_ns.map(seconds),
    );
    last_runs(&mut text, overview);
    text
}

/// What machines told of their last runs.
fn last_runs(text: &mut String, overview: &Overview) {
    let mut told = |name: &str, help: &str, value: &dyn Fn(&RunEntry) -> Option<f64>| {
        let values = overview.machines.iter().filter_map(|known| {
            let value = value(known.machine.last_run.as_ref()?)?;
            Some((labels(known), value))
        });
        family(text, name, help, values);
    };
    let whole_seconds = |ns: i64| (ns / 1_000_000_000) as f64;
    told("holdall_backup_last_run_timestamp_seconds", "When the last run was told of.", &|run| {
        Some(whole_seconds(run.received_ns))
    });
    told("holdall_backup_last_run_exit_code", "How it ended: 0 done, 3 not all.", &|run| {
        Some(run.report.exit_code.into())
    });
    told("holdall_backup_last_run_duration_seconds", "How long it took.", &|run| {
        Some(run.report.milliseconds as f64 / 1e3)
    });
    told("holdall_backup_last_run_items", "About how many items it backed up.", &|run| {
        Some(run.report.items as f64)
    });
    told("holdall_backup_last_run_read_bytes", "About how many bytes these have.", &|run| {
        Some(run.report.bytes as f64)
    });
    told("holdall_backup_last_run_sent_bytes", "Bytes that it sent.", &|run| {
        Some(run.report.sent_bytes as f64)
    });
    told("holdall_backup_last_run_unread_items", "Items with a problem.", &|run| {
        Some(run.report.problems as f64)
    });
    told("holdall_backup_next_run_timestamp_seconds", "When the next one is to begin.", &|run| {
        run.report.next_ns.map(whole_seconds)
    });
    let limited = overview.machines.iter().filter_map(|known| {
        let layer = known.machine.last_run.as_ref()?.report.limited_by;
        Some((labels_with(known, "limited_by", layer.word()), 1))
    });
    let help = "The layer that held the last run back, as a label.";
    family(text, "holdall_backup_last_run_limited_by", help, limited);
}

fn seconds(ns: i64) -> i128 {
    i128::from(ns / 1_000_000_000)
}

/// A gauge with its help, and a line for each of its values behind their labels.
fn family<V: Display>(
    text: &mut String,
    name: &str,
    help: &str,
    values: impl Iterator<Item = (String, V)>,
) {
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} gauge");
    for (labels, value) in values {
        let _ = writeln!(text, "{name}{labels} {value}");
    }
}

fn labels(known: &Known) -> String {
    format!("{{{}}}", names(known))
}

/// The same with another label behind them.
fn labels_with(known: &Known, label: &str, value: &str) -> String {
    format!("{{{},{label}=\"{}\"}}", names(known), escaped(value))
}

fn names(known: &Known) -> String {
    let machine = &known.machine;
    let id = machine.id.get(..ID_SHOWN).unwrap_or(&machine.id);
    format!(
        "machine=\"{}\",repository=\"{}\",machine_id=\"{id}\"",
        escaped(&machine.name),
        escaped(&machine.repository)
    )
}

/// Untrusted: `value` may be anything.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_ends_neither_its_label_nor_its_line() {
        assert_eq!(escaped("a\"} 1\nholdall_up 0\\"), "a\\\"} 1\\nholdall_up 0\\\\");
    }

    #[test]
    fn every_family_has_its_help_and_its_type_once_and_a_server_without_machines_has_all() {
        let overview = Overview {
            machines: vec![],
            others: vec![],
            deletions: vec![],
            stored_bytes: 0,
            places: Vec::new(),
            waiting: Vec::new(),
            disk: Some(holdall_sys::disk::DiskRoom { free_bytes: 5, total_bytes: 9 }),
            full_ns: None,
            certificate: None,
            wrong_code: None,
        };
        let text = text(&overview);
        let names = |start: &str| -> Vec<String> {
            let lines = text.lines().filter_map(|line| line.strip_prefix(start));
            lines.filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
        };
        let (helped, typed) = (names("# HELP "), names("# TYPE "));
        assert_eq!(helped, typed);
        let unlike: std::collections::BTreeSet<_> = helped.iter().collect();
        assert_eq!((unlike.len(), helped.len()), (23, 23));
        assert!(text.ends_with('\n') && text.contains("\nholdall_disk_free_bytes 5\n"), "{text}");
    }
}

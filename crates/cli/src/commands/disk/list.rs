//! `holdall disk list`.

use anyhow::Result;
use holdall_disks::list::{Listed, Part, list};
use holdall_disks::{Health, Untold};
use holdall_lab::storage_stack::Disk;
use serde::Serialize;

use crate::app::App;
use crate::exit::Exit;
use crate::terminal::output::size;

/// Lists the disks: what each is, how it is connected and how fast, what is on it, and how well it is
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall disk list

Run it before and after a disk is plugged in: the line that is new is that disk. What keeps a disk from being prepared or erased \
stands beside it. A disk's health (SMART) is read by `smartctl` of Debian's package smartmontools, as root; a disk that \
sleeps is not woken up for it.

Exit codes: 0 done, 1 failed, 2 wrong usage")]
pub(crate) struct Args {}

#[derive(Serialize)]
struct Told<'a> {
    device: String,
    disk: &'a Disk,
    serial: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    parts: Vec<ToldPart<'a>>,
    refused: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    health: Option<&'a Health>,
    #[serde(skip_serializing_if = "Option::is_none")]
    health_untold: Option<&'static str>,
}

#[derive(Serialize)]
struct ToldPart<'a> {
    name: &'a str,
    size_bytes: u64,
    content: Option<&'a str>,
    label: Option<&'a str>,
    mounted_at: &'a [String],
}

pub(super) fn run(app: &App) -> Result<Exit> {
    let disks = list()?;
    let mut lacks_smartctl = false;
    for disk in &disks {
        // An image has no health of its own.
        let health = disk.identity.file.is_none().then(|| Health::ask(&disk.identity.name));
        lacks_smartctl |= health == Some(Err(Untold::NotInstalled));
        app.output.object("listed_disk", &told(disk, health.as_ref()))?;
        lines(disk, health.as_ref()).iter().try_for_each(|line| app.output.result(line))?;
    }
    if disks.is_empty() {
        app.output.say("there is no disk that is seen from here")?;
    }
    if lacks_smartctl {
        app.output.note("the disks' health can be read once smartctl is installed: `sudo apt-get install smartmontools`");
    }
    Ok(Exit::Done)
}

fn told<'a>(disk: &'a Listed, health: Option<&'a Result<Health, Untold>>) -> Told<'a> {
    let part = |part: &'a Part| ToldPart {
        name: &part.name,
        size_bytes: part.size_bytes,
        content: part.content.as_ref().map(|content| &*content.kind),
        label: part.content.as_ref().and_then(|content| content.label.as_deref()),
        mounted_at: &part.mounted_at,
    };
    Told {
        device: format!("/dev/{}", disk.identity.name),
        disk: &disk.disk,
        serial: disk.identity.serial.as_deref(),
        file: disk.identity.file.as_deref(),
        note: disk.disk.note(),
        parts: disk.parts.iter().map(part).collect(),
        refused: disk.refused.iter().map(ToString::to_string).collect(),
        health: health.and_then(|health| health.as_ref().ok()),
        health_untold: health.and_then(|health| health.as_ref().err()).map(|untold| match untold {
            Untold::NotInstalled => "not-installed",
            Untold::Asleep => "asleep",
            Untold::Silent => "silent",
        }),
    }
}

fn lines(disk: &Listed, health: Option<&Result<Health, Untold>>) -> Vec<String> {
    let identity = &disk.identity;
    let mut lines = vec![match &identity.file {
        Some(file) => {
            format!("/dev/{}, {}, loop device on {file}", identity.name, size(identity.size_bytes))
        }
        None => format!("/dev/{}", disk.disk.words()),
    }];
    lines.extend(identity.serial.iter().map(|serial| format!("  serial number {serial}")));
    lines.extend(disk.parts.iter().map(part_line));
    match health {
        Some(Ok(health)) if health.is_bad() => {
            lines
                .push(format!("  health: {}: replace it before it is relied upon", health.words()));
        }
        Some(Ok(health)) => lines.push(format!("  health: {}", health.words())),
        Some(Err(Untold::Asleep)) => {
            lines.push("  health: it sleeps, and was not asked".to_owned())
        }
        Some(Err(_)) | None => {}
    }
    lines.extend(disk.disk.note().map(|note| format!("  note: {note}")));
    let refused: Vec<_> = disk.refused.iter().map(ToString::to_string).collect();
    lines.push(match refused.is_empty() {
        true => {
            format!("  free: `sudo holdall disk prepare /dev/{} --label NAME`", identity.name)
        }
        false => format!("  not free: {}", refused.join("; ")),
    });
    lines
}

/// `  sdb1: 2.00 TB, ext4 "photos", mounted at /mnt`.
fn part_line(part: &Part) -> String {
    let content = part.content.iter().map(|content| format!(", {}", content.words()));
    let mounted = part.mounted_at.iter().map(|point| format!(", mounted at {point}"));
    let more: String = content.chain(mounted).collect();
    format!("  {}: {}{more}", part.name, size(part.size_bytes))
}

//! `holdall disk prepare`.

use anyhow::Result;
use holdall_disks::{
    Candidate, FileSystem, Formatted, Identity, Label, Placed, Plan, refuse_taken,
};
use serde::Serialize;

use super::meant::{Meant, only_root};
use crate::app::App;
use crate::exit::Exit;

/// Makes a disk ready for a server's backups: partition table, file system, label, and where it is mounted
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: sudo holdall disk prepare /dev/sdb --label backup

The disk gets one partition (GPT) with a file system, which systemd mounts at /srv/LABEL now and whenever the disk is there. A \
computer starts without it, too. Without systemd it is mounted until the next start, and the line for /etc/fstab is printed. On \
it is a folder for `holdall serve --data`.

A disk is refused if it is mounted, swap, a part of RAID, LVM or encryption, shown by a loop device, or the system's; also if \
that is so of one of its partitions only, or of the same disk or file by another name. If anything is on it, its name has to be typed, or given with --confirm. Model, \
serial number and size are shown before, and checked again before each step that writes.

If it is interrupted, it says how the disk is; the same command begins anew.

Exit codes: 0 done, 1 failed, or refused, 2 wrong usage, such as another name, 13 only root may do that, 130 interrupted")]
pub(crate) struct Args {
    #[command(flatten)]
    meant: Meant,
    /// The name of the file system: letters, digits, `-`, `_` and `.`
    #[arg(long, value_name = "LABEL")]
    label: String,
    /// The file system
    #[arg(long, value_enum, value_name = "NAME", default_value_t = Kind::Ext4)]
    filesystem: Kind,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Kind {
    Ext4,
    Btrfs,
    Xfs,
}

pub(super) fn run(args: &Args, app: &App) -> Result<Exit> {
    only_root("prepare")?;
    let file_system = match args.filesystem {
        Kind::Ext4 => FileSystem::Ext4,
        Kind::Btrfs => FileSystem::Btrfs,
        Kind::Xfs => FileSystem::Xfs,
    };
    let plan = Plan { label: Label::new(&args.label, file_system)?, file_system };
    plan.check_programs()?;
    let claim = Candidate::at(&args.meant.device)?.claim()?;
    refuse_taken(&plan.label, &claim)?;
    let identity = claim.identity().clone();
    let content = claim.content()?;
    app.output.say(format_args!("{identity}; on it: {}", content.words()))?;
    if !content.is_empty() {
        args.meant.check(&claim, app)?;
    }
    let told = |step: &str| app.output.note(format_args!("{step} ..."));
    let formatted = plan.format(claim, &app.interrupt.flag(), &told)?;
    let placed = plan.place(&formatted)?;
    let told = tell(&plan, &identity, &formatted, &placed, app);
    app.output.told(told, "the disk was prepared", false)?;
    Ok(Exit::Done)
}

#[derive(Serialize)]
struct Summary<'a> {
    device: String,
    #[serde(flatten)]
    identity: &'a Identity,
    partition: String,
    file_system: &'static str,
    label: &'a str,
    uuid: &'a str,
    mounted_at: String,
    data: String,
    unit: &'a str,
    unit_text: &'a str,
    is_permanent: bool,
}

fn tell(
    plan: &Plan,
    identity: &Identity,
    formatted: &Formatted,
    placed: &Placed,
    app: &App,
) -> Result<()> {
    let (point, data) = (placed.point.display(), placed.data.display());
    let partition = formatted.partition.display();
    let file_system = plan.file_system.name();
    app.output.object(
        "summary",
        &Summary {
            device: format!("/dev/{}", identity.name),
            identity,
            partition: partition.to_string(),
            file_system,
            label: plan.label.as_str(),
            uuid: &formatted.uuid,
            mounted_at: point.to_string(),
            data: data.to_string(),
            unit: &placed.unit.name,
            unit_text: &placed.unit.text,
            is_permanent: placed.is_permanent,
        },
    )?;
    app.output.say(format_args!("{partition} has a new {file_system}, mounted at {point}"))?;
    if placed.is_permanent {
        app.output
            .say(format_args!("{} mounts it whenever the disk is there", placed.unit.name))?;
    } else {
        app.output.say("systemd does not run here: it is mounted until the next start. For always, the line for /etc/fstab:")?;
        app.output.result(placed.fstab_line(formatted, plan.file_system))?;
        app.output.say(format_args!("or for systemd, as {}:", placed.unit.name))?;
        placed.unit.text.lines().try_for_each(|line| app.output.result(line))?;
    }
    if placed.is_services {
        app.output.say(format_args!(
            "next, for the service: HOLDALL_DATA={data} in /etc/holdall/server.env, and `sudo systemctl edit holdall-server` with \
             ReadWritePaths={data} in [Service] and RequiresMountsFor={point} in [Unit]"
        ))?;
    }
    app.output.say(format_args!("next: sudo holdall serve --data {data}"))?;
    Ok(())
}

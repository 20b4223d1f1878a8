//! `holdall disk erase`.

use std::cell::Cell;
use std::time::Instant;

use anyhow::Result;
use holdall_disks::{Candidate, Claim, Erased, Erasing, Forgotten, Identity};
use holdall_lab::storage_stack::Disk;
use serde::Serialize;

use super::meant::{Meant, only_root};
use crate::app::App;
use crate::exit::Exit;
use crate::terminal::output::{counted, duration, size};
use crate::terminal::progress::Meter;

/// Overwrites a whole disk with noise, and reads a sample of it back
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: sudo holdall disk erase /dev/sdb
         sudo holdall disk erase /dev/sdb --passes 3 --confirm sdb

A disk is refused as by `holdall disk prepare`, and its name has to be typed, or given with --confirm, also if nothing seems to be on it.

It takes as long as writing all of the disk, for each pass. Then up to 256 pieces that lie evenly on the disk are read back and \
compared, and the disk is asked to discard everything, if it can (and securely, if it offers that). If \
it is interrupted, it says how far it was; the same command begins anew.

What a disk does not show is not overwritten: solid-state disks keep old copies in spare cells, and all disks have places that they \
no longer use. A maker's own command reaches these (`nvme format --ses=1`, `hdparm --security-erase`, or `blkdiscard --secure`, which \
this one tries). If nobody may ever read what was there, encrypt disks from the start, as holdall does with all that it stores, or destroy them.

Exit codes: 0 done, 1 failed, or refused, 2 wrong usage, such as another name, 3 done, but the disk did not let all of it be \
overwritten, 13 only root may do that, 130 interrupted")]
pub(crate) struct Args {
    #[command(flatten)]
    meant: Meant,
    /// Overwrites it so many times
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=35))]
    passes: u32,
}

pub(super) fn run(args: &Args, app: &App) -> Result<Exit> {
    only_root("erase")?;
    let claim = Candidate::at(&args.meant.device)?.claim()?;
    let content = claim.content()?;
    app.output.say(format_args!("{}; on it: {}", claim.identity(), content.words()))?;
    args.meant.check(&claim, app)?;
    let begun = Instant::now();
    let erased = erase(args, &claim, app)?;
    let told = tell(args, claim.identity(), &erased, begun.elapsed().as_secs_f64(), app);
    app.output.told(told, "the disk was erased", false)?;
    Ok(if erased.refused_bytes > 0 { Exit::Incomplete } else { Exit::Done })
}

fn erase(args: &Args, claim: &Claim, app: &App) -> Result<Erased> {
    let (passes, interrupt) = (args.passes, app.interrupt.flag());
    let expected = claim.identity().size_bytes.saturating_mul(passes.into());
    let (meter, done) = (Meter::begin(&app.output, "erasing"), Cell::new(0));
    let told = |bytes| {
        done.set(done.get() + bytes);
        meter.show(done.get(), Some(expected));
    };
    Ok(Erasing { passes, interrupt: &interrupt, told: &told }.erase(claim)?)
}

#[derive(Serialize)]
struct Summary<'a> {
    device: String,
    #[serde(flatten)]
    identity: &'a Identity,
    passes: u32,
    refused_bytes: u64,
    compared_bytes: u64,
    forgotten: &'static str,
    notes: &'a [String],
    total_duration: f64,
    bytes_per_second: f64,
}

fn tell(args: &Args, identity: &Identity, erased: &Erased, seconds: f64, app: &App) -> Result<()> {
    let notes = notes(identity, erased);
    let bytes_per_second =
        erased.bytes as f64 * f64::from(args.passes) / seconds.max(f64::MIN_POSITIVE);
    app.output.object(
        "summary",
        &Summary {
            device: format!("/dev/{}", identity.name),
            identity,
            passes: args.passes,
            refused_bytes: erased.refused_bytes,
            compared_bytes: erased.compared_bytes,
            forgotten: match erased.forgotten {
                Forgotten::Securely => "securely",
                Forgotten::Plainly => "plainly",
                Forgotten::Nothing => "nothing",
            },
            notes: &notes,
            total_duration: seconds,
            bytes_per_second,
        },
    )?;
    app.output.say(format_args!(
        "{}, {}, overwritten {} in {}, {}/s; {} of it read back, and as written",
        identity.name,
        size(erased.bytes),
        counted(args.passes.into(), "time"),
        duration(seconds),
        size(bytes_per_second as u64),
        size(erased.compared_bytes),
    ))?;
    notes.iter().try_for_each(|note| app.output.say(format_args!("note: {note}")))?;
    Ok(())
}

/// What overwriting means on this disk.
fn notes(identity: &Identity, erased: &Erased) -> Vec<String> {
    let mut notes = Vec::new();
    if erased.refused_bytes > 0 {
        notes.push(format!(
            "up to {} could not be overwritten, in places that the disk does not write any more: what was there may still be read",
            size(erased.refused_bytes)
        ));
    }
    notes.push(match erased.forgotten {
        Forgotten::Securely => {
            "the disk was told to forget all copies, and said that it did".to_owned()
        }
        Forgotten::Plainly => "the disk was told to forget what it shows (discard)".to_owned(),
        Forgotten::Nothing => "the disk cannot be told to forget (discard)".to_owned(),
    });
    let is_rotating = Disk::named("/".as_ref(), &identity.name).and_then(|disk| disk.rotating);
    if is_rotating != Some(true) && erased.forgotten != Forgotten::Securely {
        notes.push(
            "a solid-state disk keeps old copies for a while, which only its maker can read: its own command erases all of them \
             (`nvme format --ses=1`, `hdparm --security-erase`)"
                .to_owned(),
        );
    }
    notes
}

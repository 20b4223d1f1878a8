//! What a verdict says beyond the stages: a limit that was set, and what was used of the steps of the way.

use holdall_meter::{Layer, Verdict, size};

use crate::ceilings::Ceilings;
use crate::usage::{Usage, is_own_limit, server_limit};

/// Says that it was this computer's own limit, in bytes a second, that the option set, if it was: it is at work where a
/// network would be; so many bytes a second passed. Gives whether it was.
pub fn name_own_limit(
    verdict: &mut Verdict,
    usage: &Usage,
    (option, limit): (&str, Option<u64>),
    passed: f64,
) -> bool {
    let limit = limit.filter(|_| is_own_limit(verdict, usage));
    if let Some(limit) = limit {
        verdict.explanation += &format!(
            " It is the limit that was set: {option} allows {}/s, and {}/s passed.",
            size(limit),
            size(passed as u64)
        );
        verdict.help = Some("What would help: a higher limit, or none.".to_owned());
    }
    limit.is_some()
}

/// Says that it was this computer's own wish to leave the line to others, if it was. Gives whether it was.
pub fn name_yielding(verdict: &mut Verdict, usage: &Usage) -> bool {
    let is_own = is_own_limit(verdict, usage);
    if is_own {
        verdict.explanation +=
            " It is what was asked for: --limit-upload auto leaves the line to others.";
        verdict.help =
            Some("What would help: no limit, where nobody else needs the line.".to_owned());
    }
    is_own
}

/// Says that it was the limit of the server's administrator, if it was. Gives whether it was.
pub fn name_server_limit(verdict: &mut Verdict, usage: &Usage) -> bool {
    let limit = server_limit(verdict, usage);
    if let Some(limit) = limit {
        verdict.explanation += &format!(
            " It is the limit of the server's administrator: all machines together may send {}/s at this hour, and are \
             sent as much.",
            size(limit)
        );
        let help = "What would help: a higher limit there (`holdall admin bandwidth`), or a run outside of its hours.";
        verdict.help = Some(help.to_owned());
    }
    limit.is_some()
}

/// Says what a backup that sent and stored so many bytes a second used of the wire and the server's disk, of a run
/// that was no start-up alone; and doubts that they limited it where they can do much more, unless a limit that was set
/// did.
pub fn name_shares(
    verdict: &mut Verdict,
    ceilings: &Ceilings,
    (sent, stored): (f64, f64),
    is_set_limit: bool,
) {
    if verdict.limited_by == Layer::Nothing {
        return;
    }
    let used = ceilings.used(sent, stored, verdict.limited_by);
    verdict.explanation += &used.unwrap_or_default();
    if let Some((step, used)) = ceilings.used_of(verdict.limited_by, sent, stored)
        && !is_set_limit
    {
        verdict.weigh_against(step, used);
    }
}

/// The same of the wire to here, of a restore that received so many bytes a second.
pub fn name_share_of_restore(verdict: &mut Verdict, ceilings: &Ceilings, received: f64) {
    if verdict.limited_by == Layer::Nothing {
        return;
    }
    verdict.explanation += &ceilings.used_by_restore(received).unwrap_or_default();
    if let Some((step, used)) = ceilings.used_of_by_restore(verdict.limited_by, received) {
        verdict.weigh_against(step, used);
    }
}

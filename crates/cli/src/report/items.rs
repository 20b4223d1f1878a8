//! What becomes of each path of a backup, a line or object each, while it runs.

use holdall_engine::{ItemFate, Run};
use serde::Serialize;

use crate::terminal::output::{JsonPath, Output, Shown};

/// Has `run` list its paths as `-v` wants it: what is left out; with `-v` of a dry run what is new or changed, too;
/// with `-vv` everything. Says whether anything is listed.
pub(crate) fn list(output: &Output, run: &Run, dry_run: bool) -> bool {
    let wants_unchanged = output.verbose > 1;
    let wants_taken = wants_unchanged || (dry_run && output.verbose > 0);
    if output.verbose > 0 {
        let output = output.clone();
        run.watch_items(wants_taken, move |path, fate| {
            if wants_unchanged || fate != ItemFate::Unchanged {
                tell(&output, path, fate);
            }
        });
    }
    output.verbose > 0
}

fn tell(output: &Output, path: &[u8], fate: ItemFate<'_>) {
    #[derive(Serialize)]
    struct Item<'a> {
        #[serde(flatten)]
        path: JsonPath,
        action: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        rule: Option<&'a str>,
    }
    let (action, word, rule) = match fate {
        ItemFate::New => ("new", "new", None),
        ItemFate::Changed => ("changed", "changed", None),
        ItemFate::Unchanged => ("unchanged", "unchanged", None),
        ItemFate::LeftOut(rule) => ("left_out", "left out", Some(rule)),
    };
    // Whether anybody reads the list does not decide whether the files are backed up.
    let _ = output.object("item", &Item { path: JsonPath::new(path), action, rule });
    let by = rule.map(|rule| format!(" ({rule})")).unwrap_or_default();
    let _ = output.say(format_args!("{word:<10} {}{by}", Shown(path)));
}

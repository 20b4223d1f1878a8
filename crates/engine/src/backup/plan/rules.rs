//! The rules that lie in the source itself, in `.holdallignore` files.

use holdall_format::Shown;
use holdall_tree::PathKey;

use super::super::listed::Listed;
use super::{Frame, ItemSink, Plan};
use crate::filter::exclude::LocalRules;

const NO_RULES: &str =
    "is no file, so no rules of it count: put a file with the rules in its place";

impl<F: ItemSink> Plan<'_, F> {
    /// The rules of a folder's `.holdallignore`. What of them does not count is told.
    pub(super) fn local_rules(&self, path: &PathKey, listed: &Listed) -> Option<LocalRules> {
        if !LocalRules::is_in(&listed.names) {
            return None;
        }
        let absolute = path.to_absolute();
        if LocalRules::is_no_file(&listed.dir) {
            let ignore_file =
                [absolute.strip_suffix(b"/").unwrap_or(&absolute), b"/.holdallignore"];
            self.shared.run.leave_out(&ignore_file.concat(), NO_RULES);
            return None;
        }
        let (rules, problems) = LocalRules::read(&listed.dir, &absolute)?;
        for reason in problems {
            self.shared.run.problem(&absolute, format!(".holdallignore: {reason}"));
        }
        Some(rules)
    }

    /// The rule that leaves a path out, in words, if one does.
    pub(super) fn excluding_rule(
        &self,
        frames: &[Frame],
        path: &PathKey,
        is_dir: bool,
    ) -> Option<String> {
        let patterns = &self.options.exclude.patterns;
        let has_local_rules = frames.last().is_some_and(|frame| frame.is_ruled);
        if patterns.is_empty() && !has_local_rules {
            return None;
        }
        let absolute = path.to_absolute();
        if let Some(decision) = patterns.decide_noting(&absolute, is_dir, &self.met.patterns) {
            return decision.leaves_out.then(|| decision.pattern());
        }
        let ruled = frames.iter().rev().filter_map(|frame| Some((frame, frame.rules.as_ref()?)));
        let mut decisions =
            ruled.filter_map(|(frame, rules)| Some((frame, rules.decide(&absolute, is_dir)?)));
        let (frame, decision) = decisions.next().filter(|(_, decision)| decision.leaves_out)?;
        let folder = Shown(&frame.path.to_absolute()).to_string();
        Some(format!("{} in {}/.holdallignore", decision.pattern(), folder.trim_end_matches('/')))
    }
}

//! Counting ahead: what a first backup will deal with, so that whoever watches it learns how long it
//! will take. One that has a parent expects what that had.

use std::sync::Arc;

use holdall_sys::{FileKind, Stat};
use holdall_tree::PathKey;

use super::job::Work;
use super::meters::Meters;
use super::options::BackupOptions;
use super::pipeline::{BUDGET_BYTES, RESERVE_BYTES};
use super::plan::{ItemSink, Plan};
use super::scan::{inner, named, steps};
use super::unread::Unread;
use super::walk::Walk;
use crate::filter::exclude::RulesMet;
use crate::pipeline::budget::Budget;
use crate::storing::Shared;
use crate::{EngineError, Run, UnlockedRepository};

/// Counts what a backup would deal with: items, and plain bytes. It looks at every name, and reads
/// nothing. What cannot be read becomes a problem of `run`, whose [`Run::stop`] ends the counting.
///
/// # Errors
/// [`EngineError::Interrupted`]; [`EngineError::Path`] for a source that is not absolute or not clean.
pub fn count_ahead(
    access: &UnlockedRepository,
    options: &BackupOptions,
    run: &Run,
) -> Result<(u64, u64), EngineError> {
    let shared = Shared::new(run, Budget::new(BUDGET_BYTES, RESERVE_BYTES));
    let unread = Unread::none_of(&options.sources);
    let (meters, walk) = (Meters::new(1, 1, 1, 1), Walk::alone());
    let mut plan = Plan {
        options,
        shared: &shared,
        unread: &unread,
        meters: &meters,
        // Nobody lists ahead: this must not be in the way of the backup.
        walk: &walk,
        exclude: Arc::new(options.exclude.clone()),
        met: RulesMet::none_of(&options.exclude),
        repository: access.config.clone(),
        items: Counted::default(),
        named: named(&options.sources),
        added: 0,
        unmet: inner(&options.sources),
        places: None,
    };
    plan.run(steps(&options.sources)?)?;
    Ok((plan.items.items, plan.items.bytes))
}

#[derive(Default)]
struct Counted {
    items: u64,
    bytes: u64,
}

impl ItemSink for Counted {
    fn add(&mut self, _path: PathKey, stat: Stat, _work: Work) -> Result<(), EngineError> {
        self.items += 1;
        let bytes = if stat.kind == FileKind::File { stat.size } else { 0 };
        self.bytes = self.bytes.saturating_add(bytes);
        Ok(())
    }

    fn left_out(
        &mut self,
        _path: PathKey,
        _rule: String,
        _too_large_bytes: Option<u64>,
    ) -> Result<(), EngineError> {
        Ok(())
    }

    fn made_up(&mut self, _path: PathKey) -> Result<(), EngineError> {
        self.items += 1;
        Ok(())
    }

    fn count_before(&mut self, _path: &PathKey) -> Result<u64, EngineError> {
        Ok(0)
    }

    fn directory_before(&mut self, _path: &PathKey) -> Result<Option<u64>, EngineError> {
        Ok(None)
    }

    fn keep(&mut self, _from: &[u8], _until: Option<&[u8]>) -> Result<u64, EngineError> {
        Ok(0)
    }

    fn finish(&mut self) -> Result<(), EngineError> {
        Ok(())
    }
}

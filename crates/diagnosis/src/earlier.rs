//! What a backup will take, from what is known of those before it.

use holdall_meter::cost::{CostModel, Work};

use crate::ceilings::Ceilings;
use crate::expected::Expected;
use crate::own_limit::OwnLimit;
use crate::speed_history::{self, Kind, Run, SpeedHistory};
use crate::way::{Named, Way};

/// What is known of the backups to a repository.
#[derive(Default)]
pub struct Earlier {
    /// Those that were not held back on purpose, oldest first.
    pub runs: Vec<Run>,
    /// What `lab path` found on the way there.
    pub ceilings: Option<Ceilings>,
    /// Whether it is in a directory: nobody pairs with one.
    pub is_local: bool,
}

/// What is to be another one than it was.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wished {
    /// A link of so many bytes a second.
    pub link: Option<f64>,
    /// A disk that takes so many bytes a second.
    pub disk: Option<u64>,
    /// A disk that takes so many items a second.
    pub item_rate: Option<f64>,
}

impl Earlier {
    /// Of what a history has of a repository, and of the way there.
    pub fn of(
        history: &SpeedHistory,
        repository: &str,
        ceilings: Option<Ceilings>,
        is_local: bool,
    ) -> Self {
        Self { runs: history.comparable(Kind::Backup, repository), ceilings, is_local }
    }

    /// Whether there is nothing that an estimate could come from.
    pub fn is_nothing(&self) -> bool {
        self.runs.is_empty() && self.ceilings.is_none()
    }

    fn model(&self) -> CostModel {
        let measured = self.ceilings.as_ref().map(Ceilings::runs).unwrap_or_default();
        speed_history::model(&self.runs, &measured)
    }

    /// What `work` will take as things are, with the limit on sending that was set. `addresses` knows those of a
    /// repository's server.
    pub fn expects(
        &self,
        work: &Work,
        limit: Option<OwnLimit>,
        addresses: impl FnOnce(&str) -> Option<Vec<String>>,
    ) -> Expected {
        let model = self.model();
        let held = limit.map(|limit| (limit, limit.hold(model)));
        let model = held.map_or(model, |(_, (held, _))| held);
        let estimate = model.estimate(work);
        let expected = Expected::new(estimate, &self.runs, self.ceilings.as_ref(), addresses);
        match held {
            Some((limit, (_, true))) => expected.held_by(limit),
            _ => expected,
        }
    }

    /// What `work` will take over the link and to the disk that were wished; and the way with these, if any was.
    pub fn expects_with(
        &self,
        work: &Work,
        wished: &Wished,
        addresses: impl FnOnce(&str) -> Option<Vec<String>>,
    ) -> (Expected, Option<Way>) {
        let Self { runs, ceilings, is_local } = self;
        let mut model = self.model();
        let known = (&runs[..], *is_local);
        let way = Way::of(wished.named(runs), model.bytes_per_second(), known, ceilings.as_ref());
        if let Some(way) = &way {
            model = model.at_byte_rate(way.rate());
        }
        if let Some(rate) = wished.item_rate {
            model = model.at_item_rate(rate);
        }
        let estimate = model.estimate(work);
        // Over another link or to another disk, something else may hold it back.
        let is_usual = way.is_none() && wished.item_rate.is_none();
        let nothing = Self::default();
        let Self { runs, ceilings, .. } = if is_usual { self } else { &nothing };
        (Expected::new(estimate, runs, ceilings.as_ref(), addresses), way)
    }
}

impl Wished {
    /// The layers that were named: what is sent and stored of each byte of a source is less, as far as
    /// `runs` say.
    fn named(&self, runs: &[Run]) -> Vec<Named> {
        let sent = speed_history::share_of_bytes(runs, |run| run.sent_bytes);
        let stored = speed_history::share_of_bytes(runs, |run| run.stored_bytes);
        let link = self.link.map(|link| Named::link(link, sent));
        let disk = self.disk.map(|disk| Named::disk(disk as f64, stored));
        link.into_iter().chain(disk).collect()
    }
}

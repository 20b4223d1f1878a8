//! The way of a backup with another link or disk than it has: what that would carry, and what it would not help.

use holdall_meter::cost::Part;
use holdall_meter::{Layer, Unit};

use crate::ceilings::Ceilings;
use crate::speed_history::{self, Run};

/// What of a link's rate is payload: Ethernet, IP, TCP and TLS take the rest.
const PAYLOAD: f64 = 0.94;
/// What a small computer's processor and disk do, in bytes a second, where nobody measured it.
const BESIDE_LINK: f64 = 150e6;
/// The same of its processor and of gigabit Ethernet to a server.
const BESIDE_DISK: f64 = 110e6;

/// A layer that is to be another one.
#[derive(Debug, Clone, Copy)]
pub struct Named {
    layer: Layer,
    /// How many bytes of a source it lets pass in a second.
    rate: f64,
    /// Whether it is known what share of these it has to carry; all of them, where it is not.
    is_share_known: bool,
}

impl Named {
    /// A link of so many bytes a second, of which that share of a source's bytes is sent.
    pub fn link(bytes_per_second: f64, share: Option<f64>) -> Self {
        Self::new(Layer::Network, bytes_per_second * PAYLOAD, share)
    }

    /// A disk that takes so many bytes a second, of which that share of a source's bytes is stored.
    pub fn disk(bytes_per_second: f64, share: Option<f64>) -> Self {
        Self::new(Layer::ServerDisk, bytes_per_second, share)
    }

    /// A layer that carries so many bytes a second, which are that share of a source's.
    fn new(layer: Layer, carried: f64, share: Option<f64>) -> Self {
        Self { layer, rate: carried / share.unwrap_or(1.0), is_share_known: share.is_some() }
    }
}

/// The way that bytes take, a part of which is to be another one.
#[derive(Debug, Clone)]
pub struct Way {
    /// The layers that are to be others; at least one.
    named: Vec<Named>,
    /// How many bytes a second the way carries as it is.
    usual: f64,
    /// What holds it back as it is.
    limit: Option<Layer>,
    /// What the steps that stay as they are can do, where `lab path` measured them.
    beside: Option<f64>,
    /// Whether it is known that there is no link.
    is_local: bool,
}

impl Way {
    /// The way as the backups, to a repository in a directory or not, and the last `lab path` know it; `None` if
    /// nothing was named.
    pub fn of(
        named: Vec<Named>,
        usual: f64,
        (runs, is_local): (&[Run], bool),
        ceilings: Option<&Ceilings>,
    ) -> Option<Self> {
        let layers: Vec<_> = named.iter().map(|named| named.layer).collect();
        let limit = match (runs, ceilings) {
            ([], Some(ceilings)) => ceilings.slowest(),
            // Typical rates are those of a link of 1 Gb/s.
            ([], None) => Some(Layer::Network),
            _ => speed_history::usual_limit(runs),
        };
        let beside = ceilings.and_then(|ceilings| ceilings.beside(&layers));
        (!named.is_empty()).then_some(Self { named, usual, limit, beside, is_local })
    }

    fn is_named(&self, layer: Layer) -> bool {
        self.named.iter().any(|named| named.layer == layer)
    }

    /// Whether what holds the way back is to be another.
    fn is_limit_named(&self) -> bool {
        self.limit.is_some_and(|limit| self.is_named(limit))
    }

    /// How much the slowest of the layers that were named does.
    fn named_rate(&self) -> f64 {
        self.named.iter().map(|named| named.rate).fold(f64::INFINITY, f64::min)
    }

    /// How much everything that stays as it is can do.
    fn rest(&self) -> f64 {
        if !self.is_limit_named() {
            return self.usual;
        }
        let has_usual_link = !self.is_local && !self.is_named(Layer::Network);
        let typical = if has_usual_link { BESIDE_DISK } else { BESIDE_LINK };
        // It did as much as the way did, whatever was measured or is typical.
        self.beside.unwrap_or(typical).max(self.usual)
    }

    /// How many bytes a second the way would carry.
    pub fn rate(&self) -> f64 {
        self.named_rate().min(self.rest())
    }

    /// What is taken for granted of an estimate that is mostly for such a part, to be said behind it.
    pub fn condition(&self, mostly: Part) -> Option<&'static str> {
        let slowest = self.named.iter().min_by(|one, other| one.rate.total_cmp(&other.rate))?;
        let decides = mostly == Part::Bytes && slowest.rate <= self.rest();
        (decides && !slowest.is_share_known).then_some(", if it does not compress")
    }

    /// Why what was named does not help, or not as much as it could.
    pub fn note(&self) -> Option<String> {
        let rest = self.rest();
        if self.named_rate() <= rest {
            return None;
        }
        let rate = Unit::BytesPerSecond.show(rest);
        let what = match (self.is_named(Layer::Network), self.is_named(Layer::ServerDisk)) {
            (true, true) => "link and disk",
            (true, false) => "link",
            _ => "disk",
        };
        Some(match (self.is_limit_named(), self.limit) {
            (true, _) if self.beside.is_none() && rest > self.usual => format!(
                "the rest of the way is taken to do {rate}, since it was not measured: `holdall lab path` \
                 does"
            ),
            (true, _) => format!("the rest of the way does {rate}, as far as is known"),
            (false, Some(limit)) => format!(
                "a faster {what} changes nothing: what holds backups back is {}, as far as is known",
                limit.named()
            ),
            (false, None) => format!(
                "a faster {what} is not counted, since it is not known what holds backups back: \
                 `holdall lab path` may tell"
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A way that carries 30 MB/s.
    fn way(limit: Option<Layer>, beside: Option<f64>, named: &[(Layer, f64)]) -> Way {
        let named = named.iter().map(|&(layer, rate)| Named::new(layer, rate, None)).collect();
        Way { named, usual: 30e6, limit, beside, is_local: false }
    }

    const DISK: (Layer, f64) = (Layer::ServerDisk, 500e6);
    const LINK: (Layer, f64) = (Layer::Network, 500e6);

    #[test]
    fn a_faster_disk_or_link_helps_where_it_is_the_limit_until_the_rest_is_reached() {
        for (layer, typical) in [(Layer::ServerDisk, BESIDE_DISK), (Layer::Network, BESIDE_LINK)] {
            let at = |beside, rate| way(Some(layer), beside, &[(layer, rate)]);
            assert_eq!(at(Some(200e6), 500e6).rate(), 200e6);
            assert_eq!(at(Some(200e6), 90e6).rate(), 90e6);
            assert_eq!(at(None, 500e6).rate(), typical);
            // What was measured on a bad day: the backups did more.
            assert_eq!(at(Some(20e6), 500e6).rate(), 30e6);
            assert_eq!(at(Some(200e6), 10e6).rate(), 10e6, "a slower one is slower");
        }
        let to_server = way(Some(Layer::ServerDisk), None, &[DISK]);
        assert_eq!(Way { is_local: true, ..to_server }.rate(), BESIDE_LINK);
        let both = way(Some(Layer::ServerDisk), Some(900e6), &[LINK, DISK]);
        assert_eq!(both.rate(), 500e6);
    }

    #[test]
    fn a_faster_disk_or_link_that_is_not_the_limit_changes_nothing_and_a_slower_one_does() {
        for limit in [Some(Layer::ClientCpu), None] {
            let at = |rate| way(limit, Some(200e6), &[(Layer::ServerDisk, rate)]).rate();
            assert_eq!((at(500e6), at(10e6)), (30e6, 10e6), "{limit:?}");
        }
        assert_eq!(way(Some(Layer::Network), None, &[DISK]).rate(), 30e6);
        assert_eq!(way(Some(Layer::ServerDisk), None, &[LINK]).rate(), 30e6);
    }

    #[test]
    fn it_is_told_why_a_faster_disk_does_not_help_or_only_so_much() {
        let said = |limit, beside| way(limit, beside, &[DISK]).note().unwrap();
        let disk = Some(Layer::ServerDisk);
        assert_eq!(
            said(Some(Layer::Network), None),
            "a faster disk changes nothing: what holds backups back is the network, as far as is known"
        );
        assert!(said(None, None).contains("not known what holds backups back"));
        let rest = "the rest of the way does 200.0 MB/s, as far as is known";
        assert_eq!(said(disk, Some(200e6)), rest);
        let taken = "the rest of the way is taken to do 110.0 MB/s, since it was not measured";
        assert!(said(disk, None).starts_with(taken));
        assert_eq!(way(disk, Some(900e6), &[DISK]).note(), None, "it is still the limit");
        let slower = way(Some(Layer::Network), None, &[(Layer::ServerDisk, 10e6)]);
        assert_eq!(slower.note(), None);
    }

    #[test]
    fn what_a_layer_lets_pass_of_a_source_is_more_where_less_of_it_has_to_be_carried() {
        let named = |share| Named::new(Layer::Network, 119e6, share);
        assert_eq!((named(Some(0.5)).rate, named(Some(0.5)).is_share_known), (238e6, true));
        assert_eq!((named(None).rate, named(None).is_share_known), (119e6, false));
    }

    #[test]
    fn that_nothing_is_compressed_is_said_where_it_is_taken_for_granted_and_matters() {
        let at = |rate, share| Way {
            named: vec![Named::new(Layer::Network, rate, share)],
            ..way(Some(Layer::Network), Some(200e6), &[])
        };
        let said = at(20e6, None).condition(Part::Bytes);
        assert_eq!(said, Some(", if it does not compress"));
        assert_eq!(at(20e6, None).condition(Part::Items), None);
        assert_eq!(at(20e6, Some(1.0)).condition(Part::Bytes), None, "it is known not to");
        assert_eq!(at(500e6, None).condition(Part::Bytes), None, "the rest is slower");
    }
}

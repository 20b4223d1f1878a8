//! What a backup is expected to take, and what will hold it back: that which held back most of those
//! before it, or else the slowest step that `lab path` found on the way.

use std::net::SocketAddr;
use std::path::Path;

use holdall_lab::net::{Link, interface_to};
use holdall_meter::cost::{Estimate, Part};
use holdall_meter::{Layer, Unit, duration};
use serde::Serialize;

use crate::ceilings::Ceilings;
use crate::own_limit::OwnLimit;
use crate::speed_history::{self, Run};

/// What a backup is expected to take.
#[derive(Debug, Serialize)]
pub struct Expected {
    #[serde(flatten)]
    estimate: Estimate,
    #[serde(skip_serializing_if = "Option::is_none")]
    limited_by: Option<Layer>,
    /// The limit on sending that was set, in bytes a second, where that is what limits.
    #[serde(skip_serializing_if = "Option::is_none")]
    limit_upload: Option<u64>,
    /// What is taken for granted of it.
    #[serde(skip)]
    condition: &'static str,
    /// Whether the network that limits is Wi-Fi, as far as is known.
    #[serde(skip)]
    over_wifi: bool,
}

impl Expected {
    /// An estimate for a backup that is held back as `runs` were, all of them to one repository, or
    /// without any by the slowest step of the path there. `addresses` knows those of a repository's server.
    pub fn new(
        estimate: Estimate,
        runs: &[Run],
        ceilings: Option<&Ceilings>,
        addresses: impl FnOnce(&str) -> Option<Vec<String>>,
    ) -> Self {
        let (limited_by, repository) = held_back(runs, ceilings);
        let is_over_wifi = |repository: &str| {
            // Nobody is asked, so of a server that has names alone it is not known.
            addresses(repository).is_some_and(|all| begins_with_wifi(Path::new("/"), &all))
        };
        let over_wifi = limited_by == Some(Layer::Network) && repository.is_some_and(is_over_wifi);
        Self { estimate, limited_by, limit_upload: None, condition: "", over_wifi }
    }

    /// The same of a backup whose bytes the limit on sending that was set holds back.
    pub fn held_by(self, limit: OwnLimit) -> Self {
        if self.estimate.mostly != Part::Bytes {
            return self;
        }
        let (limited_by, condition) = (Some(Layer::Network), limit.condition());
        let limit_upload = Some(limit.bytes_per_second());
        Self { limited_by, limit_upload, condition, ..self }
    }

    /// The figures alone.
    pub fn estimate(&self) -> &Estimate {
        &self.estimate
    }

    /// In words: `about 3 h 10 min, ± 20 min 0 s, limited by Wi-Fi at 38.0 MB/s (from 12 earlier
    /// backups)`.
    pub fn words(&self) -> String {
        let Estimate { seconds, plus_minus_seconds, mostly, rate, runs, .. } = self.estimate;
        let about = format!("about {}, ± {}", duration(seconds), duration(plus_minus_seconds));
        let from = from(&self.estimate);
        let (part, unit) = match mostly {
            Part::Items => ("items", Unit::ItemsPerSecond),
            Part::UnchangedItems => ("unchanged items", Unit::ItemsPerSecond),
            Part::Bytes => ("bytes", Unit::BytesPerSecond),
        };
        let rate = unit.show(rate);
        if self.limit_upload.is_some() {
            let condition = self.condition;
            return format!(
                "{about}, limited by --limit-upload at {rate}{condition} (the rest from {from})"
            );
        }
        let limited = if runs == 0 { "bytes are" } else { "earlier ones were" };
        match (self.limit(), mostly) {
            (Some(limit), Part::Bytes) => {
                format!("{about}, limited by {limit} at {rate} (from {from})")
            }
            (Some(limit), _) => format!(
                "{about}, most of it for {part} at {rate} (from {from}); {limited} limited by \
                 {limit}"
            ),
            (None, _) => format!("{about}, most of it for {part} at {rate} (from {from})"),
        }
    }

    fn limit(&self) -> Option<String> {
        match self.over_wifi {
            true => Some("Wi-Fi".to_owned()),
            false => self.limited_by.map(Layer::named),
        }
    }
}

/// What held `runs` back, or without any is the slowest step of the path; and the repository that they
/// lead to.
fn held_back<'a>(
    runs: &'a [Run],
    ceilings: Option<&'a Ceilings>,
) -> (Option<Layer>, Option<&'a str>) {
    match runs.last() {
        Some(last) => (speed_history::usual_limit(runs), Some(last.repository.as_str())),
        None => (ceilings.and_then(Ceilings::slowest), ceilings.and_then(Ceilings::place)),
    }
}

/// Where an estimate comes from, in words.
fn from(estimate: &Estimate) -> String {
    let path = "what `holdall lab path` measured";
    match (estimate.runs, estimate.measured) {
        (0, false) => "typical rates, since no earlier backup is known".to_owned(),
        (0, true) => path.to_owned(),
        (1, false) => "1 earlier backup".to_owned(),
        (runs, false) => format!("{runs} earlier backups"),
        (1, true) => format!("1 earlier backup, and {path}"),
        (runs, true) => format!("{runs} earlier backups, and {path}"),
    }
}

/// Whether the way to the first of these addresses that is no name begins with Wi-Fi, by what this computer's own
/// system knows; `root` is `/` but in tests.
fn begins_with_wifi(root: &Path, addresses: &[String]) -> bool {
    let address = addresses.iter().find_map(|address| address.parse::<SocketAddr>().ok());
    let interface = address.and_then(|address| interface_to(root, address.ip()));
    interface.is_some_and(|interface| Link::read(root, &interface).wireless)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ceilings::tests::ceilings;
    use crate::own_limit::tests::own_limit;
    use crate::speed_history::tests::run;

    fn expected(mostly: Part, limited_by: Option<Layer>) -> Expected {
        let (seconds, plus_minus_seconds) = (11_400.0, 1_200.0);
        let (rate, runs, measured) = (38e6, 12, false);
        let estimate = Estimate { seconds, plus_minus_seconds, mostly, rate, runs, measured };
        Expected { estimate, limited_by, limit_upload: None, condition: "", over_wifi: false }
    }

    #[test]
    fn an_estimate_that_the_own_limit_decides_names_it() {
        let held = |mostly, share| {
            expected(mostly, Some(Layer::ServerDisk)).held_by(own_limit(19_000_000, share))
        };
        let by_limit = held(Part::Bytes, Some(0.5));
        assert_eq!(
            by_limit.words(),
            "about 3 h 10 min, ± 20 min 0 s, limited by --limit-upload at 38.0 MB/s (the rest from 12 \
             earlier backups)"
        );
        let json = serde_json::to_value(&by_limit).unwrap();
        assert_eq!(
            (&json["limited_by"], &json["limit_upload"]),
            (&"network".into(), &19_000_000.into())
        );
        let unknown = held(Part::Bytes, None).words();
        assert!(unknown.contains("at 38.0 MB/s, if it does not compress"), "{unknown}");
        assert!(!held(Part::Items, None).words().contains("--limit-upload"));
    }

    #[test]
    fn an_estimate_reads_like_a_person_would_say_it() {
        let about = "about 3 h 10 min, ± 20 min 0 s, ";
        let from = "(from 12 earlier backups)";
        let said = |expected: &Expected| expected.words().replace(about, "").replace(from, "*");
        let mut by_network = expected(Part::Bytes, Some(Layer::Network));
        assert_eq!(said(&by_network), "limited by the network at 38.0 MB/s *");
        by_network.over_wifi = true;
        assert_eq!(said(&by_network), "limited by Wi-Fi at 38.0 MB/s *");
        assert_eq!(said(&expected(Part::Bytes, None)), "most of it for bytes at 38.0 MB/s *");
        assert_eq!(
            said(&expected(Part::UnchangedItems, Some(Layer::ServerDisk))),
            "most of it for unchanged items at 38,000,000 items/s *; earlier ones were limited by the \
             server's disk"
        );
        let mut by_path = expected(Part::Items, Some(Layer::Network));
        by_path.estimate = Estimate { runs: 0, measured: true, ..by_path.estimate };
        let said = by_path.words();
        assert!(said.ends_with("measured); bytes are limited by the network"), "{said}");
    }

    #[test]
    fn runs_say_what_holds_back_and_without_any_the_slowest_step_of_the_path() {
        let ceilings = ceilings();
        let by_disk = Run { limited_by: Layer::ServerDisk, ..run(1, 20.0) };
        let of = |runs: &[Run], ceilings| {
            let (layer, repository) = held_back(runs, ceilings);
            (layer, repository.map(str::to_owned))
        };
        let one = || Some("one".to_owned());
        assert_eq!(of(&[by_disk], Some(&ceilings)), (Some(Layer::ServerDisk), one()));
        let unsure = Run { limited_by: Layer::Unsure, ..run(1, 20.0) };
        assert_eq!(of(&[unsure], Some(&ceilings)), (None, one()));
        assert_eq!(of(&[], Some(&ceilings)), (Some(Layer::Network), one()));
        assert_eq!(of(&[], None), (None, None));
    }

    /// What a computer's system tells that has a cable to 10.77.0.0/24, and Wi-Fi to all else.
    fn with_cable_and_wifi() -> tempfile::TempDir {
        let route = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\n\
            eth0\t00004D0A\t00000000\t0001\t0\t0\t100\t00FFFFFF\t0\n\
            wlan0\t00000000\t0101A8C0\t0003\t0\t0\t600\t00000000\t0\n";
        let root = tempfile::tempdir().unwrap();
        for (name, content) in [
            ("proc/self/net/route", route),
            ("sys/class/net/eth0/speed", "1000\n"),
            ("sys/class/net/wlan0/wireless/beacon", "0\n"),
        ] {
            let file = root.path().join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, content).unwrap();
        }
        root
    }

    #[test]
    fn wifi_is_told_from_a_cable_by_the_way_to_the_first_address_that_is_no_name() {
        let root = with_cable_and_wifi();
        for (addresses, over_wifi) in [
            ("192.0.2.5:7443", true),
            ("10.77.0.1:7443", false),
            ("10.77.0.1:7443 192.0.2.5:7443", false),
            ("nas.example:7443 192.0.2.5:7443", true),
            ("nas.example:7443", false),
            ("127.0.0.1:7443", false),
            ("", false),
        ] {
            let told: Vec<_> = addresses.split_whitespace().map(str::to_owned).collect();
            assert_eq!(begins_with_wifi(root.path(), &told), over_wifi, "{addresses}");
        }
    }

    #[test]
    fn it_is_told_from_what_an_estimate_comes() {
        let told = |runs, measured| {
            let Expected { estimate, .. } = expected(Part::Bytes, None);
            from(&Estimate { runs, measured, ..estimate })
        };
        assert!(told(0, false).starts_with("typical rates"));
        assert_eq!(told(0, true), "what `holdall lab path` measured");
        assert_eq!(told(1, true), "1 earlier backup, and what `holdall lab path` measured");
    }
}

//! PCI Express: generations and lanes, and what they carry.

use std::path::Path;

use holdall_meter::counted;
use serde::{Deserialize, Serialize};

use super::value;

/// What one lane carries in MB/s, behind the line code, by generation: 8b/10b for the first two,
/// 128b/130b from the third on (PCI Express Base Specification).
const LANE_MB: [(f64, f64); 6] =
    [(2.5, 250.0), (5.0, 500.0), (8.0, 984.6), (16.0, 1969.2), (32.0, 3938.5), (64.0, 7876.9)];

/// A PCI Express link: how fast and how wide.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PcieLink {
    /// Thousand millions of transfers a second, on each lane.
    pub gigatransfers: f64,
    /// How many lanes.
    pub lanes: u32,
}

impl PcieLink {
    /// The link of a PCI device's folder: `current` as it is, `max` as the device could have it.
    pub(super) fn read(folder: &Path, which: &str) -> Option<Self> {
        let speed = value(&folder.join(format!("{which}_link_speed")))?;
        let gigatransfers = speed.split_whitespace().next()?.parse().ok()?;
        let lanes = value(&folder.join(format!("{which}_link_width")))?.parse().ok()?;
        // A port with nothing behind it has 0 lanes, or 255.
        (1..=32).contains(&lanes).then_some(Self { gigatransfers, lanes })
    }

    /// Which generation: 1 to 6.
    pub fn generation(self) -> usize {
        1 + LANE_MB.iter().take_while(|(speed, _)| *speed < self.gigatransfers).count()
    }

    /// What it carries, in MB/s.
    pub fn megabytes_per_second(self) -> f64 {
        let (_, lane) = LANE_MB[self.generation().min(LANE_MB.len()) - 1];
        lane * f64::from(self.lanes)
    }

    /// `4 lanes of PCIe 3 (3,938 MB/s)`.
    pub(super) fn words(self) -> String {
        let (generation, rate) = (self.generation(), self.megabytes_per_second());
        let lanes = counted(self.lanes.into(), "lane");
        format!("{lanes} of PCIe {generation} ({rate:.0} MB/s)")
    }
}

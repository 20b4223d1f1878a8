//! One disk: what it is, and how warm.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::bus::{Bus, controller_of_paths};
use super::value;

/// `/sys` counts in these whatever the device has.
const SECTOR_BYTES: u64 = 512;
/// How far above a disk its sensor may be: the drive, its controller, their functions.
const SENSOR_STEPS: usize = 4;

/// One disk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Disk {
    /// The kernel's name, such as `nvme0n1`.
    pub name: String,
    /// What the maker calls it.
    pub model: Option<String>,
    /// Its size.
    pub size_bytes: Option<u64>,
    /// Whether heads move over it, by its own word; enclosures often do not know.
    pub rotating: Option<bool>,
    /// `write back` if it has a cache that a power cut empties, `write through` if not.
    pub write_cache: Option<String>,
    /// How it is connected.
    pub bus: Bus,
    /// How warm it is.
    pub temperature_celsius: Option<f64>,
}

impl Disk {
    /// The disk that the kernel calls `name`, by `/sys` below `root`; `None` if there is none.
    #[must_use]
    pub fn named(root: &Path, name: &str) -> Option<Self> {
        let folder = root.join("sys/class/block").join(name).canonicalize().ok()?;
        Some(Self::read(&folder, name.to_owned()))
    }

    /// What keeps it from what it could do, in a sentence.
    #[must_use]
    pub fn note(&self) -> Option<String> {
        self.bus.note(&self.name)
    }

    /// Reads what `folder`, a canonical path in `/sys`, tells.
    pub(super) fn read(folder: &Path, name: String) -> Self {
        let number = |file| value(&folder.join(file))?.parse::<u64>().ok();
        let of_device = |file| value(&folder.join("device").join(file));
        let model = match (of_device("vendor"), of_device("model")) {
            // ATA disks have `ATA` there, and PCI devices a number.
            (Some(vendor), Some(model)) if vendor != "ATA" && !vendor.starts_with("0x") => {
                Some(format!("{vendor} {model}"))
            }
            (_, model) => model,
        };
        Self {
            model,
            size_bytes: number("size").map(|sectors| sectors.saturating_mul(SECTOR_BYTES)),
            rotating: number("queue/rotational").map(|rotating| rotating != 0),
            write_cache: value(&folder.join("queue/write_cache")),
            bus: Bus::read(folder),
            temperature_celsius: temperature(folder),
            name,
        }
    }

    /// All of it in a line.
    pub fn words(&self) -> String {
        let mut words = vec![self.name.clone()];
        words.extend(self.model.clone());
        words.extend(self.size_bytes.map(|bytes| format!("{:.1} GB", bytes as f64 / 1e9)));
        words.push(self.bus.words());
        let rotating = |rotating| if rotating { "rotating" } else { "not rotating" };
        // A host says of a virtual disk whatever it likes.
        let told = self.rotating.filter(|_| !matches!(self.bus, Bus::Virtual));
        words.extend(told.map(|is| rotating(is).to_owned()));
        words.extend(self.write_cache.as_ref().map(|cache| format!("cache {cache}")));
        words.extend(self.temperature_celsius.map(|celsius| format!("{celsius:.0} °C")));
        words.join(", ")
    }
}

/// What the nearest sensor says, in degrees Celsius; of a drive with several paths the controller's.
fn temperature(folder: &Path) -> Option<f64> {
    nearest_sensor(folder).or_else(|| nearest_sensor(&controller_of_paths(folder)?))
}

/// What the nearest sensor at `folder` or above it says, in degrees Celsius.
fn nearest_sensor(folder: &Path) -> Option<f64> {
    folder.ancestors().take(SENSOR_STEPS).find_map(|above| {
        sensors(above)
            .or_else(|| sensors(&above.join("hwmon")))
            .or_else(|| sensors(&above.join("device/hwmon")))
    })
}

/// The first sensor in a folder.
fn sensors(folder: &Path) -> Option<f64> {
    let entries = fs::read_dir(folder).ok()?.flatten();
    let sensors = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("hwmon"));
    let mut readings = sensors.filter_map(|sensor| value(&sensor.path().join("temp1_input")));
    Some(readings.next()?.parse::<f64>().ok()? / 1000.0)
}

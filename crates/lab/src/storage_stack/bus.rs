//! How a disk is connected, and whether that is all it could have.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::links::PcieLink;
use super::value;

/// USB 2's high speed, in Mb/s.
const USB_2_MEGABITS: f64 = 480.0;

/// How a disk is connected.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Bus {
    /// NVMe over PCI Express.
    Nvme {
        /// The link as it was negotiated.
        link: Option<PcieLink>,
        /// What the drive could have.
        drive_could: Option<PcieLink>,
        /// What the slot could have.
        slot_could: Option<PcieLink>,
    },
    /// SATA.
    Sata {
        /// As negotiated, such as `6.0 Gbps`.
        speed: Option<String>,
        /// What the port could have.
        port_could: Option<String>,
    },
    /// USB, through a bridge in an enclosure, or a stick.
    Usb {
        /// As negotiated, in Mb/s.
        megabits: Option<f64>,
        /// What the bridge says that it speaks, such as `3.20`.
        version: Option<String>,
        /// Maker, product and number of the bridge.
        bridge: String,
        /// `uas`, or the older `usb-storage`, which has one request under way.
        driver: Option<String>,
    },
    /// A virtual machine's: what lies below is the host's.
    Virtual,
    /// A card or soldered memory.
    Card,
    /// Another, or not told.
    Other,
}

impl Bus {
    /// Reads what lies above a disk's canonical folder in `/sys`.
    pub(super) fn read(disk: &Path) -> Self {
        let names = || disk.iter().filter_map(|name| name.to_str());
        let any = |prefix: &str| names().any(|name| has_number(name, prefix));
        // An enclosure holds a SATA or NVMe drive, and what counts is the cable to it.
        if any("usb") {
            usb(disk)
        } else if any("nvme") {
            nvme(disk)
        } else if any("ata") {
            sata(disk)
        } else if any("virtio") || any("xen") || any("vbd-") {
            Self::Virtual
        } else if any("mmc") {
            Self::Card
        } else {
            Self::Other
        }
    }

    /// In words.
    pub fn words(&self) -> String {
        match self {
            Self::Nvme { link: Some(link), drive_could: Some(could), .. } if link != could => {
                format!("NVMe on {} of possible {}", link.words(), could.words())
            }
            Self::Nvme { link: Some(link), .. } => format!("NVMe on {}", link.words()),
            Self::Nvme { link: None, .. } => "NVMe".to_owned(),
            Self::Sata { speed, port_could } => {
                let speed = speed.as_ref().map(|speed| format!(" at {speed}")).unwrap_or_default();
                let port = port_could.as_ref().map(|could| format!(" (the port: {could})"));
                format!("SATA{speed}{}", port.unwrap_or_default())
            }
            Self::Usb { megabits, version, bridge, driver } => {
                let speed = megabits.map(|megabits| format!(" at {megabits} Mb/s"));
                let version = version.as_ref().map(|version| format!(", speaks USB {version}"));
                let driver = driver.as_ref().map(|driver| format!(", driver {driver}"));
                let parts = [speed, version, driver].map(Option::unwrap_or_default).concat();
                format!("USB{parts}, bridge {bridge}")
            }
            Self::Virtual => "virtual disk, the real one is unknown".to_owned(),
            Self::Card => "memory card".to_owned(),
            Self::Other => "bus unknown".to_owned(),
        }
    }

    /// What keeps the disk `name` from what it could do, in a sentence.
    pub(super) fn note(&self, name: &str) -> Option<String> {
        match self {
            Self::Nvme { link: Some(link), drive_could: Some(could), slot_could } => {
                let (now, best) = (link.megabytes_per_second(), could.megabytes_per_second());
                let has_all = now >= best * 0.99;
                (!has_all).then(|| narrow(name, *link, *could, *slot_could))
            }
            Self::Usb { megabits: Some(megabits), version, .. } if *megabits <= USB_2_MEGABITS => {
                // What speaks USB 3 says 2.10 on a USB 2 cable, and 3 elsewhere.
                let speaks_more = version.as_ref().is_some_and(|version| version.as_str() > "2.00");
                speaks_more.then(|| {
                    format!(
                        "{name} runs at {megabits} Mb/s, at most about 40 MB/s, though its bridge \
                         speaks more than USB 2: try another port or cable."
                    )
                })
            }
            Self::Sata { speed: Some(speed), port_could: Some(could) } if speed != could => {
                Some(format!("{name} runs at {speed}, and its port could do {could}."))
            }
            _ => None,
        }
    }
}

/// A drive that has less than it could have, and why.
fn narrow(name: &str, link: PcieLink, could: PcieLink, slot: Option<PcieLink>) -> String {
    let (now, best) = (link.megabytes_per_second(), could.megabytes_per_second());
    let what = format!(
        "{name} runs on {} of its {} lanes, PCIe {} of {}: at most {now:.0} MB/s, where it could do \
         {best:.0} MB/s.",
        link.lanes,
        could.lanes,
        link.generation(),
        could.generation(),
    );
    let slot_is_less = slot.is_some_and(|slot| slot.megabytes_per_second() < best * 0.99);
    if slot_is_less {
        format!("{what} The slot has no more: another slot would help.")
    } else {
        format!(
            "{what} The slot has more: a loose drive, a setting or saving power may hold it back."
        )
    }
}

fn nvme(disk: &Path) -> Bus {
    let controller = controller_of_paths(disk);
    let from = controller.as_deref().unwrap_or(disk);
    let drive = from.ancestors().find(|above| above.join("current_link_speed").exists());
    let read = |folder: Option<&Path>, which| PcieLink::read(folder?, which);
    Bus::Nvme {
        link: read(drive, "current"),
        drive_could: read(drive, "max"),
        slot_could: read(drive.and_then(Path::parent), "max"),
    }
}

/// A controller of a drive that may have several: then its disk lies below none of them, but in a folder
/// of its own with a link to each. The first stands for all.
pub(super) fn controller_of_paths(disk: &Path) -> Option<PathBuf> {
    let named = |path: &Path, prefix: &str| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(|name| has_number(name, prefix))
    };
    let subsystem = disk.ancestors().find(|above| named(above, "nvme-subsys"))?;
    let entries = fs::read_dir(subsystem).ok()?.flatten().map(|entry| entry.path());
    let links = entries.filter(|path| path.is_symlink() && named(path, "nvme"));
    links.min().and_then(|link| link.canonicalize().ok())
}

fn sata(disk: &Path) -> Bus {
    let is_port = |above: &&Path| {
        above.file_name().and_then(|name| name.to_str()).is_some_and(|name| has_number(name, "ata"))
    };
    let port = disk.ancestors().find(is_port);
    let told = |file: &str| {
        let port = port?;
        let number = port.file_name()?.to_str()?.strip_prefix("ata")?;
        let link = format!("link{number}");
        let said = value(&port.join(&link).join("ata_link").join(&link).join(file))?;
        (!said.contains("unknown")).then_some(said)
    };
    Bus::Sata { speed: told("sata_spd"), port_could: told("hw_sata_spd_limit") }
}

fn usb(disk: &Path) -> Bus {
    let bridge = disk.ancestors().find(|above| above.join("idVendor").exists());
    let told = |file: &str| value(&bridge?.join(file));
    let number = told("idVendor").zip(told("idProduct"));
    let number = number.map(|(vendor, product)| format!("{vendor}:{product}"));
    let named = [told("manufacturer"), told("product"), number].into_iter().flatten();
    let driver = disk.ancestors().find_map(|above| {
        let driver = above.join("driver").canonicalize().ok()?;
        let driver = driver.file_name()?.to_str()?.to_owned();
        matches!(&*driver, "uas" | "usb-storage").then_some(driver)
    });
    Bus::Usb {
        megabits: told("speed").and_then(|speed| speed.parse().ok()),
        version: told("version"),
        bridge: named.collect::<Vec<_>>().join(" "),
        driver,
    }
}

/// Whether a name is `prefix` with a number behind it, as `ata1` or `usb3`.
fn has_number(name: &str, prefix: &str) -> bool {
    name.strip_prefix(prefix).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

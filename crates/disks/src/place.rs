//! Where a disk is mounted, by what, and the folder on it that a server keeps its data in.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use holdall_sys::users::Users;

use crate::claim::{Claim, computer};
use crate::computer::BlockDevice;
use crate::content::signatures;
use crate::error::{DiskError, failed};
use crate::label::{FileSystem, Label};
use crate::prepare::{Formatted, Plan};
use crate::program::{MOUNT, SYSTEMCTL};
use crate::read::udev;
use crate::unit::{MARK, OPTIONS, Unit};

/// Disks are mounted below it.
const PLACES: &str = "/srv";
/// Where the system's units are that its owner wrote.
const UNITS: &str = "/etc/systemd/system";
/// It is there while systemd runs the system (sd_booted(3)).
const SYSTEMD: &str = "/run/systemd/system";
/// The folder on the disk that a server keeps its data in: at the top there may be a `lost+found`.
const DATA: &str = "holdall";
/// Whom the server's service runs as (`packaging/holdall.sysusers`).
const SERVICE_USER: &[u8] = b"holdall";

/// A disk that is mounted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    /// Where.
    pub point: PathBuf,
    /// The folder for a server's data.
    pub data: PathBuf,
    /// Whether that belongs to the user as whom the server's service runs; else it is root's.
    pub is_services: bool,
    /// The unit that mounts it.
    pub unit: Unit,
    /// Whether systemd has it; else the disk is mounted until the next start.
    pub is_permanent: bool,
}

impl Placed {
    /// The line by which `/etc/fstab` has it mounted at each start that finds the disk.
    #[must_use]
    pub fn fstab_line(&self, formatted: &Formatted, file_system: FileSystem) -> String {
        let (point, kind) = (self.point.display(), file_system.name());
        // The others have nothing to be checked at the start.
        let pass = if file_system == FileSystem::Ext4 { 2 } else { 0 };
        format!("UUID={} {point} {kind} nofail,{OPTIONS} 0 {pass}", formatted.uuid)
    }
}

/// Where a disk of that label is mounted.
fn point(label: &Label) -> PathBuf {
    Path::new(PLACES).join(label.as_str())
}

/// Refuses a label that another disk of this computer has, or whose place is taken.
///
/// # Errors
/// [`DiskError::Label`]; what the system says.
pub fn refuse_taken(label: &Label, claim: &Claim) -> Result<(), DiskError> {
    let taken = |cause: String| DiskError::Label { label: label.to_string(), cause };
    let disk = &claim.identity().name;
    let computer = computer()?;
    let is_own =
        |device: &&BlockDevice| &device.name == disk || device.partition_of.as_ref() == Some(disk);
    let others = computer.devices.iter().filter(|device| !is_own(device) && device.size_bytes > 0);
    for other in others {
        if labels(other).iter().any(|other| other == label.as_str()) {
            return Err(taken(format!("{} has it", other.name)));
        }
    }
    let point = point(label);
    let shown = point.display().to_string();
    if computer.mounts.iter().any(|mount| mount.point == shown) {
        return Err(taken(format!("something is mounted at {shown}")));
    }
    match fs::read_dir(&point).map(|mut entries| entries.next().is_some()) {
        Ok(false) => {}
        Ok(true) => return Err(taken(format!("{shown} is not empty"))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(taken(format!("{shown} cannot be used: {error}"))),
    }
    let unit = unit_file(&Unit::new(label.as_str(), "", "", &shown));
    match fs::read_to_string(&unit) {
        Ok(text) if !text.starts_with(MARK) => {
            Err(taken(format!("{} is there, and not of holdall", unit.display())))
        }
        _ => Ok(()),
    }
}

/// The labels on a device, as udev knows them, or as they are found where there is no udev.
fn labels(device: &BlockDevice) -> Vec<String> {
    let root = Path::new("/");
    if root.join("run/udev/data").is_dir() {
        return udev(root, device.number, "ID_FS_LABEL").into_iter().collect();
    }
    let found = signatures(&device.name).unwrap_or_default();
    found.into_iter().filter_map(|signature| signature.label).collect()
}

impl Plan {
    /// Mounts a disk that was formatted, by a unit of systemd if that runs the system, and makes the folder for a server.
    ///
    /// # Errors
    /// [`DiskError::HalfDone`]: the disk has its file system by now.
    pub fn place(&self, formatted: &Formatted) -> Result<Placed, DiskError> {
        let partition = formatted.partition.display();
        let state = format!("The file system on {partition} is whole, and is not in use yet");
        self.mount(formatted).map_err(|error| error.with_state(state))
    }

    fn mount(&self, formatted: &Formatted) -> Result<Placed, DiskError> {
        let point = point(&self.label);
        let shown = point.display().to_string();
        let unit = Unit::new(self.label.as_str(), &formatted.uuid, self.file_system.name(), &shown);
        let at = || failed(format!("making {shown}"));
        fs::create_dir_all(PLACES).map_err(at())?;
        // While the disk is away, no server begins anew in its place: only root may write there.
        match DirBuilder::new().mode(0o000).create(&point) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(at()(error)),
            _ => {}
        }
        let is_permanent = Path::new(SYSTEMD).is_dir();
        if is_permanent {
            install(&unit)?;
        } else {
            let partition = formatted.partition.display().to_string();
            let kind = self.file_system.name();
            MOUNT.succeed(&["-t", kind, "-o", OPTIONS, &partition, &shown], "")?;
        }
        let (data, is_services) = data_folder(&point)?;
        Ok(Placed { point, data, is_services, unit, is_permanent })
    }
}

fn unit_file(unit: &Unit) -> PathBuf {
    Path::new(UNITS).join(&unit.name)
}

/// Hands a unit to systemd, and has it started with its disk, and now. What an earlier disk of that label was started
/// with is forgotten.
fn install(unit: &Unit) -> Result<(), DiskError> {
    let file = unit_file(unit);
    fs::write(&file, &unit.text)
        .and_then(|()| fs::set_permissions(&file, Permissions::from_mode(0o644)))
        .map_err(failed(format!("writing {}", file.display())))?;
    for args in [&["daemon-reload"][..], &["reenable", &unit.name], &["start", &unit.name]] {
        SYSTEMCTL.succeed(args, "")?;
    }
    Ok(())
}

/// Makes the folder for a server's data, for the user as whom its service runs, if there is one.
fn data_folder(point: &Path) -> Result<(PathBuf, bool), DiskError> {
    let data = point.join(DATA);
    let at = || failed(format!("making {}", data.display()));
    DirBuilder::new().mode(0o700).create(&data).map_err(at())?;
    let users = Users::load().map_err(at())?;
    let service = users.uid_of(SERVICE_USER).zip(users.gid_of(SERVICE_USER));
    if let Some((user, group)) = service {
        chown(&data, Some(user), Some(group)).map_err(at())?;
    }
    Ok((data, service.is_some()))
}

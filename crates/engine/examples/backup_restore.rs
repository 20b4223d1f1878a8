//! Backs a folder up into an embedded repository, and restores it.

use std::error::Error;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use holdall_crypto::{KeyRing, RecoverySecret, SigningKey, SystemEntropy};
use holdall_engine::{
    BackupOptions, LockedRepository, RestoreOptions, Run, Source, backup, find_snapshot,
    new_repository, restore, snapshots,
};
use holdall_format::MachineId;
use holdall_repository::EmbeddedRepository;
use holdall_sys::SystemClock;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let [source, target, store, index, cache] =
        ["source", "target", "repository", "index", "cache"].map(|name| folder.path().join(name));
    std::fs::create_dir(&source)?;
    std::fs::write(source.join("letter"), "Dear Ann, ...")?;

    // The keys of the repository, which only clients have, and this machine's own key.
    let ring = KeyRing::from_master([7; 32]);
    let recovery = RecoverySecret::generate(&mut SystemEntropy);
    let machine = MachineId::from_bytes([1; 16]);
    let signing = Arc::new(SigningKey::generate(&mut SystemEntropy));

    // A repository in a directory. One on a server has the same trait: `HttpRepository`.
    let (signer, clock) = (signing.clone(), Arc::new(SystemClock));
    let at = EmbeddedRepository::at(&store, &index, machine, signing.public(), signer, clock);
    let place = LockedRepository::new(Arc::new(at), signing, cache);
    place.create(&new_repository(&ring, &recovery, None, None)?)?;
    let access = place.open(&ring)?;

    let path = source.as_os_str().as_bytes().to_vec();
    let sources = vec![Source { path: path.clone(), read_at: path.clone() }];
    let run = Arc::new(Run::new());
    backup(&access, &BackupOptions::new(sources, "host".to_owned()), &run)?;

    let listed = snapshots(&access)?.snapshots;
    let newest = find_snapshot(&listed, machine, "latest", None)?;
    restore(&access, newest, Some(&path), &target, &RestoreOptions::default(), &run)?;
    assert_eq!(std::fs::read(target.join("letter"))?, std::fs::read(source.join("letter"))?);
    assert!(run.take_problems().is_empty());
    Ok(())
}

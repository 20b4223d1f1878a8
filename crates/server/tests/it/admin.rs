//! The data folder and its administration.

use std::collections::BTreeSet;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use holdall_format::ObjectId;
use holdall_protocol::{Repository, RepositoryError, pair};
use holdall_server::admin::{self, Quota};
use holdall_server::{InviteRequest, Limits, Right, Server, ServerError, ServerOptions};

use crate::world::{World, identity, quick, session};

#[test]
fn two_servers_do_not_share_a_data_folder() {
    let world = World::new();
    let second = Server::start(world.options(Limits::default()));
    assert!(matches!(second.err(), Some(ServerError::DataFolderInUse { .. })));
}

#[test]
fn an_invite_that_was_made_without_a_server_works_with_it() {
    let mut world = World::new();
    world.stop();
    let invite = world.invite();
    world.start();
    assert_eq!(invite.addresses, [world.address().to_string()]);
    pair(&invite, "desk", &identity(&[1; 32]), quick()).unwrap();
}

#[test]
fn secrets_and_the_socket_are_their_owner_s_alone() {
    let world = World::new();
    for name in ["identity.key", "web.key", "server.redb", "admin.sock", "lock"] {
        let mode = std::fs::metadata(world.folder.path().join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{name} has mode {mode:o}");
    }
}

#[test]
fn a_request_that_breaks_a_rule_is_refused_with_its_reason() {
    let world = World::new();
    for (request, word) in [
        (InviteRequest { repository: Some("../x".into()), ..Default::default() }, "name"),
        (InviteRequest { for_machine: Some("nobody".into()), ..Default::default() }, "nobody"),
        (InviteRequest { addresses: vec!["nowhere:".into()], ..Default::default() }, "HOST:PORT"),
        (InviteRequest { name: Some("a\nb".into()), ..Default::default() }, "line"),
    ] {
        let made = world.admin(&admin::Invite { request: request.clone() });
        let reason = made.unwrap_err().to_string();
        assert!(reason.contains(word), "{request:?}: {reason}");
    }
}

#[test]
fn an_invite_names_the_repository_and_the_addresses_that_were_chosen() {
    let world = World::new();
    let addresses = vec!["backup.example:7443".to_owned()];
    let repository = Some("photos".to_owned());
    let request = InviteRequest { addresses: addresses.clone(), repository, ..Default::default() };
    let invite = world.invite_as(&request);
    assert_eq!((&invite.addresses, &invite.repository[..]), (&addresses, "photos"));
    assert_eq!(invite.identity, world.server().identity());
}

fn plain_invite() -> admin::Invite {
    admin::Invite { request: InviteRequest::default() }
}

#[test]
fn a_folder_with_a_long_path_has_a_socket_too() {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("x".repeat(200)).join("data");
    let mut world = World::new();
    world.stop();
    let mut options = world.options(Limits::default());
    options.data_dir = path.clone();
    options.listen.set_port(0);
    let server = Server::start(options).unwrap();
    let made = admin::ask(&path, &plain_invite(), world.clock.clone()).unwrap();
    assert_eq!(made.invite.addresses, [server.local_addr().to_string()]);
}

#[test]
fn an_address_without_a_port_gets_the_server_s() {
    let world = World::new();
    let port = world.address().port();
    let addresses = ["[::1]", "nas", "nas:7"].map(str::to_owned).to_vec();
    let invite = world.invite_as(&InviteRequest { addresses, ..InviteRequest::default() });
    assert_eq!(invite.addresses, [format!("[::1]:{port}"), format!("nas:{port}"), "nas:7".into()]);
}

/// Seen: two machines had one name, so that commands could name neither by it.
#[test]
fn a_name_that_a_machine_has_is_refused_and_numbered_where_the_invite_is_there_already() {
    let world = World::new();
    let named = || InviteRequest { name: Some("attic".into()), ..InviteRequest::default() };
    let invites = [world.invite_as(&named()), world.invite_as(&named())];
    let paired = [1, 2].map(|number| {
        let invite = &invites[usize::from(number) - 1];
        holdall_protocol::pair(invite, "", &identity(&[number; 32]), quick()).unwrap()
    });
    assert_eq!(
        paired.map(|paired| (paired.name, paired.repository)),
        [("attic".to_owned(), "attic".to_owned()), ("attic-2".to_owned(), "attic-2".to_owned()),]
    );
    let asked = admin::Invite { request: named() };
    let refused = world.admin(&asked).unwrap_err().to_string();
    assert!(refused.contains("`holdall invite --for`"), "{refused}");
    let log = world.log.lock().unwrap().join("\n");
    assert!(log.contains("made an invite for attic"), "{log}");
}

#[test]
fn an_identity_stays_through_restarts() {
    let mut world = World::new();
    let before = (world.server().identity(), world.server().fingerprint());
    world.stop();
    world.start();
    assert_eq!((world.server().identity(), world.server().fingerprint()), before);
}

#[test]
fn the_log_tells_what_happened() {
    let world = World::new();
    world.machine(1);
    let log = world.log.lock().unwrap().join("\n");
    for word in ["made an invite", "paired machine 1", "made repository machine-1"] {
        assert!(log.contains(word), "{word:?} is not in:\n{log}");
    }
}

/// What a command says with the server running, and what it says without.
fn both<T>(world: &mut World, ask: impl Fn(&World) -> T) -> [T; 2] {
    let with = ask(world);
    world.stop();
    let without = ask(world);
    world.start();
    [with, without]
}

#[test]
fn machines_and_repositories_are_listed_the_same_with_and_without_a_server() {
    let mut world = World::new();
    let machine = world.machine(1);
    world.paired(2);
    let session = session(&machine.connect());
    let block = machine.forge().chunks_of_bytes(&[ObjectId::from_bytes([1; 32])], 50_000);
    machine.connect().put_blocks(&session, &[block]).unwrap();

    let [with, without] = both(&mut world, |world| {
        let machines = world.admin(&admin::ListMachines {}).unwrap().machines;
        (machines, world.admin(&admin::ListRepositories {}).unwrap().repositories)
    });
    assert_eq!(with, without);
    let (machines, repositories) = with;
    let names: Vec<_> = machines.iter().map(|machine| &machine.name[..]).collect();
    assert_eq!(names, ["machine 1", "machine 2"]);
    assert_eq!(
        (machines[0].right, machines[0].keys, machines[0].revoked),
        (Right::Backup, 1, false)
    );
    assert!(machines[0].last_seen_ns.is_some() && machines[1].last_seen_ns.is_none());
    let [made, not_made] = &repositories[..] else { panic!("{repositories:?}") };
    assert!(made.stored_bytes > 50_000 && made.packs == 1 && made.id.is_some(), "{made:?}");
    assert_eq!(made.machine, Some(machine.id().to_string()));
    assert_eq!((&not_made.name[..], &not_made.id, not_made.stored_bytes), ("machine-2", &None, 0));
}

#[test]
fn a_revoked_machine_is_locked_out_of_open_connections_and_let_in_by_an_invite_for_it() {
    for runs in [true, false] {
        let mut world = World::new();
        let machine = world.machine(1);
        let repository = machine.connect();
        repository.describe().unwrap();
        if !runs {
            world.stop();
        }
        let id = machine.id().to_string();
        let revoked = world.admin(&admin::Revoke { machine: id[..12].to_owned() }).unwrap();
        assert!(revoked.revoked);
        if !runs {
            world.start();
        }
        let error = repository.describe().unwrap_err();
        assert!(error.to_string().contains("revoked"), "{error}");
        let request = InviteRequest { for_machine: Some(id), ..Default::default() };
        let again = world.invite_as(&request);
        assert_eq!(pair(&again, "", &identity(&machine.seed), quick()).unwrap(), machine.paired);
        repository.describe().unwrap();
    }
}

#[test]
fn a_machine_that_may_only_read_reads_and_puts_nothing_from_its_next_request_on() {
    let mut world = World::new();
    let machine = world.machine(1);
    let repository = machine.connect();
    let session = session(&repository);
    let set = |world: &World, right| {
        world.admin(&admin::Rights { machine: "machine 1".into(), right: Some(right) }).unwrap()
    };
    assert_eq!(set(&world, Right::Read).right, Right::Read);
    let error = repository.put_blocks(&session, &[]).unwrap_err();
    assert!(matches!(error, RepositoryError::NotAllowed { .. }), "{error:?}");
    repository.describe().unwrap();
    let [shown, _] = both(&mut world, |world| {
        let asked = admin::Rights { machine: "machine 1".into(), right: None };
        world.admin(&asked).unwrap().right
    });
    assert_eq!(shown, Right::Read);
    set(&world, Right::Backup);
    repository.put_blocks(&session, &[]).unwrap();
}

#[test]
fn a_quota_counts_for_the_next_put_and_is_told_to_whoever_may_read() {
    let mut world = World::new();
    let machine = world.machine(1);
    let repository = machine.connect();
    let session = session(&repository);
    let put = |number: u8| {
        let block = machine.forge().chunks_of_bytes(&[ObjectId::from_bytes([number; 32])], 50_000);
        repository.put_blocks(&session, &[block])
    };
    put(1).unwrap();
    let set = |world: &World, quota| {
        world.admin(&admin::SetQuota { repository: "machine-1".into(), quota }).unwrap()
    };
    assert_eq!(set(&world, Some(Quota::Bytes(60_000))).quota_bytes, Some(60_000));
    let refused = put(2).unwrap_err().to_string();
    for word in ["quota", "is 60.0 kB; 50.", "not allowed"] {
        assert!(refused.contains(word), "{refused}");
    }
    let [with, without] = both(&mut world, |world| set(world, None));
    assert_eq!(with, without);
    assert_eq!(repository.usage().unwrap().quota_bytes, Some(60_000));
    assert!(put(2).is_err(), "the quota outlasts a restart");
    set(&world, Some(Quota::None));
    put(2).unwrap();
}

#[test]
fn what_is_not_there_is_named_with_the_command_that_lists_what_is() {
    let mut world = World::new();
    world.machine(1);
    let says = |error: ServerError, words: [&str; 2]| {
        let error = error.to_string();
        assert!(words.iter().all(|word| error.contains(word)), "{error}");
    };
    for errors in both(&mut world, |world| {
        let (repository, quota) = ("nothing".into(), Some(Quota::None));
        let revoke = world.admin(&admin::Revoke { machine: "nobody".into() }).unwrap_err();
        (revoke, world.admin(&admin::SetQuota { repository, quota }).unwrap_err())
    }) {
        says(errors.0, ["nobody", "holdall admin machines"]);
        says(errors.1, ["nothing", "holdall admin repositories"]);
    }
    let empty = tempfile::tempdir().unwrap();
    let error = admin::ask(empty.path(), &plain_invite(), world.clock.clone()).unwrap_err();
    says(error, ["no server's data folder", empty.path().to_str().unwrap()]);
    assert_eq!(std::fs::read_dir(empty.path()).unwrap().count(), 0);
    let error = admin::ask(empty.path(), &admin::ListMachines {}, world.clock.clone()).unwrap_err();
    says(error, ["no server's data folder", empty.path().to_str().unwrap()]);
    assert_eq!(std::fs::read_dir(empty.path()).unwrap().count(), 0, "nothing was made");
}

#[test]
fn a_repository_that_can_not_be_opened_is_listed_with_the_reason() {
    let mut world = World::new();
    world.machine(1);
    world.machine(2);
    world.stop();
    let repository = world.folder.path().join("repositories/machine-1");
    std::fs::write(repository.join("config"), "rot").unwrap();
    std::fs::remove_dir_all(repository.join("spare")).unwrap();
    let listed = world.admin(&admin::ListRepositories {}).unwrap().repositories;
    assert!(listed[0].problem.as_ref().is_some_and(|reason| reason.contains("damaged")));
    assert!(listed[1].problem.is_none() && listed[1].id.is_some());
}

/// As root, which alone can act as others, the ids of a user that is nobody.
fn nobody() -> Option<u32> {
    (holdall_sys::users::effective_uid() == 0).then_some(65534)
}

/// Does something as that user.
fn as_user<T: Send>(uid: u32, work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let working = scope.spawn(|| {
            holdall_sys::users::become_user(uid, uid).unwrap();
            work()
        });
        working.join().unwrap()
    })
}

/// The owners of all files in a folder.
fn owners(folder: &Path) -> BTreeSet<u32> {
    let mut owners = BTreeSet::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        owners.insert(entry.metadata().unwrap().uid());
        if entry.path().is_dir() {
            owners.extend(self::owners(&entry.path()));
        }
    }
    owners
}

#[test]
fn root_leaves_nothing_in_the_folder_that_its_owner_can_not_use() {
    let Some(nobody) = nobody() else { return };
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::chown(folder.path(), Some(nobody), Some(nobody)).unwrap();
    let world = World::new();
    let (path, clock) = (folder.path(), world.clock.clone());
    let start = || {
        let options =
            ServerOptions { data_dir: path.to_owned(), ..world.options(Limits::default()) };
        let options = ServerOptions { listen: "127.0.0.1:0".parse().unwrap(), ..options };
        as_user(nobody, || Server::start(options).unwrap().shutdown());
    };
    start();
    admin::ask(path, &plain_invite(), clock.clone()).unwrap();
    start();
    admin::ask(path, &admin::ListRepositories {}, clock.clone()).unwrap();
    assert_eq!(owners(path), BTreeSet::from([nobody]));
    assert_eq!(holdall_sys::users::effective_uid(), 0, "the caller stays who it is");
}

#[test]
fn whoever_is_neither_the_owner_nor_root_is_told_whom_to_be() {
    let Some(nobody) = nobody() else { return };
    let mut world = World::new();
    for error in both(&mut world, |world| {
        as_user(nobody, || world.admin(&admin::ListMachines {}).unwrap_err())
    }) {
        assert!(error.to_string().contains("run it as root"), "{error}");
    }
}

#[test]
fn only_an_invite_makes_an_identity() {
    let mut world = World::new();
    world.stop();
    let key = world.folder.path().join("identity.key");
    std::fs::remove_file(&key).unwrap();
    let error = world.admin(&admin::ListMachines {}).unwrap_err();
    assert!(error.to_string().contains("identity.key is not there"), "{error}");
    assert!(!key.exists());
    world.invite();
    assert!(key.exists());
}

//! The data folder and its administration.

use std::os::unix::fs::PermissionsExt;

use holdall_protocol::pair;
use holdall_server::{InviteRequest, Limits, Server, ServerError, admin};

use crate::world::{World, identity, quick};

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
        (InviteRequest { addresses: vec!["nowhere".into()], ..Default::default() }, "HOST:PORT"),
        (InviteRequest { name: Some("a\nb".into()), ..Default::default() }, "line"),
    ] {
        let made = admin::invite(world.folder.path(), &request, world.clock.clone());
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
    let made = admin::invite(&path, &InviteRequest::default(), world.clock.clone()).unwrap();
    assert_eq!(made.invite.addresses, [server.local_addr().to_string()]);
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

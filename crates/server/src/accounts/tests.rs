//! Invites and pairing, against a clock that is set by hand.

use std::sync::atomic::{AtomicI64, Ordering};

use super::*;

/// A clock that is set by hand.
#[derive(Default)]
struct Hand(AtomicI64);

impl Clock for Hand {
    fn now_ns(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }
}

struct World {
    folder: tempfile::TempDir,
    clock: Arc<Hand>,
    accounts: Accounts,
}

const SERVER: PublicKey = PublicKey::from_bytes([9; 32]);

fn key(number: u8) -> PublicKey {
    PublicKey::from_bytes([number; 32])
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = Arc::new(Hand::default());
        let accounts = Accounts::open(&folder.path().join("db"), clock.clone()).unwrap();
        Self { folder, clock, accounts }
    }

    fn reopened(self) -> Self {
        let Self { folder, clock, accounts } = self;
        drop(accounts);
        let accounts = Accounts::open(&folder.path().join("db"), clock.clone()).unwrap();
        Self { folder, clock, accounts }
    }

    fn try_invite(&self, request: &InviteRequest) -> Result<[u8; 16], ServerError> {
        let invitation = self.accounts.invite(request, SERVER, vec![])?;
        Ok(*invitation.invite.secret)
    }

    fn invite(&self) -> [u8; 16] {
        self.try_invite(&InviteRequest::default()).unwrap()
    }

    fn pair(&self, secret: &[u8; 16], key: PublicKey, name: &str) -> Result<Account, ServerError> {
        self.accounts.pair(secret, key, name, |_| false)
    }

    fn pass(&self, seconds: i64) {
        self.clock.0.fetch_add(seconds * 1_000_000_000, Ordering::SeqCst);
    }
}

fn reason(result: Result<Account, ServerError>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn an_invite_makes_a_machine_once_and_repeats_its_answer_to_the_same_key() {
    let world = World::new();
    let secret = world.invite();
    let account = world.pair(&secret, key(1), "desk").unwrap();
    assert_eq!((&account.name[..], &account.repository[..]), ("desk", "desk"));
    assert_eq!(world.pair(&secret, key(1), "desk").unwrap(), account);
    assert!(reason(world.pair(&secret, key(2), "other")).contains("used"));
    let Account { machine, repository, .. } = account;
    assert_eq!(world.accounts.role(&key(1)), Role::Machine { machine, repository });
    assert_eq!(world.accounts.role(&key(2)), Role::Unknown);
}

#[test]
fn accounts_and_used_invites_outlast_a_restart() {
    let world = World::new();
    let secret = world.invite();
    let account = world.pair(&secret, key(1), "desk").unwrap();
    assert!(world.accounts.add_reader(key(7), "desk").unwrap());
    let world = world.reopened();
    assert!(matches!(world.accounts.role(&key(1)), Role::Machine { .. }));
    assert_eq!(world.accounts.role(&key(7)), Role::Reader { repository: "desk".into() });
    assert!(reason(world.pair(&secret, key(2), "other")).contains("used"));
    assert_eq!(world.pair(&secret, key(1), "desk").unwrap(), account);
}

#[test]
fn an_invite_lapses_after_ten_minutes_and_an_unknown_one_is_told_apart() {
    let world = World::new();
    let secret = world.invite();
    world.pass(600);
    let late = world.invite();
    world.pass(1);
    assert!(reason(world.pair(&secret, key(1), "desk")).contains("expired"));
    assert!(reason(world.pair(&[0; 16], key(1), "desk")).contains("no such invite"));
    world.pair(&late, key(1), "desk").unwrap();
}

#[test]
fn an_invite_for_a_machine_gives_it_a_new_key_and_revokes_the_old_one() {
    let world = World::new();
    let account = world.pair(&world.invite(), key(1), "desk").unwrap();
    let for_machine = Some("desk".to_owned());
    let request = InviteRequest { for_machine, ..InviteRequest::default() };
    let secret = world.try_invite(&request).unwrap();
    assert_eq!(world.pair(&secret, key(2), "new desk").unwrap(), account);
    assert_eq!(world.accounts.role(&key(1)), Role::Revoked);
    assert!(matches!(world.accounts.role(&key(2)), Role::Machine { .. }));
    assert!(world.pair(&world.invite(), key(1), "desk").is_err(), "a revoked key came back");
}

#[test]
fn two_machines_never_share_a_repository() {
    let world = World::new();
    let named = |name: &str| InviteRequest {
        repository: Some(name.to_owned()),
        ..InviteRequest::default()
    };
    let first = world.try_invite(&named("photos")).unwrap();
    let second = world.try_invite(&named("photos")).unwrap();
    assert_eq!(world.pair(&first, key(1), "a").unwrap().repository, "photos");
    assert!(world.pair(&second, key(2), "b").is_err());
    assert!(world.try_invite(&named("photos")).is_err());
    assert!(world.try_invite(&named("../photos")).is_err());
    assert_eq!(world.pair(&world.invite(), key(3), "Photos").unwrap().repository, "photos-2");
}

#[test]
fn a_free_name_is_chosen_beside_folders_that_belong_to_nobody() {
    let world = World::new();
    let account = world.accounts.pair(&world.invite(), key(1), "desk", |name| name == "desk");
    assert_eq!(account.unwrap().repository, "desk-2");
}

#[test]
fn a_computer_that_is_paired_keeps_its_account_with_a_second_invite() {
    let world = World::new();
    let account = world.pair(&world.invite(), key(1), "desk").unwrap();
    assert_eq!(world.pair(&world.invite(), key(1), "other name").unwrap(), account);
    let repository = Some("other".to_owned());
    let request = InviteRequest { repository, ..InviteRequest::default() };
    let secret = world.try_invite(&request).unwrap();
    assert!(reason(world.pair(&secret, key(1), "desk")).contains("already"));
}

#[test]
fn a_recovery_identity_reads_one_repository_and_can_be_taken_back() {
    let world = World::new();
    world.pair(&world.invite(), key(1), "desk").unwrap();
    assert!(world.accounts.add_reader(key(7), "desk").unwrap());
    assert!(!world.accounts.add_reader(key(7), "desk").unwrap());
    assert!(world.accounts.add_reader(key(7), "other").is_err());
    assert!(world.accounts.add_reader(key(1), "desk").is_err(), "a machine became a reader");
    world.accounts.drop_reader(&key(7)).unwrap();
    assert_eq!(world.reopened().accounts.role(&key(7)), Role::Unknown);
}

//! Invites and pairing, against a clock that is set by hand.

use holdall_sys::Root;
use holdall_testkit::FakeClock;

use super::*;
use crate::auth::rights::Right;
use holdall_protocol::FormerAccount;
use holdall_repository::Supersession;

struct World {
    folder: tempfile::TempDir,
    clock: Arc<FakeClock>,
    accounts: Accounts,
}

const SERVER: PublicKey = PublicKey::from_bytes([9; 32]);

fn key(number: u8) -> PublicKey {
    PublicKey::from_bytes([number; 32])
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = Arc::new(FakeClock::default());
        let accounts = Accounts::open(&Root::at(folder.path()).join("db"), clock.clone()).unwrap();
        Self { folder, clock, accounts }
    }

    fn reopened(self) -> Self {
        let Self { folder, clock, accounts } = self;
        drop(accounts);
        let accounts = Accounts::open(&Root::at(folder.path()).join("db"), clock.clone()).unwrap();
        Self { folder, clock, accounts }
    }

    fn try_invite(&self, request: &InviteRequest) -> Result<[u8; 16], ServerError> {
        let invitation = self.accounts.invite(request, SERVER, vec![])?;
        Ok(*invitation.invite.secret)
    }

    fn invite(&self) -> [u8; 16] {
        self.try_invite(&InviteRequest::default()).unwrap()
    }

    fn invite_for(&self, machine: &str) -> [u8; 16] {
        let for_machine = Some(machine.to_owned());
        self.try_invite(&InviteRequest { for_machine, ..InviteRequest::default() }).unwrap()
    }

    fn pair(&self, secret: &[u8; 16], key: PublicKey, name: &str) -> Result<Account, ServerError> {
        self.accounts.pair(secret, key, name, None, |_| false)
    }

    /// Pairs a machine whose records proved what it had.
    fn pair_again(
        &self,
        secret: &[u8; 16],
        key: PublicKey,
        former: &FormerAccount,
    ) -> Result<Account, ServerError> {
        assert!(self.accounts.wants_proof(secret, key)?);
        self.accounts.pair(secret, key, "", Some(former), |_| true)
    }

    fn pass(&self, seconds: i64) {
        self.clock.advance_ns(seconds * 1_000_000_000);
    }
}

fn reason(result: Result<Account, ServerError>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn blocks_that_gave_way_are_a_deletion_of_their_own_each_time() {
    let world = World::new();
    world.clock.set_ns(EARLIEST_NS);
    let ask = |number| {
        let superseded = Supersession { number, blocks: 2 };
        world.accounts.ask_deletion("desk", Vec::new(), Some(superseded), None).unwrap().number
    };
    assert_eq!((ask(7), ask(8), ask(7)), (1, 2, 1));
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
    let right = Right::Backup;
    assert_eq!(world.accounts.role(&key(1)), Role::Machine { machine, repository, right });
    assert_eq!(world.accounts.role(&key(2)), Role::Unknown);
}

#[test]
fn accounts_and_used_invites_outlast_a_restart() {
    let world = World::new();
    let secret = world.invite();
    let account = world.pair(&secret, key(1), "desk").unwrap();
    assert!(world.accounts.set_readers("desk", &[key(7)]).unwrap());
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
fn an_invite_is_valid_for_as_long_as_was_asked_for_and_for_a_month_at_most() {
    let world = World::new();
    let valid_for =
        |seconds| InviteRequest { valid_for_s: Some(seconds), ..InviteRequest::default() };
    let day = 24 * 3600;
    let (first, second) = (valid_for(7 * day), valid_for(7 * day));
    let (first, second) = (world.try_invite(&first).unwrap(), world.try_invite(&second).unwrap());
    world.pass(6 * 24 * 3600);
    // Making another forgets those that have lapsed.
    world.invite();
    let world = world.reopened();
    world.pair(&first, key(1), "desk").unwrap();
    world.pass(24 * 3600 + 1);
    assert!(reason(world.pair(&second, key(2), "attic")).contains("expired"));
    for seconds in [0, 30 * day + 1, u64::MAX] {
        let refused = world.try_invite(&valid_for(seconds)).unwrap_err().to_string();
        assert!(refused.contains("at most 30 days"), "{seconds}: {refused}");
    }
    world.try_invite(&valid_for(30 * day)).unwrap();
}

#[test]
fn what_a_clock_made_that_was_ahead_does_not_live_on_for_as_long() {
    let world = World::new();
    world.pass(30 * 24 * 3600);
    let (invite, (token, _)) = (world.invite(), world.accounts.make_token("desk").unwrap());
    world.pass(-30);
    world.accounts.check_token(&token, "desk").unwrap();
    world.pass(-3600);
    assert!(reason(world.pair(&invite, key(1), "desk")).contains("expired"));
    world.accounts.check_token(&token, "desk").unwrap_err();
}

#[test]
fn an_invite_for_a_machine_gives_it_a_new_key_and_revokes_the_old_one() {
    let world = World::new();
    let account = world.pair(&world.invite(), key(1), "desk").unwrap();
    let secret = world.invite_for("desk");
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
    let account = world.accounts.pair(&world.invite(), key(1), "desk", None, |name| name == "desk");
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

fn former(machine: u8, repository: &str) -> FormerAccount {
    let machine = MachineId::from_bytes([machine; 16]);
    FormerAccount { machine, repository: repository.into() }
}

#[test]
fn a_machine_that_the_accounts_lost_gets_its_id_and_repository_back() {
    let world = World::new();
    let secret = world.invite();
    let account = world.pair_again(&secret, key(1), &former(5, "desk")).unwrap();
    assert_eq!(account.machine, MachineId::from_bytes([5; 16]));
    assert_eq!((&account.name[..], &account.repository[..]), ("desk", "desk"));
    // Once more, in case the answer was lost; now the key is known, and nothing needs proof.
    assert!(!world.accounts.wants_proof(&secret, key(1)).unwrap());
    assert_eq!(world.pair(&secret, key(1), "").unwrap(), account);
    assert!(!world.accounts.wants_proof(&world.invite(), key(1)).unwrap());
    assert!(matches!(world.reopened().accounts.role(&key(1)), Role::Machine { .. }));
}

#[test]
fn what_another_account_has_is_given_back_to_nobody() {
    let world = World::new();
    let account = world.pair_again(&world.invite(), key(1), &former(5, "desk")).unwrap();
    let same_id = world.pair_again(&world.invite(), key(2), &former(5, "other"));
    assert!(reason(same_id).contains("invite for desk"));
    let same_repository = world.pair_again(&world.invite(), key(2), &former(6, "desk"));
    assert!(reason(same_repository).contains("belongs to the machine desk"));
    assert_eq!(world.accounts.role(&key(2)), Role::Unknown);
    let machine = account.machine;
    let role = Role::Machine { machine, repository: "desk".into(), right: Right::Backup };
    assert_eq!(world.accounts.role(&key(1)), role);
}

#[test]
fn only_a_good_invite_for_nobody_else_gives_anything_back() {
    let world = World::new();
    assert!(world.accounts.wants_proof(&[0; 16], key(1)).is_err(), "there is no such invite");
    let late = world.invite();
    world.pass(601);
    assert!(world.accounts.wants_proof(&late, key(1)).is_err(), "it has expired");
    let repository = Some("photos".to_owned());
    let named = InviteRequest { repository, ..InviteRequest::default() };
    let secret = world.try_invite(&named).unwrap();
    assert!(reason(world.pair_again(&secret, key(1), &former(5, "desk"))).contains("another"));
    world.pair_again(&secret, key(1), &former(5, "photos")).unwrap();
    let for_machine = Some("photos".to_owned());
    let replacing = InviteRequest { for_machine, ..InviteRequest::default() };
    let secret = world.try_invite(&replacing).unwrap();
    assert!(!world.accounts.wants_proof(&secret, key(2)).unwrap(), "it says who is meant");
}

#[test]
fn recovery_identities_read_one_repository_and_can_be_taken_back() {
    let world = World::new();
    world.pair(&world.invite(), key(1), "desk").unwrap();
    let set = |name, keys: &[_]| world.accounts.set_readers(name, keys);
    assert!(set("desk", &[key(7), key(8)]).unwrap());
    assert!(!set("desk", &[key(8), key(7)]).unwrap());
    assert!(set("other", &[key(9)]).unwrap());
    assert!(set("other", &[key(9), key(7)]).is_err());
    assert!(set("desk", &[key(1)]).is_err(), "a machine became a reader");
    assert!(set("desk", &[key(8)]).unwrap());
    let reads = |name: &str| Role::Reader { repository: name.into() };
    let world = world.reopened();
    assert_eq!(world.accounts.role(&key(7)), Role::Unknown);
    assert_eq!(world.accounts.role(&key(8)), reads("desk"));
    assert_eq!(world.accounts.role(&key(9)), reads("other"));
}

#[test]
fn a_revoked_machine_is_locked_out_at_once_and_its_invites_with_it() {
    let world = World::new();
    let first = world.invite();
    world.pair(&first, key(1), "desk").unwrap();
    let waiting = world.invite_for("desk");
    let revoked = world.accounts.revoke("desk").unwrap();
    assert!(revoked.revoked && revoked.keys == 0);
    assert_eq!(world.accounts.role(&key(1)), Role::Revoked);
    assert!(reason(world.pair(&waiting, key(2), "desk")).contains("no such invite"));
    assert!(world.pair(&first, key(1), "desk").is_err(), "its used invite answered it");
    let world = world.reopened();
    assert_eq!(world.accounts.role(&key(1)), Role::Revoked);
    assert!(world.accounts.revoke("desk").unwrap().revoked, "twice is no error");
}

#[test]
fn a_revoked_key_comes_back_by_an_invite_for_its_own_machine_and_by_no_other() {
    let world = World::new();
    let account = world.pair(&world.invite(), key(1), "desk").unwrap();
    world.pair(&world.invite(), key(2), "lap").unwrap();
    world.accounts.revoke("desk").unwrap();
    for secret in [world.invite(), world.invite_for("lap")] {
        assert!(reason(world.pair(&secret, key(1), "desk")).contains("its own machine"));
    }
    assert!(matches!(world.accounts.role(&key(2)), Role::Machine { .. }), "lap kept its key");
    assert_eq!(world.pair(&world.invite_for("desk"), key(1), "desk").unwrap(), account);
    assert!(matches!(world.accounts.role(&key(1)), Role::Machine { .. }));
    let entry = world.accounts.machine_entry("desk").unwrap();
    assert_eq!((entry.keys, entry.revoked), (1, false));
    world.accounts.revoke("desk").unwrap();
    assert_eq!(world.reopened().accounts.role(&key(1)), Role::Revoked);
}

#[test]
fn a_right_counts_at_once_and_outlasts_a_restart_and_a_new_key() {
    let world = World::new();
    world.pair(&world.invite(), key(1), "desk").unwrap();
    let right_of = |world: &World, number| match world.accounts.role(&key(number)) {
        Role::Machine { right, .. } => right,
        other => panic!("{other:?}"),
    };
    assert_eq!(right_of(&world, 1), Right::Backup);
    assert_eq!(world.accounts.set_right("desk", Right::Read).unwrap().right, Right::Read);
    assert_eq!(right_of(&world, 1), Right::Read);
    let world = world.reopened();
    world.pair(&world.invite_for("desk"), key(2), "").unwrap();
    assert_eq!(right_of(&world, 2), Right::Read);
}

#[test]
fn a_machine_of_before_there_was_a_choice_may_back_up() {
    let row = r#"{"name":"desk","repository":"desk","created_ns":1,"keys":[]}"#;
    assert_eq!(serde_json::from_str::<Machine>(row).unwrap().right, Right::Backup);
}

#[test]
fn a_machine_is_found_by_name_by_id_and_by_the_beginning_of_its_id() {
    let world = World::new();
    let id = world.pair(&world.invite(), key(1), "desk").unwrap().machine.to_string();
    world.pair(&world.invite(), key(2), "lap").unwrap();
    let third = world.pair(&world.invite(), key(3), "lap").unwrap();
    assert_eq!((&third.name[..], &third.repository[..]), ("lap-2", "lap-2"));
    // As servers of before let two be called.
    world.accounts.state().machines.get_mut(&third.machine).unwrap().name = "lap".to_owned();
    for wanted in ["desk", &id, &id[..20]] {
        assert_eq!(world.accounts.machine_entry(wanted).unwrap().id, id, "{wanted}");
    }
    let none = world.accounts.machine_entry("nobody").unwrap_err().to_string();
    assert!(none.contains("nobody") && none.contains("holdall admin machines"), "{none}");
    assert!(world.accounts.machine_entry("lap").unwrap_err().to_string().contains("several"));
    assert!(world.accounts.machine_entry("").is_err());
}

#[test]
fn an_id_is_its_machine_s_whatever_another_was_called_once() {
    let world = World::new();
    let id = world.pair(&world.invite(), key(1), "desk").unwrap().machine;
    let other = world.pair(&world.invite(), key(2), "laptop").unwrap().machine;
    world.accounts.state().machines.get_mut(&other).unwrap().name = id.to_string();
    assert_eq!(world.accounts.machine_entry(&id.to_string()).unwrap().name, "desk");
    let refused = world.pair(&world.invite(), key(3), &id.to_string());
    assert!(reason(refused).contains("looks like a machine's id"));
}

#[test]
fn when_a_machine_was_here_is_written_down_once_a_minute() {
    let world = World::new();
    let id = world.pair(&world.invite(), key(1), "desk").unwrap().machine;
    let last = |world: &World| world.accounts.machine_entry("desk").unwrap().last_seen_ns;
    assert_eq!(last(&world), None);
    world.pass(100);
    world.accounts.saw(id).unwrap();
    world.pass(59);
    world.accounts.saw(id).unwrap();
    assert_eq!(last(&world), Some(159_000_000_000));
    let world = world.reopened();
    assert_eq!(last(&world), Some(100_000_000_000));
    world.pass(1);
    world.accounts.saw(id).unwrap();
    assert_eq!(last(&world.reopened()), Some(160_000_000_000));
}

#[test]
fn a_quota_outlasts_a_restart_and_can_be_lifted() {
    let world = World::new();
    world.accounts.set_quota("desk", Some(5)).unwrap();
    let world = world.reopened();
    assert_eq!((world.accounts.quota("desk"), world.accounts.quota("lap")), (Some(5), None));
    world.accounts.set_quota("desk", None).unwrap();
    assert_eq!(world.reopened().accounts.quota("desk"), None);
}

#[test]
fn a_token_is_for_one_repository_and_a_day_and_outlives_a_restart() {
    const DAY_NS: i64 = 24 * 3600 * 1_000_000_000;
    let world = World::new();
    let (token, expires_ns) = world.accounts.make_token("desk").unwrap();
    assert_eq!(expires_ns, DAY_NS);
    world.accounts.check_token(&token, "desk").unwrap();
    world.accounts.check_token(&token, "attic").unwrap_err();
    let world = world.reopened();
    world.clock.set_ns(DAY_NS - 1);
    world.accounts.check_token(&token, "desk").unwrap();
    world.clock.set_ns(DAY_NS);
    world.accounts.check_token(&token, "desk").unwrap_err();
    // What has lapsed is forgotten when the next one is made.
    let (next, _) = world.accounts.make_token("desk").unwrap();
    assert_eq!(world.accounts.state().tokens.len(), 1);
    world.accounts.check_token(&next, "desk").unwrap();
}

#[test]
fn after_an_error_of_the_disk_the_rows_are_read_again_from_another_file() {
    use std::os::unix::fs::MetadataExt;

    let world = World::new();
    world.clock.set_ns(EARLIEST_NS);
    let file = || world.folder.path().join("db").metadata().unwrap();
    let before = (file().ino(), file().mode());
    let asked = world.accounts.ask_deletion("laptop", vec!["a".into()], None, None).unwrap();
    // What a change left that was told to have failed: it is there, and memory does not know it.
    world.accounts.state().deletions.clear();
    world.accounts.database.close_as_after_error();
    let known: Vec<_> = world.accounts.state().deletions.values().cloned().collect();
    assert_eq!(known, [asked]);
    assert_ne!(file().ino(), before.0);
    assert_eq!(file().mode(), before.1);
    let world = world.reopened();
    assert_eq!(world.accounts.state().deletions.len(), 1);
}

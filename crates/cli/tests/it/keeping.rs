//! What a server keeps: rules, deletions that wait, prune and scrub, by its administrator.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::clocks::{can_let_days_pass, days_later};
use crate::house::{Machine, Outcome, Server, files_below};

/// A day on which the lock holds none of the snapshots any more.
const UNLOCKED: u64 = 40;

/// A server, and a machine with three snapshots on it.
struct House {
    machine: Machine,
    data: PathBuf,
    server: Option<Server>,
}

impl House {
    fn new() -> Self {
        let machine = Machine::new().with_password(None);
        let data = machine.path("data");
        let server = Server::start(&data);
        machine.pair_with(&server);
        let source = machine.path("source");
        fs::create_dir(&source).unwrap();
        for number in 0..3 {
            fs::write(source.join("file"), format!("version {number}").repeat(1000)).unwrap();
            machine.ok(["backup", source.to_str().unwrap()]);
        }
        Self { machine, data, server: Some(server) }
    }

    fn source(&self) -> String {
        self.machine.path("source").to_str().unwrap().to_owned()
    }

    fn admin(&self, args: &[&str]) -> Outcome {
        self.machine.administer(&self.data, args)
    }

    /// Runs an administrator's command, for people, so many days later and without a server.
    fn admin_later(&self, days: u64, args: &[&str]) -> Outcome {
        self.later(days, args).expect(0)
    }

    fn later(&self, days: u64, args: &[&str]) -> Outcome {
        assert!(self.server.is_none(), "it lives today");
        let data = self.data.to_str().unwrap();
        let command = self.machine.command([&["admin", "--data", data], args].concat());
        Outcome::of(&mut days_later(days, &command))
    }

    /// What a prune says that it forgets, then.
    fn forgotten_later(&self, days: u64, args: &[&str]) -> Vec<Value> {
        let pruned =
            self.admin_later(days, &[&["prune", "--json"], args].concat()).of_type("prune");
        pruned[0]["snapshots_forgotten"].as_array().unwrap().clone()
    }

    fn told(&self, args: &[&str], message_type: &str) -> Vec<Value> {
        self.admin(args).expect(0).of_type(message_type)
    }

    fn repository(&self) -> String {
        let listed = self.admin(&["repositories"]).expect(0).of_type("repository");
        listed[0]["name"].as_str().unwrap().to_owned()
    }

    fn snapshots(&self) -> Vec<String> {
        let listed = self.machine.ok(["snapshots", "--json"]).of_type("snapshot");
        listed.iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect()
    }
}

#[test]
fn rules_are_told_and_changed_and_what_keeps_less_waits() {
    let mut house = House::new();
    let name = house.repository();
    for runs in [true, false] {
        if !runs {
            house.server = None;
        }
        let usual = house.told(&["retention", &name, "--usual"], "retention");
        // Of the second time, what was wanted the first time is still kept.
        let wanted = if runs { &usual[0] } else { &usual[0]["then"] };
        let [hourly, daily, weekly, monthly] =
            ["hourly", "daily", "weekly", "monthly"].map(|rule| wanted[rule].as_i64().unwrap());
        assert_eq!((hourly, daily, weekly, monthly), (24, 30, -1, 0));
        assert_eq!(usual[0]["lock_seconds"], 30 * 86_400);
        assert_eq!(usual[0]["delay_seconds"], 7 * 86_400);
        let rules = ["retention", &name, "--keep-daily", "14", "--keep-monthly", "all"];
        let changed = house.told(&rules, "retention");
        assert_eq!((&changed[0]["daily"], &changed[0]["monthly"]), (&json!(30), &json!(-1)));
        let then = &changed[0]["then"];
        assert_eq!((&then["daily"], &then["hourly"]), (&json!(14), &json!(0)));
        let shorter = house.told(&["retention", &name, "--lock", "1h"], "retention");
        assert_eq!(shorter[0]["lock_seconds"], 30 * 86_400);
        assert_eq!(shorter[0]["then"]["lock_seconds"], 3600);
        assert_eq!(house.told(&["retention", &name], "retention"), shorter);
    }
    let months = house.told(&["retention", &name, "--lock", "6m"], "retention");
    assert!(months[0]["lock_seconds"].as_i64().unwrap() >= 180 * 86_400, "{months:?}");
    let minutes = house.told(&["retention", &name, "--delay", "90min"], "retention");
    assert_eq!(minutes[0]["then"]["delay_seconds"], 90 * 60);
    let unknown = house.admin(&["retention", "nobody"]);
    assert_eq!(unknown.code, Some(1), "{}", unknown.stderr);
}

#[test]
fn a_default_of_rules_counts_for_repositories_without_their_own() {
    let mut house = House::new();
    let name = house.repository();
    let default =
        ["--default", "--keep-hourly", "48", "--keep-daily", "60", "--keep-weekly", "all"];
    let set = house.told(&[&["retention"][..], &default].concat(), "retention");
    assert_eq!((&set[0]["repository"], &set[0]["daily"]), (&Value::Null, &json!(60)));
    let all = house.told(&["retention"], "retention");
    assert_eq!((&all[0], all.len()), (&set[0], 2));
    let of =
        |one: &Value| (one["repository"].clone(), one["default"].clone(), one["daily"].clone());
    assert_eq!(of(&all[1]), (json!(name), json!(true), json!(60)));
    assert_eq!(house.told(&["retention", &name], "retention"), all[1..]);

    let own = house.told(&["retention", &name, "--keep-daily", "90"], "retention");
    assert_eq!(of(&own[0]), (json!(name), json!(false), json!(90)));
    house.server = None;
    let back = house.told(&["retention", &name, "--default"], "retention");
    assert_eq!(of(&back[0]), (json!(name), json!(false), json!(90)), "what keeps less waits");
    assert_eq!(back[0]["then"]["daily"], 60);
    let words = house.machine.ok(["admin", "--data", house.data.to_str().unwrap(), "retention"]);
    assert!(
        words.stdout.contains("a repository without its own rules keeps 48 hourly"),
        "{words:?}"
    );
    assert!(words.stdout.contains(&format!("{name} keeps, until ")), "{words:?}");

    for unclear in [&["--keep-daily", "3"][..], &[&name, "--default", "--keep-daily", "3"]] {
        assert_eq!(house.admin(&[&["retention"], unclear].concat()).code, Some(2));
    }
}

#[test]
fn tags_that_are_kept_are_told_by_their_tokens() {
    let house = House::new();
    let name = house.repository();
    let tokens = house.machine.ok(["tag", "--token", "taxes", "--json"]).of_type("tag_token");
    let token = tokens[0]["token"].as_str().unwrap();
    let keep = ["retention", &name, "--keep-last", "1", "--keep-tag", token];
    assert_eq!(house.told(&keep, "retention")[0]["tag_tokens"], json!([token]));
    // Nothing else that is said forgets it.
    let locked = house.told(&["retention", &name, "--lock", "31d"], "retention");
    assert_eq!(locked[0]["tag_tokens"], json!([token]));

    for wrong in ["taxes", &token[1..], &format!("{token}0")] {
        assert_eq!(house.admin(&["retention", &name, "--keep-tag", wrong]).code, Some(2));
    }
    let none = house.told(&["retention", &name, "--keep-tag", ""], "retention");
    assert_eq!(none[0]["tag_tokens"], json!([token]));
    let then = &none[0]["then"];
    assert_eq!((&then["tag_tokens"], &then["last"]), (&json!([]), &json!(1)));
}

#[test]
fn a_deletion_waits_and_can_be_cancelled() {
    let house = House::new();
    let (name, before) = (house.repository(), house.snapshots());
    let asked = house.told(&["forget", &name, &before[0][..12], &before[1]], "deletion");
    assert_eq!(asked[0]["snapshots"], json!([before[0], before[1]]));
    assert_eq!(house.told(&["pending"], "deletion"), asked);
    let pruned = house.told(&["prune"], "prune");
    assert_eq!(pruned[0]["snapshots_forgotten"], json!([]));
    assert_eq!(pruned[0]["snapshots_kept"], 3);
    assert_eq!(house.snapshots(), before);
    let number = asked[0]["number"].to_string();
    assert_eq!(house.told(&["cancel", &number], "deletion"), asked);
    assert!(house.told(&["pending"], "deletion").is_empty());
    assert_eq!(house.admin(&["cancel", &number]).code, Some(1));
    assert_eq!(house.admin(&["forget", &name, "ffffffff"]).code, Some(1));
}

#[test]
fn a_deletion_waits_for_a_record_that_can_not_be_read() {
    if !can_let_days_pass() {
        return;
    }
    let mut house = House::new();
    let (name, before) = (house.repository(), house.snapshots());
    house.told(&["forget", &name, &before[0], &before[1]], "deletion");
    house.server = None;
    let records = house.data.join("repositories").join(&name).join("records");
    let mut stored: Vec<PathBuf> = files_below(&records);
    stored.sort();
    let record = &stored[0];
    let whole = fs::read(record).unwrap();
    fs::write(record, &whole[..whole.len() - 1]).unwrap();
    let prune = || house.later(UNLOCKED, &["prune", "--json"]);
    let waits = prune();
    assert_eq!(waits.of_type("prune")[0]["snapshots_forgotten"], json!([before[1]]), "{waits:?}");
    assert_eq!(house.told(&["pending"], "deletion").len(), 1);
    fs::write(record, whole).unwrap();
    let pruned = prune();
    assert_eq!(pruned.of_type("prune")[0]["snapshots_forgotten"], json!([before[0]]), "{pruned:?}");
    assert!(house.told(&["pending"], "deletion").is_empty());
}

#[test]
fn nothing_is_deleted_while_a_record_is_lost_until_it_is_given_up() {
    if !can_let_days_pass() {
        return;
    }
    let mut house = House::new();
    let (name, before) = (house.repository(), house.snapshots());
    house.told(&["retention", &name, "--keep-last", "1"], "retention");
    house.server = None;
    let repository = house.data.join("repositories").join(&name);
    let mut records = files_below(&repository.join("records"));
    records.sort();
    fs::remove_file(&records[1]).unwrap();
    let prune = |days| house.later(days, &["prune", "--json"]).of_type("prune")[0].clone();
    let refused = prune(UNLOCKED);
    assert!(refused["problem"].as_str().unwrap().contains(&before[1]), "{refused}");
    assert_eq!(refused["snapshots_forgotten"], json!([]));
    assert_eq!(files_below(&repository.join("condemned")), [] as [PathBuf; 0]);
    let scrubbed = house.later(UNLOCKED, &["scrub", "--json"]);
    assert!(scrubbed.stdout.contains(&before[1]), "{scrubbed:?}");

    house.admin_later(UNLOCKED, &["forget", &name, &before[1]]);
    assert!(prune(UNLOCKED + 1)["problem"].is_string(), "it waits");
    let pruned = prune(UNLOCKED + 8);
    assert_eq!(pruned["problem"], Value::Null);
    assert_eq!(pruned["snapshots_forgotten"], json!([before[0]]));
    assert!(house.told(&["pending"], "deletion").is_empty());
}

#[test]
fn a_machine_asks_for_a_deletion_with_a_token_and_everybody_is_told() {
    let house = House::new();
    let (name, before) = (house.repository(), house.snapshots());
    let refused = house.machine.run(["forget", &before[0][..12]]).expect(13);
    assert!(refused.stderr.contains("holdall admin token"), "{}", refused.stderr);
    house.machine.run(["prune"]).expect(13);

    let made = house.told(&["token", &name], "admin_token");
    let token = house.machine.path("token");
    fs::write(&token, made[0]["token"].as_str().unwrap()).unwrap();
    let token = ["--admin-token-file", token.to_str().unwrap(), "--json"];
    let foreseen = house.machine.ok([&["forget", "--keep-last", "1", "-n"][..], &token].concat());
    assert_eq!(foreseen.summary()["snapshots_forgotten"], 2);
    assert!(house.told(&["pending"], "deletion").is_empty(), "it was only looked at");

    let forget = [&["forget", "--keep-last", "1"][..], &token].concat();
    let asked = house.machine.ok(&forget).summary();
    // Asking again is no other deletion, and none comes sooner by it.
    assert_eq!(house.machine.ok(&forget).summary(), asked);
    let pending = house.told(&["pending"], "deletion");
    assert_eq!(pending.len(), 1);
    let mut asked_for = before[..2].to_vec();
    asked_for.sort_unstable();
    assert_eq!(pending[0]["snapshots"], json!(asked_for));
    assert_eq!((&pending[0]["number"], &pending[0]["due"]), (&asked["deletion"], &asked["due"]));

    let listed = house.machine.ok(["snapshots", "--json"]).of_type("snapshot");
    let due: Vec<_> = listed.iter().map(|one| &one["deletion_due"]).collect();
    assert_eq!(due, [&asked["due"], &asked["due"], &Value::Null]);
    for command in [vec!["snapshots"], vec!["backup", house.source().as_str()]] {
        let told = house.machine.ok(&command).stderr;
        assert!(told.contains("2 snapshots will be deleted after"), "{command:?}: {told}");
    }

    let pruned = house.machine.ok([&["prune"][..], &token].concat()).summary();
    assert_eq!(pruned["deleted_packs"], 0);
    assert_eq!(house.snapshots().len(), 4, "nothing goes before its time");
    house.told(&["cancel", &pending[0]["number"].to_string()], "deletion");
    let listed = house.machine.ok(["snapshots", "--json"]).of_type("snapshot");
    assert!(listed.iter().all(|one| one["deletion_due"].is_null()), "{listed:?}");
}

#[test]
fn rules_that_keep_less_are_announced_until_they_are_taken_back() {
    let house = House::new();
    let (name, source) = (house.repository(), house.source());
    let announced = || {
        let commands = [vec!["snapshots"], vec!["backup", source.as_str()]];
        let told = commands.map(|command| house.machine.ok(&command).stderr);
        told.map(|told| told.contains("fewer snapshots will be kept"))
    };
    assert_eq!(announced(), [false; 2]);
    house.told(&["retention", &name, "--lock", "1h"], "retention");
    assert_eq!(announced(), [true; 2]);
    house.told(&["retention", &name, "--usual"], "retention");
    assert_eq!(announced(), [false; 2]);
}

#[test]
fn a_token_is_for_one_repository_and_nothing_else_is_one() {
    let house = House::new();
    let made = house.told(&["token", &house.repository()], "admin_token");
    let made = made[0]["token"].as_str().unwrap().to_owned();
    let other = Machine::new().with_password(None);
    other.pair_with(house.server.as_ref().unwrap());
    fs::write(other.path("file"), "content").unwrap();
    other.ok(["backup", other.path("file").to_str().unwrap()]);
    let token = other.path("token");
    let use_it = |text: &str, machine: &Machine| {
        fs::write(&token, text).unwrap();
        let token = token.to_str().unwrap();
        machine.run(["forget", "latest", "--admin-token-file", token])
    };
    let refused = use_it(&made, &other).expect(13);
    assert!(refused.stderr.contains("another repository"), "{}", refused.stderr);
    use_it("holdall-admin-aaaa", &house.machine).expect(2);
    use_it(&made, &house.machine).expect(0);
    assert_eq!(house.admin(&["token", "nobody"]).code, Some(1));
    // A directory is its owner's, who needs none.
    let repo = other.path("repo").to_str().unwrap().to_owned();
    let own = Machine::new();
    own.init(&["-r", &repo, "--recovery-kit", other.path("kit").to_str().unwrap()]);
    own.ok(["backup", "-r", &repo, other.path("file").to_str().unwrap()]);
    fs::write(&token, &made).unwrap();
    let token = token.to_str().unwrap();
    own.run(["forget", "-r", &repo, "latest", "--admin-token-file", token]).expect(13);
}

#[test]
fn a_scrub_finds_a_flipped_bit_without_any_key() {
    let mut house = House::new();
    let name = house.repository();
    let whole = house.told(&["scrub"], "scrub");
    assert_eq!((&whole[0]["snapshots"], &whole[0]["damaged"]), (&json!(3), &json!([])));
    house.server = None;
    let tails = house.data.join("repositories").join(&name).join("tails");
    let files = fs::read_dir(tails).unwrap().map(|file| file.unwrap().path());
    let payload = files.filter(|path| path.extension().is_some_and(|end| end == "payload"));
    let payload = payload.max_by_key(|path| fs::metadata(path).unwrap().len()).unwrap();
    let mut bytes = fs::read(&payload).unwrap();
    bytes[100] ^= 1;
    fs::write(&payload, bytes).unwrap();
    let found = house.admin(&["scrub", &name]);
    assert_eq!(found.code, Some(20), "{}", found.stderr);
    assert!(!found.of_type("scrub")[0]["damaged"].as_array().unwrap().is_empty());
}

#[test]
fn a_dry_run_of_a_prune_says_what_goes_and_changes_nothing() {
    if !can_let_days_pass() {
        return;
    }
    let mut house = House::new();
    house.server = None;
    let foreseen = house.forgotten_later(UNLOCKED, &["--dry-run"]);
    assert!(!foreseen.is_empty());
    let words = house.admin_later(UNLOCKED, &["prune", "--dry-run"]).stdout;
    for id in &foreseen {
        let named = format!("{} of ", &id.as_str().unwrap()[..10]);
        assert!(words.lines().any(|line| line.contains(&named) && line.contains("would be")));
    }
    assert!(words.contains(&format!("{} would be forgotten; ", foreseen.len())), "{words}");
    assert_eq!(house.forgotten_later(UNLOCKED, &[]), foreseen, "they were there still");
    assert_eq!(house.forgotten_later(UNLOCKED, &["--dry-run"]), [] as [Value; 0]);
}

#[test]
fn what_is_to_be_thinned_is_asked_for_once_it_is_confirmed_and_can_be_cancelled() {
    if !can_let_days_pass() {
        return;
    }
    let mut house = House::new();
    let name = house.repository();
    house.server = None;
    let locked = house.admin_later(1, &["thin", &name, "--confirm"]).stdout;
    assert!(locked.contains("nothing could go, 3 snapshots would stay"), "{locked}");

    let offered = house.admin_later(UNLOCKED, &["thin", &name]).stdout;
    assert!(offered.contains("--confirm asks for it"), "{offered}");
    let pending = || house.admin_later(UNLOCKED, &["pending"]).stdout;
    assert_eq!(pending(), "no deletion waits\n");
    let asked = house.admin_later(UNLOCKED, &["thin", &name, "--confirm"]).stdout;
    assert!(asked.contains("`holdall admin cancel 1` takes it back"), "{asked}");
    let waiting = pending();
    let ids: Vec<_> = offered.lines().filter_map(|line| Some(line.split_once(" of ")?.0)).collect();
    assert!(!ids.is_empty() && ids.iter().all(|id| waiting.contains(id)), "{ids:?} {waiting}");
    assert_eq!(house.told(&["repositories"], "repository")[0]["snapshots"], 3, "they wait");
    house.admin_later(UNLOCKED, &["cancel", "1"]);
    assert_eq!(pending(), "no deletion waits\n");
}

#[test]
fn after_a_loss_rules_let_nothing_go_until_they_are_resumed() {
    if !can_let_days_pass() {
        return;
    }
    let mut house = House::new();
    let (name, many) = (house.repository(), house.machine.path("source/many"));
    fs::create_dir(&many).unwrap();
    for number in 0..200 {
        fs::write(many.join(number.to_string()), format!("{number} ").repeat(1000)).unwrap();
    }
    house.machine.ok(["backup", &house.source()]);
    assert_eq!(house.told(&["prune"], "prune")[0]["alarm"], Value::Null);
    fs::remove_dir_all(&many).unwrap();
    house.machine.ok(["backup", &house.source()]);
    let newest = house.snapshots().pop().unwrap();
    house.server = None;

    let stopped = house.admin_later(UNLOCKED, &["prune"]).stdout;
    let told = format!("automatic deletion is paused: snapshot {}", &newest[..10]);
    assert!(stopped.contains(&told), "{told} is not in {stopped}");
    assert!(stopped.contains(&format!("`holdall admin resume {name}`")), "{stopped}");
    assert!(stopped.contains("5 snapshots kept, 0 forgotten"), "{stopped}");
    let listed = house.told(&["repositories"], "repository").remove(0);
    assert!(listed["alarm"].as_str().is_some_and(|alarm| alarm.contains(&newest[..10])));
    let listed = house.admin_later(UNLOCKED, &["repositories"]).stdout;
    assert!(listed.contains(&told), "{told} is not in {listed}");
    let resumed = house.admin_later(UNLOCKED, &["resume", &name]).stdout;
    assert!(resumed.contains("rules go on; the alarm was: snapshot "), "{resumed}");
    assert!(!house.forgotten_later(UNLOCKED, &[]).is_empty());
    let again = house.admin_later(UNLOCKED, &["resume", &name]).stdout;
    assert!(again.contains("there was no alarm"), "{again}");
}

#[test]
fn by_when_everything_is_read_again_is_told_and_is_a_month_after_a_scrub() {
    let house = House::new();
    house.told(&["scrub"], "scrub");
    let told = house.told(&["repositories"], "repository").remove(0);
    let [by, since] = ["read_by", "read_since"].map(|field| told[field].as_str().unwrap());
    let [by_time, since_time] = [by, since].map(|time| time.parse::<jiff::Timestamp>().unwrap());
    assert_eq!(by_time.duration_since(since_time).as_hours(), 30 * 24);
    let data = house.data.to_str().unwrap();
    let mut verbose = house.machine.command(["admin", "--data", data, "repositories", "-v"]);
    let words = Outcome::of(verbose.env("TZ", "UTC")).expect(0).stderr;
    let expected = format!("everything is read again by {} UTC", by[..16].replace('T', " "));
    assert!(words.contains(&expected), "{expected} is not in {words}");
}

//! `holdall browse`: its pages by a client that speaks to them as a browser does, with a real repository behind them.

mod archives;
mod client;
mod compared;
mod crowd;
mod damaged;
mod dav;
mod gone;
mod many;
mod place;
mod searched;
mod seen;
mod stalled;
mod walked;

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, lchown, symlink};
use std::process::{Command, Stdio};

use client::{Answer, Browser};
use place::{HOSTILE, Place, back_up, encoded, hostile_tree};

use crate::house::{Machine, folder, is_root, small_tree, text};

/// Waits until a restore that a form began has ended, and gives its page.
fn ended(browser: &mut Browser, begun: &Answer) -> Answer {
    let to = begun.header("location").expect("the restore's page").to_owned();
    loop {
        let page = browser.get(&to).expect(200);
        if page.header("refresh").is_none() {
            return page;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

#[test]
fn a_token_is_good_once_and_only_its_cookie_shows_anything() {
    let place = Place::new(small_tree);
    let mut browser = place.browser();
    for path in [
        "/",
        "/search?q=letter",
        "/restores",
        &place.at("at", "/docs"),
        &place.at("get", "/large.bin"),
    ] {
        let refused = browser.get(path).expect(403).text();
        assert!(!refused.contains("docs") && !refused.contains("letter"), "{refused}");
    }
    browser.get("/?token=").expect(403);
    browser.get(&format!("/?token={}", "0".repeat(64))).expect(403);
    let wrong_host = format!("GET /?token={} HTTP/1.1\r\nHost: evil.test\r\n", place.token);
    browser.ask(&wrong_host, "").expect(421);
    let head = format!("HEAD /?token={} HTTP/1.1\r\nHost: {}\r\n", place.token, place.address);
    browser.ask(&head, "").expect(403);

    let begun = browser.get(&format!("/?token={}", place.token)).expect(303);
    assert_eq!(
        (begun.header("location"), begun.header("referrer-policy")),
        (Some("/"), Some("same-origin"))
    );
    let cookie = begun.header("set-cookie").expect("a cookie");
    let port = place.address.rsplit(':').next().expect("a port");
    assert!(cookie.starts_with(&format!("holdall-browse-{port}=")), "{cookie}");
    assert!(
        cookie.contains("; HttpOnly; SameSite=Strict") && !cookie.contains(&place.token),
        "{cookie}"
    );
    let page = browser.get("/").expect(200);
    assert!(page.text().contains(text(&place.source())) && !page.text().contains(&place.token));

    let mut second = place.browser();
    second.get(&format!("/?token={}", place.token)).expect(403);
    second.get("/").expect(403);
    second.cookie = browser.cookie.as_ref().map(|cookie| cookie.replace(port, "1"));
    second.get("/").expect(403);
    // Somebody who is led here from elsewhere brings no cookie: a page of this site has them come again.
    let led = place.browser().get_with("/", "Sec-Fetch-Site: cross-site\r\n").expect(200);
    assert_eq!(led.header("refresh"), Some("0; url=/"));
    assert!(!led.text().contains(text(&place.source())), "{}", led.text());
}

#[test]
fn another_name_and_another_site_are_refused_and_every_answer_says_what_it_may_not_do() {
    let place = Place::new(hostile_tree);
    let mut browser = place.inside();
    for host in
        ["evil.test", "evil.test:80", "127.0.0.1", "127.0.0.1:1", "localhost.evil.test:7000"]
    {
        browser.ask(&format!("GET / HTTP/1.1\r\nHost: {host}\r\n"), "").expect(421);
    }
    let folder = place.at("at", "");
    let page = browser.get(&folder).expect(200);
    let (token, snapshot) = (page.field("token"), page.field("snapshot"));
    let item = page.field("item");
    let target = place.machine.path("elsewhere");
    let fields = |token: &str| {
        [
            ("token", token.to_owned()),
            ("snapshot", snapshot.clone()),
            ("item", item.clone()),
            ("where", "folder".to_owned()),
            ("folder", text(&target).to_owned()),
        ]
    };
    let send = |browser: &mut Browser, token: &str, lines: &str| {
        let fields = fields(token);
        let fields: Vec<_> = fields.iter().map(|(name, value)| (*name, &value[..])).collect();
        browser.post_with("/restore", &fields, lines).status
    };
    for lines in [
        "Origin: http://evil.test\r\n",
        "Origin: null\r\n",
        "Sec-Fetch-Site: cross-site\r\n",
        "Sec-Fetch-Site: same-site\r\n",
    ] {
        assert_eq!(send(&mut browser, &token, lines), 403, "{lines}");
    }
    assert_eq!(send(&mut browser, "", ""), 403);
    assert_eq!(send(&mut browser, &"0".repeat(64), ""), 403);
    assert_eq!(send(&mut place.browser(), &token, ""), 403);
    assert!(!target.exists(), "nothing of that restored anything");

    for path in [
        "/",
        &folder,
        "/search?q=e",
        "/nothing",
        "/style.css",
        "/icon.svg",
        &place.at("get", "/%2e%2e"),
    ] {
        let answer = browser.get(path);
        let policy = answer.header("content-security-policy").expect("a policy");
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{path}");
        assert_eq!(answer.header("cross-origin-resource-policy"), Some("same-origin"), "{path}");
    }
}

#[test]
fn hostile_names_are_text_on_every_page_and_their_files_are_found_by_their_links() {
    let place = Place::new(hostile_tree);
    let mut browser = place.inside();
    let folder = browser.get(&place.at("at", "")).expect(200);
    for (number, name) in HOSTILE.iter().enumerate() {
        let link = place.at("at", &format!("/{}", encoded(name)));
        assert!(folder.links().contains(&link), "{link} in {}", folder.text());
        let page = browser.get(&link).expect(200);
        assert!(page.text().contains(&format!("number {number}\n")), "{}", page.text());
        let download = browser.get(&link.replacen("/at/", "/get/", 1)).expect(200);
        assert_eq!(download.text(), format!("number {number}\n"));
        let kept = download.header("content-disposition").expect("a name");
        assert!(kept.starts_with("attachment; filename=\"") && kept.is_ascii(), "{kept}");
        assert_eq!(download.header("set-cookie"), None, "{}", download.head);
        assert!(!kept.contains('<') && !kept.contains('\\'), "{kept}");
    }
    let found = browser.get("/search?q=*").expect(200);
    let inside = browser.get(&place.at("at", "/%3Cb%3Efolder")).expect(200);
    for page in [folder, found, inside] {
        let text = page.text();
        for never in ["<script", "<img", "<b>", "onerror=alert(1)>", "style="] {
            assert!(!text.contains(never), "{never} in {text}");
        }
        let is_unseen = |one: char| one.is_control() && one != '\n' || one == '\u{202e}';
        assert!(!text.chars().any(is_unseen), "{text}");
    }
}

#[test]
fn no_address_leads_out_of_a_snapshot() {
    let place = Place::new(small_tree);
    let mut browser = place.inside();
    let id = place.ids().pop().expect("a snapshot");
    let source = text(&place.source()).to_owned();
    for path in [
        format!("/get/{id}/../../../../etc/passwd"),
        format!("/get/{id}/%2e%2e/%2e%2e/etc/passwd"),
        format!("/get/{id}{source}/docs/../large.bin"),
        format!("/get/{id}{source}/docs/..%2flarge.bin"),
        format!("/get/{id}{source}/./large.bin"),
        format!("/get/{id}/{source}/large.bin"),
        format!("/get/{id}{source}/large.bin%00"),
        format!("/get/{id}/etc/passwd"),
        format!("/at/{}{source}", "0".repeat(64)),
        "/at/".to_owned(),
        "/at/latest/".to_owned(),
    ] {
        browser.get(&path).expect(404);
    }
    browser.get(&format!("/get/{id}{source}/docs")).expect(400);
    browser.get(&format!("/get/{id}{source}/large.bin")).expect(200);
}

#[test]
fn a_file_is_sent_whole_and_in_ranges_byte_by_byte() {
    let place = Place::new(small_tree);
    let mut browser = place.inside();
    let large = fs::read(place.source().join("large.bin")).expect("it is there");
    let path = place.at("get", "/large.bin");
    let whole = browser.get(&path).expect(200);
    assert!(whole.bytes == large && whole.is_whole());
    assert_eq!(whole.header("accept-ranges"), Some("bytes"));
    let tag = whole.header("etag").expect("a tag").to_owned();
    for (range, expected) in [
        ("0-0", &large[..1]),
        ("1000000-2000000", &large[1_000_000..=2_000_000]),
        ("2999999-", &large[2_999_999..]),
        ("-5", &large[large.len() - 5..]),
    ] {
        let lines = format!("Range: bytes={range}\r\nIf-Range: {tag}\r\n");
        let piece = browser.get_with(&path, &lines).expect(206);
        assert!(piece.bytes == expected && piece.is_whole(), "{range}");
        assert!(piece.header("content-range").expect("a range").ends_with("/3000000"));
    }
    browser.get_with(&path, "Range: bytes=3000000-\r\n").expect(416);
    let other = browser.get_with(&path, "Range: bytes=0-0\r\nIf-Range: \"other\"\r\n").expect(200);
    assert_eq!(other.bytes.len(), large.len());
    assert!(browser.get(&place.at("get", "/docs/empty.txt")).expect(200).bytes.is_empty());
    let head = format!("HEAD {path} HTTP/1.1\r\nHost: {}\r\n", place.address);
    let head = browser.ask(&head, "").expect(200);
    assert_eq!((head.header("content-length"), head.bytes.len()), (Some("3000000"), 0));
}

#[test]
fn every_version_of_a_file_is_listed_and_two_are_compared() {
    let place = Place::new(small_tree);
    let letter = place.source().join("docs/letter.txt");
    fs::write(&letter, "Dear reader,\nthis is <new>.\n").expect("a file");
    back_up(&place.machine);
    fs::write(place.source().join("other"), "").expect("a file");
    back_up(&place.machine);
    let (ids, mut browser) = (place.ids(), place.inside());
    let page = browser.get(&place.at("at", "/docs/letter.txt")).expect(200);
    let of = |id: &str| format!("/at/{id}{}/docs/letter.txt", text(&place.source()));
    let links = page.links();
    assert!(links.contains(&of(&ids[0])) && links.contains(&of(&ids[1])), "{links:?}");
    assert!(!links.contains(&of(&ids[2])), "the last snapshot changed nothing of it");
    assert!(page.text().contains("this is &lt;new&gt;."), "{}", page.text());
    assert!(browser.get(&of(&ids[0])).expect(200).text().contains("Dear reader,\n</pre>"));

    let diff = place.at("diff", "/docs/letter.txt");
    let shown = browser.get(&format!("{diff}?old={}&new={}", ids[0], ids[1])).expect(200).text();
    assert!(
        shown.contains("<ins>+ this is &lt;new&gt;.</ins>") && !shown.contains("<del>"),
        "{shown}"
    );
    let back = browser.get(&format!("{diff}?old={}&new={}", ids[1], ids[0])).expect(200).text();
    assert!(back.contains("<del>- this is &lt;new&gt;.</del>"), "{back}");
    browser.get(&diff).expect(400);
    browser.get(&format!("{diff}?old={}&new=x", ids[0])).expect(404);
}

#[test]
fn names_are_found_in_all_snapshots_with_the_newest_that_has_them() {
    let place = Place::new(small_tree);
    fs::remove_file(place.source().join("docs/letter.txt")).expect("it was there");
    back_up(&place.machine);
    let (ids, mut browser) = (place.ids(), place.inside());
    let found = browser.get("/search?q=LETTER").expect(200);
    let link = format!("/at/{}{}/docs/letter.txt", ids[0], text(&place.source()));
    assert!(found.links().contains(&link), "{:?}", found.links());
    let found = browser.get("/search?q=*.bin").expect(200);
    let link = format!("/at/{}{}/large.bin", ids[1], text(&place.source()));
    assert!(found.links().contains(&link) && found.text().contains("<td class=\"n\">2</td>"));
    assert!(browser.get("/search?q=no-such-name").expect(200).text().contains("Nothing has such"));
}

#[test]
fn what_is_ticked_is_restored_beside_what_is_there_or_elsewhere() {
    let place = Place::new(small_tree);
    let mut browser = place.inside();
    let (letter, large) =
        (place.source().join("docs/letter.txt"), place.source().join("large.bin"));
    fs::write(&letter, "changed\n").expect("a file");
    fs::remove_file(&large).expect("it was there");
    let page = browser.get(&place.at("at", "")).expect(200);
    let (token, snapshot) = (page.field("token"), page.field("snapshot"));
    let item = |below: &str| format!("{}{below}", text(&place.source()));
    let (docs, gone, one) = (item("/docs"), item("/large.bin"), item("/docs/letter.txt"));
    let fields = [("token", &*token), ("snapshot", &*snapshot)];

    let more = [("where", "place"), ("item", &one), ("item", &gone)];
    let begun = browser.post("/restore", &[&fields[..], &more].concat()).expect(303);
    let said = ended(&mut browser, &begun).text();
    assert!(said.contains("Done.") && said.contains("letter.txt.restored-"), "{said}");
    assert_eq!(fs::read_to_string(&letter).expect("it is there"), "changed\n");
    assert_eq!(fs::metadata(&large).expect("it is back").len(), 3_000_000);

    let elsewhere = place.machine.path("elsewhere");
    fs::create_dir_all(elsewhere.join("docs")).expect("a folder");
    fs::write(elsewhere.join("docs/letter.txt"), "mine\n").expect("a file");
    let to = [("where", "folder"), ("folder", text(&elsewhere)), ("item", &docs), ("item", &gone)];
    let begun = browser.post("/restore", &[&fields[..], &to].concat()).expect(303);
    let said = ended(&mut browser, &begun).text();
    assert!(said.contains("1 file there already and kept"), "{said}");
    let kept = || fs::read_to_string(elsewhere.join("docs/letter.txt")).expect("it is there");
    assert_eq!(kept(), "mine\n");
    assert!(elsewhere.join("docs/empty").is_dir() && elsewhere.join("large.bin").is_file());
    let to = [&to[..], &[("replace", "yes")]].concat();
    let begun = browser.post("/restore", &[&fields[..], &to].concat()).expect(303);
    ended(&mut browser, &begun);
    assert_eq!(kept(), "Dear reader,\n");

    let typed = place.machine.path("typed");
    let to = [("where", "place"), ("folder", text(&typed)), ("replace", "yes"), ("item", &one)];
    let begun = browser.post("/restore", &[&fields[..], &to].concat()).expect(303);
    ended(&mut browser, &begun);
    assert_eq!(fs::read_to_string(&letter).expect("it is there"), "changed\n", "not where it was");
    assert_eq!(fs::read_to_string(typed.join("letter.txt")).expect("it came"), "Dear reader,\n");

    let relative = [("where", "folder"), ("folder", "docs"), ("item", &*docs)];
    browser.post("/restore", &[&fields[..], &relative].concat()).expect(400);
    browser.post("/restore", &[&fields[..], &[("where", "place")]].concat()).expect(400);
    browser
        .post("/restore", &[&fields[..], &[("where", "place"), ("item", "/")]].concat())
        .expect(400);
    browser
        .post("/restore", &[&fields[..], &[("where", "place"), ("item", "/etc")]].concat())
        .expect(404);
    assert_eq!(browser.get("/restores").expect(200).text().matches("/restores/").count(), 4);
}

/// Unpacks an archive, and gives what is in it as `find` sees it.
fn unpacked(machine: &Machine, name: &str, archive: &[u8], command: &[&str]) -> Vec<Vec<u8>> {
    let (file, to) = (machine.path(name), machine.path(&format!("{name}-unpacked")));
    fs::write(&file, archive).expect("a file");
    fs::create_dir(&to).expect("a folder");
    let mut unpack = Command::new(command[0]);
    unpack.args(&command[1..]).arg(&file).current_dir(&to).stdout(Stdio::null());
    assert!(unpack.status().expect("it starts").success(), "{command:?}");
    let mut found: Vec<_> = crate::house::files_below(&to)
        .iter()
        .map(|path| path.strip_prefix(&to).expect("below").as_os_str().as_bytes().to_vec())
        .collect();
    found.sort();
    found
}

#[test]
fn a_folder_is_taken_away_as_tar_and_as_zip_whatever_its_names_are() {
    let place = Place::new(|dir| {
        hostile_tree(dir);
        small_tree(&dir.join("more"));
    });
    let mut browser = place.inside();
    let tar = browser.get(&place.at("tar", "")).expect(200);
    assert!(tar.header("content-disposition").expect("a name").contains("\"source.tar\""));
    let found = unpacked(&place.machine, "a.tar", &tar.bytes, &["tar", "-xf"]);
    assert!(HOSTILE.iter().all(|name| found.contains(&name.to_vec())), "{found:?}");

    let zip = browser.get(&place.at("zip", "")).expect(200);
    assert_eq!(zip.header("content-type"), Some("application/zip"));
    let python = "import sys, zipfile\n\
                  z = zipfile.ZipFile(sys.argv[1])\n\
                  assert z.testzip() is None\n\
                  z.extractall()";
    let found = unpacked(&place.machine, "a.zip", &zip.bytes, &["python3", "-c", python]);
    assert_eq!(found.len(), HOSTILE.len() + 5, "{found:?}");
    for name in &found {
        assert!(!name.iter().any(|byte| byte.is_ascii_control() || *byte == b'\\'), "{found:?}");
        assert!(
            std::str::from_utf8(name).is_ok_and(|name| !name.contains('\u{202e}')),
            "{found:?}"
        );
    }
    let large = place.machine.path("a.zip-unpacked/more/large.bin");
    let same = fs::read(large).expect("it is there");
    assert!(same == fs::read(place.source().join("more/large.bin")).expect("it is there"));
    browser.get(&place.at("zip", "/more/large.bin")).expect(400);
    browser.get(&place.at("tar", "/nothing")).expect(404);
}

#[test]
fn a_picture_is_shown_in_a_frame_in_which_nothing_acts() {
    const PNG: &[u8] = b"\x89PNG\r\n\x1a\nand so on";
    let place = Place::new(|dir| {
        fs::write(dir.join("picture.txt"), PNG).expect("a file");
        fs::write(dir.join("page.png"), "<svg onload=alert(1)><script>alert(1)</script>")
            .expect("a file");
    });
    let mut browser = place.inside();
    let page = browser.get(&place.at("at", "/picture.txt")).expect(200).text();
    let view = place.at("view", "/picture.txt");
    assert!(
        page.contains("<iframe class=\"picture\" sandbox=\"\"") && page.contains(&view),
        "{page}"
    );
    let picture = browser.get(&view).expect(200);
    assert_eq!((picture.header("content-type"), &picture.bytes[..]), (Some("image/png"), PNG));
    let policy = picture.header("content-security-policy").expect("a policy");
    assert!(policy.contains("sandbox") && !policy.contains("allow-"), "{policy}");
    let page = browser.get(&place.at("at", "/page.png")).expect(200).text();
    assert!(!page.contains("<iframe") && page.contains("&lt;svg onload"), "{page}");
    browser.get(&place.at("view", "/page.png")).expect(404);
}

#[test]
fn a_backup_goes_on_while_nobody_looks_and_shows_up() {
    let place = Place::new(small_tree);
    let mut browser = place.inside();
    browser.get(&place.at("at", "")).expect(200);
    fs::write(place.source().join("new"), "new").expect("a file");
    // It waits for as long as somebody looks.
    let (repo, source) = (place.machine.path("repo"), place.source());
    loop {
        let backup = place.machine.run(["backup", "-r", text(&repo), text(&source)]);
        match backup.code {
            Some(11) => continue,
            _ => break drop(backup.expect(0)),
        }
    }
    let link = place.at("at", "/new");
    while browser.get(&link).status != 200 {}
}

#[test]
fn other_addresses_than_loopback_are_refused() {
    let machine = Machine::new();
    for address in ["0.0.0.0:0", "192.168.1.5:7000", "[::]:0"] {
        let refused = machine.run(["browse", "--no-open", "--listen", address]).expect(2);
        assert!(refused.stderr.contains("other computers could reach"), "{}", refused.stderr);
    }
}

#[test]
fn programs_are_told_the_address_too() {
    let machine = Machine::new();
    let repo = machine.path("repo");
    machine.init(&["-r", text(&repo)]);
    let mut command = machine.command(["browse", "--no-open", "--json", "-r", text(&repo)]);
    let mut process = holdall_testkit::Process::spawn(&mut command).expect("it starts");
    let line = process.wait_for_line("{\"message_type\":\"browsing\"").expect("it listens");
    crate::schema::check(&serde_json::from_str(&line).expect("JSON"));
}

#[test]
fn it_ends_when_it_is_asked_to_and_prints_the_token_nowhere_else() {
    let mut place = Place::new(small_tree);
    place.inside().get("/").expect(200);
    place.process.terminate().expect("it lives");
    let (status, lines) = place.process.wait().expect("it ends");
    assert_eq!(status.code(), Some(0));
    assert_eq!(lines.iter().filter(|line| line.contains(&place.token)).count(), 1, "{lines:?}");
}

#[test]
fn a_trial_ends_with_its_pages_open_and_leaves_nothing_behind() {
    let machine = Machine::new().with_password(None);
    let (source, work) = (machine.path("source"), folder());
    small_tree(&source);
    let mut command = machine.command(["try", "--open", text(&source)]);
    let mut process =
        holdall_testkit::Process::spawn(command.env("TMPDIR", work.path())).expect("it starts");
    let line = process.wait_for_line("browse at http://").expect("it listens");
    let (address, token) =
        line.trim().trim_start_matches("browse at http://").split_once("/?token=").expect("both");
    let mut browser = Browser::at(address);
    browser.get(&format!("/?token={token}")).expect(303);
    let snapshots = browser.get("/").expect(200);
    assert!(snapshots.links().iter().filter(|link| link.starts_with("/at/")).count() >= 2);
    process.terminate().expect("it lives");
    let (status, _) = process.wait().expect("it ends");
    assert_eq!(status.code(), Some(0));
    assert_eq!(fs::read_dir(work.path()).expect("a folder").count(), 0);
}

/// Root restores into a folder that another user can change, who put a link where a ticked folder is to come.
#[test]
fn a_link_in_the_folder_that_was_named_leads_a_restore_of_root_nowhere() {
    if !is_root("a link of another user") {
        return;
    }
    const OTHER: u32 = 65534;
    let place = Place::new(|source| {
        fs::create_dir(source.join("doc")).expect("a folder");
        fs::write(source.join("doc/letter"), "text").expect("a file");
        lchown(source.join("doc"), Some(OTHER), Some(OTHER)).expect("root may");
    });
    let (out, victim) = (place.machine.path("out"), place.machine.path("victim"));
    fs::create_dir(&out).expect("a folder");
    fs::create_dir(&victim).expect("a folder");
    lchown(&out, Some(OTHER), Some(OTHER)).expect("root may");
    symlink(&victim, out.join("doc")).expect("a link");
    lchown(out.join("doc"), Some(OTHER), Some(OTHER)).expect("root may");

    let mut browser = place.inside();
    let page = browser.get(&place.at("at", "")).expect(200);
    let (token, snapshot) = (page.field("token"), page.field("snapshot"));
    let item = format!("{}/doc", text(&place.source()));
    let fields =
        [("token", &*token), ("snapshot", &*snapshot), ("where", "folder"), ("folder", text(&out))];
    let begun = browser.post("/restore", &[&fields[..], &[("item", &*item)]].concat()).expect(303);
    let said = ended(&mut browser, &begun).text();
    assert!(!said.contains("Done."), "{said}");
    assert_eq!(fs::metadata(&victim).expect("it is there").uid(), 0, "it was given away");
    assert_eq!(fs::read_dir(&victim).expect("it is there").count(), 0, "something was put there");
}

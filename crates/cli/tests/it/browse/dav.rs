//! The snapshots as WebDAV, by programs that people use, and by requests that want more than to read.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use holdall_testkit::is_there;

use super::client::{Answer, Browser};
use super::place::{HOSTILE, Place, encoded, hostile_tree};
use crate::house::{Outcome, files_below, small_tree, text};

/// Files of the tree that is compared.
const MANY: usize = 10_000;
/// The folders that they lie in.
const FOLDERS: usize = 20;

/// What can be done.
const ALLOWED: &str = "OPTIONS, GET, HEAD, PROPFIND";

/// The line that signs a request.
fn signed(password: &str) -> String {
    use base64::Engine;
    let pair = base64::engine::general_purpose::STANDARD.encode(format!("anybody:{password}"));
    format!("Authorization: Basic {pair}\r\n")
}

fn ask(browser: &mut Browser, method: &str, path: &str, lines: &str) -> Answer {
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {}\r\n{lines}Content-Length: 0\r\n",
        browser.address
    );
    browser.ask(&head, "")
}

/// The addresses that an answer to PROPFIND names.
fn named(answer: &Answer) -> Vec<String> {
    let text = answer.text();
    let all = text.split("<D:href>").skip(1);
    all.map(|rest| rest.split('<').next().unwrap_or_default().to_owned()).collect()
}

/// The folder of the newest snapshot.
fn newest(place: &Place) -> String {
    let lines = format!("{}Depth: 1\r\n", signed(&place.token));
    let top = ask(&mut place.browser(), "PROPFIND", "/dav/", &lines).expect(207);
    named(&top).pop().expect("a snapshot")
}

#[test]
fn only_the_token_opens_it_and_nothing_writes() {
    let place = Place::new(small_tree);
    let mut inside = place.inside();
    let own = signed(&place.token);
    for lines in
        [String::new(), signed(""), signed(&"0".repeat(64)), own.replace("Basic", "Bearer")]
    {
        for browser in [&mut place.browser(), &mut inside] {
            let refused = ask(browser, "PROPFIND", "/dav/", &lines).expect(401);
            assert!(refused.header("www-authenticate").expect("a way").starts_with("Basic"));
        }
    }
    let folder = newest(&place);
    let source = text(&place.source()).trim_start_matches('/').to_owned();
    let file = format!("{folder}{source}/docs/letter.txt");
    let mut program = place.browser();
    for method in [
        "PUT",
        "DELETE",
        "MKCOL",
        "PROPPATCH",
        "LOCK",
        "UNLOCK",
        "POST",
        "PATCH",
        "MKCALENDAR",
        "MOVE",
        "COPY",
        "REPORT",
        "TRACE",
        "NONSENSE",
    ] {
        let lines = format!("{own}Destination: /dav/elsewhere\r\n");
        for path in [&*file, "/dav/", "/dav/new", &format!("{folder}new"), &format!("{file}.new")] {
            let refused = ask(&mut program, method, path, &lines).expect(405);
            assert_eq!(refused.header("allow"), Some(ALLOWED), "{method} {path}");
        }
    }
    let read = ask(&mut program, "GET", &file, &own).expect(200);
    assert_eq!(read.text(), "Dear reader,\n");
    // What is in a backup may be a page with scripts: it is of no site, and may do nothing.
    let policy = read.header("content-security-policy").expect("a policy");
    assert!(policy.contains("sandbox") && policy.contains("default-src 'none'"), "{policy}");
    let kept = read.header("content-disposition").expect("a name");
    assert!(kept.starts_with("attachment; filename=\"letter.txt\""), "{kept}");
    for path in ["/dav/", &*folder, &file, "/dav/nothing"] {
        let options = ask(&mut program, "OPTIONS", path, &own).expect(200);
        assert_eq!(options.header("allow"), Some(ALLOWED), "{path}");
        assert_eq!(options.header("dav"), Some("1"), "there are no locks");
    }

    let evil = format!("PROPFIND /dav/ HTTP/1.1\r\nHost: evil.test\r\n{own}Depth: 1\r\n");
    program.ask(&evil, "").expect(421);
    let foreign = format!("{own}Origin: http://evil.test\r\n");
    ask(&mut program, "PROPFIND", "/dav/", &foreign).expect(403);
    for path in [
        "/dav/../at/",
        "/dav/%2e%2e/%2e%2e/etc/passwd",
        "/dav/nothing/",
        &format!("{folder}etc/passwd"),
    ] {
        let status = ask(&mut program, "GET", path, &own).status;
        assert!([400, 403, 404, 502].contains(&status), "{path}: {status}");
    }
}

#[test]
fn ranges_are_read_byte_by_byte_and_hostile_names_come_back_as_they_are() {
    let place = Place::new(|dir| {
        hostile_tree(dir);
        small_tree(&dir.join("more"));
    });
    let own = signed(&place.token);
    let source = text(&place.source()).trim_start_matches('/').to_owned();
    let folder = format!("{}{source}/", newest(&place));
    let mut program = place.browser();
    let large = fs::read(place.source().join("more/large.bin")).expect("it is there");
    for (from, to) in [(0, 0), (65_000, 66_000), (1_000_000, 2_500_000), (2_999_999, 2_999_999)] {
        let lines = format!("{own}Range: bytes={from}-{to}\r\n");
        let piece =
            ask(&mut program, "GET", &format!("{folder}more/large.bin"), &lines).expect(206);
        assert!(piece.bytes == large[from..=to], "{from}-{to}");
    }
    let whole = ask(&mut program, "GET", &format!("{folder}more/large.bin"), &own).expect(200);
    assert!(whole.bytes == large);

    let listed = ask(&mut program, "PROPFIND", &folder, &format!("{own}Depth: 1\r\n")).expect(207);
    let names = named(&listed);
    assert_eq!(names.len(), HOSTILE.len() + 3, "{names:?}");
    for (number, name) in HOSTILE.iter().enumerate() {
        let read =
            ask(&mut program, "GET", &format!("{folder}{}", encoded(name)), &own).expect(200);
        assert_eq!(read.text(), format!("number {number}\n"));
    }
    // By their own spelling, too.
    let files = names.iter().filter(|name| !name.ends_with('/'));
    for name in files {
        ask(&mut program, "GET", name, &own).expect(200);
    }
}

#[test]
fn files_and_folders_answer_as_the_standards_say() {
    let place = Place::new(|dir| fs::write(dir.join("ten"), "0123456789").expect("a file"));
    let own = signed(&place.token);
    let source = text(&place.source()).trim_start_matches('/').to_owned();
    let folder = format!("{}{source}/", newest(&place));
    let file = format!("{folder}ten");
    let mut program = place.browser();
    let whole = ask(&mut program, "GET", &file, &own).expect(200);
    let tag = whole.header("etag").expect("a tag").to_owned();
    let modified = whole.header("last-modified").expect("a date").to_owned();
    let old = "Sun, 06 Nov 1994 08:49:37 GMT";
    for (lines, status, body, range) in [
        ("Range: bytes=0-0", 206, "0", "bytes 0-0/10"),
        ("Range: bytes=9-9", 206, "9", "bytes 9-9/10"),
        ("Range: bytes=7-", 206, "789", "bytes 7-9/10"),
        ("Range: bytes=-3", 206, "789", "bytes 7-9/10"),
        ("Range: bytes=-100", 206, "0123456789", "bytes 0-9/10"),
        ("Range: bytes=8-100", 206, "89", "bytes 8-9/10"),
        ("Range: bytes=10-", 416, "", "bytes */10"),
        ("Range: bytes=100-200", 416, "", "bytes */10"),
        ("Range: bytes=0-1,4-5", 200, "0123456789", ""),
        ("Range: bytes=5-2", 200, "0123456789", ""),
        ("Range: lines=1-2", 200, "0123456789", ""),
        (&*format!("Range: bytes=1-2\r\nIf-Range: {tag}"), 206, "12", "bytes 1-2/10"),
        (&*format!("Range: bytes=1-2\r\nIf-Range: {modified}"), 206, "12", "bytes 1-2/10"),
        ("Range: bytes=1-2\r\nIf-Range: \"other\"", 200, "0123456789", ""),
        (&*format!("If-None-Match: {tag}"), 304, "", ""),
        ("If-None-Match: \"other\"", 200, "0123456789", ""),
        (&*format!("If-Match: {tag}"), 200, "0123456789", ""),
        ("If-Match: \"other\"", 412, "", ""),
        (&*format!("If-Modified-Since: {modified}"), 304, "", ""),
        (&*format!("If-Modified-Since: {old}"), 200, "0123456789", ""),
        (&*format!("If-Unmodified-Since: {old}"), 412, "", ""),
    ] {
        let all = format!("{own}{lines}\r\n");
        let got = ask(&mut program, "GET", &file, &all).expect(status);
        assert_eq!(got.text(), body, "{lines}");
        assert_eq!(got.header("content-range").unwrap_or_default(), range, "{lines}");
        let head = ask(&mut program, "HEAD", &file, &all).expect(status);
        assert_eq!(
            (head.text(), head.header("content-range").unwrap_or_default()),
            (String::new(), range)
        );
    }
    let head = ask(&mut program, "HEAD", &file, &own).expect(200);
    assert_eq!(head.header("content-length"), Some("10"));

    for (path, depth, status, named) in [
        (&*folder, "Depth: 0", 207, 1),
        (&folder, "Depth: 1", 207, 2),
        (&file, "Depth: 0", 207, 1),
        (&file, "Depth: 1", 207, 1),
        (&folder, "Depth: infinity", 403, 0),
        ("/dav/", "Depth: infinity", 403, 0),
        ("/dav/", "Depth: 0", 207, 1),
        ("/dav/", "Depth: 1", 207, 2),
        ("/dav/nothing", "Depth: 1", 404, 0),
        (&format!("{folder}nothing"), "Depth: 0", 404, 0),
    ] {
        let lines = format!("{own}{depth}\r\n");
        let found = ask(&mut program, "PROPFIND", path, &lines).expect(status);
        assert_eq!(self::named(&found).len(), named, "{path} {depth}: {}", found.text());
        if status == 403 {
            assert!(found.text().contains("propfind-finite-depth"), "{}", found.text());
        }
    }
    let about = ask(&mut program, "PROPFIND", &file, &format!("{own}Depth: 0\r\n")).expect(207);
    let named = tag.trim_matches('"');
    assert!(about.text().contains(named), "{named} in {}", about.text());

    // A browser that is led to a folder is told where people see it.
    for path in ["/dav", "/dav/", &folder, folder.trim_end_matches('/')] {
        let page = ask(&mut program, "GET", path, &own).expect(200);
        assert!(page.text().contains("WebDAV") && !page.links().is_empty(), "{}", page.text());
        ask(&mut program, "HEAD", path, &own).expect(200);
    }
    let id = place.ids().pop().expect("a snapshot");
    let page = ask(&mut program, "GET", &folder, &own).expect(200);
    assert!(page.links().contains(&format!("/at/{id}/{}", source)), "{:?}", page.links());
}

#[test]
fn rclone_lists_reads_a_range_of_and_copies_ten_thousand_files() {
    if !is_there("rclone", Path::new("/usr/bin/rclone").exists()) {
        return;
    }
    let place = Place::new(|dir| {
        for number in 0..MANY {
            let folder = dir.join(format!("folder {}", number % FOLDERS));
            fs::create_dir_all(&folder).expect("a folder");
            fs::write(
                folder.join(format!("file-{number}.txt")),
                format!("content {number}\n").repeat(number % 50),
            )
            .expect("a file");
        }
        fs::write(dir.join("large"), holdall_testkit::Random::new(7).bytes(5_000_000))
            .expect("a file");
    });
    let home = place.machine.path("rclone");
    fs::create_dir(&home).expect("room");
    let rclone = |args: &[&str]| {
        let mut command = Command::new("rclone");
        command.args(args).env_clear().env("HOME", &home).env("PATH", "/usr/bin:/bin");
        command
    };
    let password = Outcome::of(&mut rclone(&["obscure", &place.token])).expect(0).stdout;
    let remote = format!(
        ":webdav,url='http://{}/dav/',user=anybody,pass={}:",
        place.address,
        password.trim()
    );
    let folder = newest(&place);
    let below = format!(
        "{}{}",
        folder.trim_start_matches("/dav/"),
        text(&place.source()).trim_start_matches('/')
    );
    let from = format!("{remote}{below}");
    let listed = Outcome::of(&mut rclone(&["lsf", "-R", "--files-only", &from])).expect(0);
    assert_eq!(listed.stdout.lines().count(), MANY + 1);
    let piece =
        rclone(&["cat", "--offset", "1234567", "--count", "89", &format!("{from}/large")]).output();
    let large = fs::read(place.source().join("large")).expect("it is there");
    assert!(piece.expect("it starts").stdout == large[1_234_567..1_234_567 + 89]);

    let to = place.machine.path("copied");
    // It asks at most once in 10 ms: as many of it as there are folders are quicker.
    let folders = (0..FOLDERS).map(|number| format!("folder {number}"));
    let copies: Vec<_> = folders
        .map(|folder| {
            let (from, to) = (format!("{from}/{folder}"), to.join(folder));
            rclone(&["copy", &from, text(&to)]).spawn().expect("it starts")
        })
        .collect();
    for mut copy in copies {
        assert!(copy.wait().expect("it ends").success());
    }
    Outcome::of(&mut rclone(&["copyto", &format!("{from}/large"), text(&to.join("large"))]))
        .expect(0);
    let mut copied = files_below(&to);
    copied.sort();
    assert_eq!(copied.len(), MANY + 1);
    for file in copied {
        let original = place.source().join(file.strip_prefix(&to).expect("below"));
        assert!(
            fs::read(&file).expect("a file") == fs::read(&original).expect("a file"),
            "{file:?}"
        );
    }
    // It stays what it is, whatever a program wishes.
    let written =
        Outcome::of(&mut rclone(&["copy", "--retries", "1", text(&to.join("large")), &from]));
    let deleted =
        Outcome::of(&mut rclone(&["deletefile", "--retries", "1", &format!("{from}/large")]));
    assert!(deleted.code != Some(0) && written.code.is_some(), "{deleted:?}");
}

#[test]
fn cadaver_walks_and_gets_a_file() {
    if !is_there("cadaver", Path::new("/usr/bin/cadaver").exists()) {
        return;
    }
    let place = Place::new(small_tree);
    let home = place.machine.path("cadaver");
    fs::create_dir(&home).expect("room");
    let netrc = format!("machine 127.0.0.1 login anybody password {}\n", place.token);
    fs::write(home.join(".netrc"), netrc).expect("a file");
    let folder = format!("{}{}", newest(&place), text(&place.source()).trim_start_matches('/'));
    let mut command = Command::new("cadaver");
    command.arg(format!("http://{}{folder}/", place.address)).current_dir(&home);
    command.env_clear().env("HOME", &home).env("PATH", "/usr/bin:/bin");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut cadaver = command.spawn().expect("it starts");
    let wishes = b"ls\ncd docs\nls\nget letter.txt got.txt\nrm letter.txt\nquit\n";
    cadaver.stdin.take().expect("its input").write_all(wishes).expect("it takes them");
    let output = cadaver.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("large.bin") && said.contains("letter.txt"), "{said}");
    assert_eq!(
        fs::read_to_string(home.join("got.txt")).expect("it was got"),
        "Dear reader,\n",
        "{said}"
    );
    let again = ask(
        &mut place.browser(),
        "GET",
        &format!("{folder}/docs/letter.txt"),
        &signed(&place.token),
    );
    assert_eq!(again.expect(200).text(), "Dear reader,\n");
}

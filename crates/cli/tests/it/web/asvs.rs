//! What OWASP ASVS 5.0 asks of a server's pages, where no other test asks it already. `docs/web-security.md` says which test
//! holds what.

use std::fmt::Write;

use serde_json::json;

use super::client::{Answer, Browser};
use super::{PASSWORD, Place, set_up_as, sign_in};

/// Where the server's pages are listed, so that none that is added is left out here.
const ROUTES: &str = include_str!("../../../../server/src/web/mod.rs");
/// What anybody may get.
const OPEN: [&str; 8] = [
    "/",
    "/setup",
    "/sign-in",
    "/metrics",
    "/look/{token}",
    "/api/v1/openapi.json",
    "/api/v1/admin/{command}",
    "/api/{*rest}",
];

/// The paths that a method is for, with a machine's and other numbers in them.
fn paths(method: &str, machine: &str) -> Vec<String> {
    let routes = ROUTES.split(".route(").skip(1);
    let routes =
        routes.map(|route| route.split_once("            .").map_or(route, |(first, _)| first));
    let of_method = routes.filter(|route| route.contains(&format!("{method}(")));
    let paths =
        of_method.filter_map(|route| route.split('"').nth(1)).filter(|path| path.starts_with('/'));
    let paths: Vec<_> = paths
        .filter(|path| !OPEN.contains(path))
        .map(|path| path.replace("{id}", machine).replace("{number}", "1"))
        .collect();
    assert!(paths.len() >= 8, "{paths:?}");
    paths
}

#[test]
fn no_form_is_taken_without_its_token_and_no_page_is_shown_without_a_session() {
    let place = Place::new("attic");
    let mut browser = place.signed_in();
    let (machine, number) = (place.id(), place.ask_deletion());
    assert_eq!(number, "1");
    let of_another = place.browser().get("/").expect(200).token();
    let own = browser.get("/").expect(200).token();
    for path in paths("post", &machine) {
        let rest = [("password", PASSWORD), ("what", "prune"), ("name", "x"), ("scope", "read")];
        browser.post(&path, &rest).expect(403);
        let wanted: Vec<_> = [("token", &*of_another)].into_iter().chain(rest).collect();
        let answer = browser.post(&path, &wanted);
        assert_eq!(answer.status, 403, "{path}: {answer:?}");
        let answer = place.browser().post(&path, &wanted);
        assert!([303, 403].contains(&answer.status), "{path}: {answer:?}");
        let from_elsewhere = "Origin: https://evil.test\r\nSec-Fetch-Site: cross-site\r\n";
        let wanted: Vec<_> = [("token", &*own)].into_iter().chain(rest).collect();
        browser.post_with(&path, &wanted, from_elsewhere).expect(403);
    }
    for path in paths("get", &machine) {
        let answer = place.browser().get(&path);
        assert_eq!(answer.header("location"), Some("/"), "{path}: {answer:?}");
        assert!(!answer.body.contains("attic"), "{path}: {answer:?}");
    }
    assert_eq!((place.told(&["pending"]).len(), place.told(&["api-token"]).len()), (1, 0));
    assert_eq!(place.told(&["machines"])[0]["revoked"], false);
}

#[test]
fn every_answer_has_the_headers_and_is_kept_by_no_browser() {
    let place = Place::new("attic");
    let mut browser = place.signed_in();
    let mut answers = Vec::new();
    let open = OPEN.map(str::to_owned).into_iter();
    for path in open.chain(paths("get", &place.id())).chain(["/nothing".to_owned()]) {
        answers.push((format!("GET {path}"), browser.get(&path)));
    }
    for path in paths("post", &place.id()) {
        answers.push((format!("POST {path}"), browser.post(&path, &[])));
    }
    let host = place.server.address().to_owned();
    for method in ["TRACE", "OPTIONS", "PUT", "DELETE"] {
        let head = format!("{method} / HTTP/1.1\r\nHost: {host}\r\nOrigin: https://{host}\r\n");
        let answer = browser.ask(&head, "").expect(405);
        assert_eq!(answer.header("access-control-allow-origin"), None);
        answers.push((method.to_owned(), answer));
    }
    answers.push((
        "another name".to_owned(),
        browser.ask("GET / HTTP/1.1\r\nHost: evil.test\r\n", "").expect(421),
    ));
    for (what, answer) in &answers {
        let header = |name| {
            answer.header(name).unwrap_or_else(|| panic!("{what} has no {name}: {answer:?}"))
        };
        let policy = header("content-security-policy");
        for part in [
            "default-src 'none'",
            "base-uri 'none'",
            "form-action 'self'",
            "frame-ancestors 'none'",
        ] {
            assert!(policy.contains(part), "{what}: {policy}");
        }
        assert_eq!(header("x-content-type-options"), "nosniff", "{what}");
        assert_eq!(header("referrer-policy"), "no-referrer", "{what}");
        assert_eq!(header("cross-origin-opener-policy"), "same-origin", "{what}");
        assert_eq!(header("cross-origin-resource-policy"), "same-origin", "{what}");
        assert_eq!(header("cache-control"), "no-store", "{what}");
        assert_eq!(answer.header("access-control-allow-origin"), None, "{what}");
        if !answer.body.is_empty() {
            let kind = header("content-type");
            let is_said = kind.contains("charset=utf-8") || kind == "application/json";
            assert!(is_said, "{what}: {kind}");
        }
    }
}

/// The value of the cookie, and the line that gave it.
fn cookie_of(answer: &Answer) -> (String, String) {
    let line = answer.header("set-cookie").expect("a cookie").to_owned();
    let pair = line.split(';').next().expect("a pair");
    (pair.split_once('=').expect("a value").1.to_owned(), line)
}

#[test]
fn every_cookie_is_of_this_host_alone_and_changes_with_each_sign_in() {
    let place = Place::new("attic");
    let link = place.token("family", "look");
    let mut browser = place.browser();
    let given = [browser.get("/setup"), browser.get(&format!("/look/{link}"))];
    let mut signed_in = place.signed_in();
    let first = signed_in.cookie.clone();
    let token = signed_in.get("/").expect(200).token();
    let fields = [("token", &*token), ("name", "ann"), ("password", PASSWORD)];
    let again = signed_in.post("/sign-in", &fields).expect(303);
    let mut values = Vec::new();
    for answer in given.iter().chain([&again]) {
        let (value, line) = cookie_of(answer);
        assert!(line.starts_with("__Host-holdall-") && !line.contains("Domain"), "{line}");
        for part in ["; Path=/", "; Secure", "; HttpOnly", "; SameSite=Strict"] {
            assert!(line.contains(part), "{line}");
        }
        assert!(value.len() >= 64 && line.len() < 4096, "256 bits: {line}");
        assert!(!answer.body.contains(&value) && !values.contains(&value), "{line}");
        values.push(value);
    }
    signed_in.cookie = first;
    assert!(!signed_in.get("/").expect(200).body.contains("attic"), "the old one is over");
    let mut made_up = place.browser();
    made_up.cookie = Some(format!(
        "__Host-holdall-{}={}",
        place.server.address().rsplit(':').next().unwrap(),
        "a".repeat(64)
    ));
    assert!(
        sign_in(&mut made_up, "ann", PASSWORD).expect(303).header("set-cookie").is_some(),
        "a cookie that another chose"
    );
}

#[test]
fn passwords_of_any_letters_are_taken_whole_and_those_that_are_tried_first_are_not() {
    let place = Place::new("attic");
    let twelve = "h\u{e9}llo w\u{f6}rld\u{1f40e}".to_owned();
    let long = format!("{}and sixteen more", "\u{5bc6} \u{1f511}Pass wOrd'\"<&".repeat(7));
    assert_eq!((twelve.chars().count(), long.chars().count()), (12, 128));
    let code = place.code();
    for refused in [
        &*twelve.chars().take(11).collect::<String>(),
        "password1234",
        "qwertyuiop12",
        "annannannann1",
        "holdall-holdall",
    ] {
        set_up_as(&mut place.browser(), "ann", &code, refused).expect(403);
    }
    for password in [&*twelve, &*long] {
        set_up_as(&mut place.browser(), "ann", &place.code(), password).expect(303);
        let cut: String = password.chars().take(password.chars().count() - 1).collect();
        for wrong in [cut, password.to_uppercase(), format!("{password} ")] {
            sign_in(&mut place.browser(), "ann", &wrong).expect(403);
            sign_in(&mut place.browser(), "ann", password).expect(303);
        }
    }
}

#[test]
fn a_password_is_changed_by_the_old_one_and_ends_all_other_sessions() {
    let place = Place::new("attic");
    let mut browser = place.signed_in();
    let mut other = place.browser();
    sign_in(&mut other, "ann", PASSWORD).expect(303);
    let token = browser.get("/password").expect(200).token();
    let mut change = |old: &str, new: &str, again: &str| {
        let fields = [("token", &*token), ("password", old), ("new", new), ("again", again)];
        browser.post("/password", &fields)
    };
    let new = "quite another phrase";
    for (old, new, again) in [
        ("a guess", new, new),
        (PASSWORD, new, PASSWORD),
        (PASSWORD, "password1234", "password1234"),
    ] {
        change(old, new, again).expect(403);
    }
    sign_in(&mut place.browser(), "ann", PASSWORD).expect(303);
    change(PASSWORD, new, new).expect(200);
    assert!(browser.get("/").expect(200).body.contains("attic"), "this session goes on");
    assert!(!other.get("/").expect(200).body.contains("attic"), "others are over");
    sign_in(&mut other, "ann", PASSWORD).expect(403);
    sign_in(&mut other, "ann", new).expect(303);
    let told = place.told(&["audit", "--limit", "3"]);
    assert!(told.iter().any(|entry| entry["command"] == "password"), "{told:?}");
    assert!(!format!("{told:?}").contains(new));
}

/// The elements of a page, without what they hold, and how many quotation marks there are.
fn skeleton(page: &str) -> String {
    let mut bones = String::new();
    for piece in page.split('<').skip(1) {
        let name =
            piece.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '/').next();
        write!(bones, "{} ", name.unwrap_or_default()).expect("room");
    }
    write!(bones, "and {} quotation marks", page.matches('"').count()).expect("room");
    bones
}

/// Names that would be more than text somewhere: in elements, attributes, addresses, styles, scripts, JSON, terminals.
fn hostile_names() -> Vec<String> {
    let cores = [
        "<script>alert(1)</script>",
        "\"><img src=x onerror=alert(1)>",
        "' onmouseover='x",
        "</title><b>",
        "</bdi></p>",
        "<!--",
        "-->",
        "]]>",
        "<svg/onload=alert(1)>",
        "javascript:alert(1)",
        "&lt;b&gt;",
        "&#60;b&#62;",
        "{{7*7}}",
        "${7*7}",
        "<%= 7 %>",
        "../../etc/passwd",
        "a/../b",
        "?x=1&y=2",
        "#top",
        "%3Cb%3E",
        "\\u003cb\\u003e",
        "\\\"",
        "`id`",
        "$(id)",
        "; drop table",
        "' or '1'='1",
        "=1+1",
        "@SUM(1)",
        "a\u{202e}b",
        "a\u{200b}b",
        "\u{feff}a",
        "e\u{301}",
        "\u{1f468}\u{200d}\u{1f469}",
        "\u{fdfd}",
        "\u{ff1c}b\u{ff1e}",
        "<style>*{display:none}</style>",
        "<a href=//x>y",
        "<form action=//x>",
        "<input autofocus>",
        "<base href=//x>",
    ];
    let shapes = ["{}", "x{}", "{}x", "{0}{0}", "- {} -"];
    let names = cores
        .iter()
        .flat_map(|core| shapes.iter().map(|shape| shape.replace("{0}", core).replace("{}", core)));
    names.collect()
}

#[test]
fn two_hundred_hostile_names_are_text_wherever_they_are_shown() {
    let place = Place::new("attic");
    let token = place.token("script", "administer");
    let mut browser = place.signed_in();
    let pages = ["/".to_owned(), format!("/machines/{}", place.id())];
    let shown = |browser: &mut Browser| {
        pages.clone().map(|path| skeleton(&browser.get(&path).expect(200).body))
    };
    let usual = shown(&mut browser);
    let (names, mut taken) = (hostile_names(), 0);
    assert_eq!(names.len(), 200);
    let id = place.id();
    for name in &names {
        let fields = json!({ "name": id, "new": name, "only": "machine" }).to_string();
        let renamed = place.program(&token, "POST", "/api/v1/admin/rename", &fields);
        assert!([200, 409].contains(&renamed.status), "{name:?}: {renamed:?}");
        if renamed.status == 200 {
            taken += 1;
            assert_eq!(shown(&mut browser), usual, "{name:?}");
        }
    }
    println!("{taken} of 200 were taken as names");
    assert!(taken >= 150, "{taken}");
}

#[test]
fn no_address_that_a_page_leads_to_has_a_secret_and_passwords_are_masked() {
    let place = Place::new("attic");
    let mut browser = place.signed_in();
    let cookie = browser.cookie.clone().expect("a cookie");
    let (_, cookie) = cookie.split_once('=').expect("a value");
    let mut pages = vec!["/setup".to_owned(), "/".to_owned()];
    pages.extend(paths("get", &place.id()).into_iter().filter(|path| {
        !path.contains('.')
            && !["/jobs/", "/lab/", "/changes"].iter().any(|part| path.contains(part))
    }));
    let mut masked = 0;
    for path in pages {
        let page = browser.get(&path).expect(200);
        let token = page.token();
        let addresses = ["href=\"", "action=\"", "src=\""].map(|at| {
            page.body.split(at).skip(1).map(|rest| rest.split('"').next().expect("its end"))
        });
        for address in addresses.into_iter().flatten() {
            assert!(
                address.starts_with('/') || address.starts_with('#'),
                "{path} leads to {address}"
            );
            assert!(
                !address.contains(&token) && !address.contains(cookie),
                "{path} leads to {address}"
            );
        }
        assert!(!page.body.contains(cookie), "{path}");
        for input in
            page.body.split("<input").skip(1).map(|rest| rest.split('>').next().expect("its end"))
        {
            let is_secret = ["name=\"password\"", "name=\"again\"", "name=\"new\""]
                .iter()
                .any(|name| input.contains(name));
            assert_eq!(is_secret, input.contains("type=\"password\""), "{path}: {input}");
            masked += usize::from(is_secret);
        }
        let signs_out = page.body.contains("action=\"/sign-out\"");
        assert_eq!(signs_out, path != "/setup", "{path}");
    }
    assert!(masked >= 10, "{masked}");
}

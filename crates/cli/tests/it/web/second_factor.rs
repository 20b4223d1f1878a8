//! The second factor, with codes that another program makes: Python's HMAC, after RFC 6238.

use std::process::Command;

use super::client::{Answer, Browser};
use super::{PASSWORD, Place, set_up, sign_in};

/// Makes the code of a secret so many steps from now.
const MAKES_CODES: &str = "
import base64, hashlib, hmac, sys, time
key, step = base64.b32decode(sys.argv[1]), int(time.time()) // 30 + int(sys.argv[2])
tag = hmac.new(key, step.to_bytes(8, 'big'), hashlib.sha1).digest()
at = tag[-1] & 15
print('%06d' % ((int.from_bytes(tag[at:at + 4], 'big') & 0x7fffffff) % 1000000))
";

fn code(secret: &str, steps: i64) -> String {
    let made =
        Command::new("python3").args(["-c", MAKES_CODES, secret, &steps.to_string()]).output();
    let made = made.expect("python3 is there");
    assert!(made.status.success(), "{made:?}");
    String::from_utf8(made.stdout).expect("digits").trim().to_owned()
}

/// What is in all elements `code` of a page.
fn codes_in(answer: &Answer) -> Vec<String> {
    let pieces = answer.body.split("<code>").skip(1);
    pieces.map(|piece| piece.split('<').next().expect("its end").to_owned()).collect()
}

fn with_code(browser: &mut Browser, password: &str, code: &str) -> Answer {
    let token = browser.get("/").expect(200).token();
    let fields = [("token", &*token), ("name", "ann"), ("password", password), ("code", code)];
    browser.post("/sign-in", &fields)
}

/// Switches it on, and gives the secret and the recovery codes.
fn switch_on(browser: &mut Browser) -> (String, Vec<String>) {
    let token = browser.get("/second-factor").expect(200).token();
    browser.post("/second-factor/begin", &[("token", &token), ("password", "a guess")]).expect(403);
    browser.post("/second-factor/on", &[("token", &token), ("code", "000000")]).expect(303);
    let shown = browser.post("/second-factor/begin", &[("token", &token), ("password", PASSWORD)]);
    let shown = shown.expect(200);
    assert!(shown.body.contains("class=\"qr\""), "{}", shown.body);
    let secret = codes_in(&shown).remove(0);
    let first = code(&secret, 0);
    let wrong = if first == "000000" { "000001" } else { "000000" };
    let again =
        browser.post("/second-factor/on", &[("token", &token), ("code", wrong)]).expect(403);
    assert_eq!(codes_in(&again)[0], secret, "the same secret is shown");
    let on = browser.post("/second-factor/on", &[("token", &token), ("code", &first)]).expect(200);
    let mut recovery = codes_in(&on);
    recovery.retain(|code| code.len() == 29);
    assert_eq!(recovery.len(), 10, "{}", on.body);
    (secret, recovery)
}

#[test]
fn signing_in_asks_for_a_code_that_counts_once_until_the_second_factor_is_switched_off() {
    let place = Place::new("attic");
    let mut browser = place.signed_in();
    let mut other = place.browser();
    with_code(&mut other, PASSWORD, "").expect(303);
    let (secret, recovery) = switch_on(&mut browser);
    assert!(browser.get("/").expect(200).body.contains("attic"), "this session goes on");
    assert!(!other.get("/").expect(200).body.contains("attic"), "others are over");

    let next = code(&secret, 1);
    let said = |answer: Answer| {
        answer.body.split("role=\"alert\"").nth(1).map(|words| words[..60].to_owned())
    };
    let without = said(sign_in(&mut other, "ann", PASSWORD).expect(403));
    let with_guess = said(with_code(&mut other, "not the password", &next).expect(403));
    assert!(without.is_some() && without == with_guess, "{without:?} {with_guess:?}");
    with_code(&mut other, PASSWORD, &next).expect(303);
    let mut third = place.browser();
    with_code(&mut third, PASSWORD, &next).expect(403);
    with_code(&mut third, PASSWORD, &recovery[0]).expect(303);
    with_code(&mut place.browser(), PASSWORD, &recovery[0]).expect(403);

    let page = third.get("/second-factor").expect(200);
    assert!(page.body.contains("9 recovery codes left"), "{}", page.body);
    let token = page.token();
    let off = |password, code| [("token", &*token), ("password", password), ("code", code)];
    third.post("/second-factor/off", &off(PASSWORD, &recovery[0])).expect(403);
    third.post("/second-factor/off", &off(PASSWORD, &recovery[1])).expect(303);
    with_code(&mut place.browser(), PASSWORD, "").expect(303);

    let told = place.told(&["audit", "--limit", "20"]);
    let noted = |what: &str| told.iter().filter(|entry| entry["command"] == what).count();
    assert_eq!((noted("second-factor-on"), noted("second-factor-off")), (1, 1), "{told:?}");
    let told = format!("{told:?}");
    assert!(!told.contains(&secret) && !told.contains(&next) && !told.contains(&recovery[1]));
}

#[test]
fn a_new_code_of_the_first_sign_in_takes_the_second_factor_away() {
    let place = Place::new("attic");
    let mut browser = place.signed_in();
    switch_on(&mut browser);
    set_up(&mut place.browser(), &place.code(), "another long password").expect(303);
    assert!(!browser.get("/").expect(200).body.contains("attic"), "its sessions are over");
    with_code(&mut place.browser(), "another long password", "").expect(303);
}

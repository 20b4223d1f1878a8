//! A server that goes while its snapshots are shown.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::place::Place;
use crate::house::{Machine, Server, send_signal, small_tree, text};

/// How long a page may take to say that nobody answers.
const TOLD_WITHIN: Duration = Duration::from_secs(15);

#[test]
fn a_page_says_within_seconds_that_the_server_does_not_answer_and_shows_it_once_it_does() {
    let machine = Machine::new();
    let mut server = Server::start(&machine.path("server"));
    machine.pair_with(&server);
    let source = machine.path("source");
    small_tree(&source);
    machine.ok(["backup", text(&source)]);
    let place = Place::by(machine, &[]);
    let mut browser = place.inside();
    let first = browser.get("/").expect(200);
    // People know it by its address.
    assert!(first.text().contains(&format!("https://{}/", server.address())), "{}", first.text());
    let link = first.links().into_iter().rfind(|link| link.starts_with("/at/")).expect("a link");

    send_signal(server.process(), Signal::STOP);
    let started = Instant::now();
    let told = browser.get(&link).expect(504);
    assert!(started.elapsed() < TOLD_WITHIN, "after {:?}", started.elapsed());
    assert!(told.text().contains(server.address()), "{}", told.text());
    assert!(told.text().contains("does not answer"), "{}", told.text());
    assert!(told.header("refresh").is_some(), "{}", told.head);
    send_signal(server.process(), Signal::CONT);
    while browser.get(&link).status != 200 {}
}

//! The lab's page in a real browser: it shows something, and asks nobody for anything.

mod browser;
mod picture;
mod site;

use std::path::Path;

use crate::house::{Machine, Server, small_tree};
use crate::linked::Linked;
use browser::{has_browser, shoot};
use site::{SITE, Site};

/// What the steps of the ladder, and the backups beside them, are drawn in.
const STEP: [u8; 3] = [0x2f, 0x81, 0xc7];
const BACKUP: [u8; 3] = [0xd1, 0x49, 0x5b];
/// Higher than any page of the lab.
const WHOLE_PAGE: (u32, u32) = (900, 9000);
const WINDOW: (u32, u32) = (800, 600);

/// A report of a measurement that was really made, in HTML.
fn page(machine: &Machine) -> String {
    let listening = crate::lab_net::Listening::start(machine, &[]);
    let file = machine.path("report.html");
    listening.measure(machine, &["--report", file.to_str().expect("UTF-8")]).expect(0);
    std::fs::read_to_string(file).expect("it is there")
}

#[test]
fn the_ladder_of_a_path_to_a_server_is_seen_in_a_browser() {
    if !has_browser() {
        return;
    }
    let machine = Machine::new();
    let server = Server::start(&machine.path("server"));
    machine.pair_with(&server);
    let (source, file, shown) =
        (machine.path("source"), machine.path("path.html"), machine.path("shown"));
    small_tree(&source);
    std::fs::create_dir(&shown).expect("room");
    let text = |path: &Path| path.to_str().expect("UTF-8").to_owned();
    machine.ok(["lab", "path", &text(&source), "--report", &text(&file)]);
    let page = std::fs::read_to_string(&file).expect("it is there");
    let ladder = page.split("<h2>The ladder</h2>").nth(1).expect("a ladder");
    let ladder = ladder.split("</svg>").next().expect("a picture");
    // Read, two processors, wire, disk and two copies; two backups' bars are of another colour.
    let bars = |colour: &str| ladder.matches(&format!("fill=\"{colour}\"")).count();
    assert_eq!((bars("#2f81c7"), bars("#d1495b")), (7, 2), "{ladder}");
    // What is above the ladder would fill the window.
    let head = page.split("<body>").next().expect("a head");
    let site = Site::of(format!("{head}<body><h2>The ladder</h2>{ladder}</svg></body></html>"));
    let picture = shoot(&site, &shown, WINDOW);
    let (count, share) = (picture.colours(), picture.marked());
    assert!(count > 50 && (0.02..0.5).contains(&share), "{count} colours, {share} of it marked");
}

#[test]
fn the_page_shows_pictures_in_a_browser_and_asks_nobody_for_anything() {
    if !has_browser() {
        return;
    }
    let machine = Machine::new();
    let (shown, blank) = (machine.path("shown"), machine.path("blank"));
    for folder in [&shown, &blank] {
        std::fs::create_dir(folder).expect("room");
    }
    let page = page(&machine);
    let site = Site::of(page.clone());
    let picture = shoot(&site, &shown, WINDOW);
    let asked = site.asked();
    assert!(
        !asked.is_empty() && asked.iter().all(|line| line.starts_with(&format!("GET {SITE} "))),
        "{asked:?}"
    );
    let (count, share) = (picture.colours(), picture.marked());
    assert!(count > 100 && (0.01..0.5).contains(&share), "{count} colours, {share} of it marked");

    // What a page fetches is seen, and its own policy forbids what the lab's pages never ask for.
    let fetching = "<img src=\"http://elsewhere.test/x\"><p>";
    let site = Site::of(format!("<!doctype html>{fetching}"));
    let picture = shoot(&site, &blank, WINDOW);
    assert!(site.asked().iter().any(|line| line.contains("elsewhere.test")));
    assert!(picture.marked() < 0.01);
    let site = Site::of(page.replace("<body>", &format!("<body>{fetching}")));
    shoot(&site, &blank, WINDOW);
    let asked = site.asked();
    assert!(!asked.iter().any(|line| line.contains("elsewhere.test")), "{asked:?}");
}

#[test]
fn the_whole_page_of_a_path_over_a_gigabit_link_is_seen_in_a_browser() {
    if !has_browser() {
        return;
    }
    let Some(linked) = Linked::of_rates(&[1_000_000_000]) else { return };
    let source = linked.path("source");
    small_tree(&source);
    let (file, shown) = (linked.path("path.html"), linked.path("shown"));
    std::fs::create_dir(&shown).expect("room");
    let text = |path: &Path| path.to_str().expect("UTF-8").to_owned();
    let (from, to) = (text(&source), text(&file));
    let summary = linked.run(&["lab", "path", &from, "--report", &to, "--json"]).summary();
    let ladder = summary["ladder"].as_array().expect("a ladder");
    let wire = ladder.iter().find(|rung| rung["name"] == "wire").expect("a wire");
    // A gigabit is 125 MB/s, less what packets cost, and what other tests take of the processor.
    let rate = wire["bytes_per_second"].as_f64().expect("a rate");
    assert!((5e6..126e6).contains(&rate), "{wire}");

    let site = Site::of(std::fs::read_to_string(&file).expect("it is there"));
    let picture = shoot(&site, &shown, WHOLE_PAGE);
    assert!(site.asked().iter().all(|line| line.starts_with(&format!("GET {SITE} "))));
    // The ladder's bars, one below the other.
    let (steps, backups) = (picture.bars(STEP), picture.bars(BACKUP));
    assert!(steps >= 6 && backups >= 2, "{steps} steps, {backups} backups");
    // The end of the page is in the picture, and there is much above it.
    let last = picture.last_marked_row();
    assert!((1500..WHOLE_PAGE.1 as usize - 50).contains(&last), "it ends at {last}");
    assert!(picture.colours() > 100, "{} colours", picture.colours());
}

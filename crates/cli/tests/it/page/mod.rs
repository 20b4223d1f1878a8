//! The lab's page in a real browser: it shows something, and asks nobody for anything.

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};

use crate::house::{Machine, Outcome, Server, small_tree};
use crate::mounts::is_there;

/// Where the browser finds the page: every name leads to the test's proxy.
const SITE: &str = "http://report.test/";

/// A proxy that gives one page, nothing else, and says what it was asked for.
struct Site {
    address: SocketAddr,
    asked: Receiver<String>,
}

impl Site {
    fn of(page: String) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = listener.local_addr().expect("bound");
        let (tell, asked) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let Some(line) = answer(&stream, &page) else { continue };
                if tell.send(line).is_err() {
                    return;
                }
            }
        });
        Self { address, asked }
    }

    /// What was asked for on behalf of the page; a browser has wishes of its own.
    fn asked(&self) -> Vec<String> {
        self.asked.try_iter().filter(|line| line.contains(".test")).collect()
    }
}

/// Answers one request, and says which it was.
fn answer(mut stream: &TcpStream, page: &str) -> Option<String> {
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    reader.read_line(&mut first).ok()?;
    let mut line = String::new();
    while reader.read_line(&mut line).ok()? > 2 {
        line.clear();
    }
    let (status, body) = match first.starts_with(&format!("GET {SITE} ")) {
        true => ("200 OK", page),
        false => ("404 Not Found", ""),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes())).ok()?;
    Some(first.trim().to_owned())
}

/// Lets the browser show the site, and takes a picture.
fn shoot(site: &Site, folder: &Path) {
    let picture = folder.join("picture.png");
    let mut command = Command::new("chromium");
    command.args(["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]);
    command.args([
        "--disable-background-networking",
        "--disable-component-update",
        "--no-first-run",
    ]);
    command.args(["--window-size=800,600", "--proxy-bypass-list=<-loopback>"]);
    command.arg(format!("--proxy-server=http://{}", site.address));
    command.arg(format!("--user-data-dir={}", folder.join("profile").display()));
    command.arg(format!("--screenshot={}", picture.display())).arg(SITE);
    let shown = Outcome::of(command.env("HOME", folder));
    assert!(picture.is_file(), "{shown:?}");
}

/// How many colours are in the picture, and which share of it is not white.
fn colours(folder: &Path) -> (usize, f64) {
    let script = r#"
import struct, sys, zlib
data, at, packed, info = open(sys.argv[1], "rb").read(), 8, b"", None
while at < len(data):
    length, kind = struct.unpack(">I4s", data[at:at + 8])
    body = data[at + 8:at + 8 + length]
    if kind == b"IHDR": info = struct.unpack(">IIBBBBB", body)
    if kind == b"IDAT": packed += body
    at += length + 12
width, height, depth, color = info[:4]
size = {2: 3, 6: 4}[color]
raw, before, seen, marked = zlib.decompress(packed), bytes(width * size), set(), 0
for row in range(height):
    start = row * (width * size + 1)
    kind, line = raw[start], bytearray(raw[start + 1:start + 1 + width * size])
    for i in range(len(line)):
        a = line[i - size] if i >= size else 0
        b = before[i]
        c = before[i - size] if i >= size else 0
        p = a + b - c
        nearest = min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]
        line[i] = (line[i] + [0, a, b, (a + b) // 2, nearest][kind]) & 255
    for i in range(0, len(line), size):
        pixel = bytes(line[i:i + 3])
        seen.add(pixel)
        marked += pixel != b"\xff\xff\xff"
    before = bytes(line)
print(len(seen), marked / (width * height))
"#;
    let picture = folder.join("picture.png");
    let mut command = Command::new("/usr/bin/python3");
    let said = Outcome::of(command.arg("-c").arg(script).arg(picture)).expect(0).stdout;
    let (count, share) = said.trim().split_once(' ').expect("two numbers");
    (count.parse().expect("a number"), share.parse().expect("a share"))
}

/// A report of a measurement that was really made, in HTML.
fn page(machine: &Machine) -> String {
    let listening = crate::lab_net::Listening::start(machine, &[]);
    let file = machine.path("report.html");
    listening.measure(machine, &["--report", file.to_str().expect("UTF-8")]).expect(0);
    std::fs::read_to_string(file).expect("it is there")
}

#[test]
fn the_ladder_of_a_path_to_a_server_is_seen_in_a_browser() {
    if !is_there("chromium", Path::new("/usr/bin/chromium").exists()) {
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
    // Read, processor, wire, disk and two copies; two backups' bars are of another colour.
    let bars = |colour: &str| ladder.matches(&format!("fill=\"{colour}\"")).count();
    assert_eq!((bars("#1b6ca8"), bars("#d1495b")), (6, 2), "{ladder}");
    // What is above the ladder would fill the window.
    let head = page.split("<body>").next().expect("a head");
    let site = Site::of(format!("{head}<body><h2>The ladder</h2>{ladder}</svg></body></html>"));
    shoot(&site, &shown);
    let (count, share) = colours(&shown);
    assert!(count > 50 && (0.02..0.5).contains(&share), "{count} colours, {share} of it marked");
}

#[test]
fn the_page_shows_pictures_in_a_browser_and_asks_nobody_for_anything() {
    if !is_there("chromium", Path::new("/usr/bin/chromium").exists()) {
        return;
    }
    let machine = Machine::new();
    let (shown, blank) = (machine.path("shown"), machine.path("blank"));
    for folder in [&shown, &blank] {
        std::fs::create_dir(folder).expect("room");
    }
    let page = page(&machine);
    let site = Site::of(page.clone());
    shoot(&site, &shown);
    let asked = site.asked();
    assert!(
        !asked.is_empty() && asked.iter().all(|line| line.starts_with(&format!("GET {SITE} "))),
        "{asked:?}"
    );
    let (count, share) = colours(&shown);
    assert!(count > 100 && (0.01..0.5).contains(&share), "{count} colours, {share} of it marked");

    // What a page fetches is seen, and its own policy forbids what the lab's pages never ask for.
    let fetching = "<img src=\"http://elsewhere.test/x\"><p>";
    let site = Site::of(format!("<!doctype html>{fetching}"));
    shoot(&site, &blank);
    assert!(site.asked().iter().any(|line| line.contains("elsewhere.test")));
    assert!(colours(&blank).1 < 0.01);
    let site = Site::of(page.replace("<body>", &format!("<body>{fetching}")));
    shoot(&site, &blank);
    let asked = site.asked();
    assert!(!asked.iter().any(|line| line.contains("elsewhere.test")), "{asked:?}");
}

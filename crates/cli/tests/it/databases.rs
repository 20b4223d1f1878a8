//! The recipes of `docs/databases.md`, as they stand there, with the real databases: what comes back has the same rows.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::Command;

use holdall_testkit::{Process, is_there};

use crate::house::{HOLDALL, Machine, Outcome, text};

const PAGE: &str = include_str!("../../../../docs/databases.md");
/// No database lets root start it.
const NOBODY: u32 = 65534;
const AS_NOBODY: [&str; 4] = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];

/// The blocks of one kind that a section of the page has.
fn blocks(section: &str, kind: &str) -> Vec<String> {
    let section = PAGE.split(&format!("\n## {section}\n")).nth(1).expect("a section");
    let section = section.split("\n## ").next().unwrap();
    let begin = format!("```{kind}\n");
    let blocks = section.split(&begin).skip(1);
    blocks.map(|block| block.split("```").next().unwrap().to_owned()).collect()
}

/// A computer with a database, and a repository.
struct Scene {
    machine: Machine,
    /// What clients of the database are told by.
    variables: Vec<(&'static str, OsString)>,
}

impl Scene {
    fn new() -> Self {
        let machine = Machine::new();
        machine.init(&["-r", text(&machine.path("repo"))]);
        for folder in ["home/.cache", "config", "server"] {
            fs::create_dir_all(machine.path(folder)).unwrap();
        }
        Self { machine, variables: Vec::new() }
    }

    /// Where a server may put its files; a socket's path has to be short.
    fn folder_of_server(&self) -> PathBuf {
        let folder = self.machine.path("server");
        if is_root() {
            chown(&folder, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        folder
    }

    /// Writes a set of the page into `config.toml`.
    fn configure(&self, set: &str) {
        let config = format!("repository = \"{}\"\n{set}", text(&self.machine.path("repo")));
        fs::write(self.machine.path("config/config.toml"), config).unwrap();
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = self.machine.command_by(words, [""; 0]);
        let own = Path::new(HOLDALL).parent().unwrap().to_owned();
        let path = std::env::var_os("PATH").unwrap();
        let path = std::env::join_paths([own].into_iter().chain(std::env::split_paths(&path)));
        command.env("PATH", path.unwrap()).envs(self.variables.iter().cloned());
        command.current_dir(self.machine.path("home"));
        command
    }

    /// What a script of the page, or a client, prints.
    fn said(&self, script: &str) -> String {
        Outcome::of(&mut self.command(&["bash", "-euo", "pipefail", "-c", script])).expect(0).stdout
    }

    /// Backs the set up, which has to succeed or to fail.
    fn run(&self, set: &str, code: i32) -> Outcome {
        let command = format!("holdall agent run {set}");
        Outcome::of(&mut self.command(&["bash", "-c", &command])).expect(code)
    }
}

fn is_root() -> bool {
    holdall_sys::users::effective_uid() == 0
}

/// A command of a server, of which no line is lost, as somebody who is not root.
fn server(words: &[&str]) -> Command {
    let by = if is_root() { &AS_NOBODY[..] } else { &[] };
    let words = [by, &["sh", "-c", "exec \"$@\" 2>&1", "sh"], words].concat();
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).env_remove("HOME");
    command
}

fn ran(command: &mut Command) {
    Outcome::of(command).expect(0);
}

/// The folder of PostgreSQL's programs: Debian has one for each version.
fn postgresql() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let folders = versions.map(|version| version.path().join("bin"));
    folders.filter(|folder| folder.join("initdb").exists()).max()
}

const ROWS: &str = "CREATE TABLE orders (id INTEGER PRIMARY KEY, who VARCHAR(99) NOT NULL);
INSERT INTO orders VALUES (1, 'Ada'), (2, 'Zoë; ''quoted'''), (3, 'a
line');";
const QUERY: &str = "SELECT id, who FROM orders ORDER BY id";

#[test]
fn a_database_of_postgresql_comes_back_with_the_same_rows() {
    let programs = postgresql();
    if !is_there("postgresql", programs.is_some()) {
        return;
    }
    let (mut scene, programs) = (Scene::new(), programs.unwrap());
    let folder = scene.folder_of_server();
    let data = folder.join("data");
    let program = |name: &str| programs.join(name).to_str().unwrap().to_owned();
    let make =
        [&program("initdb"), "-D", text(&data), "-A", "trust", "-U", "ada", "-N", "-E", "UTF8"];
    ran(&mut server(&make));
    let start = [
        &program("postgres"),
        "-D",
        text(&data),
        "-k",
        text(&folder),
        "-h",
        "",
        "-F",
        "-c",
        "log_line_prefix=",
    ];
    let mut running = Process::spawn(&mut server(&start)).unwrap();
    running.wait_for_line("LOG:  database system is ready").unwrap();
    scene.variables = vec![("PGHOST", folder.into()), ("PGUSER", "ada".into())];

    scene.said(&format!("createdb shop; psql -q shop <<'END'\n{ROWS}\nEND"));
    let [set] = &blocks("PostgreSQL", "toml")[..] else { panic!("one recipe") };
    scene.configure(set);
    scene.run("shop", 0);
    let [back] = &blocks("PostgreSQL", "sh")[..] else { panic!("one way back") };
    scene.said(back);
    let rows = |database: &str| scene.said(&format!("psql -At {database} -c '{QUERY}'"));
    assert!(rows("shop").contains("Zoë; 'quoted'"));
    assert_eq!(rows("shop_again"), rows("shop"));

    // A table that cannot be dumped is no backup without it.
    scene.said("dropdb shop");
    let failed = scene.run("shop", 1).stderr;
    assert!(
        failed.contains("the command pg_dump ended with 1") && failed.contains("\"shop\""),
        "{failed}"
    );
    let listed = scene.machine.ok(["snapshots", "--json"]).of_type("snapshot");
    assert_eq!(listed.len(), 1);
}

#[test]
fn a_database_of_mariadb_comes_back_with_the_same_rows() {
    let has = |program: &str| {
        ["/usr/bin", "/usr/sbin"].iter().any(|at| Path::new(at).join(program).exists())
    };
    if !is_there("mariadb-server", has("mariadbd") && has("mariadb-install-db")) {
        return;
    }
    let scene = Scene::new();
    let folder = scene.folder_of_server();
    let (data, socket) = (format!("--datadir={}", text(&folder.join("data"))), folder.join("s"));
    let small = [
        "--innodb-log-file-size=4M",
        "--innodb-buffer-pool-size=16M",
        "--innodb-flush-log-at-trx-commit=0",
    ];
    let make = [
        "mariadb-install-db",
        "--no-defaults",
        &data,
        "--skip-test-db",
        "--auth-root-authentication-method=normal",
    ];
    ran(&mut server(&[&make[..], &small].concat()));
    let (at, pid) = (
        format!("--socket={}", text(&socket)),
        format!("--pid-file={}", text(&folder.join("pid"))),
    );
    let start = ["mariadbd", "--no-defaults", &data, &at, &pid, "--skip-networking"];
    let mut running = Process::spawn(&mut server(&[&start[..], &small].concat())).unwrap();
    running.wait_for_line("Version: ").unwrap();
    let client =
        format!("[client]\nuser=root\nsocket={}\ndefault-character-set=utf8mb4\n", text(&socket));
    fs::write(scene.machine.path("home/.my.cnf"), client).unwrap();

    scene.said(&format!(
        "mariadb -e 'CREATE DATABASE shop CHARACTER SET utf8mb4'; mariadb shop <<'END'\n{ROWS}\nEND"
    ));
    let [set] = &blocks("MariaDB and MySQL", "toml")[..] else { panic!("one recipe") };
    scene.configure(set);
    scene.run("shop", 0);
    let [back] = &blocks("MariaDB and MySQL", "sh")[..] else { panic!("one way back") };
    scene.said(back);
    let rows = |database: &str| scene.said(&format!("mariadb -N {database} -e '{QUERY}'"));
    assert!(rows("shop").contains("Zoë; 'quoted'"));
    assert_eq!(rows("shop_again"), rows("shop"));

    let dump = || scene.said("holdall dump latest:shop.sql");
    let before = dump();
    scene.run("shop", 0);
    assert!(before == dump(), "a dump of what did not change is the same");
    scene.said("mariadb -e 'DROP DATABASE shop'");
    let failed = scene.run("shop", 1).stderr;
    assert!(failed.contains("the command mariadb-dump ended with 2"), "{failed}");
}

#[test]
fn a_database_of_sqlite_comes_back_with_the_same_rows() {
    let scene = Scene::new();
    let is_installed = Path::new("/usr/bin/sqlite3").exists();
    if !is_there("sqlite3", is_installed) {
        return;
    }
    scene.said(&format!("sqlite3 ~/notes.db <<'END'\nPRAGMA journal_mode=WAL;\n{ROWS}\nEND"));
    let rows = |file: &str| scene.said(&format!("sqlite3 {file} '{QUERY}'"));
    let (sets, ways_back) = (blocks("SQLite", "toml"), blocks("SQLite", "sh"));
    assert_eq!((sets.len(), ways_back.len()), (2, 2));
    for (set, back) in sets.iter().zip(&ways_back) {
        scene.configure(set);
        scene.run("notes", 0);
        scene.said(back);
        assert!(rows("~/notes.db").contains("Zoë; 'quoted'"));
        assert_eq!(rows("~/notes-again.db"), rows("~/notes.db"));
        scene.said("rm ~/notes-again.db; mv ~/notes.db ~/moved.db");
        scene.run("notes", 1);
        scene.said("mv ~/moved.db ~/notes.db");
    }
    assert!(!scene.machine.path("home/.cache/notes-copy.db").exists(), "the copy is gone");
}

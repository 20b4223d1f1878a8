//! What the tests share: machines with folders of their own, and servers in processes of their own.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use holdall_crypto::{
    Opening, RecoveryKit, RepositoryKeys, sign_wrappings, unwrap, wrap_passphrase,
};
use holdall_format::{Spare, Wrapping, WrappingKind, WrappingSet};
use holdall_testkit::Process;
pub(crate) use holdall_testkit::files_below;
use rustix::process::{Pid, Signal};
use serde_json::Value;
use tempfile::TempDir;

use crate::schema;

/// Where the recovery kit of a new repository lies that a test has no use for.
const KIT_OF_INIT: &str = "kit-of-init.txt";

pub(crate) const HOLDALL: &str = env!("CARGO_BIN_EXE_holdall");

/// A folder on a real disk that vanishes with the test. Everybody may get to it, so that tests can
/// be an ordinary user wherever this project lies, root's own home too.
pub(crate) fn folder() -> TempDir {
    let here = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let is_open = |dir: &Path| fs::metadata(dir).is_ok_and(|dir| dir.mode() & 0o001 != 0);
    let place = if here.ancestors().all(is_open) { here } else { Path::new("/var/tmp") };
    tempfile::tempdir_in(place).expect("a temporary folder")
}

/// A computer, as far as holdall is concerned: folders for configuration, state and cache, and a
/// password.
pub(crate) struct Machine {
    folder: PathBuf,
    password: Option<&'static str>,
    _vanishes: Option<TempDir>,
}

impl Machine {
    /// One that never heard of holdall.
    pub(crate) fn new() -> Self {
        let folder = folder();
        let machine = Self::in_folder(folder.path().to_owned());
        Self { _vanishes: Some(folder), ..machine }
    }

    /// One whose folder is another's to make and to remove.
    pub(crate) fn in_folder(folder: PathBuf) -> Self {
        Self { folder, password: Some("correct horse"), _vanishes: None }
    }

    /// The same with another password, or none.
    pub(crate) fn with_password(mut self, password: Option<&'static str>) -> Self {
        self.password = password;
        self
    }

    /// A place for anything the test needs.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.canonicalize().expect("it is there").join(name)
    }

    /// A command of this machine.
    pub(crate) fn command<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Command {
        let mut command = Command::new(HOLDALL);
        command.args(args).stdin(Stdio::null()).env_clear();
        command.env("HOME", self.path("home")).env("PATH", env_path());
        command.env("HOLDALL_CONFIG_DIR", self.path("config"));
        command.env("HOLDALL_CACHE_DIR", self.path("cache"));
        command.env("TMPDIR", env!("CARGO_TARGET_TMPDIR"));
        if let Some(password) = self.password {
            command.env("HOLDALL_PASSWORD", password);
        }
        command
    }

    /// A command of this machine that another program runs, such as one that gives up rights first.
    pub(crate) fn command_by<A: AsRef<OsStr>>(
        &self,
        by: &[&str],
        args: impl IntoIterator<Item = A>,
    ) -> Command {
        let mut outer = run_by(by, &self.command(args));
        outer.stdin(Stdio::null());
        outer
    }

    /// Runs a command to its end by another program.
    pub(crate) fn run_by<A: AsRef<OsStr>>(
        &self,
        by: &[&str],
        args: impl IntoIterator<Item = A>,
    ) -> Outcome {
        Outcome::of(&mut self.command_by(by, args))
    }

    /// Runs a command to its end.
    pub(crate) fn run<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Outcome {
        Outcome::of(&mut self.command(args))
    }

    /// Runs a command that must succeed.
    pub(crate) fn ok<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Outcome {
        self.run(args).expect(0)
    }

    /// Runs a command with `--json` that must succeed, and returns its summary.
    pub(crate) fn summary<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Value {
        let args = args.into_iter().map(|arg| arg.as_ref().to_owned());
        self.ok(args.chain([OsStr::new("--json").to_owned()])).summary()
    }

    /// Makes a repository in a directory, whose password opens it at once from then on: being stretched
    /// takes half a second of each command, and is tested where it matters.
    pub(crate) fn init(&self, args: &[&str]) -> Outcome {
        let value = |option| args.iter().position(|arg| *arg == option).map(|at| args[at + 1]);
        let repo = value("-r").expect("a directory");
        let own_kit = text(&self.path(KIT_OF_INIT)).to_owned();
        let _ = fs::remove_file(&own_kit);
        let (kit, more) = match value("--recovery-kit") {
            Some(kit) => (kit, vec![]),
            None => (&*own_kit, vec!["--recovery-kit", &own_kit]),
        };
        let made = self.ok([&["init"], args, &more].concat());
        let password = match value("--password-file") {
            Some(file) => fs::read_to_string(file).expect("a password"),
            None => self.password.expect("a password").to_owned(),
        };
        let kit = fs::read_to_string(kit).expect("a kit");
        let kit = RecoveryKit::from_text(&kit).expect("a kit");
        wrap_again(repo.as_ref(), password.trim_end(), &Opening::Recovery(&kit.secret));
        made
    }

    /// Runs an administrator's command on a server's data folder, with `--json`.
    pub(crate) fn administer(&self, data: &Path, args: &[&str]) -> Outcome {
        let data = data.to_str().expect("UTF-8");
        self.run([&["admin", "--json", "--data", data], args].concat())
    }

    /// Pairs with `server`; the recovery kit lies at `kit.txt`.
    pub(crate) fn pair_with(&self, server: &Server) -> &Self {
        self.pair(&server.invite())
    }

    /// The same, so that the repository opens by this machine's password too.
    pub(crate) fn pair_with_password(&self, server: &Server) {
        let kit = self.path("kit.txt");
        self.ok(["pair", &server.invite(), "--recovery-kit", text(&kit)]);
    }

    /// Pairs by an invite, without a password, which no paired machine needs and which takes time to stretch.
    pub(crate) fn pair(&self, invite: &str) -> &Self {
        let mut command = self.command(["pair", invite, "--recovery-kit"]);
        command.arg(self.path("kit.txt")).env_remove("HOLDALL_PASSWORD");
        Outcome::of(&mut command).expect(0);
        self
    }
}

/// Wraps the keys of a new repository again for its password, with the least that one can be stretched.
pub(crate) fn open_at_once(repo: &Path, password: &str) {
    wrap_again(repo, password, &Opening::Passphrase(password));
}

fn wrap_again(repo: &Path, password: &str, opening: &Opening<'_>) {
    let file = repo.join("wrappings/0000000000000001");
    let set = WrappingSet::decode_signed(&fs::read(&file).expect("it is there")).expect("a set");
    let ring = unwrap(&set, opening).expect("it opens");
    let again = |old: Wrapping| match old.kind {
        WrappingKind::Passphrase => wrap_passphrase(&ring, password, 1),
        _ => old,
    };
    let wrappings = set.wrappings.into_iter().map(again).collect();
    let signed = sign_wrappings(&RepositoryKeys::derive(&ring), set.generation, wrappings);
    let signed = signed.expect("a set");
    fs::write(file, &signed).expect("it can be written");
    let config = fs::read(repo.join("config")).expect("it is there");
    let spare = Spare::of(&config, &signed).expect("they belong together");
    fs::write(repo.join("spare/0000000000000001"), spare.encode()).expect("it can be written");
}

/// How a command ended, and what it said.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Outcome {
    /// Runs a command to its end.
    pub(crate) fn of(command: &mut Command) -> Self {
        let output = command.output().expect("it starts");
        Self {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// How a process ended that was waited for, and what it said on standard output.
    pub(crate) fn of_process(mut process: Process) -> Self {
        let (status, lines) = process.wait().expect("it ends");
        Self { code: status.code(), stdout: lines.join("\n"), stderr: String::new() }
    }

    /// Checks how it ended.
    #[track_caller]
    pub(crate) fn expect(self, code: i32) -> Self {
        let Self { stdout, stderr, .. } = &self;
        assert_eq!(self.code, Some(code), "\n--- said\n{stdout}\n--- and\n{stderr}");
        self
    }

    /// The JSON objects on standard output; every line must be one, as the schema says.
    #[track_caller]
    pub(crate) fn objects(&self) -> Vec<Value> {
        let parse = |line: &str| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"));
        let objects: Vec<_> = self.stdout.lines().map(parse).collect();
        objects.iter().for_each(schema::check);
        objects
    }

    /// Those of one type.
    pub(crate) fn of_type(&self, message_type: &str) -> Vec<Value> {
        let mut all = self.objects();
        all.retain(|object| object["message_type"] == message_type);
        all
    }

    /// The last summary.
    #[track_caller]
    pub(crate) fn summary(&self) -> Value {
        self.of_type("summary").pop().expect("a summary")
    }
}

/// A server in a process of its own; dropping it kills it.
pub(crate) struct Server {
    process: Process,
    data: PathBuf,
    address: String,
}

impl Server {
    /// Starts one on a free port, with its data in `data`, and waits until it listens.
    pub(crate) fn start(data: &Path) -> Self {
        Self::start_by(&mut Self::command(data), data)
    }

    /// Starts one by a command that [`Server::command`] made.
    pub(crate) fn start_by(command: &mut Command, data: &Path) -> Self {
        let mut process = Process::spawn(command).expect("it starts");
        let line = process.wait_for_line("listening on https://").expect("it listens");
        let address = line.trim_start_matches("listening on https://").trim().to_owned();
        Self { process, data: data.to_owned(), address }
    }

    /// The command that starts one on a free port.
    pub(crate) fn command(data: &Path) -> Command {
        Self::command_at("127.0.0.1:0", data)
    }

    /// The command that starts one at that address.
    pub(crate) fn command_at(address: &str, data: &Path) -> Command {
        fs::create_dir_all(data).expect("a folder for the server");
        let mut command = Command::new(HOLDALL);
        command.args(["serve", "--listen", address, "--data"]).arg(data);
        command.env_clear().env("HOME", data).env("PATH", env_path());
        // Its log is for administrators.
        command.stderr(Stdio::null());
        command
    }

    /// `HOST:PORT`.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// The process.
    pub(crate) fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// An invite, as the administrator makes it beside the running server.
    pub(crate) fn invite(&self) -> String {
        self.invite_with(&[])
    }

    /// The same with more arguments.
    pub(crate) fn invite_with(&self, more: &[&str]) -> String {
        let mut command = Command::new(HOLDALL);
        command.args(["invite", "--data"]).arg(&self.data).args(more);
        let output = command.env_clear().env("HOME", &self.data).output().expect("it starts");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
        said.lines().last().expect("an invite").to_owned()
    }
}

/// Waits until a command with `--json` says for the `times`th time that it has dealt with something, be it a part
/// of a file.
pub(crate) fn wait_for_progress(process: &mut Process, times: usize) {
    let mut said = 0;
    while said < times {
        let line = process.wait_for_line("{\"message_type\":\"status\"").expect("it goes on");
        let status: Value = serde_json::from_str(&line).expect("JSON");
        let has_some = |what: &str| status[what].as_u64() > Some(0);
        said += usize::from(has_some("items_done") || has_some("bytes_done"));
    }
}

/// Sends a process a signal.
pub(crate) fn send_signal(process: &Process, signal: Signal) {
    let pid = i32::try_from(process.id()).ok().and_then(Pid::from_raw).expect("a process");
    rustix::process::kill_process(pid, signal).expect("it lives");
}

/// Whether this is root, without whom `what` cannot be tested, as in CI it has to be.
pub(crate) fn is_root(what: &str) -> bool {
    let is_root = holdall_sys::users::effective_uid() == 0;
    holdall_testkit::is_there(&format!("root, as who alone can {what}"), is_root)
}

/// Makes a small tree with a bit of everything that is not special.
pub(crate) fn small_tree(dir: &Path) {
    fs::create_dir_all(dir.join("docs/empty")).expect("a folder");
    fs::write(dir.join("docs/letter.txt"), "Dear reader,\n").expect("a file");
    fs::write(dir.join("docs/empty.txt"), "").expect("a file");
    fs::write(dir.join("large.bin"), holdall_testkit::Random::new(5).bytes(3_000_000))
        .expect("a file");
    std::os::unix::fs::symlink("docs/letter.txt", dir.join("link")).expect("a link");
}

/// All bytes of the files below a folder.
pub(crate) fn disk_bytes(dir: &Path) -> u64 {
    files_below(dir).iter().map(|file| fs::metadata(file).map_or(0, |found| found.len())).sum()
}

/// A path as an argument of a command.
pub(crate) fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// `command` run by another program with arguments, such as `ip netns exec NAME`; its environment
/// stays.
pub(crate) fn run_by(prefix: &[impl AsRef<OsStr>], command: &Command) -> Command {
    let mut words = prefix.iter().map(AsRef::as_ref).chain([command.get_program()]);
    let mut outer = Command::new(found(words.next().expect("a program")));
    outer.args(words).args(command.get_args()).env_clear();
    outer.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    outer
}

/// Where a program lies. One that is named by its path is started without copying this whole process first,
/// which costs more than most commands do.
fn found(program: &OsStr) -> PathBuf {
    let places = env_path();
    let mut all = std::env::split_paths(&places).map(|place| place.join(program));
    all.find(|path| path.is_file()).unwrap_or_else(|| program.into())
}

fn env_path() -> std::ffi::OsString {
    std::env::var_os("PATH").unwrap_or_default()
}

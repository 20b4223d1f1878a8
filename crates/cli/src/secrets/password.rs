//! Where a password comes from: a file, the environment, a command, or the terminal. Never an
//! argument, which every other user of the computer could read.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use holdall_crypto::WORK_FACTOR_LOG_N;
use holdall_format::OneLine;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios};
use zeroize::Zeroizing;

use crate::config::{Origin, PasswordSettings, below_home};
use crate::exit::{Exit, Refusal, exit_of};
use crate::secrets::password_text::{PASSWORD_MAX_BYTES, checked, not_utf8, oddity, read, text_of};
use crate::terminal::interrupt::Interrupt;
use crate::terminal::little_memory::fits_memory;
use crate::terminal::output::Output;

/// A place that a password can be taken from without asking anybody.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Source {
    File(PathBuf),
    Command(String),
    Variable(Zeroizing<String>),
}

/// Which password is meant, by the names of what gives it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Names {
    /// What it is.
    what: &'static str,
    /// The flag that names a file.
    pub(crate) flag: &'static str,
    /// What the variables begin with.
    pub(crate) variable: &'static str,
}

impl Names {
    /// What to give where there is no terminal.
    fn places(self) -> String {
        let Names { flag, variable, .. } = self;
        format!("give {flag} FILE, or set {variable}_FILE or {variable}_COMMAND")
    }
}

/// What to give where there is no terminal to ask for a new password.
const NEW_PLACES: &str = "give --new-password-file FILE, or set HOLDALL_NEW_PASSWORD";
/// The repository's.
pub(crate) const PASSWORD: Names =
    Names { what: "password", flag: "--password-file", variable: "HOLDALL_PASSWORD" };
/// That of the second repository, which is named with `--from`.
pub(crate) const FROM_PASSWORD: Names =
    Names { what: "password", flag: "--from-password-file", variable: "HOLDALL_FROM_PASSWORD" };

/// Gives a new password of a repository that exists.
const NEW_PASSWORD: &str = "HOLDALL_NEW_PASSWORD";

/// What an administrator of a server handed out for deletions.
pub(crate) const ADMIN_TOKEN: Names =
    Names { what: "token", flag: "--admin-token-file", variable: "HOLDALL_ADMIN_TOKEN" };

/// Where a password comes from.
#[derive(Clone)]
pub(crate) struct Passwords {
    names: Names,
    source: Option<Source>,
    origin: Origin,
    interrupt: Interrupt,
}

impl Passwords {
    /// Flag before environment before `config.toml`; else the terminal.
    ///
    /// # Errors
    /// [`Refusal`] if a variable is not text.
    pub(crate) fn new(
        names: Names,
        flag: Option<&Path>,
        settings: &PasswordSettings,
        interrupt: &Interrupt,
    ) -> Result<Self> {
        let named = |end: &str| format!("{}{end}", names.variable);
        let variable = |end: &str| variable(&named(end));
        let (source, origin) = if let Some(file) = flag {
            (Source::File(file.to_owned()), Origin::Flag(names.flag))
        } else if let Some(file) = variable("_FILE")? {
            let file = below_home(Path::new(&file))?;
            (Source::File(file), Origin::Environment(named("_FILE")))
        } else if let Some(command) = variable("_COMMAND")? {
            (Source::Command(command), Origin::Environment(named("_COMMAND")))
        } else if let Some(password) = variable("")? {
            let password = checked(&password, names.what, names.variable)?;
            (Source::Variable(password), Origin::Environment(named("")))
        } else {
            return Ok(Self::by(names, settings, interrupt));
        };
        Ok(Self { names, source: Some(source), origin, interrupt: interrupt.clone() })
    }

    /// From what the settings say; else the terminal.
    fn by(names: Names, settings: &PasswordSettings, interrupt: &Interrupt) -> Self {
        let key = |key: &str| Origin::File(format!("{}{key}", settings.table));
        let (source, origin) = match (&settings.file, &settings.command) {
            (Some(file), _) => (Some(Source::File(file.clone())), key("password_file")),
            (None, Some(command)) => {
                (Some(Source::Command(command.clone())), key("password_command"))
            }
            (None, None) => (None, Origin::Default),
        };
        Self { names, source, origin, interrupt: interrupt.clone() }
    }

    /// The same with other settings, where neither flag nor environment says anything.
    pub(crate) fn or_by(&self, settings: &PasswordSettings) -> Self {
        match self.origin {
            Origin::Flag(_) | Origin::Environment(_) => self.clone(),
            Origin::File(_) | Origin::Default => Self::by(self.names, settings, &self.interrupt),
        }
    }

    /// The file that it is read from, if it is one.
    pub(crate) fn file(&self) -> Option<&Path> {
        match &self.source {
            Some(Source::File(file)) => Some(file),
            _ => None,
        }
    }

    /// Whether it is read from a file, or from what a command prints.
    pub(crate) fn is_read(&self) -> bool {
        matches!(self.source, Some(Source::File(_) | Source::Command(_)))
    }

    /// Where it comes from, and what gives it: nothing of the password itself, and of a command only its program.
    pub(crate) fn described(&self) -> (Origin, Option<String>) {
        let what = self.source.as_ref().map(|source| match source {
            Source::File(file) => file.display().to_string(),
            Source::Command(command) => program_of(command).to_owned(),
            Source::Variable(_) => "not shown".to_owned(),
        });
        (self.origin.clone(), what)
    }

    /// From nowhere but the terminal.
    pub(crate) fn none(interrupt: &Interrupt) -> Self {
        Self {
            names: PASSWORD,
            source: None,
            origin: Origin::Default,
            interrupt: interrupt.clone(),
        }
    }

    /// The password, if it can be had without asking at the terminal.
    ///
    /// # Errors
    /// If the place that was named does not yield one.
    pub(crate) fn given(&self) -> Result<Option<Zeroizing<String>>> {
        let Names { what, flag, variable } = self.names;
        let password = match &self.source {
            None => return Ok(None),
            Some(Source::File(file)) => self.interrupt.while_waiting(|| from_file(file, what))?,
            Some(Source::Command(command)) => {
                self.interrupt.while_waiting(|| from_command(command, what))?
            }
            Some(Source::Variable(password)) => password.clone(),
        };
        if password.is_empty() {
            let empty = Refusal::new(Exit::Usage, format!("the {what} that was given is empty"));
            let places = format!("it comes from {flag} or from {variable}*");
            return Err(empty.hint(places).into());
        }
        Ok(Some(password))
    }

    /// The password of a repository that exists.
    ///
    /// # Errors
    /// As for [`Passwords::given`]; if there is no terminal to ask at.
    pub(crate) fn existing(&self, place: &str) -> Result<Zeroizing<String>> {
        match self.given()? {
            Some(password) => Ok(password),
            None => {
                let what = format!("a {}", self.names.what);
                let mut terminal = Terminal::open(&what, &self.names.places(), &self.interrupt)?;
                terminal.ask(&format!("password for {place}: "))
            }
        }
    }

    /// The password of a repository that is about to be made: asked for twice.
    ///
    /// # Errors
    /// As for [`Passwords::existing`]; if the two differ.
    pub(crate) fn chosen(&self, place: &str) -> Result<Zeroizing<String>> {
        if let Some(password) = self.given()? {
            return Ok(password);
        }
        ask_twice(self.names.places(), place, &self.interrupt)
    }
}

/// A new password of a repository that exists: from a file, from HOLDALL_NEW_PASSWORD, or asked for
/// twice. Where the present one comes from does not matter.
///
/// # Errors
/// If it cannot be read or is empty; if there is no terminal to ask at; if the two differ.
pub(crate) fn chosen_anew(
    file: Option<&Path>,
    place: &str,
    interrupt: &Interrupt,
) -> Result<Zeroizing<String>> {
    let given = match file {
        Some(file) => Some(interrupt.while_waiting(|| from_file(file, PASSWORD.what))?),
        None => variable(NEW_PASSWORD)?
            .map(|password| checked(&password, PASSWORD.what, NEW_PASSWORD))
            .transpose()?,
    };
    match given {
        Some(password) if password.is_empty() => Err(empty().into()),
        Some(password) => Ok(password),
        None => ask_twice(NEW_PLACES.to_owned(), place, interrupt),
    }
}

/// Asks at the terminal for what is no password and as secret.
///
/// # Errors
/// [`Refusal`] if there is none; then `places` says what to give.
pub(crate) fn ask_for(
    what: &str,
    question: &str,
    places: &str,
    interrupt: &Interrupt,
) -> Result<Zeroizing<String>> {
    Terminal::open(what, places, interrupt)?.ask(question)
}

/// Whether there is a terminal to ask at.
pub(crate) fn can_ask() -> bool {
    terminal().is_ok()
}

fn terminal() -> std::io::Result<File> {
    File::options().read(true).write(true).open("/dev/tty")
}

fn ask_twice(places: String, place: &str, interrupt: &Interrupt) -> Result<Zeroizing<String>> {
    let mut terminal = Terminal::open("a password", &places, interrupt)?;
    let first = terminal.ask(&format!("new password for {place}: "))?;
    let second = terminal.ask("the same again: ")?;
    if first.is_empty() {
        return Err(empty().into());
    }
    if *first != *second {
        return Err(Refusal::new(Exit::Failed, "the two passwords differ").into());
    }
    Ok(first)
}

fn empty() -> Refusal {
    Refusal::new(Exit::Failed, "an empty password protects nothing")
}

/// The value of a variable, unless it is empty.
fn variable(name: &str) -> Result<Option<String>, Refusal> {
    match std::env::var(name) {
        Ok(value) => Ok(Some(value).filter(|value| !value.is_empty())),
        Err(std::env::VarError::NotPresent) => Ok(None),
        // What it says may be a secret.
        Err(std::env::VarError::NotUnicode(_)) => Err(not_utf8(name)),
    }
}

fn from_file(path: &Path, what: &str) -> Result<Zeroizing<String>> {
    let input = Path::new("/dev/stdin");
    let bytes = File::open(if path == Path::new("-") { input } else { path })
        .and_then(read)
        .with_context(|| format!("cannot read the {what} from {}", path.display()))?;
    Ok(text_of(&bytes, what, &path.display().to_string())?)
}

fn from_command(command: &str, what: &str) -> Result<Zeroizing<String>> {
    let program = program_of(command);
    let failed = || format!("cannot get the {what} from the command {program:?}");
    let mut child = Command::new("sh")
        .args(["-c", command])
        .stdout(Stdio::piped())
        .spawn()
        .with_context(failed)?;
    let output = child.stdout.take().map(read).transpose().with_context(failed)?;
    let text = text_of(&output.unwrap_or_default(), what, &format!("the command {program:?}"));
    let status = child.wait().with_context(failed)?;
    anyhow::ensure!(text.is_err() || status.success(), "{}: {status}", failed());
    Ok(text?)
}

/// The program of a command, for messages: they are logged, noted and mailed, and what else is in a command may be a
/// secret, such as the value of a variable before the program.
pub(crate) fn program_of(command: &str) -> &str {
    let first = command.split_whitespace().next().unwrap_or_default();
    let is_plain = |letter: char| letter.is_alphanumeric() || "/._-".contains(letter);
    if first.chars().all(is_plain) { first } else { "sh" }
}

/// An error that may come of a password, with what in the password may not be meant.
pub(crate) fn explained(error: anyhow::Error, password: &str) -> anyhow::Error {
    match oddity(password) {
        Some(oddity) if exit_of(&error) == Exit::WrongKey => {
            Refusal::new(Exit::WrongKey, format!("{error:#}"))
                .hint(format!("look at the password that was given: {oddity}"))
                .into()
        }
        _ => error,
    }
}

/// Takes a new password, and says what in it may not be meant.
///
/// # Errors
/// [`Refusal`] for a zero byte; as for [`fits_memory`].
pub(crate) fn take_new(output: &Output, password: &str) -> Result<()> {
    if password.contains('\0') {
        // Zeros at the end of a password are as none to what stretches it.
        let message = "the new password has a zero byte in it, as UTF-16 and binary files do";
        let hint = "give it as text; what is binary, as `base64` writes it";
        return Err(Refusal::new(Exit::Usage, message).hint(hint).into());
    }
    if let Some(oddity) = oddity(password) {
        output.note(format_args!("the new password is hard to type: {oddity}"));
    }
    fits_memory(1024 << WORK_FACTOR_LOG_N)
}

/// The terminal that this process was started from, whatever its input and output are.
struct Terminal<'a> {
    device: File,
    interrupt: &'a Interrupt,
}

impl<'a> Terminal<'a> {
    /// To ask for `what`; `places` says what to give where there is none.
    fn open(what: &str, places: &str, interrupt: &'a Interrupt) -> Result<Self> {
        let device = terminal().map_err(|_| {
            let message = format!("{what} is needed and there is no terminal to ask at");
            Refusal::new(Exit::Usage, message).hint(places)
        })?;
        Ok(Self { device, interrupt })
    }

    fn ask(&mut self, question: &str) -> Result<Zeroizing<String>> {
        write!(self.device, "{}", OneLine(question))?;
        let before = silence(&self.device).context("cannot turn off the terminal's echo")?;
        let answer = read_line(|| self.key());
        rustix::termios::tcsetattr(&self.device, OptionalActions::Now, &before)?;
        self.device.write_all(b"\n")?;
        answer
    }

    /// The next key's byte; `None` at the end. It looks up again and again whether a signal came, so that
    /// the terminal is not left silent.
    fn key(&self) -> Result<Option<u8>> {
        const LOOK_UP: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
        loop {
            self.interrupt.refuse_if_happened()?;
            match poll(&mut [PollFd::new(&self.device, PollFlags::IN)], Some(&LOOK_UP)) {
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => break,
                Err(error) => return Err(error.into()),
            }
        }
        let mut byte = [0];
        let read = (&self.device).read(&mut byte)?;
        Ok(byte.get(..read).and_then(|read| read.first().copied()))
    }
}

/// Turns echo, line editing and signals by key off, so that Ctrl-C is a byte like any other and the
/// terminal is never left silent. Returns how it was.
fn silence(device: impl AsFd) -> io::Result<Termios> {
    let before = rustix::termios::tcgetattr(&device)?;
    let mut silent = before.clone();
    silent.local_modes &= !(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG);
    silent.special_codes[SpecialCodeIndex::VMIN] = 1;
    silent.special_codes[SpecialCodeIndex::VTIME] = 0;
    rustix::termios::tcsetattr(&device, OptionalActions::Now, &silent)?;
    Ok(before)
}

/// Reads up to Enter from a terminal without line editing.
fn read_line(mut key: impl FnMut() -> Result<Option<u8>>) -> Result<Zeroizing<String>> {
    const CTRL_C: u8 = 3;
    const CTRL_D: u8 = 4;
    const BACKSPACE: u8 = 8;
    const CTRL_U: u8 = 21;
    const DELETE: u8 = 127;
    let mut line = Zeroizing::new(Vec::new());
    while let Some(byte) = key()? {
        match byte {
            CTRL_C => return Err(Refusal::new(Exit::Interrupted, "interrupted").into()),
            b'\n' | b'\r' | CTRL_D => break,
            CTRL_U => line.clear(),
            BACKSPACE | DELETE => drop_letter(&mut line),
            other if line.len() <= PASSWORD_MAX_BYTES => line.push(other),
            _ => {}
        }
    }
    Ok(text_of(&line, "password", "the terminal")?)
}

/// Removes the last letter, all bytes of it.
fn drop_letter(line: &mut Vec<u8>) {
    const CONTINUES: u8 = 0b1000_0000;
    while line.pop().is_some_and(|byte| byte & 0b1100_0000 == CONTINUES) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(keys: &str) -> Result<String> {
        let mut keys = keys.bytes();
        read_line(|| Ok(keys.next())).map(|line| line.to_string())
    }

    #[test]
    fn editing_keys_work_and_ctrl_c_interrupts() {
        assert_eq!(typed("secret\rmore").unwrap(), "secret");
        assert_eq!(typed("se\u{e4}\u{7f}cret\n").unwrap(), "secret");
        assert_eq!(typed("wrong\u{15}right\n").unwrap(), "right");
        typed(&"x".repeat(2 * PASSWORD_MAX_BYTES)).unwrap_err();
        assert_eq!(crate::exit::exit_of(&typed("se\u{3}").unwrap_err()), Exit::Interrupted);
    }

    #[test]
    fn a_file_or_command_yields_its_line_without_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("password");
        std::fs::write(&file, "se cret \r\n").unwrap();
        assert_eq!(*from_file(&file, "password").unwrap(), "se cret ");
        assert_eq!(*from_command("printf 'two words'", "password").unwrap(), "two words");
    }

    #[test]
    fn what_can_not_be_had_is_called_what_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let given = |names, file: &Path| {
            let settings = PasswordSettings::default();
            let passwords = Passwords::new(names, Some(file), &settings, &Interrupt::default());
            passwords.unwrap().given().unwrap_err().to_string()
        };
        let missing = folder.path().join("none");
        assert!(given(ADMIN_TOKEN, &missing).starts_with("cannot read the token from "));
        assert!(given(PASSWORD, &missing).starts_with("cannot read the password from "));
        let told = from_command("exit 3", "token").unwrap_err().to_string();
        assert!(told.starts_with("cannot get the token from the command"), "{told}");
    }

    #[test]
    fn the_flag_comes_before_the_settings() {
        let settings = PasswordSettings {
            command: Some("echo settings".into()),
            ..PasswordSettings::default()
        };
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("password");
        std::fs::write(&file, "flag").unwrap();
        let passwords = Passwords::new(PASSWORD, Some(&file), &settings, &Interrupt::default());
        let passwords = passwords.unwrap();
        assert_eq!(*passwords.given().unwrap().unwrap(), "flag");
        std::fs::write(&file, "\n").unwrap();
        passwords.given().unwrap_err();
    }
}

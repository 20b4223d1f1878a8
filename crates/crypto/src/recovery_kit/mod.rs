//! The recovery kit: a page of text to print, which brings everything back to a new computer.
//!
//! ```text
//! (headings and instructions)
//! Version:      2
//! Server:       ADDRESS:PORT                 any number of lines
//! Identity:     64 hexadecimal digits        the server's key, where there is a server
//! Name:         TEXT
//! Repository:   32 hexadecimal digits
//! Fingerprint:  20 letters and digits
//! Secret:       66 letters and digits (Bech32m)
//! Key:          70 letters and digits (Bech32m)   a line for each key epoch
//! Check:        4 hexadecimal digits for each line above, in this order
//! ```
//!
//! It is read as people type it: what stands before the version is skipped, lines may come in any
//! order and values may go on in the next ones; case matters in servers and the name alone, and white
//! space in the name alone, where the check group tells what was between its lines. A check group is the first two bytes of BLAKE3 derive-key("holdall v1 recovery kit check") over
//! the line's label, a zero byte and its value, so that a slip of the finger is found in its line.

mod label;
mod lines;
mod page;
mod ring_text;

use std::fmt::Write;

use holdall_format::{ObjectId, PublicKey, RepositoryId, WrappingSet};
use zeroize::Zeroizing;

use label::{Label, broken, check_group};
use lines::{Fields, check, mistake, split};

use crate::{CryptoError, KeyRing, Opening, RecoverySecret, RepositoryKeys, unwrap};

/// Most server addresses in a kit.
const SERVERS_MAX: usize = 16;
/// Those that are read. The first one has no key ring on its page.
const VERSIONS: [&str; 2] = ["1", "2"];
const VERSION: &str = "2";
const END: &str = "End of the kit";
/// Column at which values start.
const VALUE_COLUMN: usize = 14;

const TITLE: &str = "HOLDALL RECOVERY KIT";
const INSTRUCTIONS: &str = "\
Print this page and keep it where you keep papers that matter, and not only
on the computer that it is for. Whoever has it can read the whole backup;
without it, or the password, nobody can.

To restore on a new computer, install holdall and type the lines below into
a file, from \"Version\" on. Each name with its colon begins a line; what is
behind it may go on in the next ones. Capital letters matter only in what is
behind Server and Name. Then run:
";

/// What a new computer needs to restore everything.
///
/// Secret: holds the recovery secret; neither printed nor cloned.
pub struct RecoveryKit {
    /// Where the server is, `HOST:PORT`, at most 16; none for a repository without a server.
    pub server_addresses: Vec<String>,
    /// The server's long-lived identity, which the new computer pins.
    pub server_identity: Option<PublicKey>,
    /// The repository's name on the server, or what its owner calls it.
    pub repository_name: String,
    /// The repository's id.
    pub repository: RepositoryId,
    /// The fingerprint of [`RepositoryKeys::fingerprint`].
    pub fingerprint: String,
    /// What unwraps the key ring.
    pub secret: RecoverySecret,
    /// The key ring as it was when the kit was made, for when the repository has lost its wrappings; `None` in a kit of
    /// version 1.
    pub ring: Option<KeyRing>,
}

impl RecoveryKit {
    /// The kit with which `secret` opens the repository of `ring`. `server` is where that is, `HOST:PORT` each, and its
    /// identity; `name` is its name there, or where its directory is.
    pub fn new(
        ring: &KeyRing,
        secret: &RecoverySecret,
        server: Option<(&[String], PublicKey)>,
        name: &str,
    ) -> Self {
        Self {
            server_addresses: server.map(|(hosts, _)| hosts.to_vec()).unwrap_or_default(),
            server_identity: server.map(|(_, identity)| identity),
            repository_name: name.to_owned(),
            repository: ring.repository(),
            fingerprint: ring.fingerprint(),
            secret: RecoverySecret::from_bytes(*secret.expose()),
            ring: Some(ring.clone()),
        }
    }

    /// The page to print, with a sentence that says when and where it was `made`. White space is taken out of
    /// addresses, and reduced to single spaces in the name and that sentence.
    ///
    /// Secret: holds the recovery secret.
    pub fn to_text(&self, made: &str) -> Zeroizing<String> {
        let values = self.values();
        let mut text = Zeroizing::new(String::with_capacity(4096));
        let made = Label::Name.normal(made);
        for part in [TITLE, "\n\n", &made, "\n\n", INSTRUCTIONS, self.commands()] {
            text.push_str(part);
        }
        for (label, value) in &values {
            put_field(&mut text, *label, &label.for_people(value));
        }
        put_field(&mut text, Label::Check, &broken(&checks(&values), 4, 6));
        text.push('\n');
        text.push_str(END);
        text.push('\n');
        text
    }

    /// The lines of the page as briefly as they can be read: for a machine-readable code.
    fn to_short_text(&self) -> Zeroizing<String> {
        let mut values = self.values();
        values.push((Label::Check, checks(&values).into()));
        let mut text = Zeroizing::new(String::with_capacity(4096));
        for (label, value) in &values {
            for part in [label.text(), ":", value, "\n"] {
                text.push_str(part);
            }
        }
        text
    }

    /// The text of [`Self::to_text`] as a page for a browser, which prints it with a QR code; `None` if the kit is too long
    /// for a code.
    ///
    /// Secret: holds the recovery secret.
    pub fn to_page(&self, made: &str) -> Option<Zeroizing<String>> {
        page::page(&self.to_text(made), &self.to_short_text())
    }

    /// Whether the kit has each key of a ring by itself, so that it opens what is sealed with them where the repository
    /// has lost its wrappings.
    pub fn has_keys_of(&self, ring: &KeyRing) -> bool {
        self.ring.as_ref().is_some_and(|own| own.encode() == ring.encode())
    }

    /// What to type on a new computer.
    fn commands(&self) -> &'static str {
        match self.server_addresses.is_empty() {
            true => {
                "
    holdall pair --kit FILE -r REPOSITORY
    holdall restore latest -r REPOSITORY --target DIRECTORY

REPOSITORY is the directory where the backups are now. Once a year, see
whether this page still opens them:

    holdall key try-kit FILE -r REPOSITORY

"
            }
            false => {
                "
    holdall pair --kit FILE
    holdall restore latest --target DIRECTORY

If the server has another address by now, add it to the first command, with
the name from below: -r https://ADDRESS:7443/NAME

Once a year, see whether this page still opens the backups:

    holdall key try-kit FILE

"
            }
        }
    }

    /// Reads a page that was typed or scanned.
    ///
    /// Untrusted: any text up to 16 KiB, or a page of [`Self::to_page`].
    ///
    /// # Errors
    /// [`CryptoError::RecoveryKit`], which names the line and what is wrong with it.
    pub fn from_text(text: &str) -> Result<Self, CryptoError> {
        let mut fields = split(&page::text_in(text))?;
        check(&mut fields)?;
        let server_addresses: Vec<String> =
            fields.all(Label::Server).map(|field| field.value.to_string()).collect();
        if let Some(field) = fields.all(Label::Server).nth(SERVERS_MAX) {
            return Err(mistake(field.line, format!("more than {SERVERS_MAX} servers")));
        }
        let identity = fields.all(Label::Identity).next();
        let identity = identity.map(|field| field.parse(|text| text.parse::<ObjectId>()));
        let fingerprint = fields.one(Label::Fingerprint)?.value.to_string();
        Ok(Self {
            ring: ring_in(&fields, &fingerprint)?,
            server_addresses,
            server_identity: identity.transpose()?.map(|id| PublicKey::from_bytes(*id.as_bytes())),
            repository_name: fields.one(Label::Name)?.value.to_string(),
            repository: fields.one(Label::Repository)?.parse(str::parse)?,
            fingerprint,
            secret: fields.one(Label::Secret)?.parse(RecoverySecret::from_text)?,
        })
    }

    /// Unwraps the key ring and checks that it is that of this kit's repository.
    ///
    /// # Errors
    /// [`CryptoError::OtherRepository`] if the set, or the fingerprint of what it opens to, is
    /// another than the kit's; else as [`unwrap`].
    pub fn open(&self, set: &WrappingSet) -> Result<KeyRing, CryptoError> {
        if set.repository != self.repository {
            return Err(CryptoError::OtherRepository);
        }
        let ring = unwrap(set, &Opening::Recovery(&self.secret))?;
        if RepositoryKeys::derive(&ring).fingerprint() != self.fingerprint {
            return Err(CryptoError::OtherRepository);
        }
        Ok(ring)
    }

    /// The fields and their values in the order of the page.
    fn values(&self) -> Vec<(Label, Zeroizing<String>)> {
        let [first, _] = VERSIONS;
        let version = if self.ring.is_some() { VERSION } else { first };
        let mut values = vec![(Label::Version, version.to_owned().into())];
        for address in self.server_addresses.iter().take(SERVERS_MAX) {
            values.push((Label::Server, Label::Server.normal(address)));
        }
        if let Some(identity) = self.server_identity {
            values.push((Label::Identity, identity.to_string().into()));
        }
        values.push((Label::Name, Label::Name.normal(&self.repository_name)));
        values.push((Label::Repository, self.repository.to_string().into()));
        values.push((Label::Fingerprint, Label::Fingerprint.normal(&self.fingerprint)));
        values.push((Label::Secret, self.secret.to_text()));
        let keys = self.ring.iter().flat_map(ring_text::values);
        values.extend(keys.map(|key| (Label::Key, key)));
        values
    }
}

/// The key ring on the page; `None` in a kit of the first version.
fn ring_in(fields: &Fields, fingerprint: &str) -> Result<Option<KeyRing>, CryptoError> {
    let [first, _] = VERSIONS;
    if *fields.one(Label::Version)?.value == first {
        return Ok(None);
    }
    let line = fields.one(Label::Key)?.line;
    let epochs = fields.all(Label::Key).map(|field| field.parse(ring_text::epoch));
    let ring = ring_text::ring(epochs.collect::<Result<_, _>>()?);
    let ring = ring.map_err(|problem| mistake(line, problem))?;
    match RepositoryKeys::derive(&ring).fingerprint() == fingerprint {
        true => Ok(Some(ring)),
        false => Err(mistake(line, "it is not the key of the kit's repository")),
    }
}

/// The check groups of all lines.
fn checks(values: &[(Label, Zeroizing<String>)]) -> String {
    values.iter().map(|(label, value)| check_group(*label, value)).collect()
}

fn put_field(text: &mut String, label: Label, value: &str) {
    let mut front = format!("{}:", label.text());
    for line in value.split('\n') {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{}", format!("{front:VALUE_COLUMN$}{line}").trim_end());
        front.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{SystemEntropy, sign_wrappings, wrap_recovery};
    use proptest::prelude::*;

    fn kit(server_addresses: &[&str]) -> RecoveryKit {
        let keys = RepositoryKeys::derive(&KeyRing::from_master([1; 32]));
        RecoveryKit {
            server_addresses: server_addresses.iter().map(|&address| address.into()).collect(),
            server_identity: (!server_addresses.is_empty())
                .then(|| PublicKey::from_bytes([0xab; 32])),
            repository_name: "My  laptop: work".into(),
            repository: keys.repository(),
            fingerprint: keys.fingerprint(),
            secret: RecoverySecret::from_bytes([9; 32]),
            ring: Some(KeyRing::from_master([1; 32])),
        }
    }

    fn served() -> RecoveryKit {
        kit(&["backup.home:7443", "[fe80::1]:7443"])
    }

    fn page(kit: &RecoveryKit) -> Zeroizing<String> {
        kit.to_text("Made on 2026-11-29 on the computer laptop.")
    }

    fn failure(text: &str) -> (usize, String) {
        match RecoveryKit::from_text(text) {
            Err(CryptoError::RecoveryKit { line, problem }) => (line, problem),
            Err(other) => panic!("{other}"),
            Ok(_) => panic!("must be refused"),
        }
    }

    fn line_of(text: &str, start: &str) -> usize {
        1 + text.lines().position(|line| line.starts_with(start)).unwrap()
    }

    fn assert_same(one: &RecoveryKit, two: &RecoveryKit) {
        assert_eq!(one.values(), two.values());
    }

    #[test]
    fn a_kit_reads_back_with_and_without_a_server() {
        let first = RecoveryKit { ring: None, ..served() };
        let epochs = |more| {
            let one = KeyRing::from_master([1; 32]);
            (0..more).fold(one, |ring, _| ring.with_new_epoch(&mut SystemEntropy).unwrap())
        };
        let many = RecoveryKit { ring: Some(epochs(3)), ..served() };
        for kit in [served(), kit(&[]), first, many] {
            assert_same(&RecoveryKit::from_text(&page(&kit)).unwrap(), &kit);
        }
    }

    #[test]
    fn a_kit_reads_back_in_capitals_without_groups_with_other_breaks_and_in_another_order() {
        let kit = served();
        let mut text = String::from("typed by hand\n\n  VERSION : 2\n");
        let mut values = kit.values();
        let groups: String =
            values.iter().map(|(label, value)| check_group(*label, value)).collect();
        values.push((Label::Check, groups.into()));
        for (label, value) in values.iter().rev().filter(|(label, _)| *label != Label::Version) {
            if *label == Label::Server {
                continue;
            }
            let (label, free) = (label.text(), label.has_case());
            let (one, two) = if free { (&value[..], "") } else { value.split_at(value.len() / 2) };
            let capitals = if free { one.to_owned() } else { one.to_uppercase() };
            text += &format!("{label}:\t{capitals}\r\n\r\n   {two}\r\n");
        }
        text += "server: backup.home:7443\r\nSERVER:   [fe80::1]:7443  \r\n";
        assert_same(&RecoveryKit::from_text(&text).unwrap(), &kit);
    }

    /// The text from the version on with line ends after so many letters, and what goes on indented or not.
    fn folded(kit: &RecoveryKit, columns: usize, indent: &str) -> String {
        let text = page(kit);
        let lines = text.lines().skip_while(|line| !line.starts_with("Version"));
        let fold = |line: &str| {
            let letters: Vec<char> = line.chars().collect();
            let parts: Vec<String> = letters.chunks(columns).map(String::from_iter).collect();
            parts.join(&format!("\n{indent}")) + "\n"
        };
        lines.map(fold).collect()
    }

    #[test]
    fn a_kit_reads_back_wherever_its_values_are_broken() {
        for columns in 14..76 {
            for indent in ["", "    "] {
                let text = folded(&served(), columns, indent);
                let read = RecoveryKit::from_text(&text);
                assert_same(&read.unwrap_or_else(|error| panic!("{columns}: {error}")), &served());
            }
        }
        let text = page(&served());
        let own_lines = text.replace("Server:       ", "SERVER:\n").replace("My lap", "My\nlap");
        assert_same(&RecoveryKit::from_text(&own_lines).unwrap(), &served());
    }

    #[test]
    fn a_name_of_many_lines_is_read_with_spaces_between_the_last() {
        let words = ["one"; 20].join(" ");
        let mut long = kit(&[]);
        long.repository_name = words.clone();
        let text = page(&long).replace(&words, &words.replace(' ', "\n"));
        assert_same(&RecoveryKit::from_text(&text).unwrap(), &long);
        let broken = page(&long).replace(&words, &words.replace('n', "n\n"));
        assert!(failure(&broken).1.contains("Name"), "not every way is tried");
    }

    #[test]
    fn the_page_fits_a_narrow_printer() {
        for kit in [served(), kit(&[])] {
            assert!(page(&kit).lines().all(|line| line.len() <= 76));
        }
    }

    #[test]
    fn the_page_says_when_and_where_it_was_made_whatever_the_computer_is_called() {
        let text = served().to_text("Made on\nVersion: 9\nServer: evil");
        assert!(text.starts_with("HOLDALL RECOVERY KIT\n\nMade on Version: 9 Server: evil\n\n"));
        assert_same(&RecoveryKit::from_text(&text).unwrap(), &served());
    }

    #[test]
    fn the_short_text_is_read_and_a_code_has_room_for_it() {
        for kit in [served(), kit(&[])] {
            let text = kit.to_short_text();
            assert_same(&RecoveryKit::from_text(&text).unwrap(), &kit);
            assert!(text.len() < 500, "{}", text.len());
            let page = kit.to_page("").unwrap();
            assert_same(&RecoveryKit::from_text(&page).unwrap(), &kit);
        }
    }

    #[test]
    fn a_mistake_is_named_by_its_line() {
        let good = page(&served());
        for (start, from, to) in [
            ("Server:       backup", "backup.home", "backup.hone"),
            ("Server:       [fe80", "fe80", "fe8o"),
            ("Identity:", "abab", "abad"),
            ("Name:", "laptop", "lapdog"),
            ("Secret:", "hold", "hald"),
            ("Version:", "2", "3"),
            ("Key:", "hold", "hald"),
            ("Fingerprint:", "-", "x"),
        ] {
            let line = good.lines().find(|line| line.starts_with(start)).unwrap();
            let spoiled = good.replacen(line, &line.replacen(from, to, 1), 1);
            let (found, problem) = failure(&spoiled);
            assert_eq!(found, line_of(&good, start), "{start}: {problem}");
        }
    }

    #[test]
    fn missing_repeated_and_unknown_lines_are_named() {
        let good = page(&served());
        let without = |start: &str| {
            let lines: Vec<&str> = good.lines().filter(|line| !line.starts_with(start)).collect();
            lines.join("\n")
        };
        assert_eq!(failure(&without("Version")).0, 1);
        assert_eq!(failure(&without("Server:       [fe80")).0, line_of(&good, "Identity") - 1);
        assert!(failure(&without("Check")).1.contains("Check"));
        let again = good.replacen("Name:", "Name: twice\nName:", 1);
        assert_eq!(failure(&again).0, line_of(&good, "Name") + 1);
        for (label, mistyped) in [("Name:", "Nane:"), ("Identity:", "Idenity:")] {
            let unknown = good.replacen(label, mistyped, 1);
            assert_eq!(failure(&unknown).0, line_of(&good, label), "{mistyped}");
        }
        let longer = good.replacen(END, &format!("abcd\n{END}"), 1);
        assert_eq!(failure(&longer).0, line_of(&good, "Check"));
        assert_eq!(failure("").0, 1);
    }

    #[test]
    fn a_kit_opens_its_own_repository_only() {
        let own = KeyRing::from_master([1; 32]);
        let other = KeyRing::from_master([2; 32]);
        let set_for = |ring: &KeyRing, secret: &RecoverySecret| {
            let wrapping = wrap_recovery(ring, secret);
            let keys = RepositoryKeys::derive(ring);
            WrappingSet::decode_signed(&sign_wrappings(&keys, 1, vec![wrapping]).unwrap()).unwrap()
        };
        let set = |ring: &KeyRing| set_for(ring, &served().secret);
        assert_eq!(served().open(&set(&own)).unwrap().encode(), own.encode());
        let fingerprint = RepositoryKeys::derive(&other).fingerprint();
        let unlike = RecoveryKit { fingerprint, ..served() };
        let strangers = set_for(&other, &RecoverySecret::from_bytes([8; 32]));
        for (kit, set) in [(served(), set(&other)), (served(), strangers), (unlike, set(&own))] {
            assert_eq!(kit.open(&set).err(), Some(CryptoError::OtherRepository));
        }
    }

    proptest! {
        #[test]
        fn a_changed_letter_is_refused_or_changes_nothing(at: prop::sample::Index, letter: char) {
            let good = page(&served());
            let start = good.find("Version").unwrap();
            let (at, old) = at.get(&good[start..].char_indices().collect::<Vec<_>>()).to_owned();
            let mut text = good.to_string();
            text.replace_range(start + at..start + at + old.len_utf8(), &letter.to_string());
            if let Ok(kit) = RecoveryKit::from_text(&text) {
                prop_assert_eq!(kit.values(), served().values());
            }
        }

        #[test]
        fn lines_in_any_mixture_are_a_kit_or_an_error(
            lines in proptest::collection::vec((0usize..10, ".{0,80}"), 0..12)
        ) {
            let mut text = String::from("Version: 1\n");
            for (label, value) in lines {
                let label = Label::ALL.get(label).map_or("", |label| label.text());
                text += &format!("{label}: {value}\n");
            }
            prop_assert!(RecoveryKit::from_text(&text).is_err());
        }

        #[test]
        fn names_of_any_kind_read_back(name: String, address: String) {
            let mut kit = kit(&[&address]);
            kit.repository_name = name;
            let again = RecoveryKit::from_text(&page(&kit)).unwrap();
            prop_assert_eq!(again.values(), kit.values());
        }
    }
}

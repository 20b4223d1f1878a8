//! The golden vectors in `golden/crypto.txt`: fixed secrets and what becomes of them.
//!
//! Each line is `NAME = HEXADECIMAL`; names that start with `kept` hold bytes that cannot be made
//! again (age draws its own randomness, compressors change), and only have to open as they always
//! did. "(text)" means UTF-8. When the format changes on purpose, the failing test prints the file's new text.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;

use holdall_crypto::{
    CopiedFrom, KeyRing, Opening, RecordSecret, RecoveryKit, RecoverySecret, RepositoryKeys,
    SigningKey, sign_wrappings, unwrap, wrap_passphrase, wrap_recovery,
};
use holdall_format::{
    Block, BlockKind, MachineId, ObjectId, PublicKey, Record, RecordHash, RecordHead, RecordKind,
    SignedContext, Suite, WrappingSet,
};

use crate::support::{keys, noise, objects, opener, ring, rotated, sealer};

const PASSPHRASE: &str = "golden passphrase";
const CONTENT: &[u8] = b"golden content";

/// The file, and what it should be.
struct Golden {
    stored: BTreeMap<String, Vec<u8>>,
    text: String,
}

impl Golden {
    fn read() -> Self {
        let text = std::fs::read_to_string(path()).unwrap_or_default();
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let stored = lines.filter_map(|line| line.split_once(" = "));
        let stored = stored.map(|(name, hex)| (name.to_owned(), from_hex(hex))).collect();
        let text =
            "# Read by crates/crypto/tests/it/golden.rs, which says what these are.\n".into();
        Self { stored, text }
    }

    /// A value that is the same each time.
    fn fixed(&mut self, name: &str, value: &[u8]) {
        self.put(name, value);
    }

    /// A value that is kept as long as it opens, and made anew when the file has none.
    fn kept(&mut self, name: &str, opens: impl Fn(&[u8]), make: impl Fn() -> Vec<u8>) {
        let value = self.stored.get(name).cloned().unwrap_or_else(make);
        opens(&value);
        self.put(name, &value);
    }

    fn put(&mut self, name: &str, value: &[u8]) {
        let hex: String = value.iter().map(|byte| format!("{byte:02x}")).collect();
        writeln!(self.text, "{name} = {hex}").unwrap();
    }

    fn check(self) {
        let stored = std::fs::read_to_string(path()).unwrap_or_default();
        assert!(stored == self.text, "golden/crypto.txt should be:\n{}", self.text);
    }
}

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../golden/crypto.txt")
}

fn from_hex(hex: &str) -> Vec<u8> {
    let pairs = hex.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

#[test]
fn the_golden_vectors_hold() {
    let mut golden = Golden::read();
    derived(&mut golden);
    blocks(&mut golden);
    record(&mut golden);
    wrappings(&mut golden);
    recovery_kit(&mut golden);
    golden.check();
}

fn derived(golden: &mut Golden) {
    let keys = keys(0x11);
    let refs = [ObjectId::from_bytes([1; 32]), ObjectId::from_bytes([2; 32])];
    golden.fixed("master secret", &[0x11; 32]);
    golden.fixed("key ring", &ring(0x11).encode());
    golden.fixed("key ring with a second epoch", &rotated(0x11).encode());
    let rotated = RepositoryKeys::derive(&rotated(0x11));
    golden.fixed("key of the second epoch", rotated.newest_epoch().public().as_bytes());
    golden.fixed("repository id", keys.repository().as_bytes());
    golden.fixed("owner key", keys.owner().public().as_bytes());
    golden.fixed("fingerprint (text)", keys.fingerprint().as_bytes());
    golden.fixed("content", CONTENT);
    golden.fixed("chunk id of the content", keys.ids().chunk_id(CONTENT).as_bytes());
    golden.fixed(
        "node id of the content without references",
        keys.ids().node_id(&[], CONTENT).as_bytes(),
    );
    golden.fixed(
        "node id of the content with references 01.. and 02..",
        keys.ids().node_id(&refs, CONTENT).as_bytes(),
    );
    golden.fixed("boundary key", keys.boundary_key());
    golden.fixed("chunker key", keys.chunker_key());
    golden.fixed("series of the content", keys.series(CONTENT).as_bytes());
    golden.fixed("tag token of work", keys.tag_token("work").as_bytes());
    golden.fixed("hard link group of /home and 12", &keys.hardlink_group(b"/home", 12));
    golden.fixed("configuration", &keys.new_config(Suite::Aes256Gcm, 5, 512).unwrap());
}

fn blocks(golden: &mut Golden) {
    let keys = keys(0x11);
    let suites = [(Suite::Aes256Gcm, "AES"), (Suite::ChaCha20Poly1305, "ChaCha")];
    for (suite, name) in suites {
        let (objects, plain) = objects(&keys, BlockKind::Nodes, &[CONTENT, b"two", b"three"]);
        let seal = || sealer(&keys, suite).seal(BlockKind::Nodes, &objects, &plain).unwrap();
        golden.fixed(&format!("name of block of nodes, {name}, raw"), seal().name().as_bytes());
        let opens = |bytes: &[u8]| assert_opens(bytes, BlockKind::Nodes, &plain);
        golden.kept(&format!("kept block of nodes, {name}, raw"), opens, || seal().into_bytes());
    }
    let text = [&CONTENT.repeat(2000)[..], &noise("golden", 1000)].concat();
    let (objects, plain) = objects(&keys, BlockKind::Chunks, &[&text, CONTENT]);
    let rotated = RepositoryKeys::derive(&rotated(0x11));
    for (keys, name) in [(&keys, ""), (&rotated, ", second epoch")] {
        golden.kept(
            &format!("kept block of chunks, compressed{name}"),
            |bytes| {
                assert!(bytes.len() < text.len() / 2);
                assert_opens(bytes, BlockKind::Chunks, &plain);
            },
            || {
                let mut sealer = sealer(keys, Suite::Aes256Gcm);
                sealer.seal(BlockKind::Chunks, &objects, &plain).unwrap().into_bytes()
            },
        );
    }
}

fn assert_opens(bytes: &[u8], kind: BlockKind, plain: &[u8]) {
    let keys = RepositoryKeys::derive(&rotated(0x11));
    let (block, mut opener) = (Block::decode(bytes).unwrap(), opener(&keys));
    assert_eq!(opener.open(&block, kind).unwrap().plain, plain);
    opener.check(&block, kind, keys.ids()).unwrap();
}

fn record(golden: &mut Golden) {
    let keys = keys(0x11);
    let secret = RecordSecret {
        paths: vec![b"/home/golden".to_vec()],
        host: "kitchen".into(),
        user: "golden".into(),
        program: "holdall 0.1.0".into(),
        tags: vec!["work".into()],
        excludes: vec!["*.tmp".into()],
        items: 3,
        bytes: 4,
        unreadable: 5,
        client_time_ns: -6,
        copied_from: None,
    };
    let key = SigningKey::from_seed(&[0x33; 32]);
    let mut head = RecordHead {
        kind: RecordKind::Snapshot,
        pinned: false,
        repository: keys.repository(),
        machine: MachineId::from_bytes([0x44; 16]),
        key: key.public(),
        series: keys.series(CONTENT),
        sequence: 1,
        root: keys.ids().node_id(&[], CONTENT),
        previous: RecordHash::from_bytes([0; 32]),
        sealed_hash: [0; 32],
        tags: vec![keys.tag_token("work")],
        amends: None,
        taken_ns: None,
    };
    let binding = head.binding();
    let sealed = secret.seal(&head, &mut sealer(&keys, Suite::Aes256Gcm)).unwrap();
    head.sealed_hash = *blake3::hash(&sealed).as_bytes();
    let signature = key.sign(SignedContext::Record, &head.signed_bytes());
    let bytes = Record::new(head, &signature, sealed).encode();
    golden.fixed("what the head of the record is bound to", &binding);
    golden.fixed("sealed half of a record, before sealing", &secret.encode(&binding).unwrap());
    let record = RecordHash::from_bytes([0x55; 32]);
    let from = CopiedFrom { record, received_ns: 7, through: None };
    let copied = |from| RecordSecret { copied_from: Some(from), ..secret.clone() };
    let bytes_of = |from| copied(from).encode(&binding).unwrap();
    golden.fixed("sealed half of a copy's record, before sealing", &bytes_of(from));
    let again = CopiedFrom { through: Some(RecordHash::from_bytes([0x66; 32])), ..from };
    golden.fixed("sealed half of the record of a copy's copy, before sealing", &bytes_of(again));
    golden.fixed("hash of the record", blake3::hash(&bytes).as_bytes());
    golden.kept(
        "kept record",
        |bytes| {
            let record = Record::decode(bytes).unwrap();
            assert_eq!(record.head.key, key.public());
            let opened = RecordSecret::open(&record.sealed, &record.head, &mut opener(&keys));
            assert_eq!(opened, Ok(secret.clone()));
        },
        || bytes.clone(),
    );
}

fn wrappings(golden: &mut Golden) {
    let secret = || RecoverySecret::from_bytes([0x22; 32]);
    golden.fixed("recovery secret", secret().expose());
    golden.fixed("recovery secret (text)", secret().to_text().as_bytes());
    golden.fixed("recovery identity", secret().signing_key().public().as_bytes());
    golden.fixed("passphrase (text)", PASSPHRASE.as_bytes());
    let identity = secret().signing_key().public();
    let opens = |bytes: &[u8], unproven: Option<PublicKey>| {
        let set = WrappingSet::decode_signed(bytes).unwrap();
        assert_eq!(set.recovery_identities(), [identity]);
        assert_eq!(set.unproven_identity(&[]), unproven);
        for opening in [Opening::Passphrase(PASSPHRASE), Opening::Recovery(&secret())] {
            assert_eq!(unwrap(&set, &opening).unwrap().encode(), rotated(0x11).encode());
        }
    };
    golden.kept(
        "kept wrapping set",
        |bytes| opens(bytes, Some(identity)),
        || unreachable!("sets of version 3 are not written any more"),
    );
    golden.kept(
        "kept wrapping set with a proof",
        |bytes| opens(bytes, None),
        || {
            let ring = rotated(0x11);
            let wrappings =
                vec![wrap_passphrase(&ring, PASSPHRASE, 4), wrap_recovery(&ring, &secret())];
            sign_wrappings(&RepositoryKeys::derive(&ring), 2, wrappings).unwrap()
        },
    );
}

fn recovery_kit(golden: &mut Golden) {
    let keys = keys(0x11);
    let kit = RecoveryKit {
        server_addresses: vec!["backup.home:7443".into(), "192.0.2.1:7443".into()],
        server_identity: Some(PublicKey::from_bytes([0x55; 32])),
        repository_name: "golden".into(),
        repository: keys.repository(),
        fingerprint: keys.fingerprint(),
        secret: RecoverySecret::from_bytes([0x22; 32]),
        ring: Some(rotated(0x11)),
    };
    let check = |bytes: &[u8], ring: Option<&KeyRing>| {
        let read = RecoveryKit::from_text(str::from_utf8(bytes).unwrap()).unwrap();
        let encoded = |ring: &KeyRing| ring.encode();
        assert_eq!(read.ring.as_ref().map(encoded), ring.map(encoded));
        assert_eq!(read.server_addresses, kit.server_addresses);
        assert_eq!(read.server_identity, kit.server_identity);
        assert_eq!(read.repository_name, kit.repository_name);
        assert_eq!((read.repository, &read.fingerprint), (kit.repository, &kit.fingerprint));
        assert_eq!(read.secret.expose(), kit.secret.expose());
    };
    golden.kept(
        "kept recovery kit (text)",
        |bytes| check(bytes, None),
        || unreachable!("pages of this version are not printed any more"),
    );
    golden.kept(
        "kept recovery kit with a key ring (text)",
        |bytes| check(bytes, kit.ring.as_ref()),
        || kit.to_text("Made for a test.").as_bytes().to_vec(),
    );
}

//! The golden vectors in `golden/format.txt`: one of each clear structure, and what it says.
//!
//! Each line is `NAME = HEXADECIMAL`. Payloads are bytes that count up, keys have the seeds that
//! `samples.rs` names. Every vector is decoded from the file, compared field by field with what it
//! was made of, and encoded again. When the format changes on purpose, the failing test prints the
//! file's new text.

use std::collections::BTreeMap;
use std::fmt::{Debug, Write};
use std::path::PathBuf;

use holdall_format::{
    BLOCK_HEADER_BYTES, Block, BlockHeader, BlockKind, Footer, Receipt, Record, RecordKind,
    RepositoryConfig, SignedContext, Spare, StoredRecord, Suite, Table, Tombstone, Trailer,
    WrappingSet,
};

use crate::samples;

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
        let text = "# Read by crates/format/tests/it/golden.rs, which says what these are.\n";
        Self { stored, text: text.into() }
    }

    /// A structure: the bytes in the file decode to `value`, and what was decoded is encoded to the
    /// same bytes.
    fn holds<T: PartialEq + Debug>(
        &mut self,
        name: &str,
        value: &T,
        encode: impl Fn(&T) -> Vec<u8>,
        decode: impl Fn(&[u8]) -> T,
    ) {
        let made = encode(value);
        let stored = self.stored.get(name).unwrap_or(&made);
        let read = decode(stored);
        assert_eq!(read, *value, "{name}");
        assert_eq!(encode(&read), *stored, "{name}");
        self.put(name, &made);
    }

    /// A structure of a version that is read and no longer written: the bytes in the file decode to `value`.
    fn former<T: PartialEq + Debug>(&mut self, name: &str, value: &T, decode: impl Fn(&[u8]) -> T) {
        let stored = self.stored[name].clone();
        assert_eq!(decode(&stored), *value, "{name}");
        self.put(name, &stored);
    }

    /// A value that is computed from others.
    fn put(&mut self, name: &str, value: &[u8]) {
        let hex: String = value.iter().map(|byte| format!("{byte:02x}")).collect();
        writeln!(self.text, "{name} = {hex}").unwrap();
    }

    fn check(self) {
        let stored = std::fs::read_to_string(path()).unwrap_or_default();
        assert!(stored == self.text, "golden/format.txt should be:\n{}", self.text);
    }
}

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../golden/format.txt")
}

fn from_hex(hex: &str) -> Vec<u8> {
    let pairs = hex.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

#[test]
fn the_golden_vectors_hold() {
    let mut golden = Golden::read();
    blocks(&mut golden);
    packs(&mut golden);
    records(&mut golden);
    keys_and_configuration(&mut golden);
    golden.check();
}

fn blocks(golden: &mut Golden) {
    for (name, kind, table) in [
        ("table of nodes", BlockKind::Nodes, samples::node_table()),
        ("table of chunks", BlockKind::Chunks, samples::chunk_table()),
        ("table of a record", BlockKind::Record, Table::default()),
    ] {
        golden.holds(
            name,
            &table,
            |table| table.encode(kind),
            |bytes| Table::decode(bytes, kind).unwrap(),
        );
    }
    for (name, bytes, kind, suite) in [
        ("nodes, AES", samples::node_block(), BlockKind::Nodes, Suite::Aes256Gcm),
        ("chunks, ChaCha", samples::chunk_block(), BlockKind::Chunks, Suite::ChaCha20Poly1305),
    ] {
        let block = Block::decode(bytes).unwrap();
        assert_eq!((block.header().kind, block.header().suite), (kind, suite));
        golden.holds(
            &format!("block header of {name}"),
            block.header(),
            |header| header.encode().to_vec(),
            |bytes| BlockHeader::decode(bytes).unwrap(),
        );
        golden.holds(
            &format!("block of {name}"),
            &block,
            |block| {
                let table = &block.clear_bytes()[BLOCK_HEADER_BYTES..];
                Block::join(block.header(), table, block.payload()).unwrap().into_bytes()
            },
            |bytes| Block::decode(bytes.to_vec()).unwrap(),
        );
        golden.put(&format!("name of block of {name}"), block.name().as_bytes());
    }
}

fn packs(golden: &mut Golden) {
    let (payloads, footer) = samples::pack();
    let payload_bytes = payloads.len() as u64;
    golden.holds("pack footer", &footer, Footer::encode, |bytes| {
        Footer::decode(bytes, payload_bytes).unwrap()
    });
    let trailer = Trailer::of(&footer.encode());
    golden.holds(
        "pack trailer",
        &trailer,
        |trailer| trailer.encode().to_vec(),
        |bytes| Trailer::decode(bytes).unwrap(),
    );
    golden.put("pack name", trailer.name.as_bytes());
    golden.put("pack", &[&payloads[..], &footer.encode(), &trailer.encode()].concat());
}

fn records(golden: &mut Golden) {
    for (name, record) in [
        ("snapshot", samples::record(RecordKind::Snapshot, true, &[1, 2])),
        ("checkpoint", samples::record(RecordKind::Checkpoint, false, &[])),
        ("amendment", samples::record(RecordKind::Amendment, false, &[3])),
        ("copy", samples::copy()),
    ] {
        golden.holds(&format!("record ({name})"), &record, Record::encode, |bytes| {
            Record::decode(bytes).unwrap()
        });
        golden.put(&format!("hash of the record ({name})"), record.hash().as_bytes());
    }
    let stored = samples::stored_record();
    golden.holds(
        "receipt",
        &stored.receipt,
        |receipt| signed(SignedContext::Receipt, &receipt.signed_bytes()),
        |bytes| Receipt::decode_signed(bytes).unwrap(),
    );
    golden.holds("stored record", &stored, StoredRecord::encode, |bytes| {
        StoredRecord::decode(bytes).unwrap()
    });
    golden.holds(
        "tombstone",
        &samples::tombstone(),
        |tombstone| signed(SignedContext::Tombstone, &tombstone.signed_bytes()),
        |bytes| Tombstone::decode_signed(bytes).unwrap().0,
    );
}

/// What the server signed, with its signature.
fn signed(context: SignedContext, bytes: &[u8]) -> Vec<u8> {
    [bytes, samples::server_key().sign(context, bytes).as_bytes()].concat()
}

fn keys_and_configuration(golden: &mut Golden) {
    for (name, key) in [
        ("machine", samples::machine_key()),
        ("server", samples::server_key()),
        ("owner", samples::owner_key()),
        ("second epoch", samples::epoch_key()),
    ] {
        golden.put(&format!("public key of the {name}"), key.public().as_bytes());
    }
    let owner = samples::owner_key();
    golden.holds(
        "configuration",
        &samples::config(),
        |config| config.encode(&owner.sign(SignedContext::Config, &config.signed_bytes())),
        |bytes| RepositoryConfig::decode_signed(bytes).unwrap(),
    );
    golden.former("wrapping set", &samples::wrapping_set_of_version_3(), |bytes| {
        WrappingSet::decode_signed(bytes).unwrap()
    });
    golden.holds(
        "wrapping set with a proof",
        &samples::wrapping_set(),
        |set| set.encode(&samples::epoch_key().sign(SignedContext::Wrappings, &set.signed_bytes())),
        |bytes| WrappingSet::decode_signed(bytes).unwrap(),
    );
    let (config, set) = (samples::config(), samples::wrapping_set());
    let config = config.encode(&owner.sign(SignedContext::Config, &config.signed_bytes()));
    let set = set.encode(&samples::epoch_key().sign(SignedContext::Wrappings, &set.signed_bytes()));
    golden.holds("spare", &Spare::of(&config, &set).unwrap(), Spare::encode, |bytes| {
        Spare::decode(bytes).unwrap()
    });
}

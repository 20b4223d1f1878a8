//! Blocks, from sealing to opening.

use std::collections::HashSet;

use holdall_crypto::{
    CryptoError, Overhead, PlainObject, RecordSecret, RepositoryKeys, Sealer, SystemEntropy,
};
use holdall_format::limits::{BLOCK_MAX_OBJECTS, BLOCK_MAX_PLAIN_BYTES};
use holdall_format::{
    BLOCK_HEADER_BYTES, Block, BlockKind, MachineId, ObjectId, PublicKey, RecordHash, RecordHead,
    RecordKind, RepositoryId, SeriesId, Suite, TAG_BYTES, TagToken, padded_len,
};

use crate::support::{keys, noise, objects, opener, rotated, sealer};

const SUITES: [Suite; 2] = [Suite::Aes256Gcm, Suite::ChaCha20Poly1305];

#[test]
fn blocks_of_each_kind_suite_and_size_come_back() {
    let keys = keys(1);
    let text = b"all work and no play makes jack a dull boy. ".repeat(9000);
    let random = noise("round trip", 300_000);
    let bodies: [&[&[u8]]; 6] = [
        &[b"one"],
        &[b"one", b"", b"three"],
        &[&text, &random[..1000], &text[..77]],
        &[&random],
        &[&random[..5000], &random[5000..], &text],
        &[],
    ];
    for suite in SUITES {
        let (mut sealer, mut opener) = (sealer(&keys, suite), opener(&keys));
        for kind in [BlockKind::Nodes, BlockKind::Chunks] {
            for bodies in bodies {
                let (objects, plain) = objects(&keys, kind, bodies);
                let block = sealer.seal(kind, &objects, &plain).unwrap();
                let opened = opener.open(&block, kind).unwrap();
                assert_eq!(opened.plain, plain);
                for (object, body) in objects.iter().zip(bodies) {
                    assert_eq!(opened.find(&object.id), Some(*body));
                    assert_eq!(opened.find_object(&object.id).unwrap().refs, object.refs);
                }
                let order: Vec<ObjectId> = opened.objects.iter().map(|object| object.id).collect();
                assert_eq!(order, objects.iter().map(|object| object.id).collect::<Vec<_>>());
                assert_eq!(opener.check(&block, kind, keys.ids()), Ok(order));
                assert_eq!(opened.find(&ObjectId::from_bytes([0; 32])), None);
            }
        }
    }
}

#[test]
fn the_largest_block_of_objects_and_of_bytes_comes_back() {
    let keys = keys(1);
    let plain = noise("largest", BLOCK_MAX_PLAIN_BYTES);
    let len = BLOCK_MAX_PLAIN_BYTES / BLOCK_MAX_OBJECTS;
    let bodies: Vec<&[u8]> = plain.chunks(len).collect();
    let (objects, plain) = objects(&keys, BlockKind::Chunks, &bodies);
    let block = sealer(&keys, Suite::Aes256Gcm).seal(BlockKind::Chunks, &objects, &plain).unwrap();
    let mut opener = opener(&keys);
    assert!(opener.open(&block, BlockKind::Chunks).unwrap().plain == plain);
    let ids = objects.iter().map(|object| object.id).collect();
    assert_eq!(opener.check(&block, BlockKind::Chunks, keys.ids()), Ok(ids));
}

#[test]
fn a_records_sealed_half_comes_back() {
    let keys = keys(1);
    let secret = RecordSecret {
        paths: vec![b"/home/\xff".to_vec(); 500],
        host: "kitchen".into(),
        ..RecordSecret::default()
    };
    let head = head(&keys);
    let sealed = secret.seal(&head, &mut sealer(&keys, Suite::ChaCha20Poly1305)).unwrap();
    assert_eq!(RecordSecret::open(&sealed, &head, &mut opener(&keys)), Ok(secret));
    assert_eq!(Block::decode(&sealed[..]).unwrap().table().entries, []);
}

#[test]
fn a_sealed_half_opens_with_its_own_head_only() {
    let keys = keys(1);
    let head = head(&keys);
    let sealed =
        RecordSecret::default().seal(&head, &mut sealer(&keys, Suite::ChaCha20Poly1305)).unwrap();
    let open = |head: &RecordHead| RecordSecret::open(&sealed, head, &mut opener(&keys));
    let other = |change: fn(&mut RecordHead)| {
        let mut other = head.clone();
        change(&mut other);
        other
    };
    // The only field that is known too late, and is checked by itself.
    assert!(open(&other(|head| head.sealed_hash = [9; 32])).is_ok());
    let changes: [fn(&mut RecordHead); 12] = [
        |head| head.kind = RecordKind::Checkpoint,
        |head| head.pinned = true,
        |head| head.repository = RepositoryId::from_bytes([9; 16]),
        |head| head.machine = MachineId::from_bytes([9; 16]),
        |head| head.key = PublicKey::from_bytes([9; 32]),
        |head| head.series = SeriesId::from_bytes([9; 16]),
        |head| head.sequence = 9,
        |head| head.root = ObjectId::from_bytes([9; 32]),
        |head| head.previous = RecordHash::from_bytes([9; 32]),
        |head| head.tags = vec![TagToken::from_bytes([9; 16])],
        |head| head.amends = Some(RecordHash::from_bytes([9; 32])),
        |head| head.taken_ns = Some(9),
    ];
    for (at, change) in changes.into_iter().enumerate() {
        assert_eq!(open(&other(change)), Err(CryptoError::OtherHead), "change {at}");
    }
}

fn head(keys: &RepositoryKeys) -> RecordHead {
    RecordHead {
        kind: RecordKind::Snapshot,
        pinned: false,
        repository: keys.repository(),
        machine: MachineId::from_bytes([1; 16]),
        key: PublicKey::from_bytes([2; 32]),
        series: SeriesId::from_bytes([3; 16]),
        sequence: 1,
        root: ObjectId::from_bytes([4; 32]),
        previous: RecordHash::from_bytes([0; 32]),
        sealed_hash: [0; 32],
        tags: vec![],
        amends: None,
        taken_ns: None,
    }
}

#[test]
fn each_flipped_byte_of_a_block_is_refused() {
    let keys = keys(1);
    for suite in SUITES {
        let (objects, plain) = objects(&keys, BlockKind::Nodes, &[b"leaf", b"inner"]);
        let block = sealer(&keys, suite).seal(BlockKind::Nodes, &objects, &plain).unwrap();
        let mut opener = opener(&keys);
        for at in 0..block.bytes().len() {
            let mut bytes = block.bytes().clone();
            bytes[at] ^= 1;
            let opened = Block::decode(bytes)
                .map_err(CryptoError::from)
                .and_then(|block| opener.open(&block, BlockKind::Nodes));
            assert!(opened.is_err(), "byte {at} of a {suite:?} block");
        }
        assert!(opener.open(&block, BlockKind::Nodes).is_ok(), "the opener goes on");
    }
}

#[test]
fn another_repository_kind_or_key_does_not_open_a_block() {
    let (keys, other) = (keys(1), keys(2));
    let (objects, plain) = objects(&keys, BlockKind::Chunks, &[b"content"]);
    let block = sealer(&keys, Suite::Aes256Gcm).seal(BlockKind::Chunks, &objects, &plain).unwrap();
    let (found, expected) = (keys.repository(), other.repository());
    assert_eq!(
        opener(&other).open(&block, BlockKind::Chunks),
        Err(CryptoError::WrongRepository { found, expected })
    );
    assert_eq!(
        opener(&keys).open(&block, BlockKind::Nodes),
        Err(CryptoError::WrongKind { found: BlockKind::Chunks, expected: BlockKind::Nodes })
    );
    let mut same_name = holdall_crypto::Opener::new(other.sealing(), keys.repository());
    assert_eq!(same_name.open(&block, BlockKind::Chunks), Err(CryptoError::NotAuthentic));
}

#[test]
fn blocks_of_several_epochs_open_in_turn_and_not_under_another_ones_key() {
    let (first, second) = (keys(1), RepositoryKeys::derive(&rotated(1)));
    let (objects, plain) = objects(&first, BlockKind::Chunks, &[b"content"]);
    let seal = |keys: &RepositoryKeys| {
        Sealer::new(keys.sealing(), Suite::Aes256Gcm, 3, Box::new(SystemEntropy))
            .seal(BlockKind::Chunks, &objects, &plain)
            .unwrap()
    };
    let mut opens = opener(&second);
    for (keys, epoch) in [(&first, 1), (&second, 2), (&first, 1)] {
        let block = seal(keys);
        assert_eq!(block.header().epoch, epoch);
        assert!(opens.open(&block, BlockKind::Chunks).is_ok(), "epoch {epoch}");
    }
    let unknown = Err(CryptoError::UnknownEpoch { epoch: 2 });
    assert_eq!(opener(&first).open(&seal(&second), BlockKind::Chunks), unknown);
    let mut moved = seal(&first).into_bytes();
    moved[24] = 2;
    let moved = Block::decode(moved).unwrap();
    assert_eq!(opens.open(&moved, BlockKind::Chunks), Err(CryptoError::NotAuthentic));
}

#[test]
fn an_object_with_a_wrong_id_is_named() {
    let keys = keys(1);
    let (mut objects, plain) = objects(&keys, BlockKind::Chunks, &[b"true", b"false"]);
    objects[1].id = ObjectId::from_bytes([4; 32]);
    let block = sealer(&keys, Suite::Aes256Gcm).seal(BlockKind::Chunks, &objects, &plain).unwrap();
    let mut opener = opener(&keys);
    let opened = opener.open(&block, BlockKind::Chunks).unwrap();
    let wrong = CryptoError::WrongId { id: objects[1].id };
    let check = |at: usize| opened.check_id(&opened.objects[at], keys.ids(), BlockKind::Chunks);
    assert_eq!((check(0), check(1)), (Ok(()), Err(wrong.clone())));
    assert_eq!(opener.check(&block, BlockKind::Chunks, keys.ids()), Err(wrong));
}

#[test]
fn stuck_randomness_still_gives_each_payload_a_salt_of_its_own() {
    let keys = keys(1);
    let mut salts = HashSet::new();
    for byte in 0..50u8 {
        // A new sealer each time: its counter starts again, and the random bytes never change.
        let mut sealer = sealer(&keys, Suite::Aes256Gcm);
        let (objects, plain) = objects(&keys, BlockKind::Chunks, &[&[byte]]);
        let block = sealer.seal(BlockKind::Chunks, &objects, &plain).unwrap();
        assert!(salts.insert(block.header().salt));
    }
    // The same objects in another order, and the same compressed otherwise.
    let mut salt = |level, kind, parts: &[&[u8]]| {
        let mut sealer = sealer(&keys, Suite::Aes256Gcm);
        sealer.set_level(level);
        let (objects, plain) = objects(&keys, kind, parts);
        salts.insert(sealer.seal(kind, &objects, &plain).unwrap().header().salt)
    };
    assert!(salt(3, BlockKind::Chunks, &[b"one", b"two"]));
    assert!(salt(3, BlockKind::Chunks, &[b"two", b"one"]));
    assert!(salt(1, BlockKind::Chunks, &[b"one", b"two"]));
    assert!(salt(3, BlockKind::Nodes, &[b"one", b"two"]));
    assert!(!salt(3, BlockKind::Chunks, &[b"one", b"two"]), "the same block has the same salt");
    for content in [b"one", b"two"] {
        let mut sealer = sealer(&keys, Suite::Aes256Gcm);
        let record = sealer.seal(BlockKind::Record, &[], content).unwrap();
        assert!(salts.insert(record.header().salt));
    }
    let mut sealer = sealer(&keys, Suite::Aes256Gcm);
    let mut same = || sealer.seal(BlockKind::Record, &[], b"same").unwrap().header().salt;
    assert_ne!(same(), same(), "the counter keeps equal payloads apart");
}

/// Words, frequent and rare ones.
fn words(len_bytes: usize) -> Vec<u8> {
    let chance = noise("words", len_bytes);
    let pairs = chance.chunks_exact(2).map(|pair| u64::from(pair[0]) * u64::from(pair[1]));
    let mut text: Vec<u8> =
        pairs.flat_map(|word| format!("{:x} ", word * word * 2_654_435_761).into_bytes()).collect();
    text.truncate(len_bytes);
    text
}

#[test]
fn the_fastest_level_beats_that_of_zstd_and_leaves_the_others_as_they_are() {
    let keys = keys(1);
    let plain = words(1 << 20);
    let (objects, plain) = objects(&keys, BlockKind::Chunks, &[&plain]);
    let mut sealer = sealer(&keys, Suite::Aes256Gcm);
    let mut payload_bytes = |level| {
        sealer.set_level(level);
        sealer.seal(BlockKind::Chunks, &objects, &plain).unwrap().payload().len()
    };
    let by_zstd = |level| padded_len(zstd::bulk::compress(&plain, level).unwrap().len());
    let fastest = payload_bytes(1);
    assert!(fastest * 100 < by_zstd(1) * 97, "{fastest} in place of {}", by_zstd(1));
    for level in [2, 3, 6] {
        let (ours, theirs) = (payload_bytes(level), by_zstd(level));
        // Of the same frame, but for the lengths and the directory that go with it.
        assert!(ours.abs_diff(theirs) * 100 < theirs * 3, "level {level}: {ours} and {theirs}");
    }
}

#[test]
fn only_the_padded_length_of_a_payload_is_visible() {
    let keys = keys(1);
    let mut sealer = sealer(&keys, Suite::Aes256Gcm);
    for len in [0, 1, 4000, 4083, 4084, 20_000, 1 << 20] {
        let block = sealer.seal(BlockKind::Record, &[], &noise("padding", len)).unwrap();
        // Before the plain bytes stand 9 bytes of lengths and an empty directory of 4.
        assert_eq!(block.payload().len(), padded_len(9 + 4 + len) + TAG_BYTES, "{len} bytes");
    }
}

#[test]
fn what_blocks_are_beside_contents_is_counted_until_somebody_takes_it() {
    let keys = keys(1);
    let mut sealer = sealer(&keys, Suite::Aes256Gcm);
    let len = 5000;
    let record = sealer.seal(BlockKind::Record, &[], &noise("overhead", len)).unwrap();
    let clear_bytes = |block: &Block<Vec<u8>>| (block.bytes().len() - block.payload().len()) as u64;
    let padding_bytes = (padded_len(13 + len) - 13 - len) as u64;
    let of_record =
        Overhead { clear_bytes: clear_bytes(&record), padding_bytes, node_block_bytes: 0 };
    assert_eq!(sealer.take_overhead(), of_record);

    let mut block = |kind| {
        let (objects, plain) = objects(&keys, kind, &[b"one", b"two"]);
        sealer.seal(kind, &objects, &plain).unwrap()
    };
    let blocks = [BlockKind::Chunks, BlockKind::Nodes, BlockKind::Nodes].map(&mut block);
    let both = sealer.take_overhead();
    assert_eq!(both.clear_bytes, blocks.iter().map(clear_bytes).sum::<u64>());
    let node_blocks = blocks[1].bytes().len() + blocks[2].bytes().len();
    assert_eq!(both.node_block_bytes, node_blocks as u64);
    assert_eq!(sealer.take_overhead(), Overhead::default());
}

#[test]
fn text_is_compressed_and_noise_is_not_enlarged() {
    let keys = keys(1);
    let mut sealer = sealer(&keys, Suite::Aes256Gcm);
    let text = b"the quick brown fox jumps over the lazy dog. ".repeat(20_000);
    let block = sealer.seal(BlockKind::Record, &[], &text).unwrap();
    assert!(block.payload().len() < text.len() / 10);
    // One part in a hundred would be saved: not enough to pay for opening.
    let mut nearly = noise("nearly", 1 << 20);
    nearly[..10_000].fill(0);
    let block = sealer.seal(BlockKind::Record, &[], &nearly).unwrap();
    assert_eq!(block.payload().len(), padded_len(13 + nearly.len()) + TAG_BYTES);
}

#[test]
fn the_tables_order_says_nothing_of_the_order_inside() {
    let keys = keys(1);
    let mut sealer = sealer(&keys, Suite::Aes256Gcm);
    let bodies: Vec<Vec<u8>> = (0..64u8).map(|byte| vec![byte; 3]).collect();
    let bodies: Vec<&[u8]> = bodies.iter().map(Vec::as_slice).collect();
    let (objects, plain) = objects(&keys, BlockKind::Chunks, &bodies);
    let mut first_places = HashSet::new();
    for _ in 0..200 {
        let block = sealer.seal(BlockKind::Chunks, &objects, &plain).unwrap();
        let table = &block.table().entries;
        let place = |object: &PlainObject| table.iter().position(|entry| entry.id == object.id);
        assert!(objects.iter().all(|object| place(object).is_some()));
        first_places.insert(place(&objects[0]).unwrap());
    }
    // 200 draws from 64 places leave about three of them out.
    assert!(first_places.len() > 50, "{} places", first_places.len());
}

#[test]
fn what_does_not_add_up_is_not_sealed() {
    let keys = keys(1);
    let mut sealer = sealer(&keys, Suite::Aes256Gcm);
    let id = |byte| ObjectId::from_bytes([byte; 32]);
    let object = |refs, len| PlainObject { id: id(1), refs, len };
    let mut refused = |kind, objects: &[PlainObject], plain: &[u8]| {
        assert!(matches!(sealer.seal(kind, objects, plain), Err(CryptoError::Format(_))));
    };
    refused(BlockKind::Chunks, &[object(vec![], 2)], b"abc");
    refused(BlockKind::Chunks, &[object(vec![], usize::MAX), object(vec![], 4)], b"abc");
    refused(BlockKind::Chunks, &[object(vec![id(2)], 3)], b"abc");
    refused(BlockKind::Record, &[object(vec![], 3)], b"abc");
    refused(BlockKind::Nodes, &[object(vec![id(3), id(2)], 3)], b"abc");
    refused(BlockKind::Record, &[], &vec![0; BLOCK_MAX_PLAIN_BYTES + 1]);
    refused(BlockKind::Chunks, &vec![object(vec![], 0); BLOCK_MAX_OBJECTS + 1], b"");
    let block = sealer.seal(BlockKind::Record, &[], b"and the sealer goes on").unwrap();
    assert!(block.bytes().len() > BLOCK_HEADER_BYTES);
}

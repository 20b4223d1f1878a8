//! The published attack on chunkers that cut where a hash of a secret table has zero bits.
//!
//! Somebody knows a content and where it was cut: by sizes of chunks that were seen, and a file that
//! everybody has. Behind the hash alone, each cut says that a sum of table entries, of which they know
//! the factors, has zero for its lowest bits. A few hundred such equations have one solution but for a
//! factor that changes no cut, and whoever has it can compute the cuts of any content that they guess.
//!
//! The entries' lowest bits and the factors are polynomials with coefficients 0 and 1, modulo a power
//! of x: the equations are solved as over a field, but for numbers that x divides.

use aes::Block;
use aes::cipher::BlockCipherEncrypt;

use super::{Chunker, WINDOW_BYTES, number};

/// Lowest bits that must be zero: one place in 256 is a cut.
const BITS: u32 = 8;
/// Bytes that occur in the contents, so that a table is learnt soon.
const LETTERS: usize = 32;
/// Bytes of the content that is known.
const KNOWN_BYTES: usize = 256 << 10;

/// The lowest bits of a table's entry.
type Entry = u8;
type Row = [Entry; LETTERS];

fn content(seed: u8, len_bytes: usize) -> Vec<u8> {
    let mut bytes = vec![0; len_bytes];
    blake3::Hasher::new_keyed(&[seed; 32]).finalize_xof().fill(&mut bytes);
    bytes.iter().map(|byte| byte % LETTERS as u8).collect()
}

/// Where a content would be cut if the lowest bits of what `decide` makes of the hash were to be zero.
fn cuts(chunker: &Chunker, data: &[u8], decide: impl Fn(u128) -> u128) -> Vec<usize> {
    let (window, entering) = data.split_at(WINDOW_BYTES);
    let mut hash = chunker.hash.of(window);
    let mut cuts = Vec::new();
    for (at, (&entering, &leaving)) in entering.iter().zip(data).enumerate() {
        hash = chunker.hash.roll(hash, entering, leaving);
        if decide(hash).trailing_zeros() >= BITS {
            cuts.push(WINDOW_BYTES + at + 1);
        }
    }
    cuts
}

/// By the hash alone, as with a gear table.
fn cuts_by_hash(chunker: &Chunker, data: &[u8]) -> Vec<usize> {
    cuts(chunker, data, |hash| hash)
}

/// By the same rule, with the function behind the hash.
fn cuts_by_function(chunker: &Chunker, data: &[u8]) -> Vec<usize> {
    cuts(chunker, data, |hash| u128::from_le_bytes(of_function(chunker, hash).into()))
}

fn of_function(chunker: &Chunker, hash: u128) -> Block {
    let mut place = hash.to_le_bytes().into();
    chunker.function.encrypt_block(&mut place);
    place
}

/// A table that fits the cuts of a known content; `None` if only zeros do.
fn learnt(data: &[u8], cuts: &[usize]) -> Option<Row> {
    let mut rows: Vec<Row> = cuts.iter().map(|&cut| equation(&data[..cut])).collect();
    let mut pivots: Vec<(Row, usize)> = Vec::new();
    let mut open: Vec<usize> = (0..LETTERS).collect();
    while let Some((row, letter)) = least_divisible(&rows, &open) {
        let pivot = rows.swap_remove(row);
        let unit = inverse(pivot[letter] >> pivot[letter].trailing_zeros());
        for row in &mut rows {
            let times = product(row[letter] >> pivot[letter].trailing_zeros(), unit);
            row.iter_mut().zip(pivot).for_each(|(entry, with)| *entry ^= product(times, with));
        }
        open.retain(|&other| other != letter);
        pivots.push((pivot, letter));
    }
    let mut table = [0; LETTERS];
    open.iter().for_each(|&free| table[free] = 1);
    for (pivot, letter) in pivots.iter().rev() {
        let shift = pivot[*letter].trailing_zeros();
        let others = (0..LETTERS).filter(|other| other != letter);
        let sum = others.fold(0, |sum, other| sum ^ product(pivot[other] >> shift, table[other]));
        table[*letter] = product(sum, inverse(pivot[*letter] >> shift));
    }
    (table != [0; LETTERS]).then_some(table)
}

/// The factors of the table's entries in the hash behind `data`.
fn equation(data: &[u8]) -> Row {
    let mut row = [0; LETTERS];
    for (age, &byte) in data.iter().rev().take(BITS as usize).enumerate() {
        row[usize::from(byte)] ^= 1 << age;
    }
    row
}

/// The row and letter whose factor is divisible by the least power of x, of those that are not zero.
fn least_divisible(rows: &[Row], open: &[usize]) -> Option<(usize, usize)> {
    let places = (0..rows.len()).flat_map(|row| open.iter().map(move |&letter| (row, letter)));
    places
        .filter(|&(row, letter)| rows[row][letter] != 0)
        .min_by_key(|&(row, letter)| rows[row][letter].trailing_zeros())
}

fn product(a: Entry, b: Entry) -> Entry {
    (0..BITS).filter(|bit| b >> bit & 1 == 1).fold(0, |product, bit| product ^ (a << bit))
}

/// What times that is one; every polynomial that x does not divide has such an inverse.
fn inverse(of: Entry) -> Entry {
    (0..=Entry::MAX).find(|&other| product(of, other) == 1).expect("x does not divide it")
}

/// Where a table would cut.
fn predicted(table: &Row, data: &[u8]) -> Vec<usize> {
    let hash = |cut: &usize| {
        let factors = equation(&data[..*cut]);
        factors.iter().zip(table).fold(0, |sum, (factor, entry)| sum ^ product(*factor, *entry))
    };
    (WINDOW_BYTES + 1..=data.len()).filter(|cut| hash(cut) == 0).collect()
}

#[test]
fn a_table_alone_is_learnt_from_its_cuts_and_tells_those_of_other_contents() {
    let chunker = Chunker::new(&[3; 32]);
    let (known, guessed) = (content(1, KNOWN_BYTES), content(2, KNOWN_BYTES));
    let table = learnt(&known, &cuts_by_hash(&chunker, &known)).expect("a table that fits");
    let cuts = cuts_by_hash(&chunker, &guessed);
    assert!(cuts.len() > KNOWN_BYTES >> BITS >> 1, "{} cuts", cuts.len());
    assert_eq!(predicted(&table, &guessed), cuts);
}

#[test]
fn the_same_hash_is_not_learnt_where_a_function_of_it_decides() {
    let chunker = Chunker::new(&[3; 32]);
    for seed in 0..4 {
        let known = content(seed, KNOWN_BYTES);
        let cuts = cuts_by_function(&chunker, &known);
        assert!(cuts.len() > KNOWN_BYTES >> BITS >> 1, "{} cuts", cuts.len());
        assert_eq!(learnt(&known, &cuts), None);
    }
}

#[test]
fn where_a_function_decides_no_byte_is_likelier_before_a_cut() {
    let chunker = Chunker::new(&[3; 32]);
    let known = content(1, 4 * KNOWN_BYTES);
    let share = |cuts: &[usize]| {
        let mut behind = [0_u32; LETTERS];
        cuts.iter().for_each(|cut| behind[usize::from(known[cut - 1])] += 1);
        behind.into_iter().filter(|&count| count == 0).count()
    };
    // Half of a table's entries are odd, and behind their bytes it never cuts.
    assert!(share(&cuts_by_hash(&chunker, &known)) > LETTERS / 4);
    assert_eq!(share(&cuts_by_function(&chunker, &known)), 0);
}

#[test]
fn the_chunker_cuts_where_the_function_of_the_hash_says_so() {
    let chunker = Chunker::new(&[3; 32]);
    let known = content(1, KNOWN_BYTES);
    let below = u64::MAX >> BITS;
    let mut hash = chunker.hash.of(&known[..WINDOW_BYTES]);
    let mut places = known[WINDOW_BYTES..].iter().zip(&known);
    let first = places.position(|(&entering, &leaving)| {
        hash = chunker.hash.roll(hash, entering, leaving);
        number(&of_function(&chunker, hash)) < below
    });
    assert_eq!(chunker.first_place(&known, below), first.map(|at| at + 1));
    assert!(first.is_some());
}

//! Which new passwords are refused because they are tried first: words of a list with digits around them, walks over a
//! keyboard, repetitions, and names that a guesser knows.
//!
//! Everything that is long and none of these is taken, of whatever letters. This is no list of what was ever leaked: that
//! would be larger than the server.

/// Words that make no password, whatever digits and marks are around them.
const WORDS: [&str; 64] = [
    "admin",
    "administrator",
    "backup",
    "backups",
    "baseball",
    "batman",
    "changeit",
    "changeme",
    "charlie",
    "chocolate",
    "computer",
    "correcthorsebatterystaple",
    "default",
    "dragon",
    "familie",
    "family",
    "flower",
    "football",
    "freedom",
    "geheim",
    "hallo",
    "hello",
    "holdall",
    "iloveyou",
    "internet",
    "jordan",
    "letmein",
    "liverpool",
    "login",
    "lovely",
    "master",
    "michael",
    "monkey",
    "mustang",
    "mypassword",
    "mysecretpassword",
    "nopassword",
    "pass",
    "passphrase",
    "password",
    "passwort",
    "princess",
    "private",
    "root",
    "samsung",
    "secret",
    "server",
    "shadow",
    "starwars",
    "summer",
    "sunshine",
    "superman",
    "supersecret",
    "superuser",
    "system",
    "test",
    "testing",
    "trustno",
    "unbelievable",
    "user",
    "welcome",
    "whatever",
    "winter",
    "yourpassword",
];
/// Walks over keyboards and the alphabet, and back.
const WALKS: [&str; 8] = [
    "12345678901234567890",
    "abcdefghijklmnopqrstuvwxyz",
    "qwertyuiopasdfghjklzxcvbnm",
    "qwertzuiopasdfghjklyxcvbnm",
    "azertyuiopqsdfghjklmwxcvbn",
    "1qaz2wsx3edc4rfv5tgb6yhn7ujm8ik",
    "1q2w3e4r5t6y7u8i9o0p",
    "q1w2e3r4t5y6u7i8o9p0",
];
/// Fewest different letters.
const LEAST_DIFFERENT: usize = 5;
/// So many letters in a row of a walk count as no password's own.
const STEP: usize = 4;

/// Whether a password is one that is tried first. `names` are those that a guesser knows: of the account and of the server.
pub(super) fn is_guessable(password: &str, names: &[&str]) -> bool {
    let lower = password.to_lowercase();
    let letters: Vec<char> = lower.chars().collect();
    let mut different = letters.clone();
    different.sort_unstable();
    different.dedup();
    different.len() < LEAST_DIFFERENT
        || repeats(&letters)
        || is_word(&lower, names)
        || is_walk(&letters)
}

/// Whether it is one piece, over and over.
fn repeats(letters: &[char]) -> bool {
    let is_piece = |length: usize| {
        letters.len().is_multiple_of(length)
            && letters.chunks_exact(length).all(|piece| piece == &letters[..length])
    };
    (1..=letters.len() / 2).any(is_piece)
}

/// Whether it is a word or a name with digits and marks around it or between its letters, once or several times.
fn is_word(lower: &str, names: &[&str]) -> bool {
    let bare: Vec<char> = lower.chars().filter(|letter| letter.is_alphabetic()).collect();
    let is_it = |word: &str| {
        let word: Vec<char> =
            word.to_lowercase().chars().filter(|letter| letter.is_alphabetic()).collect();
        !word.is_empty()
            && bare.len().is_multiple_of(word.len())
            && !bare.is_empty()
            && bare.chunks_exact(word.len()).all(|piece| piece == word)
    };
    WORDS.iter().chain(names).any(|word| is_it(word))
}

/// Whether nothing is left of it but digits and marks without pieces of walks, forward and back.
fn is_walk(letters: &[char]) -> bool {
    let is_step = |four: &[char]| {
        let forward: String = four.iter().collect();
        let back: String = four.iter().rev().collect();
        WALKS.iter().any(|walk| walk.contains(&forward) || walk.contains(&back))
    };
    let mut is_walked = vec![false; letters.len()];
    for at in 0..letters.len().saturating_sub(STEP - 1) {
        if is_step(&letters[at..at + STEP]) {
            is_walked[at..at + STEP].fill(true);
        }
    }
    let own = letters.iter().zip(&is_walked).filter(|(_, walked)| !**walked);
    own.count() < STEP
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_tried_first_is_refused_and_what_is_long_and_none_of_it_is_taken() {
        for guessable in [
            "aaaaaaaaaaaa",
            "ababababcdcd",
            "123456789012",
            "210987654321",
            "qwertyuiop12",
            "QwertZuiopAsdf",
            "1qaz2wsx3edc",
            "q1w2e3r4t5y6",
            "abcdefghijkl",
            "123qwe123qwe",
            "password1234",
            "Password!2024",
            "passwordpassword",
            "p-a-s-s-w-o-r-d-1",
            "welcome12345!",
            "holdall-2026!!",
            "Correct Horse Battery Staple",
            "administrator",
            "ann-ann-ann-1",
            "nas 2026 nas 2026",
            "unbelievable",
            "\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}",
        ] {
            assert!(is_guessable(guessable, &["ann", "nas"]), "{guessable}");
        }
        for good in [
            "a long enough password",
            "another long password",
            "four words of mine",
            "8361940275183",
            "\u{1f40e}\u{1f50b}\u{1f4ce} is what I keep",
            "\u{5bc6}\u{7801}\u{662f}\u{6211}\u{81ea}\u{5df1}\u{9009}\u{7684}\u{5f88}\u{957f}\u{7684}\u{554a}",
            "passwordless is better",
        ] {
            assert!(!is_guessable(good, &["ann", "nas", ""]), "{good}");
        }
    }

    #[test]
    fn the_list_is_in_order_and_has_nothing_twice() {
        assert!(WORDS.is_sorted_by(|one, other| one < other));
    }
}

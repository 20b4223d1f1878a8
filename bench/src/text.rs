//! Text that compresses as source code and prose do: zstd gets it down to about a third.

use crate::random::Random;

const WORDS: usize = 12_000;
const LETTERS: &[u8] = b"etaoinshrdlucmfwypvbgkjqxz";
const COMMON: [&str; 20] = [
    "if ", "return ", "self_", "int(", "const, ", "the.", "of;\n", "and ", "{\n", "}\n", "    ",
    "\n", "();\n", "= ", "->", "#include", "import ", "for ", "0", "1",
];
const ENDS: [&str; 8] = [" ", " ", " ", "_", "(", ", ", ".", ";\n"];

/// A vocabulary whose words follow Zipf's law: the word at rank r comes with odds of about 1/r.
pub(crate) struct Text {
    words: Vec<Vec<u8>>,
}

impl Text {
    /// The vocabulary; the same every time.
    pub(crate) fn new() -> Self {
        let mut random = Random::new(7);
        let mut words: Vec<Vec<u8>> = COMMON.iter().map(|word| word.as_bytes().to_vec()).collect();
        for at in 0..WORDS {
            let letters = 2 + poisson(&mut random, 4.2);
            let mut word: Vec<u8> = (0..letters).map(|_| letter(&mut random)).collect();
            word.extend_from_slice(ENDS[at % ENDS.len()].as_bytes());
            words.push(word);
        }
        Self { words }
    }

    /// Appends text to `out` until it is exactly `len_bytes` long.
    pub(crate) fn extend(&self, random: &mut Random, out: &mut Vec<u8>, len_bytes: usize) {
        let scale = ((self.words.len() + 1) as f64).ln();
        while out.len() < len_bytes {
            let rank = (random.unit() * scale).exp() as usize - 1;
            out.extend_from_slice(&self.words[rank.min(self.words.len() - 1)]);
        }
        out.truncate(len_bytes);
    }
}

/// A letter, the common ones more often.
fn letter(random: &mut Random) -> u8 {
    // Odds of 1/(rank + 2), by the same inverse as words.
    let spread = (LETTERS.len() as f64 + 2.0) / 2.0;
    let rank = 2.0 * spread.powf(random.unit()) - 2.0;
    LETTERS[(rank as usize).min(LETTERS.len() - 1)]
}

/// A number from a Poisson distribution (Knuth's method, for small means).
fn poisson(random: &mut Random, mean: f64) -> usize {
    let floor = (-mean).exp();
    let mut product = random.unit();
    let mut count = 0;
    while product > floor {
        product *= random.unit();
        count += 1;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_has_the_asked_length_and_repeats_its_words() {
        let mut out = Vec::new();
        Text::new().extend(&mut Random::new(1), &mut out, 100_001);
        assert_eq!(out.len(), 100_001);
        assert!(out.is_ascii());
        let mut again = Vec::new();
        Text::new().extend(&mut Random::new(1), &mut again, 100_001);
        assert!(out == again, "the same seed gives the same text");
        let count = out.windows(2).filter(|pair| pair == b"()").count();
        assert!(count > 100, "a common word came {count} times");
    }
}

//! Short codes: nine digits that a person reads on the server and types on the machine, in the place of an invite.
//!
//! Nine digits are no secret that could be sent or hashed: whoever saw a hash would try them all. So both ends prove to each
//! other that they have the same code (`exchange`), and the server then sends the ordinary invite, sealed (`client` asks for
//! it). Nothing else is different about a machine that was let in so.

mod client;
mod exchange;

use std::fmt;

use zeroize::Zeroizing;

pub use client::invite_by_code;
pub use exchange::{Agreed, MachineExchange, answer_exchange};

/// How many codes there are: nine digits.
const CODES: u64 = 1_000_000_000;
const DIGITS: usize = 9;
/// Digits between two hyphens.
const GROUP: usize = 3;

/// A short code: nine decimal digits, which may begin with zeros.
///
/// Secret: whoever has it first, and reaches the server, is let in. It has no `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct ShortCode(Zeroizing<[u8; DIGITS]>);

impl ShortCode {
    /// Takes random bytes; all codes are equally likely, but for less than one part in 10^9.
    pub fn from_random(bytes: [u8; 8]) -> Self {
        let number = u64::from_le_bytes(bytes) % CODES;
        let mut digits = Zeroizing::new([0; DIGITS]);
        digits.copy_from_slice(Zeroizing::new(format!("{number:09}")).as_bytes());
        Self(digits)
    }

    /// Reads a code as it was typed: blanks and hyphens do no harm. `None` for anything but nine digits.
    ///
    /// Untrusted: the text may be of any length.
    pub fn from_text(text: &str) -> Option<Self> {
        let mut digits = Zeroizing::new([0; DIGITS]);
        let mut places = digits.iter_mut();
        for letter in text.bytes() {
            match letter {
                b'0'..=b'9' => *places.next()? = letter,
                b'-' => {}
                letter if letter.is_ascii_whitespace() => {}
                _ => return None,
            }
        }
        places.next().is_none().then_some(Self(digits))
    }

    /// The code in three groups, as people read it: `123-456-789`.
    pub fn to_text(&self) -> Zeroizing<String> {
        let mut text = Zeroizing::new(String::with_capacity(DIGITS + DIGITS / GROUP));
        for group in self.0.chunks(GROUP) {
            if !text.is_empty() {
                text.push('-');
            }
            group.iter().for_each(|digit| text.push(char::from(*digit)));
        }
        text
    }

    fn digits(&self) -> &[u8; DIGITS] {
        &self.0
    }
}

impl fmt::Debug for ShortCode {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("ShortCode(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_code_is_read_however_it_is_typed_and_nothing_else_is_one() {
        let code = ShortCode::from_random(1_234_567u64.to_le_bytes());
        assert_eq!(*code.to_text(), "001-234-567");
        for typed in ["001234567", " 001 234 567\n", "001-234-567", "0-0-1-2-3-4-5-6-7"] {
            assert_eq!(ShortCode::from_text(typed), Some(code.clone()), "{typed}");
        }
        for other in
            ["", "00123456", "0012345678", "00123456a", "٠٠١٢٣٤٥٦٧", "holdall1-aeoq", "1e8"]
        {
            assert_eq!(ShortCode::from_text(other), None, "{other}");
        }
        assert_eq!(format!("{code:?}"), "ShortCode(..)");
    }

    proptest! {
        #[test]
        fn any_text_is_a_code_or_none(text: String, digits in "[0-9 -]{0,20}") {
            for text in [text, digits] {
                if let Some(code) = ShortCode::from_text(&text) {
                    prop_assert_eq!(ShortCode::from_text(&code.to_text()), Some(code));
                }
            }
        }

        #[test]
        fn every_random_code_reads_back(bytes: [u8; 8]) {
            let code = ShortCode::from_random(bytes);
            prop_assert_eq!(ShortCode::from_text(&code.to_text()), Some(code));
        }
    }
}

//! Paths of any bytes in addresses, forms and headers.
//!
//! Untrusted: a name out of a backup may hold anything but a slash and a zero.

use std::fmt::Write;

use axum::http::HeaderValue;
use holdall_format::portable_name;

/// A path or name as part of an address: ASCII letters, digits, `-._~/` as they are, all else by number.
pub(crate) fn encode(path: &[u8]) -> String {
    let mut out = String::with_capacity(path.len());
    for &byte in path {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                out.push(char::from(byte));
            }
            _ => push_number(&mut out, byte),
        }
    }
    out
}

/// The bytes of a part of an address. A `%` without two digits is one.
pub(crate) fn decode(text: &str) -> Vec<u8> {
    let (mut out, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let [first, after @ ..] = rest {
        match (first, digits(after)) {
            (b'%', Some(byte)) => {
                out.push(byte);
                rest = &rest[3..];
            }
            _ => {
                out.push(*first);
                rest = after;
            }
        }
    }
    out
}

/// The fields of a form, or of what follows a `?`.
pub(crate) fn fields(text: &str) -> Vec<(String, Vec<u8>)> {
    let value = |text: &str| decode(&text.replace('+', " "));
    let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
    pairs.map(|(key, of)| (String::from_utf8_lossy(&value(key)).into_owned(), value(of))).collect()
}

/// The first field of that name.
pub(crate) fn field<'a>(fields: &'a [(String, Vec<u8>)], name: &str) -> Option<&'a [u8]> {
    fields.iter().find(|(key, _)| key == name).map(|(_, value)| &value[..])
}

/// What is last in a path.
pub(crate) fn last(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or_default()
}

/// What is last in the path of an address.
pub(crate) fn plain_last(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

/// The header that has a browser keep what it is sent, under that name.
pub(crate) fn disposition(name: &[u8]) -> String {
    let portable = portable_name(name);
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-._ ".contains(letter);
    let ascii: String = portable.chars().map(|one| if plain(one) { one } else { '_' }).collect();
    let exact = encode(portable.as_bytes()).replace('/', "%2F");
    format!("attachment; filename=\"{ascii}\"; filename*=UTF-8''{exact}")
}

/// Our own headers are of ASCII that can be seen.
pub(crate) fn header(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).unwrap_or(HeaderValue::from_static(""))
}

fn push_number(out: &mut String, byte: u8) {
    // Writing to a string does not fail.
    let _ = write!(out, "%{byte:02X}");
}

/// The byte that two hexadecimal digits at the front stand for.
fn digits(text: &[u8]) -> Option<u8> {
    let digit = |at: usize| text.get(at).and_then(|byte| char::from(*byte).to_digit(16));
    u8::try_from(digit(0)? * 16 + digit(1)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&[u8]; 9] = [
        b"plain.txt",
        b"<script>alert(1)</script>",
        b"a\nb\r\nSet-Cookie: x",
        "gpj.\u{202e}a".as_bytes(),
        b"\xff\xfe",
        b"..\\..\\evil",
        b"100%41",
        b"100%",
        "\u{e9}\u{1f600}\"'".as_bytes(),
    ];

    #[test]
    fn a_path_comes_back_from_an_address_byte_by_byte() {
        for name in NAMES {
            let text = encode(name);
            assert!(
                text.bytes().all(|byte| byte.is_ascii_graphic() && !b"<>\"'?#&+".contains(&byte))
            );
            assert_eq!(decode(&text), name);
        }
        let every: Vec<u8> = (0..=255).collect();
        assert_eq!(decode(&encode(&every)), every);
        assert_eq!(decode("%zz%4"), b"%zz%4");
    }

    #[test]
    fn fields_are_taken_apart_as_browsers_write_them() {
        let found = fields("a=1+2&p=%2Fx%2541&p=y&empty=&none");
        assert_eq!(field(&found, "a"), Some(&b"1 2"[..]));
        assert_eq!(found.iter().filter(|(key, _)| key == "p").count(), 2);
        assert_eq!(
            field(&found, "p").map(|one| decode(std::str::from_utf8(one).unwrap())),
            Some(b"/xA".to_vec())
        );
        assert_eq!((field(&found, "empty"), field(&found, "none")), (Some(&b""[..]), None));
    }

    #[test]
    fn names_in_headers_are_harmless() {
        for name in NAMES {
            let line = disposition(name);
            assert!(axum::http::HeaderValue::from_str(&line).is_ok(), "{line}");
            assert_eq!(line.matches('"').count(), 2, "{line}");
        }
    }
}

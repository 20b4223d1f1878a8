//! One component of a pattern against one name: `*`, `?`, `[...]` and `\`, byte by byte as git's
//! wildmatch does it.
//!
//! A `*` that was tried is never tried again once a later one was reached, so that the work is at
//! most the product of both lengths, whatever a hostile `.holdallignore` says.

/// Whether `pattern`, which holds no `/`, matches all of `name`.
pub(super) fn matches(pattern: &[u8], name: &[u8], any_case: bool) -> bool {
    let (mut at, mut done) = (0, 0);
    // Where to go on after the last `*`, and up to where that took the name.
    let mut star: Option<(usize, usize)> = None;
    loop {
        let rest = pattern.get(at..).unwrap_or_default();
        let taken = match (rest.first(), name.get(done)) {
            (None, None) => return true,
            (Some(b'*'), _) => {
                at += 1;
                star = Some((at, done));
                continue;
            }
            (Some(_), Some(&byte)) => one(rest, byte, any_case).ok().flatten(),
            _ => None,
        };
        if let Some(len) = taken {
            (at, done) = (at + len, done + 1);
            continue;
        }
        match star {
            Some((after, took)) if took < name.len() => {
                (at, done) = (after, took + 1);
                star = Some((after, took + 1));
            }
            _ => return false,
        }
    }
}

/// Checks that a component can be read.
///
/// # Errors
/// What is wrong with it.
pub(super) fn check(pattern: &[u8]) -> Result<(), &'static str> {
    let mut rest = pattern;
    while !rest.is_empty() {
        let (_, len) = element(rest, 0, false)?;
        rest = rest.get(len..).unwrap_or_default();
    }
    Ok(())
}

/// How many bytes the first element of `pattern` has: what stands for one byte, or a `*`.
///
/// # Errors
/// What is wrong with it.
pub(super) fn element_len(pattern: &[u8]) -> Result<usize, &'static str> {
    element(pattern, 0, false).map(|(_, len)| len)
}

/// The length of the first element if it stands for `byte`.
fn one(pattern: &[u8], byte: u8, any_case: bool) -> Result<Option<usize>, &'static str> {
    element(pattern, byte, any_case).map(|(matched, len)| matched.then_some(len))
}

/// Whether the first element stands for `byte`, and its length.
fn element(pattern: &[u8], byte: u8, any_case: bool) -> Result<(bool, usize), &'static str> {
    let same = |letter: u8| letter == byte || (any_case && letter.eq_ignore_ascii_case(&byte));
    match pattern {
        [b'?' | b'*', ..] => Ok((true, 1)),
        [b'\\', letter, ..] => Ok((same(*letter), 2)),
        [b'\\'] => Err("nothing follows its last \\"),
        [b'[', class @ ..] => {
            let (mut matched, len) = in_class(class, byte)?;
            if any_case {
                matched |= in_class(class, byte.to_ascii_lowercase())?.0;
                matched |= in_class(class, byte.to_ascii_uppercase())?.0;
            }
            let negated = matches!(class, [b'!' | b'^', ..]);
            Ok((matched != negated, 1 + len))
        }
        [letter, ..] => Ok((same(*letter), 1)),
        [] => Ok((false, 0)),
    }
}

/// Whether a class, from after its `[`, lists `byte`, and its length with the `]`. That a first `!`
/// or `^` turns it around is up to the caller.
fn in_class(class: &[u8], byte: u8) -> Result<(bool, usize), &'static str> {
    const NO_END: &str = "a [ has no ]";
    let start = usize::from(matches!(class, [b'!' | b'^', ..]));
    let mut at = start;
    let mut matched = false;
    loop {
        let rest = class.get(at..).unwrap_or_default();
        if at > start && rest.first() == Some(&b']') {
            return Ok((matched, at + 1));
        }
        if let Some((name, len)) = named_class(rest) {
            matched |= is_named(name, byte)?;
            at += len;
            continue;
        }
        let (low, low_len) = letter(rest).ok_or(NO_END)?;
        at += low_len;
        let rest = class.get(at..).unwrap_or_default();
        match rest {
            [b'-', high @ ..] if !matches!(high, [] | [b']', ..]) => {
                let (high, high_len) = letter(high).ok_or(NO_END)?;
                if low > high {
                    return Err("a range in [ ] is the wrong way round");
                }
                matched |= (low..=high).contains(&byte);
                at += 1 + high_len;
            }
            _ => matched |= low == byte,
        }
    }
}

/// A letter of a class, escaped or not, and its length.
fn letter(rest: &[u8]) -> Option<(u8, usize)> {
    match rest {
        [b'\\', letter, ..] => Some((*letter, 2)),
        [b'\\'] | [] => None,
        [letter, ..] => Some((*letter, 1)),
    }
}

/// The name in a `[:name:]` at the start, and the length of it all.
fn named_class(rest: &[u8]) -> Option<(&[u8], usize)> {
    let name = rest.strip_prefix(b"[:")?;
    let end = name.iter().position(|&byte| byte == b']')?;
    let name = name.get(..end)?.strip_suffix(b":")?;
    Some((name, b"[:".len() + end + 1))
}

fn is_named(name: &[u8], byte: u8) -> Result<bool, &'static str> {
    Ok(match name {
        b"alnum" => byte.is_ascii_alphanumeric(),
        b"alpha" => byte.is_ascii_alphabetic(),
        b"blank" => matches!(byte, b' ' | b'\t'),
        b"cntrl" => byte.is_ascii_control(),
        b"digit" => byte.is_ascii_digit(),
        b"graph" => byte.is_ascii_graphic(),
        b"lower" => byte.is_ascii_lowercase(),
        b"print" => byte.is_ascii_graphic() || byte == b' ',
        b"punct" => byte.is_ascii_punctuation(),
        b"space" => byte.is_ascii_whitespace() || byte == 0x0b,
        b"upper" => byte.is_ascii_uppercase(),
        b"xdigit" => byte.is_ascii_hexdigit(),
        _ => return Err("a [: :] has an unknown name"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_are_tried_at_every_place_and_in_little_time() {
        assert!(matches(b"*a*b", b"xaxxabab", false) && !matches(b"*a*b", b"ba", false));
        let hostile = b"*a".repeat(1000);
        assert!(!matches(&[&hostile[..], b"b"].concat(), &[b'a'; 255], false));
    }

    #[test]
    fn classes_list_letters_ranges_and_names() {
        let listed = |class: &str, any_case| {
            let all = (b' '..=b'~').filter(|&byte| matches(class.as_bytes(), &[byte], any_case));
            String::from_utf8(all.collect()).unwrap()
        };
        assert_eq!(listed("[]a-c-]", false), "-]abc");
        assert_eq!(listed("[[:digit:]x\\]]", false), "0123456789]x");
        assert_eq!(listed("[b-cZ]", true), "BCZbcz");
        assert_eq!(listed("[!!-}]", false), " ~");
    }

    #[test]
    fn what_can_not_be_read_says_why() {
        for bad in ["[", "[a", "[]", "[\\]", "a\\", "[[:nothing:]]", "[z-a]"] {
            check(bad.as_bytes()).expect_err(bad);
        }
        check(b"[[:a]").unwrap();
    }
}

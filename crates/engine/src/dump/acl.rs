//! UnlockedRepository control lists as text, which is how tar keeps them.
//!
//! ```text
//! stored: | version 2 u32le | per entry: kind u16le | rwx bits u16le | id u32le |
//! text:   user::rwx,user:1000:r--,group::r--,mask::r--,other::---
//! ```
//!
//! Sources: linux/posix_acl_xattr.h; acl(5), "ACL TEXT FORMS".

const VERSION: u32 = 2;

/// Reads a list as the kernel keeps it in an attribute; nothing for anything else.
pub(super) fn text(stored: &[u8]) -> Option<String> {
    let (version, entries) = stored.split_first_chunk::<4>()?;
    let (entries, rest) = entries.as_chunks::<8>();
    if u32::from_le_bytes(*version) != VERSION || !rest.is_empty() || entries.is_empty() {
        return None;
    }
    entries.iter().map(entry).collect::<Option<Vec<_>>>().map(|entries| entries.join(","))
}

fn entry(&[k0, k1, b0, b1, i0, i1, i2, i3]: &[u8; 8]) -> Option<String> {
    let bits = u16::from_le_bytes([b0, b1]);
    let id = u32::from_le_bytes([i0, i1, i2, i3]);
    let (word, id) = match u16::from_le_bytes([k0, k1]) {
        0x01 => ("user", None),
        0x02 => ("user", Some(id)),
        0x04 => ("group", None),
        0x08 => ("group", Some(id)),
        0x10 => ("mask", None),
        0x20 => ("other", None),
        _ => return None,
    };
    let id = id.map(|id| id.to_string()).unwrap_or_default();
    let letter = |bit, letter| if bits & bit == 0 { '-' } else { letter };
    Some(format!("{word}:{id}:{}{}{}", letter(4, 'r'), letter(2, 'w'), letter(1, 'x')))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(entries: &[(u16, u16, u32)]) -> Vec<u8> {
        let mut raw = VERSION.to_le_bytes().to_vec();
        for (kind, bits, id) in entries {
            raw.extend(kind.to_le_bytes());
            raw.extend(bits.to_le_bytes());
            raw.extend(id.to_le_bytes());
        }
        raw
    }

    #[test]
    fn a_list_reads_as_its_text() {
        let list = list(&[
            (0x01, 7, u32::MAX),
            (0x02, 4, 1000),
            (0x04, 5, u32::MAX),
            (0x08, 2, 4_000_000_000),
            (0x10, 5, u32::MAX),
            (0x20, 0, u32::MAX),
        ]);
        let expected =
            "user::rwx,user:1000:r--,group::r-x,group:4000000000:-w-,mask::r-x,other::---";
        assert_eq!(text(&list).as_deref(), Some(expected));
    }

    #[test]
    fn what_is_no_list_has_no_text() {
        let whole = list(&[(0x01, 7, 0)]);
        for wrong in [&whole[..11], &whole[..4], &[], &list(&[(0x03, 7, 0)]), &[1; 12]] {
            assert_eq!(text(wrong), None, "{wrong:?}");
        }
    }
}

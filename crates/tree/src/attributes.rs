//! Extended attributes, among them access control lists and file capabilities, as one byte string.
//!
//! ```text
//! | count varint | per attribute: name length varint | name | value length varint | value |
//! ```
//!
//! Names ascend, so that the same attributes are the same bytes in whatever order a file system
//! lists them. No attributes are no bytes.

use holdall_format::FormatError;
use holdall_format::wire::{Reader, put_varint};

/// Most bytes of an attribute's name.
pub const ATTRIBUTE_NAME_MAX_BYTES: usize = 255;
/// Most bytes of one attribute's value.
pub const ATTRIBUTE_VALUE_MAX_BYTES: usize = 1 << 20;
/// Most attributes of one entry.
pub const ATTRIBUTES_MAX: usize = 65_536;

const WHAT: &str = "attributes";

/// The extended attributes of an entry: names, ascending and distinct, with their values.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Attributes(Vec<(Vec<u8>, Vec<u8>)>);

impl Attributes {
    /// Takes attributes in any order.
    ///
    /// # Errors
    /// [`FormatError`] for a repeated or empty name, or anything over its limit.
    pub fn new(mut attributes: Vec<(Vec<u8>, Vec<u8>)>) -> Result<Self, FormatError> {
        attributes.sort();
        let reader = Reader::new(WHAT, &[]);
        if attributes.len() > ATTRIBUTES_MAX {
            return Err(reader.invalid("count", "over its limit"));
        }
        for (name, value) in &attributes {
            if name.is_empty() || name.len() > ATTRIBUTE_NAME_MAX_BYTES {
                return Err(reader.invalid("name", "not from 1 to 255 bytes"));
            }
            if value.len() > ATTRIBUTE_VALUE_MAX_BYTES {
                return Err(reader.invalid("value", "over its limit"));
            }
        }
        if attributes.array_windows().any(|[(left, _), (right, _)]| left == right) {
            return Err(reader.invalid("name", "repeated"));
        }
        Ok(Self(attributes))
    }

    /// Says whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Names and values, by ascending name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&[u8], &[u8])> {
        self.0.iter().map(|(name, value)| (&name[..], &value[..]))
    }

    /// The bytes that a content holds; none for no attributes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        if self.0.is_empty() {
            return out;
        }
        put_varint(&mut out, self.0.len() as u64);
        for bytes in self.0.iter().flat_map(|(name, value)| [name, value]) {
            put_varint(&mut out, bytes.len() as u64);
            out.extend_from_slice(bytes);
        }
        out
    }

    /// Reads what [`Attributes::encode`] wrote.
    ///
    /// Untrusted: allocates in proportion to `bytes`.
    ///
    /// # Errors
    /// [`FormatError`] for anything cut short, over its limit, unsorted or left over.
    pub fn decode(bytes: &[u8]) -> Result<Self, FormatError> {
        let mut attributes: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
        if bytes.is_empty() {
            return Ok(Self(attributes));
        }
        let mut reader = Reader::new(WHAT, bytes);
        let count = reader.varlen("count", ATTRIBUTES_MAX)?;
        if count == 0 {
            return Err(reader.invalid("count", "zero takes no bytes"));
        }
        for _ in 0..count {
            let name_len = reader.varlen("name length", ATTRIBUTE_NAME_MAX_BYTES)?;
            let name = reader.bytes("name", name_len)?;
            let value_len = reader.varlen("value length", ATTRIBUTE_VALUE_MAX_BYTES)?;
            let value = reader.bytes("value", value_len)?;
            if attributes.last().map_or(&[][..], |(last, _)| &last[..]) >= name {
                return Err(reader.invalid("name", "not ascending"));
            }
            attributes.push((name.to_vec(), value.to_vec()));
        }
        reader.finish()?;
        Ok(Self(attributes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_order_of_listing_does_not_matter() {
        let acl = (b"system.posix_acl_access".to_vec(), vec![2, 0]);
        let user = (b"user.x".to_vec(), Vec::new());
        let one = Attributes::new(vec![acl.clone(), user.clone()]).unwrap();
        let other = Attributes::new(vec![user.clone(), acl]).unwrap();
        assert_eq!(one.encode(), other.encode());
        assert!(Attributes::new(vec![user.clone(), (user.0, vec![1])]).is_err());
    }

    #[test]
    fn no_attributes_are_no_bytes() {
        assert_eq!(Attributes::default().encode(), []);
        assert_eq!(Attributes::decode(&[]), Ok(Attributes::default()));
        assert!(Attributes::decode(&[0]).is_err());
    }

    proptest! {
        #[test]
        fn attributes_read_back_and_mutated_ones_encode_to_the_same_bytes_or_are_refused(
            list in proptest::collection::btree_map("[a-c]{1,3}", any::<Vec<u8>>(), 1..6),
            at: usize, flip in 1u8..
        ) {
            let list = list.into_iter().map(|(name, value)| (name.into_bytes(), value)).collect();
            let attributes = Attributes::new(list).unwrap();
            let mut bytes = attributes.encode();
            prop_assert_eq!(Attributes::decode(&bytes), Ok(attributes));
            let at = at % bytes.len();
            bytes[at] ^= flip;
            if let Ok(other) = Attributes::decode(&bytes) {
                prop_assert_eq!(other.encode(), bytes);
            }
        }

        #[test]
        fn random_bytes_are_attributes_or_an_error(bytes: Vec<u8>) {
            if let Ok(attributes) = Attributes::decode(&bytes) {
                prop_assert_eq!(attributes.encode(), bytes);
            }
        }
    }
}

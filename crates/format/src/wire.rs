//! Reading and writing little-endian fields, the one place where lengths of untrusted input are
//! handled.

use std::ops::RangeInclusive;

use crate::FormatError;

/// Takes fields off the front of untrusted bytes. No method panics, and none allocates.
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    what: &'static str,
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Starts at the front of `bytes`; `what` names the structure in errors.
    pub fn new(what: &'static str, bytes: &'a [u8]) -> Self {
        Self { what, rest: bytes }
    }

    /// Bytes not yet taken.
    pub fn remaining(&self) -> &'a [u8] {
        self.rest
    }

    /// Takes `len_bytes` bytes.
    ///
    /// # Errors
    /// [`FormatError::CutShort`] if fewer are left.
    pub fn bytes(
        &mut self,
        field: &'static str,
        len_bytes: usize,
    ) -> Result<&'a [u8], FormatError> {
        let (taken, rest) = self.rest.split_at_checked(len_bytes).ok_or(FormatError::CutShort {
            what: self.what,
            field,
            needed_bytes: len_bytes as u64,
            present_bytes: self.rest.len() as u64,
        })?;
        self.rest = rest;
        Ok(taken)
    }

    /// Takes an array of fixed length.
    ///
    /// # Errors
    /// [`FormatError::CutShort`] if fewer bytes are left.
    pub fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], FormatError> {
        let mut array = [0; N];
        array.copy_from_slice(self.bytes(field, N)?);
        Ok(array)
    }

    /// Takes one byte.
    ///
    /// # Errors
    /// [`FormatError::CutShort`] at the end.
    pub fn u8(&mut self, field: &'static str) -> Result<u8, FormatError> {
        self.array::<1>(field).map(|[byte]| byte)
    }

    /// Takes a `u16`.
    ///
    /// # Errors
    /// [`FormatError::CutShort`] if fewer than 2 bytes are left.
    pub fn u16(&mut self, field: &'static str) -> Result<u16, FormatError> {
        self.array(field).map(u16::from_le_bytes)
    }

    /// Takes a `u32`.
    ///
    /// # Errors
    /// [`FormatError::CutShort`] if fewer than 4 bytes are left.
    pub fn u32(&mut self, field: &'static str) -> Result<u32, FormatError> {
        self.array(field).map(u32::from_le_bytes)
    }

    /// Takes a `u64`.
    ///
    /// # Errors
    /// [`FormatError::CutShort`] if fewer than 8 bytes are left.
    pub fn u64(&mut self, field: &'static str) -> Result<u64, FormatError> {
        self.array(field).map(u64::from_le_bytes)
    }

    /// Takes a `u32` that counts or measures something, and refuses it above `limit`.
    ///
    /// # Errors
    /// [`FormatError::CutShort`] or [`FormatError::OverLimit`].
    pub fn length(&mut self, field: &'static str, limit: usize) -> Result<usize, FormatError> {
        let declared = self.u32(field)?;
        within(self.what, field, u64::from(declared), limit)
    }

    /// Takes a variable-length unsigned number (LEB128, at most 10 bytes, shortest form only).
    ///
    /// # Errors
    /// [`FormatError::CutShort`], or [`FormatError::Invalid`] for a number over 64 bits or one
    /// that is not in its shortest form.
    pub fn varint(&mut self, field: &'static str) -> Result<u64, FormatError> {
        let invalid = |reason| FormatError::Invalid { what: self.what, field, reason };
        let mut value = 0u64;
        let mut shift = 0u32;
        let mut rest = self.rest;
        loop {
            let Some((&byte, tail)) = rest.split_first() else {
                return Err(FormatError::CutShort {
                    what: self.what,
                    field,
                    needed_bytes: 1,
                    present_bytes: 0,
                });
            };
            rest = tail;
            let low = u64::from(byte & 0x7f);
            if shift == 63 && low > 1 {
                return Err(invalid("more than 64 bits"));
            }
            value |= low << shift;
            if byte & 0x80 == 0 {
                if byte == 0 && shift > 0 {
                    return Err(invalid("not in its shortest form"));
                }
                self.rest = rest;
                return Ok(value);
            }
            if shift == 63 {
                return Err(invalid("more than 64 bits"));
            }
            shift = shift.saturating_add(7);
        }
    }

    /// Takes a variable-length number that counts or measures something, and refuses it above
    /// `limit`.
    ///
    /// # Errors
    /// As [`Reader::varint`], or [`FormatError::OverLimit`].
    pub fn varlen(&mut self, field: &'static str, limit: usize) -> Result<usize, FormatError> {
        let declared = self.varint(field)?;
        within(self.what, field, declared, limit)
    }

    /// Takes the magic and the version of a structure.
    ///
    /// # Errors
    /// [`FormatError::WrongMagic`], [`FormatError::UnsupportedVersion`] or
    /// [`FormatError::CutShort`].
    pub fn magic(&mut self, magic: &[u8; 4], version: u8) -> Result<(), FormatError> {
        self.magic_within(magic, version..=version).map(drop)
    }

    /// Takes the magic and the version of a structure of which several versions are read, and says which it is.
    ///
    /// # Errors
    /// As [`Reader::magic`].
    pub fn magic_within(
        &mut self,
        magic: &[u8; 4],
        versions: RangeInclusive<u8>,
    ) -> Result<u8, FormatError> {
        if self.array::<4>("magic")? != *magic {
            return Err(FormatError::WrongMagic { what: self.what });
        }
        match self.u8("version")? {
            found if versions.contains(&found) => Ok(found),
            found => Err(FormatError::UnsupportedVersion {
                what: self.what,
                found: u32::from(found),
                supported: u32::from(*versions.end()),
            }),
        }
    }

    /// Ends reading.
    ///
    /// # Errors
    /// [`FormatError::TrailingBytes`] if anything is left.
    pub fn finish(self) -> Result<(), FormatError> {
        if self.rest.is_empty() {
            return Ok(());
        }
        Err(FormatError::TrailingBytes { what: self.what, extra_bytes: self.rest.len() as u64 })
    }

    /// An error that names a field of this structure.
    pub fn invalid(&self, field: &'static str, reason: &'static str) -> FormatError {
        FormatError::Invalid { what: self.what, field, reason }
    }
}

fn within(
    what: &'static str,
    field: &'static str,
    declared: u64,
    limit: usize,
) -> Result<usize, FormatError> {
    match usize::try_from(declared) {
        Ok(length) if length <= limit => Ok(length),
        _ => Err(FormatError::OverLimit { what, field, declared, limit: limit as u64 }),
    }
}

/// Appends a variable-length unsigned number (LEB128, shortest form).
pub fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a `u32` length.
///
/// Callers keep lengths below the limits of [`crate::limits`], all of which fit.
pub fn put_length(out: &mut Vec<u8>, length: usize) {
    out.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_varint_reads_back(value: u64) {
            let mut bytes = Vec::new();
            put_varint(&mut bytes, value);
            let mut reader = Reader::new("test", &bytes);
            prop_assert_eq!(reader.varint("value"), Ok(value));
            prop_assert_eq!(reader.finish(), Ok(()));
        }

        #[test]
        fn any_bytes_are_a_varint_in_shortest_form_or_an_error(bytes: Vec<u8>) {
            let mut reader = Reader::new("test", &bytes);
            if let Ok(value) = reader.varint("value") {
                let mut again = Vec::new();
                put_varint(&mut again, value);
                prop_assert_eq!(&bytes[..again.len()], &again[..]);
            }
        }
    }

    #[test]
    fn a_length_over_its_limit_is_refused_by_number() {
        let mut reader = Reader::new("test", &[255, 255, 255, 255]);
        let refused =
            FormatError::OverLimit { what: "test", field: "n", declared: 0xffff_ffff, limit: 10 };
        assert_eq!(reader.length("n", 10), Err(refused));
    }
}

//! Headers of a tar archive in the pax format, with the extensions that GNU tar reads: `SCHILY` for
//! attributes and access control lists, `GNU.sparse` 1.0 for holes.
//!
//! ```text
//! | extended header 512 | its records, padded | header 512 | sparse map, padded | content, padded |
//! ```
//!
//! The first two are there only where the header alone cannot say it. Names and values are the bytes
//! that they are: pax would have them in UTF-8, GNU tar gives them back unchanged. Written here, for
//! no library can: keys of attributes need not be UTF-8 either.
//!
//! Sources: POSIX.1-2017, pax, "ustar Interchange Format" and "pax Extended Header"; the GNU tar
//! manual, appendix "Storing Sparse Files".

use holdall_tree::Time;

/// Everything in an archive is padded to this.
pub(super) const BLOCK_BYTES: usize = 512;
/// What an archive ends with.
pub(super) const END: [u8; 2 * BLOCK_BYTES] = [0; 2 * BLOCK_BYTES];
/// Most bytes of a name, and of a link's target, that a header holds.
const NAME_MAX_BYTES: usize = 100;
/// Most bytes of an owner's name that a header holds, with a zero byte after it.
const OWNER_MAX_BYTES: usize = 31;

/// What a member is, as its header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    File = b'0' as isize,
    HardLink = b'1' as isize,
    Symlink = b'2' as isize,
    CharDevice = b'3' as isize,
    BlockDevice = b'4' as isize,
    Directory = b'5' as isize,
    Fifo = b'6' as isize,
    Extended = b'x' as isize,
}

/// What a header says of a member.
pub(super) struct Member<'a> {
    /// Its path in the archive.
    pub(super) name: &'a [u8],
    pub(super) kind: Type,
    pub(super) mode: u32,
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) user: &'a [u8],
    pub(super) group: &'a [u8],
    pub(super) mtime: Time,
    /// Bytes that follow the header, without padding.
    pub(super) size: u64,
    /// Where a link points.
    pub(super) target: &'a [u8],
    /// Major and minor number.
    pub(super) device: (u32, u32),
}

/// Records of an extended header.
#[derive(Default)]
pub(super) struct Records(Vec<u8>);

impl Records {
    /// Adds `key=value`.
    pub(super) fn add(&mut self, key: &[u8], value: &[u8]) {
        // A space, an equals sign and a line end; and the length's own digits.
        let rest = key.len() + value.len() + 3;
        let mut len = rest + 1;
        while len != rest + digits(len) {
            len = rest + digits(len);
        }
        self.0.extend_from_slice(len.to_string().as_bytes());
        self.0.push(b' ');
        self.0.extend_from_slice(key);
        self.0.push(b'=');
        self.0.extend_from_slice(value);
        self.0.push(b'\n');
    }

    /// Adds an extended attribute. GNU tar reads a key up to the first equals sign.
    pub(super) fn add_attribute(&mut self, name: &[u8], value: &[u8]) {
        let mut key = b"SCHILY.xattr.".to_vec();
        for &byte in name {
            match byte {
                b'%' => key.extend_from_slice(b"%25"),
                b'=' => key.extend_from_slice(b"%3D"),
                _ => key.push(byte),
            }
        }
        self.add(&key, value);
    }

    /// Adds the name of a member where its header has no place for it.
    fn add_name(&mut self, member: &Member<'_>) {
        if member.name.len() > NAME_MAX_BYTES {
            self.add(b"path", member.name);
        }
    }

    /// Adds what else the header of a member has no place for.
    fn add_overflow(&mut self, member: &Member<'_>) {
        if member.target.len() > NAME_MAX_BYTES {
            self.add(b"linkpath", member.target);
        }
        for (key, name) in [(&b"uname"[..], member.user), (b"gname", member.group)] {
            if name.len() > OWNER_MAX_BYTES {
                self.add(key, name);
            }
        }
        for (key, number, digits) in [
            (&b"uid"[..], u64::from(member.uid), 7),
            (b"gid", u64::from(member.gid), 7),
            (b"size", member.size, 11),
        ] {
            if !fits(number, digits) {
                self.add(key, number.to_string().as_bytes());
            }
        }
        if header_time(member.mtime).is_none() {
            self.add(b"mtime", decimal(member.mtime).as_bytes());
        }
    }
}

/// The header of a member, and before it an extended one where there are records, or something has
/// no place in it.
pub(super) fn header(member: &Member<'_>, mut others: Records) -> Vec<u8> {
    let mut records = Records::default();
    // First: some readers take the last name that there is, and that of a sparse file is among the
    // others.
    records.add_name(member);
    records.0.append(&mut others.0);
    records.add_overflow(member);
    let mut out = Vec::new();
    if !records.0.is_empty() {
        let extended = Member {
            name: b"./PaxHeaders/extended",
            kind: Type::Extended,
            mode: 0o644,
            uid: 0,
            gid: 0,
            user: b"",
            group: b"",
            mtime: Time::default(),
            size: records.0.len() as u64,
            target: b"",
            device: (0, 0),
        };
        out.extend_from_slice(&block(&extended));
        out.append(&mut records.0);
        pad(&mut out);
    }
    out.extend_from_slice(&block(member));
    out
}

/// A sparse file as GNU tar keeps it: the map that comes before the data, and the records that say
/// so. `size_bytes` is the file's with holes; the name in the header is then only a stand-in.
pub(super) fn sparse(
    name: &[u8],
    runs: impl Iterator<Item = (u64, u64)>,
    size_bytes: u64,
    records: &mut Records,
) -> Vec<u8> {
    let mut runs: Vec<_> = runs.collect();
    // A hole at the end is an empty run there.
    if runs.last().is_none_or(|(offset, len)| offset.saturating_add(*len) < size_bytes) {
        runs.push((size_bytes, 0));
    }
    records.add(b"GNU.sparse.major", b"1");
    records.add(b"GNU.sparse.minor", b"0");
    records.add(b"GNU.sparse.name", name);
    records.add(b"GNU.sparse.realsize", size_bytes.to_string().as_bytes());
    let mut map = format!("{}\n", runs.len());
    for (offset, len) in runs {
        map.push_str(&format!("{offset}\n{len}\n"));
    }
    let mut map = map.into_bytes();
    pad(&mut map);
    map
}

/// The name that a sparse file has in its header: for a reader that knows of no sparse files, all have
/// one of their own.
pub(super) fn sparse_name(name: &[u8]) -> Vec<u8> {
    [b"./GNUSparseFile.0/", name.strip_prefix(b"./").unwrap_or(name)].concat()
}

/// How many bytes of padding follow so many bytes.
pub(super) fn padding(bytes: u64) -> u64 {
    bytes.next_multiple_of(BLOCK_BYTES as u64) - bytes
}

fn pad(out: &mut Vec<u8>) {
    out.resize(out.len().next_multiple_of(BLOCK_BYTES), 0);
}

fn block(member: &Member<'_>) -> [u8; BLOCK_BYTES] {
    let mut out = [0; BLOCK_BYTES];
    text(&mut out[0..100], member.name);
    octal(&mut out[100..108], u64::from(member.mode));
    octal(&mut out[108..116], u64::from(member.uid));
    octal(&mut out[116..124], u64::from(member.gid));
    octal(&mut out[124..136], member.size);
    octal(&mut out[136..148], header_time(member.mtime).unwrap_or(0));
    out[156] = member.kind as u8;
    text(&mut out[157..257], member.target);
    out[257..265].copy_from_slice(b"ustar\x0000");
    text(&mut out[265..296], member.user);
    text(&mut out[297..328], member.group);
    octal(&mut out[329..337], u64::from(member.device.0));
    octal(&mut out[337..345], u64::from(member.device.1));
    out[148..156].fill(b' ');
    let sum: u64 = out.iter().map(|byte| u64::from(*byte)).sum();
    octal(&mut out[148..155], sum);
    out
}

/// As much of a text as the field holds.
fn text(field: &mut [u8], text: &[u8]) {
    let len = text.len().min(field.len());
    field[..len].copy_from_slice(&text[..len]);
}

/// A number in octal digits with a zero byte after them; where it does not fit, in binary, the most
/// significant byte first and its highest bit set, as GNU tar has it.
fn octal(field: &mut [u8], number: u64) {
    let digits = field.len() - 1;
    if fits(number, digits) {
        return text(field, format!("{number:0digits$o}\0").as_bytes());
    }
    for (place, byte) in field.iter_mut().rev().zip(number.to_le_bytes()) {
        *place = byte;
    }
    field[0] |= 0x80;
}

fn fits(number: u64, octal_digits: usize) -> bool {
    number >> (3 * octal_digits) == 0
}

/// A time that a header can hold: whole seconds after 1970 in 11 octal digits.
fn header_time(time: Time) -> Option<u64> {
    let secs = u64::try_from(time.secs).ok()?;
    (time.nanos == 0 && fits(secs, 11)).then_some(secs)
}

/// Seconds since 1970 with nine places.
fn decimal(time: Time) -> String {
    let nanos = i128::from(time.secs) * 1_000_000_000 + i128::from(time.nanos);
    let (sign, nanos) = (if nanos < 0 { "-" } else { "" }, nanos.unsigned_abs());
    format!("{sign}{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000)
}

fn digits(number: usize) -> usize {
    number.to_string().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(name: &[u8]) -> Member<'_> {
        Member {
            name,
            kind: Type::File,
            mode: 0o644,
            uid: 1,
            gid: 2,
            user: b"ada",
            group: b"",
            mtime: Time { secs: 0o1234, nanos: 0 },
            size: 5,
            target: b"",
            device: (0, 0),
        }
    }

    fn contains(bytes: &[u8], part: &[u8]) -> bool {
        bytes.windows(part.len()).any(|window| window == part)
    }

    #[test]
    fn a_plain_header_is_that_of_posix() {
        let header = header(&member(b"./a"), Records::default());
        assert_eq!(header.len(), BLOCK_BYTES);
        assert!(header.starts_with(b"./a\0"));
        assert_eq!(
            &header[100..148],
            b"0000644\x000000001\x000000002\x0000000000005\x0000000001234\0"
        );
        assert_eq!(&header[257..269], b"ustar\x0000ada\0");
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        let stored: u32 = header[148..156].iter().map(|byte| u32::from(*byte)).sum();
        assert_eq!(&header[148..156], format!("{:06o}\0 ", sum - stored + 8 * 32).as_bytes());
    }

    #[test]
    fn a_record_counts_its_own_length() {
        for value in [0, 3, 4, 5, 92, 93, 94, 990, 991, 992] {
            let mut records = Records::default();
            records.add(b"k", &vec![b'v'; value]);
            let told = records.0.split(|byte| *byte == b' ').next().unwrap();
            assert_eq!(told, records.0.len().to_string().as_bytes(), "{value}");
        }
        let mut records = Records::default();
        records.add_attribute(b"user.a=%\xff", b"\0\n");
        assert_eq!(records.0, b"33 SCHILY.xattr.user.a%3D%25\xff=\0\n\n");
    }

    #[test]
    fn what_has_no_place_in_the_header_is_in_a_record() {
        let long = [b'n'; 101];
        let extreme = Member {
            uid: u32::MAX,
            size: 9 << 30,
            mtime: Time { secs: -1, nanos: 999_999_999 },
            target: &long,
            user: &long[..32],
            ..member(&long)
        };
        let header = header(&extreme, Records::default());
        assert_eq!(header[156], b'x');
        for record in [
            &[&b"111 path="[..], &long, b"\n"].concat()[..],
            b"uid=4294967295\n",
            b"size=9663676416\n",
            b"mtime=-0.000000001\n",
            b"uname=nnnn",
        ] {
            assert!(contains(&header, record), "{}", record.escape_ascii());
        }
        assert!(!contains(&header, b"gid="));
        assert!(contains(&header, &[&b"linkpath="[..], &long].concat()));
    }

    #[test]
    fn a_number_that_is_too_large_for_octal_digits_is_binary() {
        let device = Member { kind: Type::CharDevice, device: (5, 1 << 22), ..member(b"./a") };
        let header = header(&device, Records::default());
        assert_eq!(&header[329..345], b"0000005\0\x80\0\0\0\0\x40\0\0");
    }

    #[test]
    fn times_before_1970_and_far_from_it_are_exact() {
        let shown = |secs, nanos| decimal(Time { secs, nanos });
        assert_eq!(shown(1, 1), "1.000000001");
        assert_eq!(shown(-2, 250_000_000), "-1.750000000");
        assert_eq!(shown(i64::MIN, 0), "-9223372036854775808.000000000");
    }

    #[test]
    fn the_name_of_a_sparse_file_counts_more_than_its_stand_in() {
        let name = [b'n'; 95];
        let mut records = Records::default();
        sparse(&name, [(0, 5)].into_iter(), 100, &mut records);
        let header = header(&member(&sparse_name(&name)), records);
        let at = |key: &[u8]| header.windows(key.len()).position(|window| window == key);
        let (stand_in, counts) = (at(b" path="), at(b" GNU.sparse.name="));
        assert!(stand_in.is_some() && stand_in < counts, "{stand_in:?} {counts:?}");
    }

    #[test]
    fn a_hole_at_the_end_is_an_empty_run() {
        let mut records = Records::default();
        let map = sparse(b"./a", [(10, 5)].into_iter(), 100, &mut records);
        assert!(map.starts_with(b"2\n10\n5\n100\n0\n\0") && map.len() == BLOCK_BYTES);
        let map = sparse(b"./a", [(95, 5)].into_iter(), 100, &mut Records::default());
        assert!(map.starts_with(b"1\n95\n5\n\0"));
        assert!(contains(&records.0, b"GNU.sparse.realsize=100\n"));
    }
}

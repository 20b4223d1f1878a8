//! Names and paths: every byte that a name may hold, the longest of each, and directories with
//! very many.

use std::io;

use super::place::Place;

/// Names that tools trip over. Some sort differently as bytes, as components and as words.
const ODD: [&[u8]; 32] = [
    b" leading space",
    b"trailing space ",
    b" ",
    b"-rf",
    b"--help",
    b"...",
    b".hidden",
    b"..almost",
    b"trailing dot.",
    b"new\nline",
    b"\n",
    b"carriage\rreturn",
    b"tab\tand\x1b[31mescape",
    b"\x01\x7f",
    b"back\\slash",
    b"quote'and\"both",
    b"*?[glob]{a,b}",
    b"$HOME `id` !bang #hash ~tilde",
    b"a:b|c<d>e&f;g",
    b"invalid-utf8-\xff\xfe",
    b"\x80",
    b"cut-\xe2\x82",
    b"surrogate-\xed\xa0\x80",
    "composed-\u{e9}".as_bytes(),
    "decomposed-e\u{301}".as_bytes(),
    "right-to-left-\u{202e}gpj.exe".as_bytes(),
    "emoji-\u{1f9f3}".as_bytes(),
    b"Case",
    b"case",
    b"a-",
    b"a.",
    b"a0",
];

pub(super) fn make_odd(place: &mut Place) -> io::Result<()> {
    for name in ODD {
        place.file(name, name)?;
    }
    // Sorts between `a-` and `a0` by components; as a path with its slash, elsewhere.
    let mut dir = place.sub(b"a")?;
    dir.file(b"inside", b"")?;
    dir.finish()?;
    let mut dir = place.sub(b"dir with \n and \xff")?;
    dir.file(b"inside", b"")?;
    dir.finish()?;
    place.file(&[b'x'; 255], b"as long as names get")?;
    place.file(&[0xff; 255], b"as long as names get, and not UTF-8")?;
    place.symlink(b"link\nname\xff", b"target\nname\xff")?;
    place.finish()
}

/// Makes directories in each other until the path in the tree is at least `path_bytes` long.
pub(super) fn make_deep(place: &mut Place, path_bytes: usize) -> io::Result<()> {
    let mut len_bytes = b"deep/file-at-the-bottom".len();
    let mut chain = Vec::new();
    let mut here = place.sub(b"d")?;
    while len_bytes < path_bytes {
        let name = format!("{:0>200}", chain.len());
        len_bytes += name.len() + 1;
        let below = here.sub(name.as_bytes())?;
        chain.push(here);
        here = below;
    }
    here.file(b"file-at-the-bottom", b"still here")?;
    here.symlink(b"link-at-the-bottom", b"file-at-the-bottom")?;
    here.sub(b"dir-at-the-bottom")?.finish()?;
    here.finish()?;
    while let Some(mut above) = chain.pop() {
        above.file(b"beside", b"")?;
        above.finish()?;
    }
    place.finish()
}

/// Makes one directory with that many files, most of them empty.
pub(super) fn make_huge(place: &mut Place, entries: usize) -> io::Result<()> {
    for number in 0..entries {
        let content: &[u8] = if number % 100 == 0 { b"not empty" } else { b"" };
        place.file(format!("{number:07}").as_bytes(), content)?;
    }
    place.finish()
}

//! Files of patterns, as a tree that is backed up has them, and a path that they are asked about.

#![no_main]

use holdall_engine::Patterns;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let (below, text) = data.split_at(data.iter().position(|byte| *byte == 0).unwrap_or(0));
    let path = [b"/top/", below].concat();
    let mut patterns = Patterns::below(b"/top");
    let _ = patterns.add_file(text, true);
    let _ = patterns.add_file(text, false);
    for is_dir in [false, true] {
        let _ = patterns.says_with_parents(&path, is_dir);
    }
    // Of all that match, the last one counts.
    for (last, says) in [(&b"**"[..], true), (b"!**", false)] {
        assert_eq!(patterns.add(last, false), Ok(()));
        let is_asked = !below.is_empty();
        assert_eq!(patterns.says(&path, false), is_asked.then_some(says));
    }
});

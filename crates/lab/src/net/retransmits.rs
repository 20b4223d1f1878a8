//! Segments that this computer sent again: all of its connections, from `/proc/net/snmp`, which
//! every kernel has and everybody may read.

use std::path::Path;

/// How many segments were sent again since this network was set up; `None` where nothing tells.
/// `root` is `/` but in tests.
pub(super) fn retransmits(root: &Path) -> Option<u64> {
    // Seen through the process itself, this is its own network's table.
    parse(&std::fs::read_to_string(root.join("proc/self/net/snmp")).ok()?)
}

/// Two lines begin with `Tcp:`: names, then values.
fn parse(table: &str) -> Option<u64> {
    let mut lines = table.lines().filter_map(|line| line.strip_prefix("Tcp:"));
    let (names, values) = (lines.next()?, lines.next()?);
    let at = names.split_whitespace().position(|name| name == "RetransSegs")?;
    values.split_whitespace().nth(at)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_column_is_found_by_its_name() {
        let table = "Ip: Forwarding RetransSegs\nIp: 1 9\n\
                     Tcp: RtoAlgorithm InSegs OutSegs RetransSegs InErrs\nTcp: 1 100 200 42 0\n";
        assert_eq!(parse(table), Some(42));
        for odd in ["", "Tcp: RetransSegs\n", "Tcp: RetransSegs\nTcp: x\n", "Tcp: A\nTcp: 1\n"] {
            assert_eq!(parse(odd), None, "{odd}");
        }
    }

    #[test]
    fn this_computer_tells() {
        assert!(retransmits(Path::new("/")).is_some());
    }
}

//! Several paths to one server: each of the addresses that `--bind` names carries its share, and one
//! that leads nowhere is left out.

use std::fs;
use std::net::IpAddr;

use holdall_testkit::{ChaosProxy, Random};

use crate::house::{Machine, Server};

const SOURCE_BYTES: usize = 48 << 20;

/// Backs up from these addresses, with as many streams, and gives what each of them sent.
fn sent_from(addresses: &[&str]) -> Vec<u64> {
    let machine = Machine::new().with_password(None);
    let server = Server::start(&machine.path("data"));
    let proxy = ChaosProxy::start(server.address().parse().unwrap()).expect("a free port");
    machine.pair(&server.invite_with(&["--address", &proxy.address().to_string()]));
    let source = machine.path("source");
    fs::create_dir_all(&source).unwrap();
    fs::write(source.join("film"), Random::new(1).bytes(SOURCE_BYTES)).unwrap();
    let (before, _) = proxy.forwarded_each_way();

    let (bind, streams) = (addresses.join(","), addresses.len().to_string());
    let source = source.to_str().expect("UTF-8");
    machine.summary(["backup", source, "--bind", &bind, "--streams", &streams]);
    let sent = |address: &&str| proxy.sent_from(address.parse::<IpAddr>().expect("an address"));
    let all: u64 = addresses.iter().map(sent).sum();
    let (after, _) = proxy.forwarded_each_way();
    assert_eq!(all, after - before, "something went from another address");
    addresses.iter().map(sent).collect()
}

#[test]
fn each_of_two_paths_carries_a_good_part() {
    let sent = sent_from(&["127.0.0.2", "127.0.0.3"]);
    let all: u64 = sent.iter().sum();
    assert!(all > SOURCE_BYTES as u64, "{sent:?}");
    // A path that is free takes the next put, so that one beside which something else runs carries less.
    assert!(sent.iter().all(|bytes| bytes * 4 > all), "{sent:?}");
}

#[test]
fn a_path_that_leads_nowhere_is_left_out() {
    // An address that no computer has.
    let sent = sent_from(&["203.0.113.9", "127.0.0.2"]);
    assert_eq!(sent[0], 0);
    assert!(sent[1] > SOURCE_BYTES as u64, "{sent:?}");
}

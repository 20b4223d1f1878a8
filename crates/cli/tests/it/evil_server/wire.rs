//! Servers that are not who they should be, or speak something else.

use std::sync::Arc;

use holdall_protocol::tls;
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use super::stage::Stage;
use super::{LIST, Lie, Reply, Row, honest};

/// These show themselves in another way, so what they do stands beside them.
pub(super) const ROWS: &[Row] = &[
    row("another identity", 13, "not the one that this machine was paired with"),
    row("a browser's certificate", 14, "cannot be reached"),
    row("another protocol's name", 14, "cannot be reached"),
    row("no TLS", 14, "cannot be reached"),
    row("a connection that ends at once", 14, "cannot be reached"),
    row("garbage in place of a handshake", 14, "cannot be reached"),
];

const fn row(name: &'static str, exit: i32, says: &'static str) -> Row {
    Row { name, lie: |_| honest(), command: LIST, exit, says }
}

#[test]
fn servers_that_are_not_who_they_should_be() {
    let stage = Stage::new();
    for row in ROWS {
        let (name, before) = (row.name, stage.state());
        stage.drop_cache();
        show(&stage, name);
        let outcome = stage.run(row.command);
        assert_eq!(outcome.code, Some(row.exit), "{name}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(row.says), "{name}: {}", outcome.stderr);
        stage.evil.lie(honest());
        assert!(stage.state() == before, "{name}: what this machine keeps has changed");
        stage.assert_unharmed(name);
    }
}

fn show(stage: &Stage, name: &str) {
    let own = std::fs::read(stage.data.join("identity.key")).unwrap().try_into().unwrap();
    let tls = match name {
        "another identity" => Some(tls::machine_server_config(&[3; 32]).unwrap()),
        "a browser's certificate" => Some(browsers(stage)),
        "another protocol's name" => {
            let mut config = tls::machine_server_config(&own).unwrap();
            config.alpn_protocols = vec![b"h2".to_vec()];
            Some(config)
        }
        _ => None,
    };
    let says: &[u8] = match name {
        "no TLS" => b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}",
        "garbage in place of a handshake" => &[0x16, 3, 3, 0xff, 0xff, 2, 0, 0, 9, 9, 9, 9],
        _ => b"",
    };
    let lie: Lie = Arc::new(move |_, _| Reply::Raw(says.to_vec()));
    stage.evil.show(tls, lie);
}

/// What a browser gets, which is another key than the pinned one.
fn browsers(stage: &Stage) -> ServerConfig {
    let key = std::fs::read(stage.data.join("web.key")).unwrap();
    let certificate = CertificateDer::from(std::fs::read(stage.data.join("web.crt")).unwrap());
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key));
    let mut config = ServerConfig::builder_with_provider(tls::provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    config.alpn_protocols = vec![tls::ALPN.to_vec()];
    config
}

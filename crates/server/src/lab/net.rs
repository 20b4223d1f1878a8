//! The network as far as the server alone can tell: what its system carries to itself, and what each link negotiated.
//!
//! A wire has two ends. What it carries to a machine is measured there (`holdall lab net`), and to a browser by the page of
//! speed. Here is what neither can exceed: a small computer may carry less than its link, and a link may have negotiated
//! less than it could.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use holdall_lab::net::{Direct, Link, Listener, ListenerOptions, NetPlan, Token, measure};
use holdall_lab::report::Fact;

use super::Extent;
use super::rows::Rows;
use crate::ServerError;
use crate::auth::identity::random;

/// Connections that move bytes at once.
const STREAMS: usize = 4;
/// For how long round trips are measured.
const IDLE: Duration = Duration::from_millis(300);

/// What the links are, and what of each holds things back.
pub(super) fn links() -> (Vec<Fact>, Vec<String>) {
    let links = Link::all(Path::new("/"));
    let facts = links.iter().map(|link| Fact::new("link", link.words())).collect();
    (facts, links.iter().flat_map(Link::advice).collect())
}

/// Measures over loopback; nobody else can use its listener, whose token is in no other process.
pub(super) fn net(extent: Extent, rows: &mut Rows<'_>) -> Result<(), ServerError> {
    let plan = NetPlan {
        streams: vec![1, STREAMS],
        idle: IDLE,
        both_ways: true,
        ..NetPlan::memory(extent.row, 1)
    };
    rows.total = plan.rows();
    let failed =
        |source| ServerError::io("measuring over loopback in", Path::new("/proc/net"), source);
    let (mut token, mut seed) = ([0; 16], [0; 32]);
    random(&mut token)?;
    random(&mut seed)?;
    let token = Token::from_bytes(token);
    let options = ListenerOptions {
        listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        token: token.clone(),
        folder: None,
        scratch_bytes: 0,
        seed,
        log: Box::new(|_| ()),
    };
    let listener = Listener::bind(options).map_err(failed)?;
    let far = Direct::new(vec![listener.address()], token);
    let stop = rows.watch.stop.clone();
    let mut why = None;
    let measured = std::thread::scope(|scope| {
        scope.spawn(|| listener.serve());
        let measured = measure(&far, &plan, stop.flag(), &mut |row| {
            rows.add(row.reported()).map_err(|error| {
                why = Some(error);
                io::ErrorKind::Interrupted.into()
            })
        });
        listener.stop();
        measured
    });
    match (why, measured) {
        (Some(why), _) => Err(why),
        (None, Err(_)) if stop.is_wished() => Ok(stop.check()?),
        (None, measured) => measured.map(drop).map_err(failed),
    }
}

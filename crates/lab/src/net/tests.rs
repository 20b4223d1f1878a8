//! Both ends together, on loopback.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::JoinHandle;
use std::time::Duration;

use super::message::{
    ANSWER_BYTES, ASK_BYTES, Answer, Ask, Counted, FarEnd, GREETING_BYTES, Greeting, Operation,
};
use super::*;
use crate::Measurement;

const TOKEN: Token = Token::from_bytes([1; 16]);
const SCRATCH_BYTES: u64 = 32 << 20;

/// A listener in a thread; it is stopped and waited for when this goes.
struct Serving {
    listener: Arc<Listener>,
    thread: Option<JoinHandle<()>>,
}

impl Serving {
    fn start(folder: Option<PathBuf>) -> Self {
        Self::start_at(Ipv4Addr::LOCALHOST.into(), folder)
    }

    fn start_at(address: IpAddr, folder: Option<PathBuf>) -> Self {
        let options = ListenerOptions {
            listen: (address, 0).into(),
            token: TOKEN,
            folder,
            scratch_bytes: SCRATCH_BYTES,
            seed: [2; 32],
            log: Box::new(|_| {}),
        };
        let listener = Arc::new(Listener::bind(options).unwrap());
        let serving = Arc::clone(&listener);
        Self { listener, thread: Some(std::thread::spawn(move || serving.serve())) }
    }

    fn direct(&self, token: Token) -> Direct {
        Direct::new(vec![self.listener.address()], token)
    }

    /// A connection that was greeted, and the nonce.
    fn greeted(&self) -> (TcpStream, [u8; 16]) {
        let mut stream = TcpStream::connect(self.listener.address()).unwrap();
        let mut greeting = [0; GREETING_BYTES];
        stream.read_exact(&mut greeting).unwrap();
        (stream, Greeting::decode(&greeting).unwrap().nonce)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.listener.stop();
        self.thread.take().unwrap().join().unwrap();
    }
}

/// What the listener answers to what was asked.
fn answer(stream: &mut TcpStream) -> Answer {
    let mut answer = [0; ANSWER_BYTES];
    stream.read_exact(&mut answer).unwrap();
    Answer::decode(&answer)
}

/// A listener that is killed after so many of its messages: the greeting, the answer, and then either
/// `payload` or, for what is taken, nothing but one read.
fn killed_after(messages: usize, payload: Vec<u8>) -> (Direct, JoinHandle<()>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let far = Direct::new(vec![listener.local_addr().unwrap()], TOKEN);
    let thread = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let said =
            [Greeting { nonce: [7; 16] }.encode().to_vec(), Answer::Agreed.encode().to_vec()];
        for (message, hears_bytes) in said.into_iter().zip([ASK_BYTES, 1]).take(messages) {
            stream.write_all(&message).unwrap();
            stream.read_exact(&mut vec![0; hears_bytes]).unwrap();
        }
        stream.write_all(&payload).unwrap();
    });
    (far, thread)
}

fn plan() -> NetPlan {
    NetPlan {
        idle: Duration::from_secs(1),
        duration: Duration::from_millis(60),
        streams: vec![1, 3],
        both_ways: true,
        bind: Vec::new(),
        from_file: None,
        to_folder: None,
        to_far_file: false,
        from_far_file: false,
        buffers_bytes: vec![4 << 10, 64 << 10],
        wait: Wait::EachWrite,
    }
}

fn operations(report: &NetReport) -> Vec<(&str, Option<u64>, Option<u32>)> {
    let of = |row: &'_ NetRow| (row.measurement.block_bytes, row.measurement.jobs);
    report
        .rows
        .iter()
        .map(|row| (row.measurement.operation.as_str(), of(row).0, of(row).1))
        .collect()
}

#[test]
fn memory_is_measured_each_way_and_both_ways_and_every_row_has_its_figure() {
    let serving = Serving::start(None);
    let mut told = 0;
    let mut tell = |_: &NetRow| {
        told += 1;
        Ok(())
    };
    let far = serving.direct(TOKEN);
    let report = measure(&far, &plan(), &AtomicBool::new(false), &mut tell).unwrap();
    let buffer = Some(128 << 10);
    assert_eq!(
        operations(&report),
        [
            ("round trip", Some(16), Some(1)),
            ("send", buffer, Some(1)),
            ("send", buffer, Some(3)),
            ("round trip while sending", Some(16), Some(1)),
            ("receive", buffer, Some(1)),
            ("receive", buffer, Some(3)),
            ("round trip while receiving", Some(16), Some(1)),
            ("send, both ways", buffer, Some(3)),
            ("receive, both ways", buffer, Some(3)),
        ]
    );
    assert_eq!(told, report.rows.len());
    for row in &report.rows {
        let Measurement { operation, bytes_per_second, latency_ns, .. } = &row.measurement;
        let is_trip = operation.starts_with("round trip");
        assert_eq!(
            (bytes_per_second.is_some(), latency_ns.is_some()),
            (!is_trip, is_trip),
            "{row:?}"
        );
        assert!(bytes_per_second.is_none_or(|rate| rate > 0.0), "{row:?}");
        assert_eq!(row.retransmits.is_some(), !is_trip, "{row:?}");
    }
    assert_eq!(report.link.unwrap().interface, "lo");
}

#[test]
fn files_at_both_ends_are_measured_with_each_buffer_and_number_of_streams_and_leave_nothing() {
    let [here, there] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let source = here.path().join("source");
    std::fs::write(&source, [7; 100_000]).unwrap();
    let plan = NetPlan {
        streams: vec![1, 2],
        from_file: Some(ScratchFile::existing(&source).unwrap()),
        to_folder: Some(ScratchFolder::new(here.path(), SCRATCH_BYTES).unwrap()),
        to_far_file: true,
        from_far_file: true,
        ..plan()
    };
    let serving = Serving::start(Some(there.path().to_owned()));
    let far = serving.direct(TOKEN);
    let report = measure(&far, &plan, &AtomicBool::new(false), &mut |_| Ok(())).unwrap();
    let files: Vec<_> = report.rows.iter().filter(|row| row.measurement.direct.is_some()).collect();
    let mut wanted = Vec::new();
    for operation in [
        "send from file",
        "send to file, each write durable",
        "receive from file",
        "receive to file, each write durable",
    ] {
        for (buffer, streams) in [(4 << 10, 1), (4 << 10, 2), (64 << 10, 1), (64 << 10, 2)] {
            wanted.push((operation, Some(buffer), Some(streams)));
        }
    }
    let found: Vec<_> = files
        .iter()
        .map(|row| &row.measurement)
        .map(|row| (row.operation.as_str(), row.block_bytes, row.jobs))
        .collect();
    assert_eq!(found, wanted);
    for row in files {
        assert!(row.measurement.latency_ns.is_some_and(|latency| latency.p50 > 0), "{row:?}");
    }
    assert_eq!(std::fs::read(&source).unwrap(), [7; 100_000]);
    assert_eq!(std::fs::read_dir(here.path()).unwrap().count(), 1);
    assert_eq!(std::fs::read_dir(there.path()).unwrap().count(), 0);
}

#[test]
fn what_is_sent_arrives_whole_in_both_directions() {
    let serving = Serving::start(None);
    let far = serving.direct(TOKEN);
    for direction in [Direction::Send, Direction::Receive] {
        let near = End::Memory;
        let (duration, buffer_bytes) = (Duration::from_millis(30), 1000);
        // Smaller than the least that the listener takes.
        let mut job =
            Job { direction, duration, buffer_bytes, near, far_file: false, wait: Wait::Never };
        let mut connection = far.connect(None).unwrap();
        let error = connection.prepare(&job).unwrap_err();
        assert!(error.to_string().contains("a buffer in bytes cannot be 1000"), "{error}");

        job.buffer_bytes = 5000;
        let mut connection = far.connect(Some(Ipv4Addr::LOCALHOST.into())).unwrap();
        connection.prepare(&job).unwrap();
        let moved = connection.carry(&job, &AtomicBool::new(false)).unwrap();
        assert!(moved.bytes > 0 && moved.bytes.is_multiple_of(5000), "{moved:?}");
    }
}

/// Its last bytes were taken for its result once, with billions of retransmits.
#[test]
fn a_listener_that_is_killed_is_a_lost_connection_and_gives_no_figures() {
    let memory = |direction| Job {
        direction,
        duration: Duration::from_millis(50),
        buffer_bytes: MIN_BUFFER_BYTES,
        near: End::Memory,
        far_file: false,
        wait: Wait::Never,
    };
    let result = Counted { bytes: 9999, ..Counted::default() }.encode();
    for (direction, messages, payload, kind) in [
        (Direction::Send, 0, Vec::new(), ErrorKind::ConnectionReset),
        (Direction::Receive, 0, Vec::new(), ErrorKind::ConnectionReset),
        (Direction::Send, 1, Vec::new(), ErrorKind::ConnectionReset),
        (Direction::Receive, 1, Vec::new(), ErrorKind::ConnectionReset),
        (Direction::Send, 2, Vec::new(), ErrorKind::ConnectionReset),
        (Direction::Receive, 2, Vec::new(), ErrorKind::ConnectionReset),
        (Direction::Receive, 2, end::noise(10_000), ErrorKind::ConnectionReset),
        // A result that is not about the bytes before it.
        (Direction::Receive, 2, result.to_vec(), ErrorKind::InvalidData),
    ] {
        let (far, thread) = killed_after(messages, payload);
        let job = memory(direction);
        let carried = far.connect(None).and_then(|mut connection| {
            connection.prepare(&job)?;
            connection.carry(&job, &AtomicBool::new(false))
        });
        assert_eq!(carried.unwrap_err().kind(), kind, "{direction:?} after {messages}");
        thread.join().unwrap();
    }
}

#[test]
fn the_first_address_that_answers_is_measured_and_all_are_told_if_none_does() {
    use rustix::net::{AddressFamily, SocketType};
    // Bound, so that nobody else has it, and refused, since nobody listens.
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    rustix::net::bind(&socket, &SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
    let closed = rustix::net::getsockname(&socket).unwrap();
    let closed = SocketAddr::try_from(closed).unwrap();
    let serving = Serving::start(None);
    let open = serving.listener.address();
    let far = Direct::new(vec![closed, open], TOKEN);
    for _ in 0..2 {
        let (_, peer) = far.connect(None).unwrap().addresses().unwrap();
        assert_eq!(peer, open);
    }
    let error = |far: &Direct, from| far.connect(from).map(|_| ()).unwrap_err();
    let refused = error(&Direct::new(vec![closed, closed], TOKEN), None);
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    assert_eq!(refused.to_string().matches(&closed.to_string()).count(), 2, "{refused}");
    let other_kind = error(&far, Some(Ipv6Addr::LOCALHOST.into()));
    assert_eq!(other_kind.kind(), ErrorKind::InvalidInput);
}

#[test]
fn a_listener_on_all_addresses_answers_on_both_kinds() {
    let serving = Serving::start_at(Ipv6Addr::UNSPECIFIED.into(), None);
    let port = serving.listener.address().port();
    let reached = |address: IpAddr| {
        let far = Direct::new(vec![(address, port).into()], TOKEN);
        far.connect(None).unwrap();
    };
    reached(Ipv4Addr::LOCALHOST.into());
    match TcpListener::bind((Ipv6Addr::LOCALHOST, 0)) {
        Ok(_) => reached(Ipv6Addr::LOCALHOST.into()),
        Err(error) => eprintln!("not tested with IPv6, which is missing: {error}"),
    }
}

#[test]
fn without_the_token_one_is_told_no_more_and_without_a_folder_no_file_is_made() {
    let serving = Serving::start(None);
    let far = serving.direct(Token::from_bytes([9; 16]));
    let error = measure(&far, &plan(), &AtomicBool::new(false), &mut |_| Ok(())).unwrap_err();
    assert_eq!(
        (error.kind(), error.to_string().as_str()),
        (ErrorKind::PermissionDenied, "wrong token")
    );

    let (mut stream, _) = serving.greeted();
    stream.write_all(&[0; ASK_BYTES]).unwrap();
    assert_eq!(answer(&mut stream), Answer::WrongToken);
    assert_eq!(stream.read(&mut [0]).unwrap(), 0, "it says more to a stranger");

    let plan = NetPlan { streams: vec![1], to_far_file: true, ..plan() };
    let error = measure(&serving.direct(TOKEN), &plan, &AtomicBool::new(false), &mut |_| Ok(()));
    assert!(error.unwrap_err().to_string().contains("started without --dir"));
}

#[test]
fn a_proof_is_good_for_one_greeting_only() {
    let serving = Serving::start(None);
    let (_first, nonce) = serving.greeted();
    let ask = Ask {
        operation: Operation::Take,
        end: FarEnd::Memory,
        wait: Wait::Never,
        duration: Duration::from_secs(1),
        buffer_bytes: MIN_BUFFER_BYTES,
    };
    let (mut second, other) = serving.greeted();
    assert_ne!(nonce, other);
    second.write_all(&ask.encode(&TOKEN, &nonce)).unwrap();
    assert_eq!(answer(&mut second), Answer::WrongToken, "it took another connection's proof");
}

#[test]
fn a_stopped_listener_ends_what_is_open() {
    let serving = Serving::start(None);
    let (mut stream, _) = serving.greeted();
    drop(serving);
    assert!(!matches!(stream.read(&mut [0]), Ok(1)));
}

#[test]
fn a_measurement_ends_when_it_is_asked_to() {
    let serving = Serving::start(None);
    let plan = NetPlan { duration: Duration::from_secs(MAX_SECONDS), ..plan() };
    let far = serving.direct(TOKEN);
    let stop = AtomicBool::new(false);
    let mut tell = |_: &NetRow| {
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        Ok(())
    };
    let error = measure(&far, &plan, &stop, &mut tell).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Interrupted);
}

#[test]
fn another_service_is_told_from_a_listener() {
    let other = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let far = Direct::new(vec![other.local_addr().unwrap()], TOKEN);
    let thread = std::thread::spawn(move || {
        let (mut stream, _) = other.accept().unwrap();
        stream.write_all(b"SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3\r\n").unwrap();
        let _ = stream.read(&mut [0]);
    });
    let error = far.connect(None).map(|_| ()).unwrap_err();
    assert_eq!(error.to_string(), "this is no `holdall lab listen`");
    thread.join().unwrap();
}

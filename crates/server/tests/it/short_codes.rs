//! Pairing by a short code, with a server, a machine, and whoever stands between them.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::{JoinHandle, spawn};
use std::time::Duration;

use holdall_protocol::wire::{
    CodeAnswer, CodeConfirmed, ConfirmRequest, ExchangeRequest, OWN_REPOSITORY,
};
use holdall_protocol::{
    Denial, Invite, MachineExchange, Repository, RepositoryError, ShortCode, answer_exchange,
    invite_by_code, pair, tls,
};
use holdall_server::{InviteRequest, admin};
use rustls::{ClientConnection, ServerConnection, StreamOwned};

use crate::raw;
use crate::world::{World, identity, quick};

/// The seed of the machine's key.
const MACHINE: [u8; 32] = [1; 32];
/// Those of who stands in between: shown to the machine, and to the server.
const IN_BETWEEN: [[u8; 32]; 2] = [[77; 32], [78; 32]];

fn short_code(world: &World) -> ShortCode {
    let request = InviteRequest { name: Some("desk".into()), ..InviteRequest::default() };
    let made = world.admin(&admin::MakeShortCode { request }).unwrap();
    ShortCode::from_text(&made.code).unwrap()
}

/// Another one than that.
fn other(code: &ShortCode) -> ShortCode {
    let number: u64 = code.to_text().replace('-', "").parse().unwrap();
    ShortCode::from_random((number + 1).to_le_bytes())
}

fn typed(world: &World, code: &ShortCode, seed: &[u8; 32]) -> Result<Invite, RepositoryError> {
    invite_by_code(&[world.address().to_string()], None, code, &identity(seed), quick())
}

fn refusal<T>(result: Result<T, RepositoryError>) -> String {
    match result {
        Err(RepositoryError::NotAllowed { reason, cause: Denial::ShortCode }) => reason,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it was let in"),
    }
}

fn log_has(world: &World, what: &str) -> bool {
    world.log.lock().unwrap().iter().any(|line| line.contains(what))
}

/// That the code is spent, nobody was let in, and the server told so.
fn was_wrong(world: &World, code: &ShortCode) {
    was_spent(world, code, "a short code was typed wrong");
}

/// The same of a code that the server tells this of.
fn was_spent(world: &World, code: &ShortCode, told: &str) {
    assert!(world.admin(&admin::ListMachines {}).unwrap().machines.is_empty());
    assert!(world.admin(&admin::ListInvites {}).unwrap().invites.is_empty(), "its invite is open");
    assert!(log_has(world, told), "{:?}", world.log);
    let audit = world.admin(&admin::ListAudit { before: None, most: 10 }).unwrap().entries;
    assert!(audit.iter().any(|entry| entry.command == "wrong-short-code"), "{audit:?}");
    assert!(refusal(typed(world, code, &MACHINE)).contains("no short code is open"));
}

#[test]
fn a_short_code_lets_a_machine_in_as_an_invite_does() {
    let world = World::new();
    let code = short_code(&world);
    let invite = typed(&world, &code, &MACHINE).unwrap();
    assert_eq!(invite.identity, world.server().identity());
    assert_eq!(invite.addresses[0], world.address().to_string());
    let paired = pair(&invite, "", &identity(&MACHINE), quick()).unwrap();
    assert_eq!((&paired.name[..], &paired.repository[..]), ("desk", "desk"));
    let by_invite = world.machine(2);
    let machines = world.admin(&admin::ListMachines {}).unwrap().machines;
    assert_eq!(machines[0].right, machines[1].right);
    assert_eq!((machines.len(), by_invite.paired.repository.len()), (2, "machine-2".len()));
    // It was used, by the machine itself, too.
    for seed in [MACHINE, [3; 32]] {
        assert!(refusal(typed(&world, &code, &seed)).contains("no short code is open"));
    }
    let another = pair(&invite, "", &identity(&[3; 32]), quick());
    assert!(another.unwrap_err().to_string().contains("used"));
    let right = "has the right short code";
    assert!(log_has(&world, right) && !log_has(&world, &code.to_text()), "{:?}", world.log);
}

#[test]
fn a_server_that_shows_another_identity_than_was_announced_gets_no_try() {
    let world = World::new();
    let code = short_code(&world);
    let hosts = [world.address().to_string()];
    let announced = holdall_protocol::fingerprint(&identity(&[9; 32]).public());
    let typed = |announced: &str| {
        invite_by_code(&hosts, Some(announced), &code, &identity(&MACHINE), quick())
    };
    let refused = typed(&announced).unwrap_err().to_string();
    assert!(refused.contains(&announced) && refused.contains("was not sent there"), "{refused}");
    typed(&world.server().fingerprint()).unwrap();
}

#[test]
fn a_code_that_was_typed_wrong_is_spent_and_told() {
    let world = World::new();
    let code = short_code(&world);
    assert!(refusal(typed(&world, &other(&code), &MACHINE)).contains("is wrong"));
    was_wrong(&world, &code);
}

/// Who begins and leaves learns nothing and spends the code; the administrator learns where that was.
#[test]
fn a_code_that_was_begun_and_left_is_spent_and_told() {
    let world = World::new();
    let code = short_code(&world);
    let (other, server) = (identity(&[3; 32]).public(), world.server().identity());
    let begins = MachineExchange::begin(&code, other, server).unwrap();
    let begins = ExchangeRequest::new(begins.message()).encode();
    assert_eq!(sent(&world, &[3; 32], "code", &begins).0, "200");
    let refused = refusal(typed(&world, &code, &MACHINE));
    assert!(refused.contains("another computer tried it"), "{refused}");
    assert!(!log_has(&world, "was begun and not finished"), "it may still be finished");
    world.clock.advance(Duration::from_secs(60));
    assert!(refusal(typed(&world, &code, &MACHINE)).contains("another computer tried it"));
    was_spent(&world, &code, "a short code was begun and not finished from 127.0.0.1");
}

#[test]
fn a_code_lapses_and_a_server_that_starts_again_knows_none() {
    let mut world = World::new();
    let code = short_code(&world);
    world.clock.advance(Duration::from_secs(600));
    assert!(refusal(typed(&world, &code, &MACHINE)).contains("ten minutes are over"));
    let code = short_code(&world);
    world.stop();
    let request = InviteRequest::default();
    let refused = world.admin(&admin::MakeShortCode { request }).err().unwrap().to_string();
    assert!(refused.contains("no server runs here"), "{refused}");
    world.start();
    assert!(refusal(typed(&world, &code, &MACHINE)).contains("no short code is open"));
}

#[test]
fn there_are_five_codes_an_hour_and_each_takes_the_place_of_the_one_before() {
    let world = World::new();
    let codes: Vec<_> = (0..5).map(|_| short_code(&world)).collect();
    let make = || world.admin(&admin::MakeShortCode { request: InviteRequest::default() });
    let refused = make().err().unwrap().to_string();
    assert!(refused.contains("no more"), "{refused}");
    assert_eq!(world.admin(&admin::ListInvites {}).unwrap().invites.len(), 1);
    typed(&world, &codes[4], &MACHINE).unwrap();
    world.clock.advance(Duration::from_secs(3600));
    make().unwrap();
    let valid_for_s = Some(60);
    let request = InviteRequest { valid_for_s, ..InviteRequest::default() };
    assert!(
        world.admin(&admin::MakeShortCode { request }).is_err(),
        "a code of another length of time"
    );
}

/// What somebody sends by hand, signed in with that key: the status, and the body of the answer.
fn sent(world: &World, seed: &[u8; 32], path: &str, body: &[u8]) -> (String, String) {
    let head = format!(
        "POST /api/v1/pair/{path} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let answer = raw::exchange(&mut raw::machine(world, seed), &[head.as_bytes(), body].concat());
    let answer = answer.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().to_owned(), body.to_owned())
}

/// Somebody who saw every message of an exchange, as nobody can who does not hold one of the keys, sends each again.
#[test]
fn no_message_of_an_exchange_is_worth_anything_again() {
    let world = World::new();
    let code = short_code(&world);
    let (machine, server) = (identity(&MACHINE).public(), world.server().identity());
    let exchange = MachineExchange::begin(&code, machine, server).unwrap();
    let begins = ExchangeRequest::new(exchange.message()).encode();
    let (status, answer) = sent(&world, &MACHINE, "code", &begins);
    assert_eq!(status, "200", "{answer}");
    // While it goes on, and from another key.
    assert_eq!(sent(&world, &[3; 32], "code", &begins).0, "403");
    let answer = CodeAnswer::decode(answer.as_bytes()).unwrap().message();
    let agreed = exchange.finish(&answer).unwrap();
    let confirms = ConfirmRequest::new(agreed.machine_confirms()).encode();
    assert_eq!(sent(&world, &[3; 32], "code/confirm", &confirms).0, "403");
    let (status, first) = sent(&world, &MACHINE, "code/confirm", &confirms);
    assert_eq!(status, "200", "{first}");
    let confirmed = CodeConfirmed::decode(first.as_bytes()).unwrap();
    assert!(agreed.is_confirmed_by_server(&confirmed.confirmation()));
    assert!(agreed.open(confirmed.sealed_invite()).is_some());
    // The key itself gets the answer again that may have been lost, and nothing else.
    assert_eq!(sent(&world, &MACHINE, "code/confirm", &confirms), ("200".into(), first));
    assert_eq!(sent(&world, &MACHINE, "code", &begins).0, "403");
    assert_eq!(sent(&world, &[3; 32], "code/confirm", &confirms).0, "403");
    // For the next code, all of it is old.
    short_code(&world);
    assert_eq!(sent(&world, &MACHINE, "code/confirm", &confirms).0, "403");
    assert_eq!(
        sent(&world, &MACHINE, "code", &begins).0,
        "200",
        "a first message is as good as any"
    );
    assert_eq!(sent(&world, &MACHINE, "code/confirm", &confirms).0, "403", "and no proof");
    assert!(log_has(&world, "a short code was typed wrong"), "{:?}", world.log);
    assert!(world.admin(&admin::ListMachines {}).unwrap().machines.is_empty());
}

type Downstream = StreamOwned<ServerConnection, TcpStream>;

/// Takes one connection after the other, with a certificate of its own, until one says that it is over.
fn listening(serve: impl Fn(Downstream) + Send + 'static) -> (String, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let config = Arc::new(tls::machine_server_config(&IN_BETWEEN[0]).unwrap());
    // The first connection only asks who is there, the second one pairs.
    let relaying = spawn(move || {
        for tcp in listener.incoming().take(2) {
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            serve(StreamOwned::new(connection, tcp.unwrap()));
        }
    });
    (address, relaying)
}

/// One message of HTTP, to its end; `None` at the end of the connection.
fn message(from: &mut impl Read) -> Option<Vec<u8>> {
    let (mut bytes, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        let text = String::from_utf8_lossy(&bytes).to_ascii_lowercase();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.split("content-length: ").nth(1).unwrap_or("0");
            let length: usize = length.split('\r').next()?.trim().parse().ok()?;
            if body.len() >= length {
                return Some(bytes);
            }
        }
        match from.read(&mut piece) {
            Ok(count @ 1..) => bytes.extend_from_slice(&piece[..count]),
            _ => return None,
        }
    }
}

/// Hands on every message unchanged, between a machine and a server that both speak TLS with the one in between.
#[test]
fn who_ends_tls_in_between_and_hands_on_every_message_is_found_out_by_both() {
    let world = World::new();
    let code = short_code(&world);
    let (server, to) = (world.server().identity(), world.address());
    let (address, relaying) = listening(move |mut machine| {
        let config = tls::client_config(&IN_BETWEEN[1], server).unwrap();
        let connection = ClientConnection::new(Arc::new(config), tls::server_name()).unwrap();
        let mut upstream = StreamOwned::new(connection, TcpStream::connect(to).unwrap());
        while let Some(request) = message(&mut machine) {
            upstream.write_all(&request).unwrap();
            let Some(answer) = message(&mut upstream) else { break };
            machine.write_all(&answer).unwrap();
            machine.flush().unwrap();
        }
    });
    let refused = refusal(invite_by_code(&[address], None, &code, &identity(&MACHINE), quick()));
    assert!(refused.contains("someone between here and the server"), "{refused}");
    relaying.join().unwrap();
    was_wrong(&world, &code);
}

/// Answers the machine by itself, with a code that it guessed. It gets nothing but the machine's refusal.
#[test]
fn a_server_that_does_not_have_the_code_is_believed_nothing() {
    let world = World::new();
    let code = short_code(&world);
    let guess = other(&code);
    let (machine, own) = (identity(&MACHINE).public(), identity(&IN_BETWEEN[0]).public());
    let invite = world.invite();
    let (address, relaying) = listening(move |mut from| {
        let mut agreed = None;
        while let Some(request) = message(&mut from) {
            let at = request.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
            let body = match agreed.take() {
                None => {
                    let begins = ExchangeRequest::decode(&request[at..]).unwrap().message();
                    let (answer, keys) = answer_exchange(&guess, machine, own, &begins).unwrap();
                    agreed = Some(keys);
                    CodeAnswer::new(answer).encode()
                }
                Some(keys) => {
                    let confirms = ConfirmRequest::decode(&request[at..]).unwrap().confirmation();
                    assert!(!keys.is_confirmed_by_machine(&confirms), "it guessed the code");
                    let confirmation = keys.server_confirms();
                    let sealed = keys.seal(&invite).unwrap();
                    CodeConfirmed::new(confirmation, sealed).unwrap().encode()
                }
            };
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
            from.write_all(&[head.as_bytes(), &body].concat()).unwrap();
            from.flush().unwrap();
        }
    });
    let refused = refusal(invite_by_code(&[address], None, &code, &identity(&MACHINE), quick()));
    assert!(refused.contains("did not prove"), "{refused}");
    relaying.join().unwrap();
    // The code was never shown to the server that it is for, and still is good there.
    typed(&world, &code, &MACHINE).unwrap();
}

#[test]
fn a_machine_that_came_by_a_code_backs_up() {
    let world = World::new();
    let code = short_code(&world);
    let invite = typed(&world, &code, &MACHINE).unwrap();
    let paired = pair(&invite, "", &identity(&MACHINE), quick()).unwrap();
    let forge = holdall_protocol::contract::Forge::new(1, paired.machine, &MACHINE);
    let connected =
        holdall_protocol::HttpRepository::connect(paired.address, &identity(&MACHINE), quick());
    let repository = connected.unwrap();
    repository.create(&forge.new_repository()).unwrap();
    assert_eq!(repository.describe().unwrap().machine, paired.machine);
    assert_ne!(paired.repository, OWN_REPOSITORY);
}

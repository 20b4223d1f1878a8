//! How two ends find out that they have the same short code, and that nobody is between them.
//!
//! SPAKE2 over Ed25519 (RustCrypto's `spake2`): each end sends one point that its code is mixed into, and both get the same
//! key only if their codes are the same. Who listens learns nothing; who takes part can try one code, since its point
//! is bound to one. The keys of both TLS connections go in as the names of the two ends: someone in the middle shows other
//! keys, and so gets another key than either end, even by handing every message on unchanged.
//!
//! SPAKE2 alone does not say whether the keys are the same. The machine confirms first, and the server says nothing that
//! depends on the code before: so whoever guesses has to show the guess, and the server counts it.
//!
//! ```text
//! machine                                     server
//!   X = x*B + code*M           -- 33 bytes -->
//!                              <- 33 bytes --  Y = y*B + code*N
//!   HMAC(key 1, transcript)    -- 32 bytes -->  wrong: the code is spent
//!                              <- 32 bytes --  HMAC(key 2, transcript), and the invite sealed by key 3
//! ```
//!
//! Keys 1 to 3 are `BLAKE3 derive_key` of SPAKE2's key; the transcript is both TLS keys, X and Y. Key 3 is used once.
//! Sources: RFC 9382, whose confirmation this follows; `docs/protocol.md`, *Short codes*.

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::hmac;
use holdall_format::PublicKey;
use spake2::{Ed25519Group, Identity, Password, Spake2};
use zeroize::Zeroizing;

use super::ShortCode;
use crate::Invite;
use crate::wire::{CONFIRMATION_BYTES, Confirmation, ExchangeMessage, SEALED_INVITE_MAX_BYTES};

/// The machine's end, which begins.
pub struct MachineExchange {
    spake: Spake2<Ed25519Group>,
    ends: (PublicKey, PublicKey),
    message: ExchangeMessage,
}

impl MachineExchange {
    /// Begins with a code, between the machine of that key and the server that showed that one.
    ///
    /// `None` if SPAKE2 gives a message of another length, which it does not.
    pub fn begin(code: &ShortCode, machine: PublicKey, server: PublicKey) -> Option<Self> {
        let (password, id_machine, id_server) = names(code, &machine, &server);
        let (spake, message) = Spake2::start_a(&password, &id_machine, &id_server);
        let message = message.try_into().ok()?;
        Some(Self { spake, ends: (machine, server), message })
    }

    /// What to send to the server.
    pub fn message(&self) -> ExchangeMessage {
        self.message
    }

    /// Takes the server's message; `None` if it is not one.
    ///
    /// Untrusted: any bytes.
    pub fn finish(self, answer: &ExchangeMessage) -> Option<Agreed> {
        let key = Zeroizing::new(self.spake.finish(answer).ok()?);
        Some(Agreed::new(&key, self.ends, &self.message, answer))
    }
}

/// The server's end: takes the machine's message, and says what to answer. `None` if it is not one.
///
/// Untrusted: the message may be any bytes.
pub fn answer_exchange(
    code: &ShortCode,
    machine: PublicKey,
    server: PublicKey,
    message: &ExchangeMessage,
) -> Option<(ExchangeMessage, Agreed)> {
    let (password, id_machine, id_server) = names(code, &machine, &server);
    let (spake, answer) = Spake2::<Ed25519Group>::start_b(&password, &id_machine, &id_server);
    let answer = answer.try_into().ok()?;
    let key = Zeroizing::new(spake.finish(message).ok()?);
    Some((answer, Agreed::new(&key, (machine, server), message, &answer)))
}

/// The code and the two ends, as SPAKE2 takes them.
fn names(
    code: &ShortCode,
    machine: &PublicKey,
    server: &PublicKey,
) -> (Password, Identity, Identity) {
    let password = Password::new(code.digits());
    (password, Identity::new(machine.as_bytes()), Identity::new(server.as_bytes()))
}

/// What both ends know when the messages were exchanged. It is the same only if code and keys were.
///
/// Secret: has no `Debug` and no `Clone`.
pub struct Agreed {
    transcript: Vec<u8>,
    by_machine: Zeroizing<[u8; 32]>,
    by_server: Zeroizing<[u8; 32]>,
    sealing: Zeroizing<[u8; 32]>,
}

impl Agreed {
    fn new(
        key: &[u8],
        (machine, server): (PublicKey, PublicKey),
        message: &ExchangeMessage,
        answer: &ExchangeMessage,
    ) -> Self {
        let derived = |purpose| Zeroizing::new(blake3::derive_key(purpose, key));
        let parts = [&machine.as_bytes()[..], server.as_bytes(), message, answer];
        Self {
            transcript: parts.concat(),
            by_machine: derived("holdall v1 short code, the machine confirms"),
            by_server: derived("holdall v1 short code, the server confirms"),
            sealing: derived("holdall v1 short code, the invite"),
        }
    }

    /// What the machine confirms with.
    pub fn machine_confirms(&self) -> Confirmation {
        confirm(&self.by_machine, &self.transcript)
    }

    /// Whether the machine had the same code and saw the same keys.
    ///
    /// Untrusted: compared in constant time.
    pub fn is_confirmed_by_machine(&self, confirmation: &Confirmation) -> bool {
        is_confirmed(&self.by_machine, &self.transcript, confirmation)
    }

    /// What the server confirms with, once the machine has.
    pub fn server_confirms(&self) -> Confirmation {
        confirm(&self.by_server, &self.transcript)
    }

    /// Whether the server had the same code and saw the same keys.
    ///
    /// Untrusted: compared in constant time.
    pub fn is_confirmed_by_server(&self, confirmation: &Confirmation) -> bool {
        is_confirmed(&self.by_server, &self.transcript, confirmation)
    }

    /// The invite, for the other end alone. At most once: the nonce is fixed.
    ///
    /// `None` if it cannot be sealed, which is only so if it is longer than any.
    pub fn seal(self, invite: &Invite) -> Option<Vec<u8>> {
        let mut sealed = invite.to_text().as_bytes().to_vec();
        let key = self.sealing_key()?;
        let aad = Aad::from(&self.transcript);
        key.seal_in_place_append_tag(nonce(), aad, &mut sealed).ok()?;
        (sealed.len() <= SEALED_INVITE_MAX_BYTES).then_some(sealed)
    }

    /// The invite that the other end sealed; `None` if it is not its own, or none.
    ///
    /// Untrusted: any bytes, of which at most [`SEALED_INVITE_MAX_BYTES`] are read.
    pub fn open(&self, sealed: &[u8]) -> Option<Invite> {
        if sealed.len() > SEALED_INVITE_MAX_BYTES {
            return None;
        }
        let mut bytes = Zeroizing::new(sealed.to_vec());
        let key = self.sealing_key()?;
        let opened = key.open_in_place(nonce(), Aad::from(&self.transcript), &mut bytes).ok()?;
        Invite::from_text(str::from_utf8(opened).ok()?).ok()
    }

    fn sealing_key(&self) -> Option<LessSafeKey> {
        UnboundKey::new(&AES_256_GCM, &self.sealing[..]).ok().map(LessSafeKey::new)
    }
}

/// The only one that a key is used with.
fn nonce() -> Nonce {
    Nonce::assume_unique_for_key([0; 12])
}

fn is_confirmed(key: &[u8; 32], transcript: &[u8], confirmation: &Confirmation) -> bool {
    let key = hmac::Key::new(hmac::HMAC_SHA256, key);
    hmac::verify(&key, transcript, confirmation).is_ok()
}

fn confirm(key: &[u8; 32], transcript: &[u8]) -> Confirmation {
    let mut confirmation = [0; CONFIRMATION_BYTES];
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), transcript);
    confirmation.iter_mut().zip(tag.as_ref()).for_each(|(to, from)| *to = *from);
    confirmation
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::EXCHANGE_BYTES;
    use proptest::prelude::*;

    const MACHINE: PublicKey = PublicKey::from_bytes([1; 32]);
    const SERVER: PublicKey = PublicKey::from_bytes([2; 32]);
    const OTHER: PublicKey = PublicKey::from_bytes([3; 32]);

    fn code(number: u64) -> ShortCode {
        ShortCode::from_random(number.to_le_bytes())
    }

    fn invite() -> Invite {
        Invite {
            identity: SERVER,
            secret: Zeroizing::new([9; 16]),
            repository: "laptop".into(),
            addresses: vec!["192.0.2.1:7443".into()],
        }
    }

    /// Both ends of an exchange whose messages arrive: the machine's, and the server's.
    fn exchanged(
        typed: u64,
        server_of_machine: PublicKey,
        machine_of_server: PublicKey,
    ) -> [Agreed; 2] {
        let begun = MachineExchange::begin(&code(typed), MACHINE, server_of_machine).unwrap();
        let answered = answer_exchange(&code(7), machine_of_server, SERVER, &begun.message());
        let (answer, of_server) = answered.unwrap();
        [begun.finish(&answer).unwrap(), of_server]
    }

    #[test]
    fn the_same_code_and_keys_confirm_each_other_and_carry_the_invite() {
        let [machine, server] = exchanged(7, SERVER, MACHINE);
        assert!(server.is_confirmed_by_machine(&machine.machine_confirms()));
        assert!(machine.is_confirmed_by_server(&server.server_confirms()));
        assert!(!server.is_confirmed_by_machine(&server.server_confirms()), "its own, sent back");
        assert_eq!(machine.open(&server.seal(&invite()).unwrap()), Some(invite()));
    }

    #[test]
    fn another_code_or_a_key_that_only_one_end_sees_confirms_nothing_and_opens_nothing() {
        for (what, ends) in [
            ("another code", exchanged(8, SERVER, MACHINE)),
            ("the machine sees another server", exchanged(7, OTHER, MACHINE)),
            ("the server sees another machine", exchanged(7, SERVER, OTHER)),
        ] {
            let [machine, server] = ends;
            assert!(!server.is_confirmed_by_machine(&machine.machine_confirms()), "{what}");
            assert!(!machine.is_confirmed_by_server(&server.server_confirms()), "{what}");
            assert_eq!(machine.open(&server.seal(&invite()).unwrap()), None, "{what}");
        }
    }

    #[test]
    fn what_was_sent_in_one_exchange_says_nothing_in_another() {
        let [first, _] = exchanged(7, SERVER, MACHINE);
        let [second, server] = exchanged(7, SERVER, MACHINE);
        assert!(!server.is_confirmed_by_machine(&first.machine_confirms()));
        assert!(server.is_confirmed_by_machine(&second.machine_confirms()));
    }

    #[test]
    fn the_longest_invite_can_be_sealed() {
        let addresses = vec!["a".repeat(255); crate::INVITE_MAX_ADDRESSES];
        let longest = Invite { repository: "r".repeat(255), addresses, ..invite() };
        let [machine, server] = exchanged(7, SERVER, MACHINE);
        assert_eq!(machine.open(&server.seal(&longest).unwrap()), Some(longest));
    }

    proptest! {
        #[test]
        fn any_message_is_answered_or_refused_and_proves_nothing(
            bytes in any::<[u8; EXCHANGE_BYTES - 1]>(),
            confirmation: Confirmation,
            sealed: Vec<u8>,
            side in prop::sample::select(vec![0x41, 0x42, 0x53, 0]),
        ) {
            let mut message = [side; EXCHANGE_BYTES];
            message[1..].copy_from_slice(&bytes);
            if let Some((_, server)) = answer_exchange(&code(7), MACHINE, SERVER, &message) {
                prop_assert!(!server.is_confirmed_by_machine(&confirmation));
            }
            let begun = MachineExchange::begin(&code(7), MACHINE, SERVER).unwrap();
            if let Some(machine) = begun.finish(&message) {
                prop_assert!(!machine.is_confirmed_by_server(&confirmation));
                prop_assert_eq!(machine.open(&sealed), None);
            }
        }

        #[test]
        fn a_changed_sealed_invite_is_not_opened(at: usize, with in 1u8..) {
            let [machine, server] = exchanged(7, SERVER, MACHINE);
            let mut sealed = server.seal(&invite()).unwrap();
            let at = at % sealed.len();
            sealed[at] ^= with;
            prop_assert_eq!(machine.open(&sealed), None);
        }
    }
}

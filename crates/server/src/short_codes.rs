//! The short code that is open, if one is: what it stands for, and how far whoever types it has come.
//!
//! Nine digits could be found by trying, so trying is what is bounded: a code is good for one try, and there are five an hour.
//! Of 10^9 codes that leaves whoever guesses all year a chance of one in 20,000. One code is open at a time, and nothing
//! is remembered of those who guess: what they can make the server hold is one exchange.
//!
//! ```text
//! made -> open -> begun by a key -> confirmed: the same answer again to that key alone
//!           '----------'-- ten minutes, another code, or a wrong confirmation -> gone, and its invite with it
//!                      '-- a minute -> left: gone, too, and reported as a wrong one is
//! ```
//!
//! All of it is in memory alone: a server that starts again knows no code. Times are those of a clock that only runs.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use holdall_format::PublicKey;
use holdall_meter::duration;
use holdall_protocol::wire::{CodeConfirmed, Confirmation, ExchangeMessage};
use holdall_protocol::{Agreed, Invite, ShortCode, answer_exchange};

use crate::ServerError;
use crate::bounds::source::Source;

/// How long a code is good.
pub(crate) const LIFE_NS: i64 = 10 * 60 * SECOND_NS;
/// How long a try may take from its first message to its confirmation, which a machine sends at once. A key that begins
/// and leaves spends the code as a wrong guess does.
const TRY_NS: i64 = 60 * SECOND_NS;
/// Most codes in an hour.
const MOST_IN_AN_HOUR: usize = 5;
const HOUR_NS: i64 = 3600 * SECOND_NS;
/// How long people are told of a wrong guess.
const TOLD_NS: i64 = 24 * HOUR_NS;
const SECOND_NS: i64 = 1_000_000_000;

/// What a server knows of short codes.
#[derive(Default)]
pub(crate) struct ShortCodes(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    /// When the last codes were made, the oldest first; at most [`MOST_IN_AN_HOUR`].
    made_ns: VecDeque<i64>,
    code: Option<Code>,
    /// The last code that a key began and left, until it is reported.
    left: Option<Left>,
    /// When a code was last guessed wrong, and what is to be told of it.
    wrong: Option<(i64, String)>,
}

/// The code that is open.
struct Code {
    code: ShortCode,
    /// What it stands for.
    invite: Invite,
    made_ns: i64,
    stage: Stage,
}

/// How far it has come.
enum Stage {
    Open,
    /// A key has begun, and is the only one that goes on.
    Begun {
        key: PublicKey,
        from: Source,
        at_ns: i64,
        message: ExchangeMessage,
        answer: ExchangeMessage,
        agreed: Agreed,
    },
    /// It was the right one.
    Confirmed {
        key: PublicKey,
        confirmation: Confirmation,
        answer: CodeConfirmed,
    },
}

/// A code that was begun, and not confirmed in time. It is gone; its invite is to be forgotten.
pub(crate) struct Left {
    pub(crate) invite: Invite,
    /// Where the key that began it came from.
    pub(crate) from: Source,
}

/// What becomes of a confirmation.
pub(crate) enum Confirmed {
    /// The code was the same. `is_new` unless it was answered before.
    Same { answer: CodeConfirmed, is_new: bool },
    /// It was not. The code is gone; its invite is to be forgotten.
    Wrong(Invite),
    /// This key has begun nothing.
    NotBegun,
}

/// What a machine's first message is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Begun {
    pub(crate) answer: ExchangeMessage,
    /// Whether it came for the first time.
    pub(crate) is_new: bool,
}

impl ShortCodes {
    /// Checks that one more code may be made.
    ///
    /// # Errors
    /// [`ServerError::Refused`] if there were five in the last hour; it says when the next one can be made.
    pub(crate) fn check_may_make(&self, now_ns: i64) -> Result<(), ServerError> {
        let mut kept = self.kept(now_ns);
        kept.made_ns.retain(|made| is_within(*made, HOUR_NS, now_ns));
        match kept.made_ns.front() {
            Some(oldest) if kept.made_ns.len() >= MOST_IN_AN_HOUR => {
                let left_ns = oldest.saturating_add(HOUR_NS).saturating_sub(now_ns);
                let left = duration((left_ns as f64 / SECOND_NS as f64).ceil());
                Err(ServerError::refused(format!(
                    "{MOST_IN_AN_HOUR} short codes were made in the last hour, and there are no more; the next one can be \
                     made in {left}. `holdall invite` makes an invite at any time"
                )))
            }
            _ => Ok(()),
        }
    }

    /// Opens a code for an invite, in the place of any other, whose invite is given back to be forgotten.
    pub(crate) fn open(&self, code: ShortCode, invite: Invite, now_ns: i64) -> Option<Invite> {
        let mut kept = self.kept(now_ns);
        kept.made_ns.push_back(now_ns);
        let new = Code { code, invite, made_ns: now_ns, stage: Stage::Open };
        let before = kept.code.replace(new)?;
        match &before.stage {
            // One that was used is remembered as such.
            Stage::Confirmed { .. } => return None,
            Stage::Begun { from, .. } => {
                kept.left = Some(Left { invite: before.invite.clone(), from: *from });
            }
            Stage::Open => {}
        }
        Some(before.invite)
    }

    /// Takes a machine's first message; `None` if no code is open, another key has begun, or it is no message. The same message of
    /// the same key again gets the same answer, and is not new.
    ///
    /// Untrusted: any bytes.
    pub(crate) fn begin(
        &self,
        (key, from): (PublicKey, Source),
        server: PublicKey,
        message: &ExchangeMessage,
        now_ns: i64,
    ) -> Option<Begun> {
        let mut kept = self.kept(now_ns);
        let code = kept.code.as_mut()?;
        match &code.stage {
            Stage::Open => {
                let (answer, agreed) = answer_exchange(&code.code, key, server, message)?;
                let at_ns = now_ns;
                code.stage = Stage::Begun { key, from, at_ns, message: *message, answer, agreed };
                Some(Begun { answer, is_new: true })
            }
            Stage::Begun { key: by, message: first, answer, .. } => {
                let again = Begun { answer: *answer, is_new: false };
                (*by == key && first == message).then_some(again)
            }
            Stage::Confirmed { .. } => None,
        }
    }

    /// Takes a machine's confirmation. A wrong one ends the code: there is one guess.
    ///
    /// Untrusted: any bytes.
    pub(crate) fn confirm(
        &self,
        key: PublicKey,
        confirmation: &Confirmation,
        now_ns: i64,
    ) -> Confirmed {
        let mut kept = self.kept(now_ns);
        let Some(mut code) = kept.code.take() else { return Confirmed::NotBegun };
        let (confirmed, stage) = match code.stage {
            Stage::Begun { key: by, agreed, .. } if by == key => {
                if !agreed.is_confirmed_by_machine(confirmation) {
                    return Confirmed::Wrong(code.invite);
                }
                match answer_to(agreed, &code.invite) {
                    Some(answer) => {
                        let confirmation = *confirmation;
                        let stage = Stage::Confirmed { key, confirmation, answer: answer.clone() };
                        (Confirmed::Same { answer, is_new: true }, stage)
                    }
                    None => return Confirmed::NotBegun,
                }
            }
            Stage::Confirmed { key: by, confirmation: first, answer }
                if by == key && first == *confirmation =>
            {
                let same = Confirmed::Same { answer: answer.clone(), is_new: false };
                (same, Stage::Confirmed { key: by, confirmation: first, answer })
            }
            other => (Confirmed::NotBegun, other),
        };
        code.stage = stage;
        kept.code = Some(code);
        confirmed
    }

    /// The code that a key began and left, if one is to be reported; once.
    pub(crate) fn take_left(&self, now_ns: i64) -> Option<Left> {
        self.kept(now_ns).left.take()
    }

    /// Remembers that a code was guessed wrong, in words.
    pub(crate) fn note_wrong(&self, what: String, now_ns: i64) {
        self.kept(now_ns).wrong = Some((now_ns, what));
    }

    /// What is to be told of the last wrong guess, for a day, and when it was.
    #[cfg(feature = "web")]
    pub(crate) fn wrong(&self, now_ns: i64) -> Option<(i64, String)> {
        self.kept(now_ns).wrong.clone()
    }

    /// What is kept, without what has lapsed.
    fn kept(&self, now_ns: i64) -> MutexGuard<'_, Kept> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let lapsed = kept.code.take_if(|code| {
            let has_left = match &code.stage {
                Stage::Begun { at_ns, .. } => !is_within(*at_ns, TRY_NS, now_ns),
                _ => false,
            };
            has_left || !is_within(code.made_ns, LIFE_NS, now_ns)
        });
        if let Some(Code { invite, stage: Stage::Begun { from, .. }, .. }) = lapsed {
            kept.left = Some(Left { invite, from });
        }
        kept.wrong.take_if(|(at_ns, _)| !is_within(*at_ns, TOLD_NS, now_ns));
        kept
    }
}

/// The server's confirmation and the sealed invite; `None` if it cannot be sealed, which every invite can.
fn answer_to(agreed: Agreed, invite: &Invite) -> Option<CodeConfirmed> {
    let confirmation = agreed.server_confirms();
    CodeConfirmed::new(confirmation, agreed.seal(invite)?).ok()
}

fn is_within(since_ns: i64, life_ns: i64, now_ns: i64) -> bool {
    (0..life_ns).contains(&now_ns.saturating_sub(since_ns))
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use holdall_protocol::MachineExchange;
    use zeroize::Zeroizing;

    use super::*;

    const SERVER: PublicKey = PublicKey::from_bytes([9; 32]);

    fn source() -> Source {
        Source::from(IpAddr::from([192, 0, 2, 7]))
    }

    fn key(number: u64) -> PublicKey {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&number.to_le_bytes());
        PublicKey::from_bytes(bytes)
    }

    fn code(number: u64) -> ShortCode {
        ShortCode::from_random(number.to_le_bytes())
    }

    fn invite(number: u8) -> Invite {
        let secret = Zeroizing::new([number; 16]);
        let addresses = vec!["192.0.2.1:7443".into()];
        Invite { identity: SERVER, secret, repository: String::new(), addresses }
    }

    /// Opens code 7 for invite 1 at that time.
    fn opened(codes: &ShortCodes, at_ns: i64) {
        codes.check_may_make(at_ns).unwrap();
        codes.open(code(7), invite(1), at_ns);
    }

    /// A whole exchange of a key that types that code; `None` if it could not begin.
    fn tried(codes: &ShortCodes, typed: u64, by: u64, now_ns: i64) -> Option<(Confirmed, Agreed)> {
        let begun = MachineExchange::begin(&code(typed), key(by), SERVER).unwrap();
        let answer = codes.begin((key(by), source()), SERVER, &begun.message(), now_ns)?.answer;
        let agreed = begun.finish(&answer).unwrap();
        Some((codes.confirm(key(by), &agreed.machine_confirms(), now_ns), agreed))
    }

    fn invite_of(tried: Option<(Confirmed, Agreed)>) -> Option<Invite> {
        match tried? {
            (Confirmed::Same { answer, .. }, agreed) => {
                assert!(agreed.is_confirmed_by_server(&answer.confirmation()));
                agreed.open(answer.sealed_invite())
            }
            _ => None,
        }
    }

    #[test]
    fn the_right_code_gives_its_invite_to_one_key() {
        let codes = ShortCodes::default();
        assert!(tried(&codes, 7, 1, 0).is_none(), "none is open");
        opened(&codes, 0);
        assert_eq!(invite_of(tried(&codes, 7, 1, 1)), Some(invite(1)));
        assert!(tried(&codes, 7, 2, 2).is_none(), "it was used");
        assert!(tried(&codes, 7, 1, 3).is_none(), "by the same key, too");
    }

    #[test]
    fn a_wrong_code_is_its_only_guess() {
        let codes = ShortCodes::default();
        opened(&codes, 0);
        let (wrong, _) = tried(&codes, 8, 1, 1).unwrap();
        assert!(matches!(wrong, Confirmed::Wrong(of) if of == invite(1)));
        assert!(tried(&codes, 7, 2, 2).is_none(), "the right one comes too late");
        assert!(tried(&codes, 7, 1, 3).is_none());
    }

    #[test]
    fn a_code_lapses_after_ten_minutes_begun_or_not() {
        let codes = ShortCodes::default();
        opened(&codes, 0);
        assert!(tried(&codes, 7, 1, LIFE_NS).is_none());
        opened(&codes, LIFE_NS);
        let begun = MachineExchange::begin(&code(7), key(1), SERVER).unwrap();
        let last_ns = 2 * LIFE_NS - 1;
        let answer =
            codes.begin((key(1), source()), SERVER, &begun.message(), last_ns).unwrap().answer;
        let confirmation = begun.finish(&answer).unwrap().machine_confirms();
        assert!(matches!(codes.confirm(key(1), &confirmation, last_ns + 1), Confirmed::NotBegun));
    }

    /// Opens code 7 at that time, which key 1 begins and leaves.
    fn begun_and_left(codes: &ShortCodes, at_ns: i64) {
        opened(codes, at_ns);
        let begun = MachineExchange::begin(&code(7), key(1), SERVER).unwrap();
        codes.begin((key(1), source()), SERVER, &begun.message(), at_ns).unwrap();
    }

    #[test]
    fn a_code_that_was_begun_and_left_is_spent_and_reported_once() {
        let codes = ShortCodes::default();
        begun_and_left(&codes, 0);
        assert!(codes.take_left(TRY_NS - 1).is_none(), "it may still be confirmed");
        let left = codes.take_left(TRY_NS).unwrap();
        assert_eq!((left.invite, left.from), (invite(1), source()));
        assert!(codes.take_left(TRY_NS).is_none(), "once");
        assert!(tried(&codes, 7, 2, TRY_NS).is_none(), "it is spent");
    }

    #[test]
    fn a_code_that_was_begun_is_reported_if_it_lapses_or_another_takes_its_place() {
        let codes = ShortCodes::default();
        opened(&codes, 0);
        let begun = MachineExchange::begin(&code(7), key(1), SERVER).unwrap();
        codes.begin((key(1), source()), SERVER, &begun.message(), LIFE_NS - 1).unwrap();
        assert!(codes.take_left(LIFE_NS).is_some(), "it lapsed");
        begun_and_left(&codes, LIFE_NS);
        assert_eq!(codes.open(code(8), invite(2), LIFE_NS + 1), Some(invite(1)));
        assert!(codes.take_left(LIFE_NS + 1).is_some(), "another took its place");
        assert!(invite_of(tried(&codes, 8, 1, LIFE_NS + 2)).is_some());
        opened(&codes, LIFE_NS + 3);
        assert!(codes.take_left(2 * LIFE_NS + 3).is_none(), "one was used, one not begun");
    }

    #[test]
    fn whoever_has_begun_is_disturbed_by_nobody_and_gets_lost_answers_again() {
        let codes = ShortCodes::default();
        opened(&codes, 0);
        let begun = MachineExchange::begin(&code(7), key(1), SERVER).unwrap();
        let message = begun.message();
        let begin =
            |by, message: &ExchangeMessage| codes.begin((key(by), source()), SERVER, message, 1);
        let Begun { answer, is_new } = begin(1, &message).unwrap();
        assert!(is_new);
        assert_eq!(begin(1, &message), Some(Begun { answer, is_new: false }), "asked again");
        assert_eq!(begin(2, &message), None, "replayed by another key");
        let other = MachineExchange::begin(&code(7), key(1), SERVER).unwrap();
        assert_eq!(begin(1, &other.message()), None, "a second try");
        assert!(matches!(codes.confirm(key(2), &[0; 32], 1), Confirmed::NotBegun));
        let confirmation = begun.finish(&answer).unwrap().machine_confirms();
        assert!(matches!(codes.confirm(key(2), &confirmation, 1), Confirmed::NotBegun), "replayed");
        let confirm = || match codes.confirm(key(1), &confirmation, 1) {
            Confirmed::Same { answer, is_new } => (answer, is_new),
            _ => panic!("not confirmed"),
        };
        let (first, again) = (confirm(), confirm());
        assert_eq!((first.0, first.1, again.1), (again.0, true, false));
        assert!(matches!(codes.confirm(key(1), &[0; 32], 1), Confirmed::NotBegun));
    }

    #[test]
    fn a_new_code_takes_the_place_of_the_one_before() {
        let codes = ShortCodes::default();
        opened(&codes, 0);
        assert_eq!(codes.open(code(8), invite(2), 1), Some(invite(1)));
        assert!(invite_of(tried(&codes, 8, 1, 2)).is_some());
        assert_eq!(codes.open(code(9), invite(3), 3), None, "a used one stays known as used");
    }

    #[test]
    fn what_is_no_message_is_refused_and_spends_nothing() {
        let codes = ShortCodes::default();
        opened(&codes, 0);
        for message in [[0; 33], [0x41; 33], [0xff; 33]] {
            let begun = codes.begin((key(1), source()), SERVER, &message, 1);
            assert!(message[0] == 0x41 || begun.is_none());
        }
        assert!(invite_of(tried(&codes, 7, 1, 1)).is_some());
    }

    #[test]
    fn there_are_five_codes_an_hour() {
        let codes = ShortCodes::default();
        let minute_ns = 60 * SECOND_NS;
        (0..5).for_each(|minute| opened(&codes, minute * minute_ns));
        let refused = codes.check_may_make(10 * minute_ns).unwrap_err().to_string();
        assert!(refused.contains("in 50 min"), "{refused}");
        assert!(codes.check_may_make(HOUR_NS - 1).is_err());
        opened(&codes, HOUR_NS);
        assert!(codes.check_may_make(HOUR_NS).is_err());
        opened(&codes, HOUR_NS + minute_ns);
    }

    /// Ten thousand computers guess, as often as codes are made: none gets anywhere, and nothing grows.
    #[test]
    fn ten_thousand_wrong_guesses_find_nothing_and_leave_nothing() {
        let codes = ShortCodes::default();
        let (mut now_ns, mut spent) = (0, 0);
        for guess in 0..10_000 {
            if codes.check_may_make(now_ns).is_ok() {
                codes.open(code(7), invite(1), now_ns);
            }
            match tried(&codes, 1000 + guess, guess, now_ns) {
                Some((Confirmed::Wrong(_), agreed)) => {
                    spent += 1;
                    assert_eq!(agreed.open(&[0; 100]), None);
                    codes.note_wrong("from somewhere".into(), now_ns);
                }
                Some(_) => panic!("guess {guess} got something"),
                None => {}
            }
            let kept = codes.kept(now_ns);
            assert!(kept.made_ns.len() <= MOST_IN_AN_HOUR && kept.code.is_none());
            drop(kept);
            now_ns += 60 * SECOND_NS;
        }
        // A guess a minute, for 10,000 minutes, of which each hour has five codes.
        let hours = 10_000 / 60 + 1;
        assert!((5 * (hours - 1)..=5 * hours).contains(&spent), "{spent}");
    }
}

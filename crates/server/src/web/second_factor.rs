//! The second factor of who is signed in: switched on once its first code was typed in, and off by password and code.

use std::fmt::Write;
use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use holdall_meter::counted;
use holdall_pages::{form, name, qr_code};
use maud::html;
use serde::Deserialize;
use zeroize::Zeroizing;

use super::entry;
use super::problem::Problem;
use super::shared::Shared;
use super::visitor::{From, Sent, SignedIn};
use crate::ServerError;
use crate::accounts::SECRET_LEN;
use crate::admin::{Administration, Pace};

#[derive(Deserialize)]
pub(super) struct Begin {
    password: Zeroizing<String>,
}

#[derive(Deserialize)]
pub(super) struct FirstCode {
    code: Zeroizing<String>,
}

#[derive(Deserialize)]
pub(super) struct Off {
    password: Zeroizing<String>,
    code: Zeroizing<String>,
}

pub(super) async fn show(
    State(shared): State<Arc<Shared>>,
    who: SignedIn,
) -> Result<Response, Problem> {
    let account = who.account.clone();
    let left = shared.read(Pace::Quick, move |on| {
        let known = on.accounts.web_accounts()?.into_iter().find(|one| one.name == account);
        let second = known.and_then(|known| known.second_factor);
        Ok(second.map(|second| second.recovery_left()))
    });
    let content = match left.await? {
        None => html! {
            p { "Signing in asks for your password alone. With a second factor it also asks for a code, which an app on your "
                "telephone makes anew every 30 seconds." }
            (form("/second-factor/begin", &who.token, &html! {
                (entry::once_more("password", &who))
                button { "Switch it on" }
            }))
        },
        Some(left) => html! {
            p { "Signing in asks for a code beside your password. "
                (counted(left as u64, "recovery code")) " left." }
            h2 { "Switch it off" }
            (form("/second-factor/off", &who.token, &html! {
                (entry::once_more("password", &who))
                (entry::code_field("A code of the app, or for recovery", true))
                button class="grave" { "Switch it off" }
            }))
        },
    };
    Ok(who.page(&shared, "Second factor", content))
}

/// Shows a new secret, once the password was given again.
pub(super) async fn begin(
    State(shared): State<Arc<Shared>>,
    From(source): From,
    who: SignedIn,
    Sent(begin): Sent<Begin>,
) -> Result<Response, Problem> {
    entry::check_again(&shared, source, &who, begin.password).await?;
    let secret = shared.state.web_sessions.new_secret(&who.cookie)?;
    Ok(secret_page(&shared, &who, &secret, false))
}

fn secret_page(
    shared: &Shared,
    who: &SignedIn,
    secret: &[u8; SECRET_LEN],
    was_wrong: bool,
) -> Response {
    let text = base32(secret);
    let address = address(&shared.state.name, &who.account, &text);
    let content = html! {
        @if was_wrong {
            p class="notice bad" role="alert" {
                "That code is wrong. Is the clock of the telephone right, and that of the server?"
            }
        }
        p { "Scan this with the app, or type the letters in:" }
        @if let Some(code) = qr_code(&address, "The secret as a code to scan") { (code) }
        p { code { (text.as_str()) } }
        (form("/second-factor/on", &who.token, &html! {
            (entry::code_field("The code that the app shows now", true))
            button { "Switch it on" }
        }))
    };
    who.page(shared, "Second factor", content)
}

/// Switches it on by its first code, and shows the recovery codes once.
pub(super) async fn switch_on(
    State(shared): State<Arc<Shared>>,
    From(source): From,
    who: SignedIn,
    Sent(first): Sent<FirstCode>,
) -> Result<Response, Problem> {
    let Some(secret) = shared.state.web_sessions.shown_secret(&who.cookie) else {
        return Ok(Redirect::to("/second-factor").into_response());
    };
    let (account, shown) = (who.account.clone(), secret.clone());
    let switch = move |on: &Administration<'_>| {
        let codes = on.accounts.switch_second_factor_on(&account, &shown, &first.code)?;
        if codes.is_some() {
            note(on, "second-factor-on", &account);
        }
        Ok::<_, ServerError>(codes)
    };
    let Some(codes) = shared.administer(who.actor(source), Pace::Quick, switch).await? else {
        let again = secret_page(&shared, &who, &secret, true);
        return Ok((StatusCode::FORBIDDEN, again).into_response());
    };
    shared.state.web_sessions.end_others_of(&who.account, &who.cookie);
    let content = html! {
        p class="notice good" role="status" { "From now on signing in asks " (name(&who.account)) " for a code." }
        h2 { "Recovery codes" }
        p { "Each takes the place of a code once, such as when the telephone is lost. Keep them on paper. They are shown this once:" }
        ul { @for code in &codes { li { code { (code.as_str()) } } } }
        p class="faint" { "Without these, " code { "holdall admin web-code" } " on the server gives a new password without a second factor." }
        p { a href="/settings" { "Back to the settings" } }
    };
    Ok(who.page(&shared, "Second factor", content))
}

/// Switches it off, by password and code.
pub(super) async fn switch_off(
    State(shared): State<Arc<Shared>>,
    From(source): From,
    who: SignedIn,
    Sent(off): Sent<Off>,
) -> Result<Response, Problem> {
    entry::check_again_with_code(&shared, source, &who, off.password, off.code).await?;
    let account = who.account.clone();
    let switch = move |on: &Administration<'_>| {
        on.accounts.switch_second_factor_off(&account)?;
        note(on, "second-factor-off", &account);
        Ok(())
    };
    shared.administer(who.actor(source), Pace::Quick, switch).await?;
    shared.state.web_sessions.end_others_of(&who.account, &who.cookie);
    Ok(Redirect::to("/second-factor").into_response())
}

fn note(on: &Administration<'_>, what: &str, account: &str) {
    on.note(what, &serde_json::json!({ "name": account }), None);
}

/// What an app reads from the picture.
fn address(server: &str, account: &str, secret: &str) -> Zeroizing<String> {
    let issuer = percent(&format!("holdall on {server}"));
    Zeroizing::new(format!(
        "otpauth://totp/{issuer}:{}?secret={secret}&issuer={issuer}",
        percent(account)
    ))
}

fn percent(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                encoded.push(char::from(byte));
            }
            _ => drop(write!(encoded, "%{byte:02X}")),
        }
    }
    encoded
}

/// A secret as apps take it (RFC 4648): 20 bytes are 32 letters of 5 bits, without padding.
fn base32(secret: &[u8; SECRET_LEN]) -> Zeroizing<String> {
    const LETTERS: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let mut text = Zeroizing::new(String::with_capacity(SECRET_LEN * 8 / 5));
    for five in secret.chunks_exact(5) {
        let bits = five.iter().fold(0_u64, |bits, byte| bits << 8 | u64::from(*byte));
        for shift in (0..40).step_by(5).rev() {
            text.push(char::from(LETTERS[(bits >> shift & 31) as usize]));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_app_is_told_the_secret_and_whose_it_is() {
        let text = base32(b"12345678901234567890");
        assert_eq!(*text, "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ");
        let address = address("nas", "Ann & Bob", &text);
        let expected = "otpauth://totp/holdall%20on%20nas:Ann%20%26%20Bob?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&issuer=holdall%20on%20nas";
        assert_eq!(*address, expected);
    }
}

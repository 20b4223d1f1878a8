//! A new password for who is signed in, by the old one, and by a code where they have a second factor.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use holdall_pages::{form, password};
use maud::{Markup, html};
use serde::Deserialize;
use zeroize::Zeroizing;

use super::entry;
use super::passwords::{self, LEAST};
use super::problem::Problem;
use super::shared::Shared;
use super::visitor::{From, Sent, SignedIn};
use crate::ServerError;
use crate::admin::{Administration, Pace};

#[derive(Deserialize)]
pub(super) struct Change {
    password: Zeroizing<String>,
    #[serde(default)]
    code: Zeroizing<String>,
    new: Zeroizing<String>,
    again: Zeroizing<String>,
}

pub(super) async fn show(
    State(shared): State<Arc<Shared>>,
    who: SignedIn,
) -> Result<Response, Problem> {
    Ok(who.page(&shared, "Your password", changing(&who, None)))
}

fn changing(who: &SignedIn, wrong: Option<&str>) -> Markup {
    html! {
        @if let Some(wrong) = wrong { p class="notice bad" role="alert" { (wrong) } }
        p { "All your other sessions end with the old password." }
        (form("/password", &who.token, &html! {
            (entry::once_more("password", who))
            (entry::code_field("A code, if you have a second factor", false))
            (password("new", &format!("New password, at least {LEAST} characters"), "new-password"))
            (password("again", "The same password again", "new-password"))
            button { "Change it" }
        }))
    }
}

/// Changes it.
pub(super) async fn change(
    State(shared): State<Arc<Shared>>,
    From(source): From,
    who: SignedIn,
    Sent(change): Sent<Change>,
) -> Result<Response, Problem> {
    let Change { password, code, new, again } = change;
    if let Err(wrong) = passwords::check_new(&new, &again, &[&who.account, &shared.state.name]) {
        let page = who.page(&shared, "Your password", changing(&who, Some(&wrong)));
        return Ok((StatusCode::FORBIDDEN, page).into_response());
    }
    entry::check_again_with_code(&shared, source, &who, password, code).await?;
    let name = who.account.clone();
    let stretch = move || Ok(passwords::stretch_new(&new));
    let (stretched, _) = shared.stretching.run(stretch).await?;
    let stretched = stretched?;
    let put = move |on: &Administration<'_>| {
        on.accounts.change_web_account(&name, |account| stretched.put_into(account))?;
        on.note("password", &serde_json::json!({ "name": name }), None);
        Ok::<_, ServerError>(())
    };
    shared.administer(who.actor(source), Pace::Quick, put).await?;
    shared.state.web_sessions.end_others_of(&who.account, &who.cookie);
    let content = html! {
        p { "Your password is changed, and all your other sessions have ended." }
        p { a href="/settings" { "Back to the settings" } }
    };
    Ok(who.page(&shared, "Your password", content))
}

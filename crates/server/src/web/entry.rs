//! The way in and out: the first administrator, signing in, signing out, and the password asked for again.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use holdall_pages::{field, form, password};
use maud::{Markup, html};
use serde::Deserialize;
use zeroize::Zeroizing;

use super::passwords::{self, LEAST};
use super::problem::Problem;
use super::shared::Shared;
use super::visitor::{From, Sent, SignedIn, Visitor, actor, set_cookie};
use crate::ServerError;
use crate::admin::{Administration, NAME_MOST, Pace, check_person_name};
use crate::auth::scope::Scope;
use crate::bounds::failures::Whose;
use crate::bounds::source::Source;
use crate::web_sessions::Person;

/// Under what attempts at a code are counted; no account can be called so.
const CODES: &str = "";

#[derive(Deserialize)]
pub(super) struct Credentials {
    name: String,
    password: Zeroizing<String>,
    #[serde(default)]
    code: Zeroizing<String>,
}

#[derive(Deserialize)]
pub(super) struct NewAccount {
    code: Zeroizing<String>,
    name: String,
    password: Zeroizing<String>,
    again: Zeroizing<String>,
}

#[derive(Deserialize)]
pub(super) struct Nothing {}

/// What is at the top for whoever is not signed in: where to sign in, or how to begin.
pub(super) async fn welcome(shared: &Arc<Shared>, visitor: &Visitor) -> Response {
    let inner = Arc::clone(shared);
    let accounts = shared.state.quick_work.run(move || Ok(inner.state.accounts.web_accounts()));
    let is_begun = match accounts.await {
        Ok((Ok(accounts), _)) => !accounts.is_empty(),
        Ok((Err(error), _)) => return Problem::from(error).into_response(),
        Err(error) => return Problem::from(error).into_response(),
    };
    let (title, content) = match is_begun {
        true => ("Sign in", sign_in_form(shared, visitor, None)),
        false => ("This is a holdall server", how_to_begin()),
    };
    let content = html! {
        @if visitor.came_by_link() {
            p class="notice look" {
                "This browser was let in by a link. The server started anew since, or the link was revoked: open the link "
                "again, or ask for another one."
            }
        }
        (content)
    };
    let page = shared.open_page(title, content);
    visitor.remember(shared, page)
}

/// The form for who was let in to look alone, and may do more.
pub(super) async fn show_sign_in(State(shared): State<Arc<Shared>>, visitor: Visitor) -> Response {
    let page = shared.open_page("Sign in", sign_in_form(&shared, &visitor, None));
    visitor.remember(&shared, page)
}

fn sign_in_form(shared: &Shared, visitor: &Visitor, wrong: Option<&str>) -> Markup {
    let fields = html! {
        (field("name", "Name", "username"))
        (password("password", "Password", "current-password"))
        (code_field("Code, if you have a second factor", false))
        button { "Sign in" }
    };
    html! {
        @if let Some(wrong) = wrong { p class="notice bad" role="alert" { (wrong) } }
        (form("/sign-in", &shared.forms.token(&visitor.cookie), &fields))
        p class="faint" {
            "Password forgotten? " code { "holdall admin web-code" } " on the server makes a code for "
            a href="/setup" { "a new one" } ", which takes the second factor away."
        }
    }
}

/// The field for a code of the second factor.
pub(super) fn code_field(words: &str, is_required: bool) -> Markup {
    html! {
        label for="code" { (words) }
        input id="code" name="code" type="text" autocomplete="one-time-code" autocapitalize="none"
            spellcheck="false" maxlength="40" required[is_required];
    }
}

fn how_to_begin() -> Markup {
    html! {
        p { "It keeps backups and cannot read them. Nobody looks after it in a browser yet." }
        ol {
            li { "On the server, run " code { "holdall admin web-code" } ". It prints a code that is good for an hour." }
            li { a href="/setup" { "Type the code in here" } " and choose a name and a password." }
        }
        p class="faint" { "Machines are let in by " code { "holdall invite" } " there and " code { "holdall pair" } " on the machine." }
    }
}

/// Where the first administrator, or one who forgot the password, begins.
pub(super) async fn show_setup(State(shared): State<Arc<Shared>>, visitor: Visitor) -> Response {
    let page = shared.open_page("Begin with a code", setup_form(&shared, &visitor, None));
    visitor.remember(&shared, page)
}

fn setup_form(shared: &Shared, visitor: &Visitor, wrong: Option<&str>) -> Markup {
    let fields = html! {
        (field("code", "Code", "one-time-code"))
        (field("name", "Your name here", "username"))
        (password("password", &format!("Password, at least {LEAST} characters"), "new-password"))
        (password("again", "The same password again", "new-password"))
        button { "Begin" }
    };
    html! {
        @if let Some(wrong) = wrong { p class="notice bad" role="alert" { (wrong) } }
        p { code { "holdall admin web-code" } " on the server makes the code. A name that is known gets the new password, and has no second factor then." }
        (form("/setup", &shared.forms.token(&visitor.cookie), &fields))
    }
}

/// Makes an account for whoever has the code, and signs them in.
pub(super) async fn set_up(
    State(shared): State<Arc<Shared>>,
    From(source): From,
    visitor: Visitor,
    Sent(new): Sent<NewAccount>,
) -> Response {
    let name = new.name.trim().to_owned();
    let names = [&*name, &shared.state.name];
    let wrong = if check_person_name(&name).is_err() {
        Some(format!("Choose a name of 1 to {NAME_MOST} characters."))
    } else {
        passwords::check_new(&new.password, &new.again, &names).err()
    };
    if let Some(wrong) = wrong {
        return refused(&shared, "Begin with a code", setup_form(&shared, &visitor, Some(&wrong)));
    }
    match make_account(&shared, source, name.clone(), new).await {
        Ok(scope) => {
            let person = Person { account: name, scope };
            signed_in(&shared, source, &visitor, person, "web-account").await
        }
        Err(Wrong::Known(words)) => {
            refused(&shared, "Begin with a code", setup_form(&shared, &visitor, Some(&words)))
        }
        Err(Wrong::Other(problem)) => problem.into_response(),
    }
}

/// Why an attempt came to nothing.
enum Wrong {
    /// As the form says.
    Known(String),
    Other(Problem),
}

impl Wrong {
    fn into_problem(self) -> Problem {
        match self {
            Self::Known(words) => Problem::forbidden(&words),
            Self::Other(problem) => problem,
        }
    }
}

impl<E: Into<Problem>> std::convert::From<E> for Wrong {
    fn from(error: E) -> Self {
        Self::Other(error.into())
    }
}

async fn make_account(
    shared: &Arc<Shared>,
    source: Source,
    name: String,
    new: NewAccount,
) -> Result<Scope, Wrong> {
    attempt(shared, CODES, source)?;
    let (inner, of) = (Arc::clone(shared), name.clone());
    let (made, _) = shared
        .stretching
        .run(move || {
            Ok((|| {
                let accounts = &inner.state.accounts;
                let Some(scope) = accounts.use_web_code(&new.code, &of)? else { return Ok(None) };
                accounts.put_web_account(passwords::account(
                    &of,
                    &new.password,
                    scope,
                    inner.now_ns(),
                )?)?;
                inner.state.log("somebody may sign in to the pages in a browser now, by a code");
                Ok(Some(scope))
            })())
        })
        .await?;
    let made: Result<_, ServerError> = made;
    let Some(scope) = made? else {
        let words = "That code is wrong, used, older than an hour, or for another name.";
        return Err(Wrong::Known(words.to_owned()));
    };
    shared.backoff.forget(CODES, source);
    shared.state.web_sessions.end_all_of(&name);
    Ok(scope)
}

/// Signs somebody in.
pub(super) async fn sign_in(
    State(shared): State<Arc<Shared>>,
    From(source): From,
    visitor: Visitor,
    Sent(given): Sent<Credentials>,
) -> Response {
    let name = given.name.trim().to_owned();
    match check_person(&shared, source, &name, given.password, Some(given.code)).await {
        Ok(scope) => {
            let person = Person { account: name, scope };
            signed_in(&shared, source, &visitor, person, "sign-in").await
        }
        Err(Wrong::Known(words)) => {
            refused(&shared, "Sign in", sign_in_form(&shared, &visitor, Some(&words)))
        }
        Err(Wrong::Other(problem)) => problem.into_response(),
    }
}

/// The field for that, called `id` on its page.
pub(super) fn once_more(id: &str, who: &SignedIn) -> Markup {
    html! {
        // Whose password it is, for what fills it in.
        input type="text" name="account" autocomplete="username" value=(who.account) hidden;
        label for=(id) { "Your password once more" }
        input id=(id) name="password" type="password" autocomplete="current-password" maxlength="1000" required;
    }
}

/// Asks for the password of who is signed in once more, before something is destroyed.
pub(super) async fn check_again(
    shared: &Arc<Shared>,
    source: Source,
    who: &SignedIn,
    password: Zeroizing<String>,
) -> Result<(), Problem> {
    let checked = check_person(shared, source, &who.account, password, None).await;
    checked.map(|_| ()).map_err(Wrong::into_problem)
}

/// The same, and for a code of the second factor.
pub(super) async fn check_again_with_code(
    shared: &Arc<Shared>,
    source: Source,
    who: &SignedIn,
    password: Zeroizing<String>,
    code: Zeroizing<String>,
) -> Result<(), Problem> {
    let checked = check_person(shared, source, &who.account, password, Some(code)).await;
    checked.map(|_| ()).map_err(Wrong::into_problem)
}

/// Checks a password, and a code where one is asked for, and says what somebody may. What is wrong is not told.
async fn check_person(
    shared: &Arc<Shared>,
    source: Source,
    name: &str,
    password: Zeroizing<String>,
    code: Option<Zeroizing<String>>,
) -> Result<Scope, Wrong> {
    // What is no name and no password anyway costs nothing.
    let is_one =
        !name.is_empty() && name.len() <= 4 * NAME_MOST && password.len() <= 4 * passwords::MOST;
    let wrong = || Wrong::Known("That name, password or code is wrong.".to_owned());
    if !is_one {
        return Err(wrong());
    }
    attempt(shared, name, source)?;
    let (inner, of, has_code) = (Arc::clone(shared), name.to_owned(), code.is_some());
    let check = move || {
        let accounts = &inner.state.accounts;
        let known = accounts.web_accounts()?;
        let account = known.iter().find(|account| account.name == of);
        let is_right = passwords::is_of(account, &password)?;
        // A code is used up by the right password alone.
        let is_right =
            is_right && code.map_or(Ok(true), |code| accounts.use_second_factor(&of, &code))?;
        let right = account.filter(|_| is_right);
        Ok::<_, ServerError>(right.map(|account| (account.scope, account.second_factor.is_some())))
    };
    let (right, _) = shared.stretching.run(move || Ok(check())).await?;
    let Some((scope, has_second)) = right? else {
        let what = "wrong name, password or code";
        shared.state.failures.note(Whose::Browsers, Some(source), what);
        return Err(wrong());
    };
    match has_code || !has_second {
        true => shared.backoff.forget(name, source),
        // Or a password would clear the way for guesses of the code.
        false => shared.backoff.take_back(name, source),
    }
    Ok(scope)
}

fn attempt(shared: &Shared, name: &str, source: Source) -> Result<(), Wrong> {
    let wait =
        |seconds| Wrong::Known(format!("Too many attempts. Try again in {seconds} seconds."));
    shared.backoff.begin(name, source, shared.running_ns()).map_err(wait)
}

/// Notes that somebody came in, and begins their session.
async fn signed_in(
    shared: &Arc<Shared>,
    source: Source,
    visitor: &Visitor,
    person: Person,
    how: &'static str,
) -> Response {
    let actor = actor(&person.account, person.scope, source);
    let (name, now_ns) = (person.account.clone(), shared.now_ns());
    let note = move |on: &Administration<'_>| {
        on.accounts.change_web_account(&name, |account| account.signed_in_ns = Some(now_ns))?;
        on.note(how, &serde_json::json!({ "name": name }), None);
        Ok(())
    };
    match shared.administer(actor, Pace::Quick, note).await {
        Ok(()) => begin(shared, visitor, person),
        Err(problem) => problem.into_response(),
    }
}

/// Begins a session under a new cookie; what was under the old one is over.
fn begin(shared: &Shared, visitor: &Visitor, person: Person) -> Response {
    shared.state.web_sessions.end(&visitor.cookie);
    match shared.state.web_sessions.begin(person, shared.running_ns()) {
        Ok(cookie) => (set_cookie(shared, &cookie), Redirect::to("/")).into_response(),
        Err(error) => Problem::from(error).into_response(),
    }
}

fn refused(shared: &Shared, title: &str, content: Markup) -> Response {
    (StatusCode::FORBIDDEN, shared.open_page(title, content)).into_response()
}

/// Ends the session.
pub(super) async fn sign_out(
    State(shared): State<Arc<Shared>>,
    who: SignedIn,
    Sent(_): Sent<Nothing>,
) -> Response {
    shared.state.web_sessions.end(&who.cookie);
    (set_cookie(&shared, ""), Redirect::to("/")).into_response()
}

//! `/api/v1`: for programs, what pages and a terminal do, by the same commands. Each has a path of its own below
//! `/api/v1/admin/`, takes its fields as JSON and answers as JSON.
//!
//! A program shows a token, whose scope says which commands it may have carried out. What takes
//! longer than a request may is answered with the job that it is.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, PathRejection};
use axum::extract::{FromRequest, Path, Request, State};
use axum::http::StatusCode;
use axum::http::header::{ALLOW, CONTENT_TYPE, HeaderMap, HeaderValue, WWW_AUTHENTICATE};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::problem::Problem;
use super::shared::Shared;
use super::visitor::From;
use super::{openapi, token};
use crate::ServerError;
use crate::admin::{
    Administration, Command, Pace, Scope, is_command, is_told_without_fields, reply_of,
};
use crate::auth::actor::Actor;

const JSON: &str = "application/json";

/// What is answered instead of what was asked for.
pub(super) struct Refused {
    status: StatusCode,
    reason: String,
    /// The methods that are allowed, where another one was used.
    allow: &'static str,
}

impl Refused {
    fn new(status: StatusCode, reason: impl Into<String>) -> Self {
        Self { status, reason: reason.into(), allow: "" }
    }

    /// For a command that is asked for by other methods.
    fn method(name: &str) -> Self {
        let (allow, reason) = match is_told_without_fields(name) {
            true => ("GET, HEAD, POST", "this is asked for by GET or POST"),
            false => ("POST", "this is asked for by POST"),
        };
        Self { allow, ..Self::new(StatusCode::METHOD_NOT_ALLOWED, reason) }
    }
}

impl std::convert::From<Problem> for Refused {
    fn from(problem: Problem) -> Self {
        let (status, words) = problem.into_parts();
        Self::new(status, words)
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let mut response =
            answer(self.status, json!({ "error": self.reason }).to_string().into_bytes());
        let header = match self.status {
            StatusCode::UNAUTHORIZED => Some((WWW_AUTHENTICATE, "Bearer")),
            StatusCode::METHOD_NOT_ALLOWED => Some((ALLOW, self.allow)),
            _ => None,
        };
        if let Some((name, value)) = header {
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        response
    }
}

fn answer(status: StatusCode, json: Vec<u8>) -> Response {
    (status, [(CONTENT_TYPE, JSON)], json).into_response()
}

/// The document that describes all of it.
pub(super) async fn document() -> Response {
    answer(StatusCode::OK, openapi::document().to_string().into_bytes())
}

/// Whether a path is for programs, which are told as JSON what is wrong.
pub(super) fn is_path(path: &str) -> bool {
    path.starts_with("/api/")
}

/// The same problem for a program.
pub(super) fn refused(problem: Problem) -> Response {
    Refused::from(problem).into_response()
}

/// What is no path of it.
pub(super) async fn nothing() -> Refused {
    Refused::new(StatusCode::NOT_FOUND, "there is no such path; /api/v1/openapi.json has all")
}

/// Refuses methods by which nothing is asked for.
pub(super) async fn other_method(path: Result<Path<String>, PathRejection>) -> Refused {
    match path {
        Ok(Path(name)) if is_command(&name) => Refused::method(&name),
        _ => nothing().await,
    }
}

/// Carries out a command that only tells, without fields.
pub(super) async fn tell(
    state: State<Arc<Shared>>,
    from: From,
    path: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    carried_out(state, from, path, headers, None).await
}

/// Carries out a command with its fields.
pub(super) async fn carry_out(
    state: State<Arc<Shared>>,
    from: From,
    path: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
    request: Request,
) -> Result<Response, Refused> {
    carried_out(state, from, path, headers, Some(request)).await
}

async fn carried_out(
    State(shared): State<Arc<Shared>>,
    From(source): From,
    path: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
    request: Option<Request>,
) -> Result<Response, Refused> {
    let Some(token) = token::shown(&shared, &headers).await? else {
        let reason = "a token is missing, lapsed or revoked; `holdall admin api-token` makes one, to be sent as Bearer";
        return Err(Refused::new(StatusCode::UNAUTHORIZED, reason));
    };
    let name = path.map(|Path(name)| name).unwrap_or_default();
    if !is_command(&name) {
        return Err(nothing().await);
    }
    if request.is_none() && !is_told_without_fields(&name) {
        return Err(Refused::method(&name));
    }
    // Nobody without a token has the server wait for a body.
    let body = match request {
        Some(request) => Some(Bytes::from_request(request, &()).await.map_err(unread)?),
        None => None,
    };
    let command = command(&name, body.as_deref())?;
    let scope = command.scope();
    let actor = Actor {
        who: format!("token {}", token.name),
        from: Some(source.to_string()),
        scope: token.scope,
    };
    if token.scope < scope || scope == Scope::Own {
        let reason = match scope {
            Scope::Own => "no token may do this; `holdall admin` on the server does".to_owned(),
            _ => format!("the token {:?} may not do this", token.name),
        };
        let (of, why) = (name.clone(), ServerError::refused(reason.clone()));
        let note = move |on: &Administration<'_>| {
            on.note(&of, &json!({}), Some(&why));
            Ok(())
        };
        shared.administer(actor, Pace::Quick, note).await?;
        return Err(Refused::new(StatusCode::FORBIDDEN, reason));
    }
    if command.pace() == Pace::Long {
        return begun(&shared, actor, command);
    }
    let answered = shared.state.carry_out(actor, command).await.map_err(Problem::from)?;
    let line = answered.map_err(Problem::from)?;
    answer_json(StatusCode::OK, &reply_of(&line).map_err(Problem::from)?)
}

fn unread(error: BytesRejection) -> Refused {
    Refused::new(error.status(), error.body_text())
}

/// Begins what takes longer than a request may, and answers with the job that it is.
fn begun(shared: &Arc<Shared>, actor: Actor, command: Command) -> Result<Response, Refused> {
    let job = shared.begin_job(actor, command).map_err(Problem::from)?;
    let entry = shared.state.jobs.entry(job, shared.now_ns()).map_err(Problem::from)?;
    answer_json(StatusCode::ACCEPTED, &entry)
}

fn answer_json(status: StatusCode, value: &impl Serialize) -> Result<Response, Refused> {
    let failed = |_| Refused::new(StatusCode::INTERNAL_SERVER_ERROR, "the answer is none");
    Ok(answer(status, serde_json::to_vec(value).map_err(failed)?))
}

/// The command of that name with these fields.
fn command(name: &str, body: Option<&[u8]>) -> Result<Command, Refused> {
    let refused = |error: serde_json::Error| {
        Refused::new(StatusCode::BAD_REQUEST, format!("{name}: {error}"))
    };
    let mut fields: Map<String, Value> = match body {
        None | Some([]) => Map::new(),
        Some(body) => serde_json::from_slice(body).map_err(refused)?,
    };
    fields.insert("command".into(), name.into());
    let mut fields = Value::Object(fields);
    tell_whole_numbers(&mut fields);
    serde_json::from_value(fields).map_err(refused)
}

/// Writes whole numbers without a fraction: `7.0` is one for JSON Schema, and so for those who read the document.
fn tell_whole_numbers(value: &mut Value) {
    match value {
        Value::Number(number) => {
            let text = number.as_f64().filter(|_| number.is_f64()).map(|number| number.to_string());
            if let Some(whole) = text.and_then(|text| text.parse::<i64>().ok()) {
                *value = whole.into();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(tell_whole_numbers),
        Value::Object(fields) => fields.values_mut().for_each(tell_whole_numbers),
        _ => {}
    }
}

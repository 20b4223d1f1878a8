//! What all pages share.

use std::sync::{Arc, Mutex, PoisonError};

use axum::response::{Html, IntoResponse, Redirect, Response};
use holdall_pages::{Account, Page};
use maud::Markup;
use tokio::task::JoinSet;

use super::WORKERS;
use super::backoff::Backoff;
use super::form_tokens::FormTokens;
use super::guard::Hosts;
use super::problem::Problem;
use super::turn::Turn;
use crate::ServerError;
use crate::admin::{Administration, Carried, Command, Pace};
use crate::auth::actor::Actor;
use crate::bounds::work::Work;
use crate::state::ServerState;

pub(super) struct Shared {
    pub(super) state: Arc<ServerState>,
    pub(super) forms: FormTokens,
    pub(super) backoff: Backoff,
    pub(super) hosts: Hosts,
    /// Whose turn it is to measure the way here.
    pub(super) turn: Turn,
    /// Where passwords are stretched.
    pub(super) stretching: Work,
    /// Those that were begun here and run.
    jobs: Mutex<JoinSet<()>>,
}

impl Shared {
    pub(super) fn new(state: Arc<ServerState>, names: Vec<String>) -> Result<Self, ServerError> {
        Ok(Self {
            forms: FormTokens::new()?,
            turn: Turn::new()?,
            backoff: Backoff::default(),
            hosts: Hosts::new(&state.name, names),
            stretching: Work::new(WORKERS, 0),
            jobs: Mutex::default(),
            state,
        })
    }

    /// Now, by a clock that only runs.
    pub(super) fn running_ns(&self) -> i64 {
        self.state.accounts.clock().running_ns()
    }

    /// Now, in nanoseconds since 1970 UTC.
    pub(super) fn now_ns(&self) -> i64 {
        self.state.accounts.clock().now_ns()
    }

    /// Has one command carried out for somebody.
    pub(super) async fn ask<C>(&self, actor: Actor, command: C) -> Result<C::Reply, Problem>
    where
        C: Carried + Send + 'static,
        C::Reply: Send + 'static,
    {
        self.administer(actor, C::PACE, move |on| on.carry_out(&command)).await
    }

    /// Answers a form: has one command carried out, and leads to the page that shows what became of it.
    pub(super) async fn carry_out<C>(
        &self,
        actor: Actor,
        command: C,
        then: &str,
    ) -> Result<Response, Problem>
    where
        C: Carried + Send + 'static,
        C::Reply: Send + 'static,
    {
        self.ask(actor, command).await?;
        Ok(Redirect::to(then).into_response())
    }

    /// Reads what a page is made of.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        pace: Pace,
        work: impl FnOnce(&Administration<'_>) -> Result<T, ServerError> + Send + 'static,
    ) -> Result<T, Problem> {
        self.administer(Actor::server(), pace, work).await
    }

    /// Has several commands carried out for somebody, one after the other.
    pub(super) async fn administer<T: Send + 'static>(
        &self,
        actor: Actor,
        pace: Pace,
        work: impl FnOnce(&Administration<'_>) -> Result<T, ServerError> + Send + 'static,
    ) -> Result<T, Problem> {
        let state = Arc::clone(&self.state);
        let threads = match pace {
            Pace::Quick => &self.state.quick_work,
            Pace::Usual | Pace::Long => &self.state.work,
        };
        let (done, _) = threads.run(move || Ok(state.administer(&actor, |all| work(&all)))).await?;
        Ok(done?)
    }

    /// Begins a command that takes long, and gives the number of the job that it is.
    pub(super) fn begin_job(&self, actor: Actor, command: Command) -> Result<u64, ServerError> {
        let job = self.state.begin_asked(actor, &command)?;
        let (state, number) = (Arc::clone(&self.state), job.number());
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        while jobs.try_join_next().is_some() {}
        jobs.spawn(async move { drop(state.run_job(job, command).await) });
        Ok(number)
    }

    /// A page for anybody.
    pub(super) fn open_page(&self, title: &str, content: Markup) -> Response {
        self.html(title, None, content)
    }

    /// A page for whoever that is.
    pub(super) fn html(
        &self,
        title: &str,
        account: Option<Account<'_>>,
        content: Markup,
    ) -> Response {
        let page = Page { title, server: &self.state.name, account, content };
        Html(page.html()).into_response()
    }
}

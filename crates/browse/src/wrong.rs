//! What went wrong with what was sent: a browser says at most that a download failed, so the pages say why.

use std::collections::VecDeque;
use std::sync::Mutex;

use holdall_format::OneLine;
use maud::{Markup, html};

use crate::jobs::lock;
use crate::place::shown;
use crate::times;

/// So many are remembered.
const REMEMBERED: usize = 100;

/// One that was cut off.
struct Cut {
    /// When, in nanoseconds since 1970.
    at_ns: i64,
    /// The address of the file or folder that it was of, and its path.
    address: String,
    path: Vec<u8>,
    why: String,
    was_shown: bool,
}

/// What was cut off in this run.
#[derive(Default)]
pub(crate) struct Wrong(Mutex<VecDeque<Cut>>);

impl Wrong {
    /// Remembers that something was cut off.
    pub(crate) fn note(&self, at_ns: i64, address: String, path: Vec<u8>, why: String) {
        let mut all = lock(&self.0);
        all.push_front(Cut { at_ns, address, path, why, was_shown: false });
        all.truncate(REMEMBERED);
    }

    pub(crate) fn is_empty(&self) -> bool {
        lock(&self.0).is_empty()
    }

    /// What no page has shown yet.
    pub(crate) fn news(&self) -> Markup {
        let mut all = lock(&self.0);
        let news = all.iter_mut().filter(|cut| !cut.was_shown);
        let news = news.map(|cut| {
            cut.was_shown = true;
            html! { p class="notice bad" { (words(cut)) } }
        });
        html! { @for one in news { (one) } }
    }

    /// What was cut off of what an address has.
    pub(crate) fn of(&self, address: &str) -> Markup {
        let all = lock(&self.0);
        let own = all.iter().filter(|cut| cut.address == address && cut.was_shown);
        html! { @for cut in own.take(1) { p class="notice bad" { (words(cut)) } } }
    }

    /// All of it, newest first.
    pub(crate) fn all(&self) -> Markup {
        let mut all = lock(&self.0);
        all.iter_mut().for_each(|cut| cut.was_shown = true);
        html! {
            @if all.is_empty() { p { "Nothing." } }
            ul { @for cut in all.iter() { li { (words(cut)) } } }
        }
    }
}

fn words(cut: &Cut) -> Markup {
    html! {
        (times::local(cut.at_ns)) ": the download of "
        a href=(cut.address) { (shown(&cut.path)) }
        " was cut off, and what you have of it is not whole: " (OneLine(&cut.why).to_string()) "."
    }
}

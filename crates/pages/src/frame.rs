//! The frame of every page: head, the server's name, who is signed in, and the end.

use maud::{DOCTYPE, Markup, html};

use crate::{ICON_PATH, STYLE_PATH, form, name};

/// A whole page.
pub struct Page<'a> {
    /// What it is about, for the tab and the heading.
    pub title: &'a str,
    /// The server's name for people.
    pub server: &'a str,
    /// Who is signed in, if somebody is.
    pub account: Option<Account<'a>>,
    /// What is below the heading.
    pub content: Markup,
}

/// Somebody who is signed in.
pub struct Account<'a> {
    /// Their name.
    pub name: &'a str,
    /// What each form of this session carries.
    pub token: &'a str,
    /// Where else they may go: what it is called, and where it is.
    pub ways: &'a [(&'a str, &'a str)],
}

impl Page<'_> {
    /// The page as HTML.
    pub fn html(&self) -> String {
        let Self { title, server, account, content } = self;
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    title { (title) " \u{b7} holdall" }
                    link rel="stylesheet" href=(STYLE_PATH);
                    link rel="icon" type="image/svg+xml" href=(ICON_PATH);
                }
                body {
                    header {
                        a class="home" href="/" { "holdall" }
                        span class="server" { (name(server)) }
                        @if let Some(account) = account { (signed_in(account)) }
                    }
                    main {
                        h1 { (name(title)) }
                        (content)
                    }
                }
            }
        };
        page.into_string()
    }
}

fn signed_in(account: &Account<'_>) -> Markup {
    html! {
        nav {
            @for (words, path) in account.ways { a href=(path) { (words) } }
        }
        span class="account" { (name(account.name)) }
        (form("/sign-out", account.token, &html! { button class="quiet" { "Sign out" } }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_no_script_and_no_style_of_its_own_and_escapes_what_it_is_called() {
        let account = Some(Account { name: "<i>me", token: "t\"k", ways: &[("Jobs", "/jobs")] });
        let content = html! { p { "text" } };
        let page = Page { title: "<u>", server: "\u{202e}nas", account, content }.html();
        assert!(page.starts_with("<!DOCTYPE html><html lang=\"en\">"), "{page}");
        for never in ["<script", "<style", "style=", "onclick", "http:", "https:", "<u>", "<i>"] {
            assert!(!page.contains(never), "{never} in {page}");
        }
        assert!(page.contains("value=\"t&quot;k\"") && !page.contains('\u{202e}'), "{page}");
        assert!(page.contains("<nav><a href=\"/jobs\">Jobs</a></nav>"), "{page}");
        assert!(page.contains("<h1><bdi>&lt;u&gt;</bdi></h1><p>text</p>"), "{page}");
    }

    #[test]
    fn nobody_who_is_not_signed_in_is_offered_to_sign_out() {
        let page = Page { title: "a", server: "b", account: None, content: html! {} }.html();
        assert!(!page.contains("Sign out"));
    }
}

//! Forms: each carries the token of who was shown it, so that no other site can send one in their name.

use maud::{Markup, html};

/// A form that is sent to `action` with `token`; `inside` has its fields and its button.
pub fn form(action: &str, token: &str, inside: &Markup) -> Markup {
    html! {
        form method="post" action=(action) {
            input type="hidden" name="token" value=(token);
            (inside)
        }
    }
}

/// A field with its words above it. `id` is what it is called in the form; `fills` is what a browser may fill in,
/// in the words of HTML's `autocomplete`.
pub fn field(id: &str, words: &str, fills: &str) -> Markup {
    html! {
        label for=(id) { (words) }
        input id=(id) name=(id) type="text" autocomplete=(fills) autocapitalize="none"
            spellcheck="false" maxlength="100" required;
    }
}

/// The same for a number, or a word in its place, with what it is now; one of several beside each other.
pub fn number(id: &str, words: &str, value: &str) -> Markup {
    html! {
        div {
            label for=(id) { (words) }
            input id=(id) name=(id) type="text" inputmode="numeric" autocomplete="off" value=(value) maxlength="12";
        }
    }
}

/// The same for a password, which is not shown.
pub fn password(id: &str, words: &str, fills: &str) -> Markup {
    html! {
        label for=(id) { (words) }
        input id=(id) name=(id) type="password" autocomplete=(fills) maxlength="1000" required;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_has_its_token_and_every_field_its_words() {
        let inside =
            html! { (field("who", "Name", "username")) (password("secret", "Pass", "off")) };
        let form = form("/x", "abc", &inside).into_string();
        assert!(form.contains("name=\"token\" value=\"abc\""), "{form}");
        for id in ["who", "secret"] {
            assert!(form.contains(&format!("<label for=\"{id}\">")), "{form}");
            assert!(form.contains(&format!("id=\"{id}\" name=\"{id}\"")), "{form}");
        }
        assert!(form.contains("type=\"password\""), "{form}");
    }
}

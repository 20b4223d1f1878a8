//! The light beside a thing: one look says whether it is well, by colour, by shape and by word.

use maud::{Markup, html};

/// How well something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Light {
    /// Nothing to judge, as of what was switched off or never began.
    Off,
    /// All is well.
    Good,
    /// Somebody should look at it.
    Look,
    /// Something is wrong.
    Bad,
}

impl Light {
    /// The light as a sign with its word for those who do not see it.
    pub fn markup(self) -> Markup {
        let (class, sign, word) = match self {
            Self::Off => ("light off", "\u{2013}", "nothing to judge"),
            Self::Good => ("light good", "\u{2713}", "well"),
            Self::Look => ("light look", "!", "look at this"),
            Self::Bad => ("light bad", "\u{d7}", "wrong"),
        };
        html! { span class=(class) role="img" aria-label=(word) title=(word) { (sign) } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lights_differ_without_colour_and_the_worst_is_the_greatest() {
        let all = [Light::Off, Light::Good, Light::Look, Light::Bad];
        assert!(all.is_sorted());
        let signs = all.map(|light| light.markup().into_string());
        let text = |markup: &str| markup.split('>').nth(1).unwrap().to_owned();
        let unlike: std::collections::BTreeSet<_> = signs.iter().map(|sign| text(sign)).collect();
        assert_eq!(unlike.len(), all.len(), "{signs:?}");
    }
}

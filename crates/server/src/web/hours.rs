//! Hours of the week in a form.

use maud::{Markup, html};
use serde::Deserialize;

use crate::admin::{Day, Hours};

/// What was filled in.
#[derive(Deserialize)]
pub(super) struct HoursForm {
    from: String,
    to: String,
    days: Days,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Days {
    All,
    Work,
    Weekend,
    /// Those that were chosen before, on a command line.
    Same,
}

impl Days {
    fn of(days: &[Day]) -> Self {
        [Self::All, Self::Work, Self::Weekend]
            .into_iter()
            .find(|one| one.days(&[]) == days)
            .unwrap_or(Self::Same)
    }

    fn days(self, before: &[Day]) -> &[Day] {
        match self {
            Self::All => &Day::ALL,
            Self::Work => &Day::ALL[..5],
            Self::Weekend => &Day::ALL[5..],
            Self::Same => before,
        }
    }
}

impl HoursForm {
    /// What is meant by it, where those of `before` are what was shown.
    pub(super) fn hours(&self, before: &Hours) -> Hours {
        let [from, to] = [&self.from, &self.to].map(|time| time.trim().to_owned());
        Hours { from, to, days: self.days.days(&before.days).to_vec() }
    }
}

/// The fields, with what they are now.
pub(super) fn fields(now: &Hours) -> Markup {
    let time = |id: &str, words: &str, value: &str| {
        html! {
            label for=(id) { (words) }
            input id=(id) name=(id) value=(value) pattern="[0-2][0-9]:[0-5][0-9]" maxlength="5" required;
        }
    };
    let chosen = Days::of(&now.days);
    let day = |value: &str, which: Days, words: &str| html! { option value=(value) selected[which == chosen] { (words) } };
    html! {
        (time("from", "From, as 08:00", &now.from))
        (time("to", "To, as 18:00; where that is earlier, on the next day", &now.to))
        label for="days" { "Days on which it begins" }
        select id="days" name="days" {
            (day("work", Days::Work, "Monday to Friday"))
            (day("weekend", Days::Weekend, "Saturday and Sunday"))
            (day("all", Days::All, "Every day"))
            @if chosen == Days::Same {
                (day("same", Days::Same, &now.days.iter().map(|day| day.word()).collect::<Vec<_>>().join(", ")))
            }
        }
    }
}

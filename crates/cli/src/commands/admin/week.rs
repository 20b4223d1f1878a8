//! Days of a week, as they are written on a command line.

use holdall_server::admin::Day;

/// Days of a week.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Week(pub(super) Vec<Day>);

pub(super) fn parse_days(text: &str) -> Result<Week, String> {
    let at = |word: &str| Day::ALL.iter().position(|day| day.word() == word);
    let wrong = || {
        "days are mon, tue, wed, thu, fri, sat, sun, with commas between, or as mon-fri".to_owned()
    };
    let mut is_meant = [false; Day::ALL.len()];
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = at(first).zip(at(last)).ok_or_else(wrong)?;
        // Over the end of the week, too.
        let length = (last + is_meant.len() - first) % is_meant.len();
        (first..=first + length).for_each(|day| is_meant[day % Day::ALL.len()] = true);
    }
    let days = Day::ALL.into_iter().zip(is_meant).filter(|(_, is_meant)| *is_meant);
    Ok(Week(days.map(|(day, _)| day).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_single_ones_or_from_one_to_another_over_the_end_of_the_week_too() {
        let all = |text: &str| {
            parse_days(text).map(|week| week.0.iter().map(|day| day.word()).collect::<Vec<_>>())
        };
        assert_eq!(all("mon-fri").unwrap(), ["mon", "tue", "wed", "thu", "fri"]);
        assert_eq!(all("sun,sat").unwrap(), ["sat", "sun"]);
        assert_eq!(all("sat-mon").unwrap(), ["mon", "sat", "sun"]);
        for bad in ["", "monday", "mon-", "mon,", "1-5"] {
            assert!(all(bad).is_err(), "{bad:?}");
        }
    }
}

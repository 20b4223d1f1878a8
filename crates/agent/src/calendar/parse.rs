//! Reads a calendar expression.

use jiff::tz::TimeZone;

use super::field::{Field, Steps};
use super::{Calendar, CalendarError, LAST_YEAR};

/// Longer than any that a person writes.
const MAX_BYTES: usize = 500;
/// The first year that an expression may name.
const FIRST_YEAR: u16 = 1970;
/// A day that is counted from the end exists in each month.
const LAST_DAY_FROM_END: u16 = 28;

const WEEKDAYS: [&str; 7] =
    ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

type Parsed<T> = Result<T, &'static str>;

/// Reads an expression of systemd.time(7), but for fractions of a second and `@` with seconds since 1970, which are for
/// events that happen once.
pub(super) fn parse(text: &str) -> Result<Calendar, CalendarError> {
    let refused = |reason| CalendarError { expression: text.chars().take(80).collect(), reason };
    if text.len() > MAX_BYTES {
        return Err(refused("it is too long"));
    }
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let (words, zone) = split_zone(&words);
    let calendar = match words {
        [] => return Err(refused("it is empty")),
        [word] => shorthand(word).map_or_else(|| in_full(words), Ok),
        _ => in_full(words),
    };
    calendar.map(|calendar| Calendar { zone, ..calendar }).map_err(refused)
}

/// The time zone at the end, if there is one.
fn split_zone<'a>(words: &'a [&'a str]) -> (&'a [&'a str], Option<TimeZone>) {
    let Some((last, before)) = words.split_last().filter(|(_, before)| !before.is_empty()) else {
        return (words, None);
    };
    // Names of zones begin with a letter, and so do weekdays, which are not the last of several words.
    let is_name = last.starts_with(|letter: char| letter.is_ascii_alphabetic());
    let zone = match is_name {
        true if last.eq_ignore_ascii_case("utc") => Some(TimeZone::UTC),
        true => TimeZone::get(last).ok(),
        false => None,
    };
    if zone.is_some() { (before, zone) } else { (words, None) }
}

/// What a word such as `hourly` stands for.
fn shorthand(word: &str) -> Option<Calendar> {
    let zero = || Field::only(0);
    let daily = Calendar {
        weekdays: [true; 7],
        years: Field::Any,
        months: Field::Any,
        days: Field::Any,
        days_from_end: false,
        hours: zero(),
        minutes: zero(),
        seconds: zero(),
        zone: None,
    };
    let in_months = |months: &[u16]| Calendar {
        months: Field::of(months),
        days: Field::only(1),
        ..daily.clone()
    };
    Some(match &*word.to_ascii_lowercase() {
        "minutely" => Calendar { hours: Field::Any, minutes: Field::Any, ..daily },
        "hourly" => Calendar { hours: Field::Any, ..daily },
        "daily" => daily,
        "weekly" => Calendar { weekdays: std::array::from_fn(|day| day == 0), ..daily },
        "monthly" => Calendar { days: Field::only(1), ..daily },
        "quarterly" => in_months(&[1, 4, 7, 10]),
        "semiannually" | "semi-annually" | "biannually" | "bi-annually" => in_months(&[1, 7]),
        "annually" | "yearly" => in_months(&[1]),
        _ => return None,
    })
}

/// `[WEEKDAYS[,]] [DATE] [TIME]`, at least one of them.
fn in_full(words: &[&str]) -> Parsed<Calendar> {
    let begins_with_letter = |word: &&&str| word.starts_with(|one: char| one.is_alphabetic());
    let mut rest = words.iter().copied().peekable();
    let weekdays = match words.first().filter(begins_with_letter) {
        Some(word) => {
            rest.next();
            // `Mon, 10:00` is written, too.
            weekdays(if words.len() > 1 { word.strip_suffix(',').unwrap_or(word) } else { word })?
        }
        None => [true; 7],
    };
    let date = rest.next_if(|word| !word.contains(':')).map_or_else(Date::any, Date::parse)?;
    let [hours, minutes, seconds] = rest.next().map_or_else(midnight, time)?;
    if rest.next().is_some() {
        return Err("after weekdays, date, time and zone nothing may follow");
    }
    let Date { years, months, days, days_from_end } = date;
    Ok(Calendar {
        weekdays,
        years,
        months,
        days,
        days_from_end,
        hours,
        minutes,
        seconds,
        zone: None,
    })
}

/// `Mon..Wed,Sat`; the week begins on Monday.
fn weekdays(text: &str) -> Parsed<[bool; 7]> {
    let mut days = [false; 7];
    for part in text.split(',') {
        let ends = part.split_once("..").or_else(|| part.split_once('-'));
        let (first, last) = ends.unwrap_or((part, part));
        let (first, last) = (weekday(first)?, weekday(last)?);
        if first > last {
            return Err("a range of weekdays ends before it begins");
        }
        days.iter_mut().take(last + 1).skip(first).for_each(|day| *day = true);
    }
    Ok(days)
}

fn weekday(name: &str) -> Parsed<usize> {
    let name = name.to_ascii_lowercase();
    let found = WEEKDAYS.iter().position(|day| *day == name || day.get(..3) == Some(&name));
    found.ok_or("weekdays are Mon, Tue, Wed, Thu, Fri, Sat and Sun")
}

struct Date {
    years: Field,
    months: Field,
    days: Field,
    days_from_end: bool,
}

impl Date {
    fn any() -> Parsed<Self> {
        Ok(Self { years: Field::Any, months: Field::Any, days: Field::Any, days_from_end: false })
    }

    /// `YEARS-MONTHS-DAYS` or `MONTHS-DAYS`; a `~` before the days counts them from the end of the month.
    fn parse(text: &str) -> Parsed<Self> {
        let days_from_end = text.contains('~');
        let (before, days) =
            text.rsplit_once(['-', '~']).ok_or("a date is YEAR-MONTH-DAY or MONTH-DAY")?;
        let (years, months) = match before.split_once('-') {
            Some((years, months)) => (self::years(years)?, months),
            None => (Field::Any, before),
        };
        let days = match days_from_end {
            true => field(days, (1, LAST_DAY_FROM_END))?.counted_from_end(days),
            false => field(days, (1, 31))?,
        };
        Ok(Self { years, months: field(months, (1, 12))?, days, days_from_end })
    }
}

impl Field {
    /// Of `7/2`, counted from the end, the days from the seventh last to the last one.
    fn counted_from_end(self, text: &str) -> Self {
        let Self::Of(all) = self else { return self };
        let is_open = |part: &str| part.contains('/') && !part.contains("..");
        let turned = all.into_iter().zip(text.split(',')).map(|(steps, part)| {
            if is_open(part) { Steps { first: 1, last: steps.first, ..steps } } else { steps }
        });
        Self::Of(turned.collect())
    }
}

/// Years of two digits lie between 1970 and 2069.
fn years(text: &str) -> Parsed<Field> {
    let in_full = |year: u16| match year {
        0..=69 => year + 2000,
        70..=99 => year + 1900,
        year => year,
    };
    let Field::Of(all) = field(text, (0, LAST_YEAR))? else { return Ok(Field::Any) };
    let turned = all.into_iter().map(|steps| Steps {
        first: in_full(steps.first),
        last: in_full(steps.last),
        ..steps
    });
    let all: Vec<_> = turned.collect();
    let is_known = |steps: &Steps| FIRST_YEAR <= steps.first && steps.first <= steps.last;
    if all.iter().all(is_known) { Ok(Field::Of(all)) } else { Err("years are 1970 to 2199") }
}

fn midnight() -> Parsed<[Field; 3]> {
    Ok([Field::only(0), Field::only(0), Field::only(0)])
}

/// `HOURS:MINUTES[:SECONDS]`
fn time(text: &str) -> Parsed<[Field; 3]> {
    let mut parts = text.split(':');
    let (Some(hours), Some(minutes), seconds, None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err("a time is HOUR:MINUTE or HOUR:MINUTE:SECOND");
    };
    let seconds = seconds.map_or_else(|| Ok(Field::only(0)), |seconds| field(seconds, (0, 59)))?;
    Ok([field(hours, (0, 23))?, field(minutes, (0, 59))?, seconds])
}

/// `*`, or values, ranges and repetitions with commas between them, within limits that are allowed themselves.
fn field(text: &str, limits: (u16, u16)) -> Parsed<Field> {
    if text == "*" {
        return Ok(Field::Any);
    }
    let all = text.split(',').map(|part| steps(part, limits)).collect::<Parsed<Vec<_>>>()?;
    Ok(Field::Of(all))
}

/// `VALUE`, `FIRST..LAST`, `FIRST/EVERY` or `FIRST..LAST/EVERY`.
fn steps(text: &str, (least, most): (u16, u16)) -> Parsed<Steps> {
    let within = |text: &str| {
        let value = number(text)?;
        if (least..=most).contains(&value) { Ok(value) } else { Err("a number is out of range") }
    };
    let (range, every) = match text.split_once('/') {
        Some((range, every)) => (range, Some(number(every)?)),
        None => (text, None),
    };
    let (first, last) = match range.split_once("..") {
        Some((first, last)) => (within(first)?, Some(within(last)?)),
        None => (within(range)?, None),
    };
    if last.is_some_and(|last| last < first) {
        return Err("a range ends before it begins");
    }
    match every {
        Some(0) => Err("something is repeated every 0"),
        Some(every) => Ok(Steps { first, last: last.unwrap_or(most), every }),
        None => Ok(Steps { first, last: last.unwrap_or(first), every: 1 }),
    }
}

/// A number of at most four digits.
fn number(text: &str) -> Parsed<u16> {
    let is_number = (1..=4).contains(&text.len()) && text.bytes().all(|one| one.is_ascii_digit());
    let number = is_number.then(|| text.parse().ok()).flatten();
    number.ok_or("a part is neither a number, *, a list, FIRST..LAST nor FIRST/EVERY")
}

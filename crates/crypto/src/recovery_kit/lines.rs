//! Taking a typed page apart, and finding the line that has a mistake.

use std::collections::BTreeMap;

use zeroize::Zeroizing;

use super::label::{Label, check_group};
use super::{END, VERSIONS};
use crate::CryptoError;

/// Most bytes of a kit's text.
const TEXT_MAX_BYTES: usize = 16 << 10;

/// A line of the kit with the lines that continue it.
pub(super) struct Field {
    label: Label,
    /// Counted from 1.
    pub(super) line: usize,
    /// What was typed, until the check tells how its lines belong together; then what it stands for.
    pub(super) value: Zeroizing<String>,
}

impl Field {
    pub(super) fn parse<T, E: ToString>(
        &self,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<T, CryptoError> {
        parse(&self.value).map_err(|error| mistake(self.line, error.to_string()))
    }
}

/// All lines of a kit, in the order of the page.
pub(super) struct Fields {
    fields: Vec<Field>,
    last_line: usize,
}

impl Fields {
    pub(super) fn all(&self, label: Label) -> impl Iterator<Item = &Field> {
        self.fields.iter().filter(move |field| field.label == label)
    }

    pub(super) fn one(&self, label: Label) -> Result<&Field, CryptoError> {
        self.all(label).next().ok_or_else(|| {
            mistake(self.last_line, format!("the kit ends without a line {:?}", label.text()))
        })
    }
}

pub(super) fn mistake(line: usize, problem: impl Into<String>) -> CryptoError {
    CryptoError::RecoveryKit { line, problem: problem.into() }
}

/// Takes the text apart into labelled values, normalised and in the order of the page.
pub(super) fn split(text: &str) -> Result<Fields, CryptoError> {
    if text.len() > TEXT_MAX_BYTES {
        return Err(mistake(1, format!("longer than {TEXT_MAX_BYTES} bytes: no recovery kit")));
    }
    let mut fields: Vec<Field> = Vec::new();
    let mut last_line = 1;
    for (line, content) in (1..).zip(text.lines()) {
        let content = content.trim();
        last_line = line;
        if content.eq_ignore_ascii_case(END) {
            break;
        }
        match label_of(content) {
            Some((Label::Version, value)) if fields.is_empty() => {
                fields.push(Field { label: Label::Version, line, value });
            }
            _ if fields.is_empty() || content.is_empty() => {}
            Some((label, value)) => fields.push(Field { label, line, value }),
            None => continue_line(&mut fields, line, content)?,
        }
    }
    if fields.is_empty() {
        return Err(mistake(1, "this is no recovery kit: no line starts with \"Version:\""));
    }
    for field in fields.iter_mut().filter(|field| !field.label.has_words()) {
        field.value = field.label.normal(&field.value);
    }
    fields.sort_by_key(|field| field.label);
    Ok(Fields { fields, last_line })
}

fn label_of(content: &str) -> Option<(Label, Zeroizing<String>)> {
    let (name, value) = content.split_once(':')?;
    let label = Label::ALL.into_iter().find(|label| label.text().eq_ignore_ascii_case(name.trim()));
    label.map(|label| (label, value.to_owned().into()))
}

fn continue_line(fields: &mut [Field], line: usize, content: &str) -> Result<(), CryptoError> {
    match fields.last_mut() {
        Some(field) if field.label.goes_on_with(content) => {
            // A new string each time: growing in place would leave copies of a secret behind.
            let longer = [&field.value[..], "\n", content].concat();
            field.value = longer.into();
            Ok(())
        }
        _ => Err(mistake(line, "not a line of a recovery kit")),
    }
}

/// Checks the version, that nothing is given twice, and the check groups, which tell what a value of several lines is.
pub(super) fn check(fields: &mut Fields) -> Result<(), CryptoError> {
    let version = fields.one(Label::Version)?;
    if !VERSIONS.contains(&version.value.as_str()) {
        let problem =
            format!("version {:?}; this program reads {}", *version.value, VERSIONS.join(" and "));
        return Err(mistake(version.line, problem));
    }
    let mut lines = BTreeMap::new();
    for field in fields.fields.iter().filter(|field| !field.label.may_repeat()) {
        if let Some(first) = lines.insert(field.label, field.line) {
            let problem = format!("{:?} stands in line {first} already", field.label.text());
            return Err(mistake(field.line, problem));
        }
    }
    let check = fields.one(Label::Check)?;
    let (check_line, groups) = (check.line, check.value.chars().collect::<Vec<_>>());
    let mut groups = groups.chunks(4);
    for field in fields.fields.iter_mut().filter(|field| field.label != Label::Check) {
        let label = field.label.text();
        let Some(group) = groups.next() else {
            let problem = format!("there is no group for {label:?} of line {}", field.line);
            return Err(mistake(check_line, problem));
        };
        let group: String = group.iter().collect();
        let fits = |value: &Zeroizing<String>| check_group(field.label, value) == group;
        let Some(value) = field.label.readings(&field.value).find(fits) else {
            let problem = format!(
                "{label:?} does not fit its check {group:?} of line {check_line}: one of them is \
                 mistyped, or a line is missing"
            );
            return Err(mistake(field.line, problem));
        };
        field.value = value;
    }
    match groups.next() {
        None => Ok(()),
        Some(_) => Err(mistake(check_line, "more groups than lines: a line is missing")),
    }
}

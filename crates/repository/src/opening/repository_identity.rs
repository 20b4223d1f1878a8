//! Which repository a directory holds, where its configuration and wrappings are those of more than one: a file or a
//! whole folder was copied into the wrong place.
//!
//! The newest record decides that is of one of them. A single record of another repository decides nothing as long as
//! there is one that fits.

use holdall_format::RepositoryId;

/// What the records in a directory say of whose they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecordsOf {
    /// The newest record that is of a candidate is of this one.
    Candidate(RepositoryId),
    /// None is of a candidate, and the newest is of this repository.
    Another(RepositoryId),
    /// No record can be read.
    Nobody,
}

impl RecordsOf {
    /// Asks whose each record is, from the newest on, until one is of one of the `candidates`: as a rule, one record.
    ///
    /// # Errors
    /// The first one of the records.
    pub(crate) fn newest_first<E>(
        repositories: impl Iterator<Item = Result<RepositoryId, E>>,
        candidates: &[RepositoryId],
    ) -> Result<Self, E> {
        let mut other = None;
        for repository in repositories {
            let repository = repository?;
            if candidates.contains(&repository) {
                return Ok(Self::Candidate(repository));
            }
            other = other.or(Some(repository));
        }
        Ok(other.map_or(Self::Nobody, Self::Another))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file of another repository that was copied here by mistake must not lock everybody out.
    #[test]
    fn the_newest_record_that_fits_decides_and_no_other_one() {
        let [own, other, third] = [1, 2, 3].map(|byte| RepositoryId::from_bytes([byte; 16]));
        let told = |candidates: &[_]| {
            let records = [third, own, other, own].into_iter().map(Ok::<_, ()>);
            RecordsOf::newest_first(records, candidates).unwrap()
        };
        assert_eq!(told(&[other, own]), RecordsOf::Candidate(own));
        assert_eq!(told(&[other]), RecordsOf::Candidate(other));
        assert_eq!(told(&[]), RecordsOf::Another(third));
        let none = std::iter::empty::<Result<_, ()>>();
        assert_eq!(RecordsOf::newest_first(none, &[own]), Ok(RecordsOf::Nobody));
    }
}

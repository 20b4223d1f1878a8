//! Whose snapshots `latest` is about on a computer that backed nothing up itself, such as one that replaces a lost one.

use holdall_format::MachineId;

use crate::Snapshot;

/// Whose snapshots `latest` is about: those of this machine, `own`; where it has none, those of the only machine that made
/// some, or else that copied some. A copy is only meant where there is nothing that it could hide.
pub fn whose_latest<'a>(
    own: MachineId,
    listed: impl IntoIterator<Item = &'a Snapshot>,
) -> MachineId {
    let makers: Vec<_> = listed.into_iter().map(|one| (one.machine, one.is_copy())).collect();
    only_maker(own, &makers)
}

/// The same by the machine of each snapshot, and whether it is a copy.
fn only_maker(own: MachineId, makers: &[(MachineId, bool)]) -> MachineId {
    if makers.iter().any(|(machine, _)| *machine == own) {
        return own;
    }
    let some_made = makers.iter().any(|(_, is_copy)| !is_copy);
    let mut machines = makers.iter().filter(|(_, is_copy)| !some_made || !is_copy);
    match machines.next() {
        Some((first, _)) if machines.all(|(machine, _)| machine == first) => *first,
        _ => own,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latest_is_of_another_machine_only_where_this_one_has_nothing_and_only_one_made_something() {
        let [own, one, two] = [1, 2, 3].map(|byte| MachineId::from_bytes([byte; 16]));
        let (made, copy) = (|machine| (machine, false), |machine| (machine, true));
        assert_eq!(only_maker(own, &[made(one), copy(own)]), own);
        assert_eq!(only_maker(own, &[made(one), copy(two), made(one)]), one);
        assert_eq!(only_maker(own, &[made(one), made(two)]), own);
        assert_eq!(only_maker(own, &[copy(two), copy(two)]), two);
        assert_eq!(only_maker(own, &[copy(one), copy(two)]), own);
        assert_eq!(only_maker(own, &[]), own);
    }
}

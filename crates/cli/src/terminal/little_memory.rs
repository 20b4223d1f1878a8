//! A limit on the memory of this process that a password's stretching would break: the system ends what breaks it,
//! without a word.

use anyhow::Result;
use holdall_sys::memory;

use crate::exit::{Exit, Refusal};
use crate::terminal::output::size;

/// What a process takes beside the stretching of a password.
const BESIDE_BYTES: u64 = 16 << 20;

/// Refuses a password that this process has too little memory to stretch: it would be ended in the middle.
///
/// # Errors
/// [`Refusal`] says how much is needed, and how much there is.
pub(crate) fn fits_memory(needed: u64) -> Result<()> {
    let needed_in_all = needed.saturating_add(BESIDE_BYTES);
    let has_addresses = memory::addresses_left_bytes().is_none_or(|left| left >= needed_in_all);
    let limit = memory::limit_bytes();
    match limit.filter(|limit| !has_addresses || needed_in_all > *limit) {
        Some(limit) => {
            let message = format!(
                "a password takes {} of memory, and this process may have {} in all",
                size(needed),
                size(limit)
            );
            Err(Refusal::new(Exit::Failed, message)
                .hint(
                    "give it more (MemoryMax of a service, the limit of a container, `ulimit -v`), or open the \
                     repository with a key (--identity)",
                )
                .into())
        }
        None => Ok(()),
    }
}

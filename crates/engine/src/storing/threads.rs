//! How many threads ask and send.

/// Questions under way at once.
pub(super) const ASKERS: usize = 3;
/// Puts that wait for the server's disk while the streams carry others: without them the wire would
/// rest meanwhile.
const PUTS_AT_THE_DISK: usize = 2;

/// Threads that send, for so many streams.
pub(super) fn senders(streams: usize) -> usize {
    streams.clamp(1, 8) + PUTS_AT_THE_DISK
}

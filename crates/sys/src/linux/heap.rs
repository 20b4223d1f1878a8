//! How the C library keeps freed memory.
//!
//! glibc gives threads heaps of their own, eight for each core, and each of them keeps what was freed in it.
//! Where many threads take large buffers now and then, as those of a server do, most of its memory is such
//! rests. Other C libraries have one heap anyway.

#![allow(unsafe_code, reason = "the C library is told a number")]

/// Lets threads share so many heaps. Holds for heaps that are not there yet, so it is called first.
pub fn share(heaps: usize) {
    #[cfg(target_env = "gnu")]
    {
        let heaps = i32::try_from(heaps).unwrap_or(i32::MAX);
        // SAFETY: takes two numbers, and locks what it changes. One that it does not know changes nothing.
        unsafe { libc::mallopt(libc::M_ARENA_MAX, heaps) };
    }
}

//! Counts, times or records a program's calls of its allocator.
//!
//! The meter is a shared object that is preloaded *before* the allocator, whichever it is, and
//! finds that allocator's functions as the dynamic linker's next: so all allocators, the C
//! library's included, have the same layer in front of them. The meter writes its results into a
//! file that the starter of the program has made ([`format::prepare`]) and named in
//! `HEARTH_METER_FILE`; the file is mapped, so its contents survive however the program ends. Of
//! several processes the first one is measured: children pass through.
//!
//! [`Mode::Count`](format::Mode::Count) is the source's call counter, and adds what the allocator
//! provided by its own account. [`Mode::Time`](format::Mode::Time) has the time of each call,
//! between serialising stamps. [`Mode::Trace`](format::Mode::Trace) has each block's begin and end,
//! from which sizes, times between requests and holding times follow.
//!
//! The source serialises by `cpuid`, which traps in a virtual machine and takes longer there than
//! what is measured; here loads are fenced around the stamps.

pub mod format;
pub mod preloaded;

//! Counters of the processor and of the kernel, for the calling thread.
//!
//! Virtual machines often have none of the processor's; the kernel's are almost always there. A
//! missing counter is an error with its reason, never a zero.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::FromRawFd;

use crate::refused::{Reason, Refused};

/// An event that can be counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// Cycles of the core while the thread ran.
    Cycles,
    /// Instructions completed.
    Instructions,
    /// Accesses that missed the last cache.
    CacheMisses,
    /// Accesses that reached the last cache.
    CacheReferences,
    /// Branches predicted wrongly.
    BranchMisses,
    /// Nanoseconds on a core, by the kernel's account.
    TaskClock,
    /// Page faults of all kinds.
    PageFaults,
    /// Times that the thread left its core.
    ContextSwitches,
    /// Times that the thread moved to another core.
    Migrations,
}

impl Event {
    /// All of them, the processor's first.
    pub const ALL: [Event; 9] = [
        Event::Cycles,
        Event::Instructions,
        Event::CacheMisses,
        Event::CacheReferences,
        Event::BranchMisses,
        Event::TaskClock,
        Event::PageFaults,
        Event::ContextSwitches,
        Event::Migrations,
    ];

    /// Type and number from `<linux/perf_event.h>`.
    fn code(self) -> (u32, u64) {
        match self {
            Event::Cycles => (TYPE_HARDWARE, 0),
            Event::Instructions => (TYPE_HARDWARE, 1),
            Event::CacheReferences => (TYPE_HARDWARE, 2),
            Event::CacheMisses => (TYPE_HARDWARE, 3),
            Event::BranchMisses => (TYPE_HARDWARE, 5),
            Event::TaskClock => (TYPE_SOFTWARE, 1),
            Event::PageFaults => (TYPE_SOFTWARE, 2),
            Event::ContextSwitches => (TYPE_SOFTWARE, 3),
            Event::Migrations => (TYPE_SOFTWARE, 4),
        }
    }
}

const TYPE_HARDWARE: u32 = 0;
const TYPE_SOFTWARE: u32 = 1;
/// Returns the times enabled and running with the value, to see whether the counter was shared.
const FORMAT_TIMES: u64 = 0b11;
/// Bits of the attributes' flag word: `exclude_kernel` and `exclude_hv`.
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;

/// The first version of `struct perf_event_attr`, which every kernel takes: 64 bytes.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    period: u64,
    sample: u64,
    read_format: u64,
    flags: u64,
    wakeup: u32,
    breakpoint: u32,
    breakpoint_address: u64,
}

/// A running count for the thread that opened it.
#[derive(Debug)]
pub struct Counter {
    file: File,
    event: Event,
    user_only: bool,
}

/// A reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// Events since the counter was opened, as far as it ran.
    pub value: u64,
    /// Nanoseconds since it was opened.
    pub enabled_ns: u64,
    /// Nanoseconds for which it counted; fewer if counters were multiplexed.
    pub running_ns: u64,
}

impl Counter {
    /// Counts for the calling thread, wherever it runs, from now on. Where the kernel's part may
    /// not be counted, it counts the program's part only: see [`Counter::is_user_only`].
    ///
    /// # Errors
    /// Absent: the machine (often a virtual one) or the kernel has no such counter. Permission:
    /// `perf_event_paranoid` or a filter forbids it.
    pub fn open(event: Event) -> Result<Counter, Refused> {
        let whole = open(event, 0);
        let (result, user_only) = match whole {
            Err(error) if Reason::of(&error) == Reason::Permission => {
                (open(event, EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR), true)
            }
            other => (other, false),
        };
        let file = result.map_err(|error| {
            let next = match Reason::of(&error) {
                Reason::Permission => "lower /proc/sys/kernel/perf_event_paranoid to 2 or less",
                _ => "go without; every measurement works by time alone",
            };
            Refused::new("count", format!("{event:?}"), &error, next)
        })?;
        Ok(Counter {
            file,
            event,
            user_only,
        })
    }

    /// The event that it counts.
    pub fn event(&self) -> Event {
        self.event
    }

    /// True if the kernel's part is left out.
    pub fn is_user_only(&self) -> bool {
        self.user_only
    }

    /// The count so far.
    ///
    /// # Errors
    /// The system refuses to read it: it went away with its core.
    pub fn read(&self) -> io::Result<Count> {
        let mut bytes = [0u8; 24];
        (&self.file).read_exact(&mut bytes)?;
        let word = |at: usize| {
            let mut word = [0u8; 8];
            word.copy_from_slice(&bytes[at..at + 8]);
            u64::from_ne_bytes(word)
        };
        Ok(Count {
            value: word(0),
            enabled_ns: word(8),
            running_ns: word(16),
        })
    }
}

fn open(event: Event, flags: u64) -> io::Result<File> {
    let (kind, config) = event.code();
    let attributes = Attributes {
        kind,
        size: size_of::<Attributes>() as u32,
        config,
        read_format: FORMAT_TIMES,
        flags,
        ..Attributes::default()
    };
    // The close-on-exec flag of the call, from the same header.
    const CLOSE_ON_EXEC: usize = 1 << 3;
    // SAFETY: the structure has the size it states, and is only read. The rest: this thread, any
    // core, no group.
    let descriptor = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &attributes,
            0,
            -1,
            -1,
            CLOSE_ON_EXEC,
        )
    };
    let descriptor = i32::try_from(descriptor).unwrap_or(-1);
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and nobody else's.
    Ok(unsafe { File::from_raw_fd(descriptor) })
}

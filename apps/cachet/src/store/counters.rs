//! What is counted. Each worker has counters of its own, so that counting is a plain addition.

use std::sync::atomic::{AtomicU64, Ordering};

/// A number that one thread adds to, and all may read.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// One more.
    #[inline]
    pub fn bump(&self) {
        self.add(1);
    }

    /// So many more.
    #[inline]
    pub fn add(&self, more: u64) {
        // Relaxed, and no atomic addition: one thread adds, and what others see may be a little old.
        self.0.store(
            self.0.load(Ordering::Relaxed).wrapping_add(more),
            Ordering::Relaxed,
        );
    }

    /// So many less.
    #[inline]
    pub fn subtract(&self, less: u64) {
        self.0.store(
            self.0.load(Ordering::Relaxed).wrapping_sub(less),
            Ordering::Relaxed,
        );
    }

    /// What it shows.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// From 0 on. What its thread adds at the same moment may be lost.
    pub fn reset(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// What one worker counts.
        #[derive(Debug, Default)]
        #[repr(align(128))]
        pub struct Counters {
            $($(#[$doc])* pub $name: Counter,)*
        }

        impl Counters {
            /// Adds what another has counted.
            pub fn absorb(&self, other: &Counters) {
                $(self.$name.add(other.$name.get());)*
            }

            /// All from 0 on.
            pub fn reset(&self) {
                $(self.$name.reset();)*
            }
        }
    };
}

counters! {
    /// Keys asked for.
    cmd_get,
    /// Values sent to be stored.
    cmd_set,
    /// Everything told to be forgotten.
    cmd_flush,
    /// Times changed, by `touch` and by who gets and touches.
    cmd_touch,
    /// Meta commands.
    cmd_meta,
    /// Keys found.
    get_hits,
    /// Keys not found.
    get_misses,
    /// Of these, keys whose time had come.
    get_expired,
    /// Of these, keys that were told to be forgotten.
    get_flushed,
    /// Deleted.
    delete_hits,
    /// Not found to be deleted.
    delete_misses,
    /// Counted up.
    incr_hits,
    /// Not found to be counted up.
    incr_misses,
    /// Counted down.
    decr_hits,
    /// Not found to be counted down.
    decr_misses,
    /// Compared and stored.
    cas_hits,
    /// Not found to be compared.
    cas_misses,
    /// Compared and found to be changed.
    cas_badval,
    /// Times changed.
    touch_hits,
    /// Not found to be touched.
    touch_misses,
    /// Too large.
    store_too_large,
    /// There was no memory.
    store_no_memory,
    /// Stored.
    total_items,
    /// Bytes received.
    bytes_read,
    /// Bytes sent.
    bytes_written,
    /// Times that a connection had more to do than it may at once.
    conn_yields,
    /// Connections opened.
    total_connections,
    /// Connections closed.
    closed_connections,
    /// Connections refused.
    rejected_connections,
}

//! Counters. Each worker has its own, so that counting is a plain addition.

use std::sync::atomic::{AtomicU64, Ordering};

/// A number that one thread adds to, and all may read.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds one.
    #[inline]
    pub fn bump(&self) {
        self.add(1);
    }

    /// Adds a number.
    #[inline]
    pub fn add(&self, more: u64) {
        // Relaxed, and no atomic addition: one thread adds, and others may see a value a little
        // old.
        self.0.store(
            self.0.load(Ordering::Relaxed).wrapping_add(more),
            Ordering::Relaxed,
        );
    }

    /// Subtracts a number.
    #[inline]
    pub fn subtract(&self, less: u64) {
        self.0.store(
            self.0.load(Ordering::Relaxed).wrapping_sub(less),
            Ordering::Relaxed,
        );
    }

    /// Sets it.
    #[inline]
    pub fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// The present value.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Resets it. An addition of its thread at the same moment may be lost.
    pub fn reset(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Counters of one worker.
        #[derive(Debug, Default)]
        #[repr(align(128))]
        pub struct Counters {
            $($(#[$doc])* pub $name: Counter,)*
        }

        impl Counters {
            /// Adds another worker's counters.
            pub fn absorb(&self, other: &Counters) {
                $(self.$name.add(other.$name.get());)*
            }

            /// Resets all.
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
    /// Flushes of everything.
    cmd_flush,
    /// Changes of expiry, by `touch` and by get-and-touch.
    cmd_touch,
    /// Meta commands.
    cmd_meta,
    /// Keys found.
    get_hits,
    /// Keys not found.
    get_misses,
    /// Keys found expired.
    get_expired,
    /// Keys found flushed.
    get_flushed,
    /// Deletions.
    delete_hits,
    /// Deletions of missing keys.
    delete_misses,
    /// Increments.
    incr_hits,
    /// Increments of missing keys.
    incr_misses,
    /// Decrements.
    decr_hits,
    /// Decrements of missing keys.
    decr_misses,
    /// Successful compare-and-store.
    cas_hits,
    /// Compare-and-store of missing keys.
    cas_misses,
    /// Compare-and-store of changed values.
    cas_badval,
    /// Changes of expiry.
    touch_hits,
    /// Changes of expiry of missing keys.
    touch_misses,
    /// Values refused as too large.
    store_too_large,
    /// Values refused for lack of memory.
    store_no_memory,
    /// Values stored.
    total_items,
    /// Attempts to authenticate.
    auth_cmds,
    /// Attempts that failed.
    auth_errors,
    /// Bytes received.
    bytes_read,
    /// Bytes sent.
    bytes_written,
    /// Times that a connection had more to do than one turn allows.
    conn_yields,
    /// Connections closed because they spoke HTTP.
    conn_http,
    /// Connections opened.
    total_connections,
    /// Connections closed.
    closed_connections,
    /// Connections refused.
    rejected_connections,
}

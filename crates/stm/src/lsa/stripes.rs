//! Stripe locks: one word for all words of memory that share a stripe.
//!
//! ```text
//!  63   62                                     3   2           0
//! ┌───┬─────────────────────────────────────────┬───────────────┐
//! │ 0 │ version: the clock at the last commit   │ incarnation   │   free
//! ├───┼─────────────────────────────────────────┴───────────────┤
//! │ 1 │ address of the owner's descriptor                        │   held
//! └───┴─────────────────────────────────────────────────────────┘
//! ```
//!
//! A free lock at or below a snapshot's limit is a smaller number, a held or newer one a larger
//! number: one comparison tells. The incarnation counts attempts that wrote to the stripe and
//! were undone; so a reader that saw a value of such an attempt finds the lock changed.

use hearth_atomics::AtomicU64;

/// Locks of an instance. 2^16 make 512 KiB, and two stripes share one only if they are a multiple
/// of 4 MiB apart.
#[cfg(not(loom))]
const COUNT: usize = if cfg!(miri) { 1 << 6 } else { 1 << 16 };
#[cfg(loom)]
const COUNT: usize = 4;

/// Bytes of a stripe, as a power of two: 64, a cache line, which two writers would share anyway.
/// With 32, the size of a slab's node, sums over slices took a third longer and trees as long. In a
/// model each word has a lock of its own.
#[cfg(not(loom))]
const STRIPE_LOG2: u32 = 6;
#[cfg(loom)]
const STRIPE_LOG2: u32 = 3;

/// The lock is held, and the rest of its word names the owner.
pub(crate) const HELD: u64 = 1 << 63;

/// The table of an instance's locks.
pub(crate) struct Stripes(Box<[AtomicU64; COUNT]>);

impl Stripes {
    pub(crate) fn new() -> Stripes {
        let locks: Box<[AtomicU64]> = (0..COUNT).map(|_| AtomicU64::new(0)).collect();
        match locks.try_into() {
            Ok(locks) => Stripes(locks),
            Err(locks) => unreachable!("the table has {} locks", locks.len()),
        }
    }

    /// The lock of a stripe; its number may come from `number` or be any other.
    #[inline(always)]
    pub(crate) fn lock(&self, number: u32) -> &AtomicU64 {
        &self.0[number as usize % COUNT]
    }
}

/// The number of the lock for an address.
#[inline(always)]
pub(crate) fn number(address: usize) -> u32 {
    wrap(stripe(address))
}

/// The number of the lock for a stripe.
#[inline(always)]
pub(crate) fn wrap(stripe: usize) -> u32 {
    (stripe % COUNT) as u32
}

/// The stripe of an address, before stripes share locks.
#[inline(always)]
pub(crate) fn stripe(address: usize) -> usize {
    address >> STRIPE_LOG2
}

/// An address in the stripes of a lock, for reports.
pub(crate) fn site(number: u32) -> usize {
    (number as usize) << STRIPE_LOG2
}

/// The name of a descriptor in the locks that it holds.
pub(crate) fn held_by(descriptor: usize) -> u64 {
    descriptor as u64 | HELD
}

/// The descriptor that holds a lock; zero if the lock is free.
pub(crate) fn owner(lock: u64) -> usize {
    if lock & HELD == 0 {
        0
    } else {
        (lock & !HELD) as usize
    }
}

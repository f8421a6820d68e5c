//! The state word of a component's offer: it decides which thread completes the wait.
//!
//! ```text
//!            open              claim             complete              rest
//!   Idle ─────────────▶ Open ─────────▶ Matched ───────────▶ Completed ─────▶ Idle
//!    │                  │ ▲────reopen────┘ │ ▲ ▲
//!    │                  │          hold    ▼ │ │
//!    │                  │              Held ─┘ │  claim_held
//!    │ open_outside     │                │     │
//!    └──────▶ Outside ──┼────────────────┼─────┘  claim_outside
//!                 ▼     ▼                ▼   interrupt         rest
//!                 Interrupted ──────────────────────────────────▶ Idle
//! ```
//!
//! `open`, `open_outside` and `rest` are the component's own; the others belong to the thread that
//! wins the transition. *Read* is a short stay of *Open* and *Held*: a collector reads what the
//! parked component refers to, and whoever wants to win or interrupt the offer waits until it has
//! ended ([`OfferState::read`]). From *Matched* until *Completed*, and from *Interrupted*, only the
//! winner may touch the component, and it must wake the component exactly once. The word carries
//! the number of the operation (its *round*), so that a ticket of an earlier one claims nothing.

use crate::ground::sync::{AtomicU64, Ordering, fence, yield_now};

const TAG_BITS: u32 = 3;
const TAG_MASK: u64 = (1 << TAG_BITS) - 1;

/// The stage of an offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum Stage {
    Idle = 0,
    Open = 1,
    Matched = 2,
    Held = 3,
    Outside = 4,
    Completed = 5,
    Interrupted = 6,
    Read = 7,
}

impl Stage {
    fn of(word: u64) -> Stage {
        match word & TAG_MASK {
            0 => Stage::Idle,
            1 => Stage::Open,
            2 => Stage::Matched,
            3 => Stage::Held,
            4 => Stage::Outside,
            5 => Stage::Completed,
            6 => Stage::Interrupted,
            7 => Stage::Read,
            tag => unreachable!("an offer has no stage {tag}"),
        }
    }
}

fn word(round: u64, stage: Stage) -> u64 {
    round << TAG_BITS | stage as u64
}

/// Proof of a won offer. Must end in `complete`, `reopen` or `hold`.
#[must_use]
#[derive(Debug)]
pub(crate) struct Claim {
    round: u64,
}

impl Claim {
    /// The operation's number, for a ticket.
    pub(crate) fn round(&self) -> u64 {
        self.round
    }
}

/// A wait for a partner, from which nobody has woken the component: the word of that time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sleep(u64);

impl Sleep {
    /// Whether it waits for a partner to come, and not for one to let it go.
    pub(crate) fn is_open(self) -> bool {
        Stage::of(self.0) == Stage::Open
    }
}

/// A component that nobody wakes while this lives.
#[must_use]
pub(crate) struct Reading<'a> {
    state: &'a OfferState,
    sleep: Sleep,
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        // Release: the reading happens before what the next winner does.
        self.state.word.store(self.sleep.0, Ordering::Release);
    }
}

/// The state word.
pub(crate) struct OfferState {
    word: AtomicU64,
}

impl OfferState {
    pub(crate) fn new() -> OfferState {
        OfferState {
            word: AtomicU64::new(word(0, Stage::Idle)),
        }
    }

    /// The current stage, for reports; stale at once. Never *Read*.
    pub(crate) fn stage(&self) -> Stage {
        Stage::of(self.seen(Ordering::Acquire))
    }

    /// The word, read with this order, once no collector reads the component.
    fn seen(&self, order: Ordering) -> u64 {
        loop {
            let seen = self.word.load(order);
            if Stage::of(seen) != Stage::Read {
                return seen;
            }
            yield_now();
        }
    }

    /// The component's sleep, if it waits for a partner, open or held. While it stays the same, the
    /// component has not run.
    pub(crate) fn sleep(&self) -> Option<Sleep> {
        let seen = self.word.load(Ordering::Acquire);
        matches!(Stage::of(seen), Stage::Open | Stage::Held).then_some(Sleep(seen))
    }

    /// Keeps the component asleep while the result lives; None if this sleep is over, or another
    /// collector reads the component.
    pub(crate) fn read(&self, sleep: Sleep) -> Option<Reading<'_>> {
        let reads = word(sleep.0 >> TAG_BITS, Stage::Read);
        // Acquire pairs with the store that published. Nobody reads what this thread writes.
        self.word
            .compare_exchange(sleep.0, reads, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
            // Made only then: its end opens the offer again.
            .then(|| Reading { state: self, sleep })
    }

    /// Idle → Open. The caller checks for a stop request afterwards: a fence orders this store
    /// before that load, another the request's store before `interrupt`'s load; so at least one
    /// side sees the other.
    pub(crate) fn open(&self, round: u64) {
        self.publish(word(round, Stage::Open));
    }

    /// Idle → Outside: waits for something other than a channel. Check for a stop request
    /// afterwards.
    pub(crate) fn open_outside(&self, round: u64) {
        self.publish(word(round, Stage::Outside));
    }

    fn publish(&self, word: u64) {
        // Release: a claimer must see the offer written before. Claimers under a hub's lock have
        // that order anyway; tickets and stoppers do not.
        self.word.store(word, Ordering::Release);
        fence(Ordering::SeqCst);
    }

    /// Open → Matched, by a partner or by the component itself.
    pub(crate) fn claim(&self) -> Option<Claim> {
        let seen = self.seen(Ordering::Relaxed);
        if Stage::of(seen) != Stage::Open {
            return None;
        }
        self.win(seen >> TAG_BITS, Stage::Open, Stage::Matched)
    }

    /// Held → Matched, by the holder of the ticket.
    pub(crate) fn claim_held(&self, ticket: u64) -> Option<Claim> {
        self.win(ticket, Stage::Held, Stage::Matched)
    }

    /// Outside → Matched, by the holder of the ticket.
    pub(crate) fn claim_outside(&self, ticket: u64) -> Option<Claim> {
        self.win(ticket, Stage::Outside, Stage::Matched)
    }

    fn win(&self, round: u64, from: Stage, to: Stage) -> Option<Claim> {
        // Acquire pairs with the store that published; Release lets a later winner (after reopen or
        // hold) see this winner's writes.
        while let Err(seen) = self.word.compare_exchange(
            word(round, from),
            word(round, to),
            Ordering::AcqRel,
            Ordering::Relaxed,
        ) {
            if Stage::of(seen) != Stage::Read && seen != word(round, from) {
                return None;
            }
            // A collector reads the component, or has just done so.
            self.seen(Ordering::Relaxed);
        }
        Some(Claim { round })
    }

    /// Matched → Open: the other half of a match could not be won. Check for a stop request
    /// afterwards.
    pub(crate) fn reopen(&self, claim: Claim) {
        self.publish(word(claim.round, Stage::Open));
    }

    /// Matched → Held, until the ticket's holder lets go. Check for a stop request afterwards.
    pub(crate) fn hold(&self, claim: Claim) {
        self.publish(word(claim.round, Stage::Held));
    }

    /// Claims one's own offer without opening it: no other thread can know of it yet.
    pub(crate) fn claim_unopened(&self, round: u64) -> Claim {
        Claim { round }
    }

    /// Open, Held or Outside → Interrupted, by a stopper. Call after storing the request and a
    /// sequentially consistent fence.
    #[must_use]
    pub(crate) fn interrupt(&self) -> bool {
        self.interrupt_from(&[Stage::Open, Stage::Held, Stage::Outside])
    }

    /// Open or Outside → Interrupted: cancels a wait that is still unmatched.
    #[must_use]
    pub(crate) fn call_off(&self) -> bool {
        self.interrupt_from(&[Stage::Open, Stage::Outside])
    }

    fn interrupt_from(&self, stages: &[Stage]) -> bool {
        let mut seen = self.seen(Ordering::Relaxed);
        loop {
            if !stages.contains(&Stage::of(seen)) {
                return false;
            }
            let next = word(seen >> TAG_BITS, Stage::Interrupted);
            // A claim taken back in between, or a collector's look, fails the exchange: retry.
            match self
                .word
                .compare_exchange(seen, next, Ordering::AcqRel, Ordering::Relaxed)
            {
                Ok(_) => return true,
                Err(_) => seen = self.seen(Ordering::Relaxed),
            }
        }
    }

    /// Matched → Completed. The winner wakes the component next.
    pub(crate) fn complete(&self, claim: Claim) {
        self.word
            .store(word(claim.round, Stage::Completed), Ordering::Release);
    }

    /// Completed, Interrupted or self-Matched → Idle, by the awake component.
    pub(crate) fn rest(&self) {
        self.word.store(word(0, Stage::Idle), Ordering::Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_reading_that_comes_too_late_changes_nothing() {
        let state = OfferState::new();
        state.open(1);
        let sleep = state.sleep().expect("it waits");
        let reading = state.read(sleep).expect("it sleeps");
        assert!(state.read(sleep).is_none(), "one reads at a time");
        drop(reading);
        let claim = state.claim().expect("nobody else claims");
        state.complete(claim);
        assert!(state.read(sleep).is_none());
        assert_eq!(state.stage(), Stage::Completed);
    }
}

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
//! wins the transition. From *Matched* until *Completed*, and from *Interrupted*, only the winner
//! may touch the component, and it must wake the component exactly once. The word carries the
//! number of the operation (its *round*), so that a ticket of an earlier one claims nothing.

use crate::ground::sync::{AtomicU64, Ordering, fence};

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

    /// The current stage, for reports; stale at once.
    pub(crate) fn stage(&self) -> Stage {
        Stage::of(self.word.load(Ordering::Acquire))
    }

    /// The number of the operation, if the offer is open. While it stays the same, the component
    /// has not run.
    pub(crate) fn open_round(&self) -> Option<u64> {
        let seen = self.word.load(Ordering::Acquire);
        (Stage::of(seen) == Stage::Open).then_some(seen >> TAG_BITS)
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
        let seen = self.word.load(Ordering::Relaxed);
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
        self.word
            .compare_exchange(
                word(round, from),
                word(round, to),
                Ordering::AcqRel,
                Ordering::Relaxed,
            )
            .ok()
            .map(|_| Claim { round })
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
        let mut seen = self.word.load(Ordering::Relaxed);
        loop {
            if !stages.contains(&Stage::of(seen)) {
                return false;
            }
            let next = word(seen >> TAG_BITS, Stage::Interrupted);
            // A claim taken back in between fails the exchange: retry.
            match self
                .word
                .compare_exchange(seen, next, Ordering::AcqRel, Ordering::Relaxed)
            {
                Ok(_) => return true,
                Err(now) => seen = now,
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

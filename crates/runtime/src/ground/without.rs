//! Mechanisms that a build with the feature `research` can do without, each alone: the benchmark
//! `grades` measures the worth of each. Other builds have them all, and no trace of this.

/// A mechanism whose work another one does when it is off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mechanism {
    /// Half-channels of one worker are local to it. Off: they have a hub.
    Local,
    /// Shared half-channels become local once all are one worker's. Off: they stay shared.
    Return,
    /// Two half-channels of two workers, connected to each other alone, are linked. Off: they have
    /// a hub.
    Link,
    /// A worker watches its ends of links. Off: the other side posts the component.
    Watch,
    /// A component looks at its line for a while before it parks. Off: it parks at once.
    Look,
    /// A line is fetched for writing before the first look at it.
    Prefetch,
    /// A worker uses its own half-channels without a lock, by the kernel's barriers. Off: with its
    /// lock, as on systems without such barriers.
    Barrier,
    /// A partner of the running component runs next. Off: after those that are ready.
    Partner,
    /// A worker without work looks for some before it sleeps. Off: it sleeps.
    Spin,
    /// An idle worker waits for timers and descriptors. Off: a thread does.
    Poller,
    /// A value that the sender gives away is handed over as it is. Off: it is copied.
    Move,
}

impl Mechanism {
    /// Whether this build and run do without it.
    #[cfg(not(feature = "research"))]
    #[inline(always)]
    pub(crate) const fn is_off(self) -> bool {
        false
    }

    /// Whether this run does without it.
    #[cfg(feature = "research")]
    #[inline]
    pub(crate) fn is_off(self) -> bool {
        use std::sync::atomic::Ordering;
        let off = match chosen::OFF.load(Ordering::Relaxed) {
            chosen::UNKNOWN => chosen::read(),
            off => off,
        };
        off & (1 << self as u32) != 0
    }
}

#[cfg(feature = "research")]
mod chosen {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::Mechanism;
    use crate::ground::exits;

    /// A bit for each mechanism that is off, and [`KNOWN`].
    pub(super) static OFF: AtomicU32 = AtomicU32::new(UNKNOWN);
    pub(super) const UNKNOWN: u32 = 0;
    const KNOWN: u32 = 1 << 31;

    const NAMES: [(&str, Mechanism); 11] = [
        ("local", Mechanism::Local),
        ("return", Mechanism::Return),
        ("link", Mechanism::Link),
        ("watch", Mechanism::Watch),
        ("look", Mechanism::Look),
        ("prefetch", Mechanism::Prefetch),
        ("barrier", Mechanism::Barrier),
        ("partner", Mechanism::Partner),
        ("spin", Mechanism::Spin),
        ("poller", Mechanism::Poller),
        ("move", Mechanism::Move),
    ];

    /// Reads `HEARTH_WITHOUT`: names with commas between them.
    #[cold]
    pub(super) fn read() -> u32 {
        let text = std::env::var("HEARTH_WITHOUT").unwrap_or_default();
        let mut off = KNOWN;
        for word in text.split(',').filter(|word| !word.is_empty()) {
            match NAMES.iter().find(|(name, _)| *name == word) {
                Some((_, mechanism)) => off |= 1 << *mechanism as u32,
                None => exits::unfit(&format!(
                    "HEARTH_WITHOUT: {word:?} is no mechanism; there are {}",
                    NAMES.map(|(name, _)| name).join(", ")
                )),
            }
        }
        OFF.store(off, Ordering::Relaxed);
        off
    }
}

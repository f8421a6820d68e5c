//! Changes of the load since the modes were compared.

use super::figures::{Recent, Seen};

/// Number of windows whose median is compared, so that a few bad windows do not count as another
/// load.
const LAST: usize = 9;
/// Change of a rate or of a section's length that counts, as a logarithm and as a multiple of the
/// noise.
const RATE_STEP: f64 = 0.2;
const SECTION_STEP: f64 = 0.3;
const NOISES: f64 = 4.0;
/// Change of the number of callers that counts. One and more than one always differ.
const CALLERS_STEP: f64 = 1.5;

/// The load when it was first known; empty before.
#[derive(Clone, Debug, Default)]
pub(super) struct Load {
    reference: Option<Seen>,
}

impl Load {
    /// Takes the present load as the reference, unless there is one.
    pub(super) fn refer_to(&mut self, recent: &Recent) {
        if self.reference.is_none() {
            self.reference = recent.median();
        }
    }

    /// True if the last windows at home differ beyond noise.
    pub(super) fn differs(&self, recent: &Recent) -> bool {
        let Some(reference) = &self.reference else {
            return false;
        };
        if recent.len() < LAST {
            return false;
        }
        let noise = NOISES * recent.noise();
        let stepped = |now: Option<f64>, then: Option<f64>, step: f64| match (now, then) {
            (Some(now), Some(then)) if now > 0.0 && then > 0.0 => {
                (now / then).ln().abs() > step.max(noise)
            }
            _ => false,
        };
        let rate = recent.median_of(LAST, |seen| Some(seen.rate));
        let section = recent.median_of(LAST, |seen| seen.section);
        let callers = recent.median_of(LAST, |seen| Some(seen.callers));
        stepped(rate, Some(reference.rate), RATE_STEP)
            || stepped(section, reference.section, SECTION_STEP)
            || callers.is_some_and(|callers| callers_differ(callers, reference.callers))
    }
}

fn callers_differ(now: f64, then: f64) -> bool {
    let (few, many) = (now.min(then), now.max(then));
    few >= 1.0 && (few < 1.5 && many >= 2.0 || many > CALLERS_STEP * few + 0.5)
}

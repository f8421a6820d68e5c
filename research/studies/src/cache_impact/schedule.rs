//! The sizes of a sweep.

use hearth_published::cache_impact::schedule_bytes;

use super::options::Sizes;

/// One size, in elements of 8 bytes, doubled up to 2^24: 8 B to 128 MiB.
fn powers() -> Vec<u64> {
    (0..=24).map(|power| 8 << power).collect()
}

/// Step of a quick run through the dense schedule: it takes every sixth size.
const QUICK_STEP: usize = 6;

/// Sizes in bytes, ascending, none above `largest`: first 0, for the overhead, then the source's
/// 235 or powers of two. A quick run has fewer; its first and last are the same.
#[must_use]
pub fn bytes(sizes: Sizes, quick: bool, largest: u64) -> Vec<u64> {
    let all = match sizes {
        Sizes::Dense => schedule_bytes(),
        Sizes::Powers => powers(),
    };
    let all: Vec<u64> = all.into_iter().filter(|&bytes| bytes <= largest).collect();
    let step = match (quick, sizes) {
        (false, _) => 1,
        (true, Sizes::Dense) => QUICK_STEP,
        (true, Sizes::Powers) => 2,
    };
    let last = all.len().saturating_sub(1);
    let kept = all
        .iter()
        .enumerate()
        .filter(|(at, _)| at % step == 0 || *at == last)
        .map(|(_, &bytes)| bytes);
    std::iter::once(0).chain(kept).collect()
}

//! Without the feature `research` no section has a ring, and there are no letters.

use super::held::Held;
use super::shared::Shared;

impl<T> Shared<T> {
    #[inline(always)]
    pub(super) fn has_letter(&self) -> bool {
        false
    }
}

impl<T> Held<'_, T> {
    #[inline(always)]
    pub(super) fn serve_letters(&self) -> u64 {
        0
    }

    #[inline(always)]
    pub(super) fn refuse_letters(&self) {}
}

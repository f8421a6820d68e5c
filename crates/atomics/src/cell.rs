//! Cells shared by protocol.

#[cfg(not(loom))]
use core::cell::UnsafeCell;
#[cfg(loom)]
use loom::cell::UnsafeCell;

/// A cell whose users agree by protocol on who may touch it. Loom verifies that they keep to it.
pub struct Guarded<T>(UnsafeCell<T>);

// SAFETY: the value is reached only through `with` and `with_mut`, whose callers promise that
// no thread writes meanwhile. It may be changed by one thread after another, so it must be `Send`.
// That several look at once needs `Sync`, which is a bound of `with`.
unsafe impl<T: Send> Sync for Guarded<T> {}

impl<T> Guarded<T> {
    /// A cell with this value.
    pub fn new(value: T) -> Guarded<T> {
        Guarded(UnsafeCell::new(value))
    }

    /// Lends the value to `look`; several threads may look at once.
    ///
    /// # Safety
    /// Nobody writes to the cell meanwhile.
    #[inline]
    pub unsafe fn with<R>(&self, look: impl FnOnce(&T) -> R) -> R
    where
        T: Sync,
    {
        #[cfg(loom)]
        // SAFETY: the caller's promise.
        return self.0.with(|value| look(unsafe { &*value }));
        #[cfg(not(loom))]
        // SAFETY: the caller's promise.
        return look(unsafe { &*self.0.get() });
    }

    /// Lends the value to `change` for writing.
    ///
    /// # Safety
    /// Nobody else touches the cell meanwhile, nor does `change` through another reference.
    #[inline]
    pub unsafe fn with_mut<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        #[cfg(loom)]
        // SAFETY: the caller's promise.
        return self.0.with_mut(|value| change(unsafe { &mut *value }));
        #[cfg(not(loom))]
        // SAFETY: the caller's promise.
        return change(unsafe { &mut *self.0.get() });
    }

    /// The value.
    pub fn into_inner(self) -> T {
        self.0.into_inner()
    }
}

/// A `Cell` in something shared, whose users agree by protocol on who may touch it. Not `Sync`:
/// the type around it answers for that. Loom verifies the protocol.
#[cfg(not(loom))]
pub type PlainCell<T> = core::cell::Cell<T>;

/// A `Cell` in something shared, whose accesses loom verifies.
#[cfg(loom)]
pub struct PlainCell<T>(UnsafeCell<T>);

#[cfg(loom)]
impl<T: Copy> PlainCell<T> {
    /// A cell with this value.
    pub fn new(value: T) -> PlainCell<T> {
        PlainCell(UnsafeCell::new(value))
    }

    /// A copy of the value.
    pub fn get(&self) -> T {
        // SAFETY: the model fails where another thread writes meanwhile.
        self.0.with(|value| unsafe { *value })
    }

    /// Sets the value.
    pub fn set(&self, value: T) {
        self.replace(value);
    }

    /// Sets the value and returns the one before.
    pub fn replace(&self, value: T) -> T {
        // SAFETY: the model fails where another thread looks or writes meanwhile.
        self.0
            .with_mut(|place| unsafe { core::mem::replace(&mut *place, value) })
    }
}

//! The OpenMP runtime that a parallel region belongs to.
//!
//! A process may have several: Python's packages bring their own, each for itself. A region must
//! run in the one that its object was bound to, since all its other calls go there. So for each
//! object with regions the runtime is found as the linker would have found it without this library:
//! first among the symbols that all objects see, then among those of the object and what it needs.
//! Figures and requests of the runtime are those of the same file as its regions' entry.

use std::ffi::CStr;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use hearth_sys::descriptor::{STDERR, write_all};
use libc::{c_int, c_void};

use crate::objects::{Object, next_symbol};

/// An address; 0 is none.
pub(crate) type Address = usize;

/// An object with regions, and what was found for it. Objects are never unloaded or forgotten.
pub(crate) struct Bound {
    /// None: code that no file contains.
    object: Option<Object>,
    /// By [`Entry::number`]. 0: not looked up yet.
    entries: [AtomicUsize; ENTRIES],
    /// By [`Kind`] and [`Wanted`]. 0: not looked up yet; 1: there is none.
    wanted: [[AtomicUsize; 4]; 2],
    after: *const Bound,
}

/// A function that begins or ends a region, or names its size.
pub(crate) struct Entry {
    number: usize,
    name: &'static CStr,
    kind: Kind,
}

/// Kind of a runtime, by the compiler that calls it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Gcc,
    Llvm,
}

impl Kind {
    /// Part of the names of libraries that have it.
    const fn library(self) -> &'static str {
        match self {
            Kind::Gcc => "gomp",
            Kind::Llvm => "omp",
        }
    }
}

/// The most entries.
const ENTRIES: usize = 24;

impl Entry {
    pub(crate) const fn new(number: usize, name: &'static CStr, kind: Kind) -> Entry {
        assert!(number < ENTRIES, "there is no room for so many entries");
        Entry { number, name, kind }
    }
}

/// Functions of a runtime that regions are sized by.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wanted {
    MaxThreads,
    ProcBind,
    PushNumThreads,
    GlobalThreadNum,
}

impl Wanted {
    const fn name(self) -> &'static CStr {
        match self {
            Wanted::MaxThreads => c"omp_get_max_threads",
            Wanted::ProcBind => c"omp_get_proc_bind",
            Wanted::PushNumThreads => c"__kmpc_push_num_threads",
            Wanted::GlobalThreadNum => c"__kmpc_global_thread_num",
        }
    }
}

/// The objects met so far. Only the first place changes: new ones come before.
static BOUND: AtomicPtr<Bound> = AtomicPtr::new(ptr::null_mut());

impl Bound {
    /// The object that an address lies in, which is one of a region's own: its body, or its
    /// description.
    pub(crate) fn of(address: Address) -> &'static Bound {
        let mut at: *const Bound = BOUND.load(Ordering::Acquire);
        // SAFETY: what the list has was leaked, and was complete when it came in (Release).
        while let Some(bound) = unsafe { at.as_ref() } {
            if bound
                .object
                .as_ref()
                .is_some_and(|object| object.has(address))
            {
                return bound;
            }
            at = bound.after;
        }
        Bound::add(Object::of(address))
    }

    /// Adds an object. Two threads may add the same one; both are right.
    #[cold]
    fn add(object: Option<Object>) -> &'static Bound {
        static NOWHERE: AtomicPtr<Bound> = AtomicPtr::new(ptr::null_mut());
        // SAFETY: as above.
        if let (None, Some(known)) = (&object, unsafe { NOWHERE.load(Ordering::Acquire).as_ref() })
        {
            return known;
        }
        // Its addresses must not become another's.
        object.iter().for_each(Object::stay);
        let is_somewhere = object.is_some();
        let place = if is_somewhere { &BOUND } else { &NOWHERE };
        let bound = Box::into_raw(Box::new(Bound {
            object,
            entries: [const { AtomicUsize::new(0) }; ENTRIES],
            wanted: [const { [const { AtomicUsize::new(0) }; 4] }; 2],
            after: ptr::null(),
        }));
        let mut first = place.load(Ordering::Acquire);
        loop {
            if is_somewhere {
                // SAFETY: it was just made, and nobody else has it yet.
                unsafe { (*bound).after = first };
            }
            match place.compare_exchange(first, bound, Ordering::AcqRel, Ordering::Acquire) {
                // SAFETY: it was just made, and is never dropped.
                Ok(_) => return unsafe { &*bound },
                Err(now) => first = now,
            }
        }
    }

    /// The runtime's function. Without it there is no way to go on: the program calls it, and it
    /// is not there.
    pub(crate) fn entry(&self, entry: &Entry) -> Address {
        // Relaxed: an address says all by itself.
        let known = self.entries[entry.number].load(Ordering::Relaxed);
        if known != 0 {
            return known;
        }
        let found = self.look_up(entry);
        if found == 0 {
            let message = b"hearth: libhearth_claim.so finds no OpenMP runtime behind it\n";
            let _ = write_all(STDERR, message);
            std::process::abort();
        }
        Object::of(found).iter().for_each(Object::stay);
        self.entries[entry.number].store(found, Ordering::Relaxed);
        found
    }

    #[cold]
    fn look_up(&self, entry: &Entry) -> Address {
        let for_all = next_symbol(entry.name);
        if for_all != 0 {
            return for_all;
        }
        let own = self
            .object
            .as_ref()
            .map_or(0, |object| object.symbol(entry.name));
        if own != 0 {
            return own;
        }
        // One that was opened by its name and is in nobody's list.
        let named = Object::named(entry.kind.library()).into_iter();
        let mut found = named.map(|object| object.symbol(entry.name));
        found.find(|address| *address != 0).unwrap_or(0)
    }

    /// A function of the runtime that has an entry; 0 if it has none of that name.
    fn wanted(&self, entry: &Entry, wanted: Wanted) -> Address {
        let place = &self.wanted[entry.kind as usize][wanted as usize];
        let known = place.load(Ordering::Relaxed);
        if known == 0 {
            let object = Object::of(self.entry(entry));
            let found = object.map_or(0, |object| object.symbol(wanted.name()));
            place.store(found.max(1), Ordering::Relaxed);
            return found;
        }
        if known == 1 { 0 } else { known }
    }

    /// Asks the runtime for a number. None if it has no such function.
    pub(crate) fn ask(&self, entry: &Entry, wanted: Wanted) -> Option<c_int> {
        let function = self.wanted(entry, wanted);
        // SAFETY: the runtime's functions of these names take nothing and return a number.
        let function =
            unsafe { std::mem::transmute::<Address, Option<extern "C" fn() -> c_int>>(function) };
        function.map(|function| function())
    }

    /// Tells LLVM's runtime the size of the calling thread's next region.
    pub(crate) fn push_num_threads(&self, entry: &Entry, place: *mut c_void, threads: c_int) {
        let thread = self.wanted(entry, Wanted::GlobalThreadNum);
        let push = self.wanted(entry, Wanted::PushNumThreads);
        type Thread = extern "C" fn(*mut c_void) -> c_int;
        type Push = extern "C" fn(*mut c_void, c_int, c_int);
        // SAFETY: the runtime's functions of these names have these arguments; an address of 0
        // becomes none.
        let (thread, push) = unsafe {
            (
                std::mem::transmute::<Address, Option<Thread>>(thread),
                std::mem::transmute::<Address, Option<Push>>(push),
            )
        };
        if let (Some(thread), Some(push)) = (thread, push) {
            push(place, thread(place), threads);
        }
    }
}

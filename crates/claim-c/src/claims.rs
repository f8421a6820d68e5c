//! The functions of `hearth_claim.h` about claims.

use std::cell::RefCell;
use std::ffi::{CStr, CString};
use std::fmt::Display;
use std::ptr;
use std::slice;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use hearth_claim::{Claim, ClaimError, Constraints, Grant, MemoryMover, Tended, move_own_threads};
use libc::{c_char, c_int, c_uint, c_void, size_t};

thread_local! {
    static ERROR: RefCell<CString> = RefCell::default();
}

/// The process that has a claim from here. 0 if none has; the child of a fork has none.
static CLAIMING: AtomicU32 = AtomicU32::new(0);

/// `hearth_claim` of the header.
pub(crate) struct ClaimForC {
    claim: Option<Held>,
}

enum Held {
    /// Nobody looks after it.
    Plain(Box<Claim>),
    Tended(Tended),
}

/// `struct hearth_claim_wish` of the header.
#[repr(C)]
pub(crate) struct WishForC {
    least: c_uint,
    most: c_uint,
    scatter: c_int,
    nodes: *const c_uint,
    node_count: size_t,
    cache_level: c_uint,
    cache_cpu: c_uint,
    has_memory: c_int,
    memory_node: c_uint,
}

type Resize = unsafe extern "C-unwind" fn(*const c_int, size_t, *mut c_void);

impl WishForC {
    /// # Safety
    /// `nodes` has `node_count` numbers.
    unsafe fn constraints(&self) -> Result<Constraints, &'static str> {
        let mut wish = Constraints::cores(self.least..=self.most.max(self.least));
        if self.scatter != 0 {
            wish = wish.scatter();
        }
        if self.node_count > 0 {
            if self.nodes.is_null() {
                return Err("`node_count` is not 0, but `nodes` is null");
            }
            // SAFETY: as the caller promises.
            let nodes = unsafe { slice::from_raw_parts(self.nodes, self.node_count) };
            wish = nodes.iter().fold(wish, |wish, node| wish.on_node(*node));
        }
        match u8::try_from(self.cache_level) {
            Ok(0) => {}
            Ok(level) => wish = wish.sharing_cache(level, self.cache_cpu),
            Err(_) => return Err("no cache has so high a level as `cache_level`"),
        }
        Ok(match self.has_memory {
            0 => wish,
            _ => wish.near_memory_of(self.memory_node),
        })
    }
}

fn fail(error: impl Display) -> c_int {
    let text = error.to_string().replace('\0', " ");
    let text = CString::new(text).unwrap_or_default();
    // A destructor may run when the thread's variables are gone.
    let _ = ERROR.try_with(|error| error.replace(text));
    -1
}

/// Begins a claim. Null if the registry cannot be used.
///
/// # Safety
/// The name ends with a null byte, or is null.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hearth_claim_begin(name: *const c_char) -> *mut ClaimForC {
    let name = match name.is_null() {
        true => String::new(),
        // SAFETY: as the caller promises.
        false => unsafe { CStr::from_ptr(name) }
            .to_string_lossy()
            .into_owned(),
    };
    if CLAIMING.load(Ordering::Relaxed) == std::process::id() {
        fail("this process has a claim already; end it before another begins");
        return ptr::null_mut();
    }
    match Claim::begin(&name) {
        Ok(claim) => {
            CLAIMING.store(std::process::id(), Ordering::Relaxed);
            let claim = Some(Held::Plain(Box::new(claim)));
            Box::into_raw(Box::new(ClaimForC { claim }))
        }
        Err(error) => {
            fail(error);
            ptr::null_mut()
        }
    }
}

/// Asks for cores.
///
/// # Safety
/// The claim is one of [`hearth_claim_begin`], and no other thread uses it; the wish is one of the
/// header.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hearth_claim_invade(
    claim: *mut ClaimForC,
    wish: *const WishForC,
    milliseconds: c_uint,
) -> c_int {
    // SAFETY: as the caller promises.
    let (Some(claim), Some(wish)) = (unsafe { claim.as_mut() }, unsafe { wish.as_ref() }) else {
        return fail("a null pointer is no claim, and no wish");
    };
    // SAFETY: as the caller promises.
    let wish = match unsafe { wish.constraints() } {
        Ok(wish) => wish,
        Err(error) => return fail(error),
    };
    let time = Duration::from_millis(u64::from(milliseconds));
    let grant = match &mut claim.claim {
        Some(Held::Tended(tended)) => tended.invade_within(wish, time),
        _ => claim.with(|claim| claim.invade_within(wish, time)),
    };
    match grant {
        Ok(Grant { missing, .. }) => c_int::try_from(missing).unwrap_or(c_int::MAX),
        Err(error) => fail(error),
    }
}

/// Gives cores back until so many are left.
///
/// # Safety
/// As for [`hearth_claim_invade`].
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hearth_claim_retreat(claim: *mut ClaimForC, left: c_uint) -> c_int {
    // SAFETY: as the caller promises.
    let Some(claim) = (unsafe { claim.as_mut() }) else {
        return fail("a null pointer is no claim");
    };
    let left = left as usize;
    let done = match &mut claim.claim {
        Some(Held::Tended(tended)) => tended.retreat(left),
        _ => claim.with(|claim| claim.retreat(left)),
    };
    done.map_or_else(fail, |()| 0)
}

/// The claim's CPUs, as far as there is room; their count.
///
/// # Safety
/// As for [`hearth_claim_invade`]; `cpus` has room for so many numbers.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hearth_claim_cpus(
    claim: *mut ClaimForC,
    cpus: *mut c_int,
    room: size_t,
) -> size_t {
    // SAFETY: as the caller promises.
    let Some(claim) = (unsafe { claim.as_mut() }) else {
        return 0;
    };
    let has = match &claim.claim {
        Some(Held::Plain(claim)) => claim.cpus(),
        Some(Held::Tended(tended)) => tended.cpus(),
        None => Vec::new(),
    };
    if !cpus.is_null() {
        for (at, cpu) in numbers(&has).into_iter().take(room).enumerate() {
            // SAFETY: `at` is less than the room that the caller promises.
            unsafe { cpus.add(at).write(cpu) };
        }
    }
    has.len()
}

/// Lets all threads run on the claim's CPUs only.
///
/// # Safety
/// As for [`hearth_claim_invade`].
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hearth_claim_pin_threads(claim: *mut ClaimForC) -> size_t {
    // SAFETY: as the caller promises.
    match unsafe { claim.as_mut() } {
        Some(claim) => claim.with(|claim| claim.pin_threads()),
        None => 0,
    }
}

/// Has a thread look after the claim.
///
/// # Safety
/// As for [`hearth_claim_invade`]; `resize` may be called with the context by other threads until
/// the claim ends.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hearth_claim_tend(
    claim: *mut ClaimForC,
    resize: Option<Resize>,
    context: *mut c_void,
) -> c_int {
    // SAFETY: as the caller promises.
    let Some(claim) = (unsafe { claim.as_mut() }) else {
        return fail("a null pointer is no claim");
    };
    let plain = match claim.claim.take() {
        Some(Held::Plain(plain)) => plain,
        other => {
            claim.claim = other;
            return fail("somebody looks after this claim already");
        }
    };
    let tended = match resize {
        Some(resize) => {
            let context = context.expose_provenance();
            plain.tend(move |cpus: &[usize]| {
                let cpus = numbers(cpus);
                let context = ptr::with_exposed_provenance_mut(context);
                // SAFETY: as the caller of `hearth_claim_tend` promises.
                unsafe { resize(cpus.as_ptr(), cpus.len(), context) };
            })
        }
        None => {
            let memory = MemoryMover::of_this_process();
            let mut before = Vec::new();
            plain.tend(move |cpus: &[usize]| {
                move_own_threads(&before, cpus);
                memory.follow(&before, cpus);
                before = cpus.to_vec();
            })
        }
    };
    match tended {
        Ok(tended) => {
            claim.claim = Some(Held::Tended(tended));
            0
        }
        // The claim has ended with the attempt.
        Err(error) => {
            claim_no_more();
            fail(error)
        }
    }
}

/// Ends the claim.
///
/// # Safety
/// It is one of [`hearth_claim_begin`] and has not ended, or null.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hearth_claim_end(claim: *mut ClaimForC) {
    if !claim.is_null() {
        // SAFETY: as the caller promises, it came from `Box::into_raw` and is used no more.
        let claim = unsafe { Box::from_raw(claim) };
        if claim.claim.is_some() {
            claim_no_more();
        }
    }
}

fn claim_no_more() {
    // In the child of a fork the number is its parent's, and stays.
    let own = std::process::id();
    let _ = CLAIMING.compare_exchange(own, 0, Ordering::Relaxed, Ordering::Relaxed);
}

/// Why the last call failed.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn hearth_claim_error() -> *const c_char {
    // The text stays until the thread's next failure.
    let text = ERROR.try_with(|error| error.borrow().as_ptr());
    text.unwrap_or(c"the thread ends".as_ptr())
}

impl ClaimForC {
    fn with<R: FromClaim>(&mut self, action: impl FnOnce(&mut Claim) -> R) -> R {
        match &mut self.claim {
            Some(Held::Plain(claim)) => action(claim),
            Some(Held::Tended(tended)) => {
                tended.with(action).unwrap_or_else(|_| R::without_claim())
            }
            None => R::without_claim(),
        }
    }
}

/// Results of calls, which a claim that was lost cannot give.
trait FromClaim {
    fn without_claim() -> Self;
}

impl FromClaim for size_t {
    fn without_claim() -> size_t {
        0
    }
}

impl<T> FromClaim for Result<T, ClaimError> {
    fn without_claim() -> Self {
        Err(ClaimError::Ended(std::process::id()))
    }
}

fn numbers(cpus: &[usize]) -> Vec<c_int> {
    let numbers = cpus.iter().map(|cpu| c_int::try_from(*cpu));
    numbers.flatten().collect()
}

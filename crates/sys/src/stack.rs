//! Stack overflow detection.
//!
//! The page below a stack refuses access. The signal that follows is handled on a stack of its own
//! and reported for the thread's owner; otherwise the process would end without a word.

use std::cell::Cell;
use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Size of the handler's stack. The system's minimum is near 12 KiB where vector registers are
/// largest.
const HANDLER_BYTES: usize = 32 << 10;

/// Range around the computed end of the stack in which an access counts as an overflow: the
/// computation leaves out what the thread has used before it was watched, and frames reach beyond
/// the end.
const BELOW: usize = 64 << 10;
const ABOVE: usize = 192 << 10;

/// The handler's knowledge of a watched thread. `end` is 0 in other threads.
#[derive(Clone, Copy)]
struct Watched {
    end: usize,
    owner: usize,
}

thread_local! {
    static WATCHED: Cell<Watched> = const { Cell::new(Watched { end: 0, owner: 0 }) };
}

/// The function to call; null before there is one.
static TELL: AtomicPtr<()> = AtomicPtr::new(ptr::null_mut());

/// Has `tell` called with the owner of a watched thread whose stack overflows, on that thread.
/// Other bad accesses end the process as before.
///
/// # Safety
/// `tell` does only what a signal handler may, at any point: it takes no lock, allocates nothing
/// and does not unwind.
pub unsafe fn on_overflow(tell: fn(usize) -> !) {
    // Release pairs with the handler's load, though a function needs no order.
    TELL.store(tell as *mut (), Ordering::Release);
    let handler: extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) = handle;
    for signal in [libc::SIGSEGV, libc::SIGBUS] {
        // SAFETY: the handler keeps to what a signal handler may do.
        unsafe {
            let mut action: libc::sigaction = mem::zeroed();
            action.sa_sigaction = handler as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            libc::sigemptyset(&mut action.sa_mask);
            libc::sigaction(signal, &action, ptr::null_mut());
        }
    }
}

/// Ends a watch, even when the watched code unwinds.
struct Watch {
    outer: Watched,
    before: libc::stack_t,
    _room: Vec<u8>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        WATCHED.set(self.outer);
        // SAFETY: `before` was the thread's, as the system gave it. The room goes after this.
        unsafe { libc::sigaltstack(&self.before, ptr::null_mut()) };
    }
}

/// Runs `action` on the calling thread, whose stack has `bytes`, and watches for an overflow. Call
/// it near the bottom of the stack.
pub fn watch<R>(bytes: usize, owner: usize, action: impl FnOnce() -> R) -> R {
    // Miri has no signals, and watches stacks itself.
    if cfg!(miri) {
        return action();
    }
    let here = ptr::from_ref(&owner).addr();
    // From the heap: untouched, it takes no memory and no mapping of its own.
    let mut room = Vec::<u8>::with_capacity(HANDLER_BYTES);
    let stack = libc::stack_t {
        ss_sp: room.as_mut_ptr().cast(),
        ss_flags: 0,
        ss_size: HANDLER_BYTES,
    };
    // SAFETY: `room` outlives its use: the guard puts the stack from before back. If either call is
    // refused, an overflow is not reported.
    let before = unsafe {
        let mut before: libc::stack_t = mem::zeroed();
        libc::sigaltstack(&stack, &mut before);
        before
    };
    let outer = WATCHED.replace(Watched {
        end: here.saturating_sub(bytes),
        owner,
    });
    let _watch = Watch {
        outer,
        before,
        _room: room,
    };
    action()
}

extern "C" fn handle(signal: i32, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    // SAFETY: the system gives a handler of this kind its information.
    let address = unsafe { (*info).si_addr().addr() };
    let watched = WATCHED.get();
    let tell = TELL.load(Ordering::Acquire);
    let near = watched.end.saturating_sub(BELOW)..watched.end.saturating_add(ABOVE);
    if watched.end != 0 && !tell.is_null() && near.contains(&address) {
        // SAFETY: only `on_overflow` stores here, and what it stores is such a function.
        let tell = unsafe { mem::transmute::<*mut (), fn(usize) -> !>(tell) };
        tell(watched.owner);
    }
    // Not ours: the access is made again, and ends the process.
    // SAFETY: SIG_DFL is a valid disposition.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
}

/// Sleeps. May be called in a signal handler.
pub fn pause_handler(milliseconds: i32) {
    // SAFETY: no descriptors are given.
    unsafe { libc::poll(ptr::null_mut(), 0, milliseconds) };
}

/// Ends the process at once. May be called in a signal handler.
pub fn leave_handler(code: i32) -> ! {
    // SAFETY: it does not return.
    unsafe { libc::_exit(code) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    const STACK: usize = 1 << 20;

    fn tell(owner: usize) -> ! {
        leave_handler(if owner == 7 { 42 } else { 1 })
    }

    #[expect(unconditional_recursion, reason = "that is what is tested")]
    fn recurse(depth: &Cell<u64>) -> u64 {
        depth.set(std::hint::black_box(depth.get() + 1));
        let below = recurse(depth);
        below ^ depth.get()
    }

    fn run(name: &str) -> Option<i32> {
        let this = std::env::current_exe().unwrap();
        let path = format!("stack::tests::{name}");
        let child = Command::new(this)
            .args([path.as_str(), "--exact", "--ignored", "--nocapture"])
            .output();
        child.unwrap().status.code()
    }

    fn on_a_watched_thread(action: fn()) {
        // SAFETY: `tell` only leaves.
        unsafe { on_overflow(tell) };
        let thread = std::thread::Builder::new().stack_size(STACK);
        let thread = thread.spawn(move || watch(STACK, 7, action)).unwrap();
        thread.join().unwrap();
    }

    /// The thread's signal stack, and whether the thread is watched.
    fn handlers() -> (*mut libc::c_void, usize, bool) {
        // SAFETY: with no new stack the call only fills the structure.
        let now = unsafe {
            let mut now: libc::stack_t = mem::zeroed();
            libc::sigaltstack(ptr::null(), &mut now);
            now
        };
        (now.ss_sp, now.ss_size, WATCHED.get().end != 0)
    }

    #[test]
    fn who_unwinds_is_watched_no_more_and_handlers_have_their_stack_back() {
        let thread = std::thread::spawn(|| {
            let before = handlers();
            for panics in [false, true] {
                let ended = std::panic::catch_unwind(|| {
                    watch(STACK, 7, || {
                        assert_ne!(handlers(), before);
                        let within = handlers();
                        watch(STACK, 8, || assert_ne!(handlers(), within));
                        assert_eq!(handlers(), within);
                        assert!(!panics);
                    });
                });
                assert_eq!((ended.is_err(), handlers()), (panics, before));
            }
        });
        thread.join().unwrap();
    }

    #[test]
    #[ignore = "ends the process: for `an_overflow_is_told`"]
    fn overflow() {
        on_a_watched_thread(|| {
            recurse(&Cell::new(0));
        });
    }

    #[test]
    fn an_overflow_is_told() {
        assert_eq!(run("overflow"), Some(42));
    }

    #[test]
    #[ignore = "ends the process: for `another_bad_access_ends_the_process`"]
    fn bad_access() {
        on_a_watched_thread(|| {
            let nowhere = std::hint::black_box(64 as *const u8);
            // SAFETY: none; the test wants the signal.
            unsafe { nowhere.read_volatile() };
        });
    }

    #[test]
    fn another_bad_access_ends_the_process() {
        assert_eq!(run("bad_access"), None);
    }
}

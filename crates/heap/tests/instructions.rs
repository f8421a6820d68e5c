//! The longest operation in instructions, and its system calls, counted by single-stepping over
//! heaps of a hundred to a million blocks: ten million with `HEARTH_TEST_DEEP=1`, which `./x test
//! --deep` sets.
//!
//! A child process runs the operations, each between two breakpoints; this process steps through
//! them as a debugger does.
#![cfg(all(target_arch = "x86_64", target_os = "linux", not(debug_assertions)))]
#![allow(clippy::print_stdout, reason = "the figures are what one wants to see")]

use std::arch::asm;
use std::ffi::c_long;
use std::ptr;
use std::thread;

use hearth_heap as heap;
use hearth_testing::random::Random;

/// The bound of an allocation, without the breakpoints, with the loop around it.
const ALLOCATE_MAX: u32 = 4000;
const FREE_MAX: u32 = 4000;
/// Operations measured, for each kind of operation and each state of a heap.
const OPERATIONS: usize = 400;

/// The most instructions of an operation, and the system calls of all of them.
#[derive(Clone, Copy, Debug, Default)]
struct Worst {
    instructions: u32,
    calls: u32,
}

fn breakpoint() {
    // SAFETY: the parent waits for it.
    unsafe { asm!("int3") };
}

/// Runs an operation between breakpoints.
fn counted<T>(operation: impl FnOnce() -> T) -> T {
    breakpoint();
    let result = operation();
    breakpoint();
    result
}

fn free(block: usize) {
    // SAFETY: each block is freed once.
    unsafe { heap::free(ptr::with_exposed_provenance_mut(block)) };
}

fn allocate(random: &mut Random) -> usize {
    let bits = random.below(7);
    let size = 1 + random.below(64 << bits);
    heap::allocate(size).expose_provenance()
}

/// The child: fills a heap, leaves holes, has others free some blocks, and exchanges blocks. Counts
/// allocations or frees.
fn child(blocks: usize, is_freeing: bool) -> ! {
    let mut random = Random::new(blocks as u64);
    let small = |random: &mut Random| heap::allocate(1 + random.below(48)).expose_provenance();
    let mut live: Vec<usize> = (0..blocks)
        .map(|_| match blocks {
            0..=100_000 => allocate(&mut random),
            _ => small(&mut random),
        })
        .collect();
    for _ in 0..blocks / 3 {
        free(live.swap_remove(random.below(live.len())));
    }
    let theirs = live.split_off(live.len() / 2);
    thread::spawn(move || theirs.into_iter().for_each(free))
        .join()
        .expect("it does not panic");
    // SAFETY: the parent asked for it.
    unsafe {
        libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0);
        libc::raise(libc::SIGSTOP);
    }
    for i in 0..OPERATIONS {
        if is_freeing {
            let at = random.below(live.len());
            let block = live.swap_remove(at);
            counted(|| free(block));
            if i % 3 == 0 {
                live.push(allocate(&mut random));
            }
        } else {
            live.push(counted(|| allocate(&mut random)));
            if i % 3 == 0 {
                free(live.swap_remove(random.below(live.len())));
            }
        }
        if live.len() < 2 {
            break;
        }
    }
    // SAFETY: nothing of the test's is to run in the child.
    unsafe { libc::_exit(0) }
}

/// Waits for the child: the signal that stopped it, or None at its end.
fn wait(child: i32) -> Option<i32> {
    let mut status = 0;
    // SAFETY: a child of ours.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    if libc::WIFEXITED(status) {
        assert_eq!(libc::WEXITSTATUS(status), 0, "the child is well");
        return None;
    }
    assert!(libc::WIFSTOPPED(status), "status {status:#x}");
    Some(libc::WSTOPSIG(status))
}

fn trace(request: u32, child: i32) {
    // SAFETY: the child is stopped.
    let done = unsafe { libc::ptrace(request, child, 0, 0) };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
}

/// The child's instruction pointer, and the bytes there.
fn instruction(child: i32) -> (u64, u16) {
    // SAFETY: the child is stopped, and the registers are written.
    unsafe {
        let mut registers: libc::user_regs_struct = std::mem::zeroed();
        libc::ptrace(libc::PTRACE_GETREGS, child, 0, &raw mut registers);
        let word = libc::ptrace(libc::PTRACE_PEEKTEXT, child, registers.rip, 0);
        (registers.rip, word as u16)
    }
}

const INT3: u16 = 0xcc;
const SYSCALL: u16 = 0x050f;

/// Counts the operations of a child.
fn count(blocks: usize, is_freeing: bool) -> Worst {
    // SAFETY: the child uses its own memory, and ends by itself.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        child(blocks, is_freeing);
    }
    assert!(pid > 0, "a process can be made");
    assert_eq!(wait(pid), Some(libc::SIGSTOP));
    let mut worst = Worst::default();
    loop {
        trace(libc::PTRACE_CONT, pid);
        if wait(pid).is_none() {
            return worst;
        }
        // Behind the first breakpoint.
        let mut instructions = 0;
        loop {
            let (_, next) = instruction(pid);
            if next & 0xff == INT3 {
                break;
            }
            worst.calls += u32::from(next == SYSCALL);
            instructions += 1;
            trace(libc::PTRACE_SINGLESTEP, pid);
            assert_eq!(wait(pid), Some(libc::SIGTRAP), "only steps stop it");
        }
        worst.instructions = worst.instructions.max(instructions);
        // Through the second one.
        trace(libc::PTRACE_CONT, pid);
        wait(pid);
    }
}

/// Whether this process may be a debugger.
fn can_trace() -> bool {
    // SAFETY: as in `count`.
    unsafe {
        let pid = libc::fork();
        if pid == 0 {
            let refused: c_long = libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0);
            libc::_exit(i32::from(refused != 0));
        }
        let mut status = 0;
        libc::waitpid(pid, &raw mut status, 0);
        libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0
    }
}

#[test]
fn the_longest_operation_does_not_depend_on_the_number_of_blocks() {
    if !can_trace() {
        println!("skipped: this process may not trace another");
        return;
    }
    let mut sizes = vec![100, 1000, 10_000, 100_000, 1_000_000];
    if std::env::var_os("HEARTH_TEST_DEEP").is_some() {
        sizes.push(10_000_000);
    }
    for blocks in sizes {
        let (allocate, freed) = (count(blocks, false), count(blocks, true));
        println!(
            "{blocks} blocks: allocate {} instructions, free {}, at most; {} and {} calls of the kernel in \
             {OPERATIONS} operations",
            allocate.instructions, freed.instructions, allocate.calls, freed.calls
        );
        assert!(
            allocate.instructions <= ALLOCATE_MAX,
            "{blocks}: {allocate:?}"
        );
        assert!(freed.instructions <= FREE_MAX, "{blocks}: {freed:?}");
        // New arenas are opened by one call for each of their parts, and the helper is started
        // once.
        assert!(allocate.calls <= 40, "{blocks}: {allocate:?}");
        assert!(freed.calls <= 40, "{blocks}: {freed:?}");
    }
}

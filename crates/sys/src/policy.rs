//! Memory policy: the node that memory lies on, and how to choose it. Raw system calls, no library.
//!
//! Nodes have the system's numbers. A kernel without NUMA support refuses all of it as absent.

use crate::mapping::{Mapping, page_bytes};
use crate::refused::{Reason, Refused};

const WORD_BITS: usize = usize::BITS as usize;
/// Largest number of nodes that Linux can be built for.
const NODES_MAX: usize = 1024;

// From <linux/mempolicy.h>.
const MPOL_DEFAULT: usize = 0;
const MPOL_PREFERRED: usize = 1;
const MPOL_BIND: usize = 2;
const MPOL_INTERLEAVE: usize = 3;
const MPOL_LOCAL: usize = 4;
const MPOL_PREFERRED_MANY: usize = 5;
const MPOL_F_MEMS_ALLOWED: usize = 1 << 2;
const MPOL_MF_STRICT: usize = 1;
const MPOL_MF_MOVE: usize = 1 << 1;
/// The flags `MPOL_F_STATIC_NODES`, `RELATIVE_NODES` and `NUMA_BALANCING` share the mode's word.
const MPOL_MODE_FLAGS: usize = 0b111 << 13;

/// Policy for the new pages of a thread or a mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Policy {
    /// The system's default: the node of the core that touches first.
    Default,
    /// The node of the core that touches first, said explicitly.
    Local,
    /// This node, others when it is full.
    Preferred(usize),
    /// These nodes in the system's order, others when they are full.
    PreferredMany(Vec<usize>),
    /// These nodes only.
    Bind(Vec<usize>),
    /// These nodes, page by page in turn.
    Interleave(Vec<usize>),
    /// A policy this crate does not know, by its number.
    Unknown(usize),
}

impl Policy {
    fn encode(&self) -> (usize, Vec<usize>) {
        match self {
            Policy::Default => (MPOL_DEFAULT, Vec::new()),
            Policy::Local => (MPOL_LOCAL, Vec::new()),
            Policy::Preferred(node) => (MPOL_PREFERRED, vec![*node]),
            Policy::PreferredMany(nodes) => (MPOL_PREFERRED_MANY, nodes.clone()),
            Policy::Bind(nodes) => (MPOL_BIND, nodes.clone()),
            Policy::Interleave(nodes) => (MPOL_INTERLEAVE, nodes.clone()),
            Policy::Unknown(mode) => (*mode, Vec::new()),
        }
    }
}

fn mask_of(nodes: &[usize]) -> Option<Vec<usize>> {
    let mut words = vec![0usize; NODES_MAX / WORD_BITS];
    for &node in nodes {
        *words.get_mut(node / WORD_BITS)? |= 1 << (node % WORD_BITS);
    }
    Some(words)
}

fn members(words: &[usize]) -> Vec<usize> {
    (0..words.len() * WORD_BITS)
        .filter(|node| words[node / WORD_BITS] >> (node % WORD_BITS) & 1 == 1)
        .collect()
}

/// Length of a mask as the kernel counts it, from 1.
const MASK_BITS: usize = NODES_MAX + 1;
const NEXT: &str = "choose nodes that have memory and that this process may use, or go without";

fn invalid(action: &'static str, policy: &Policy) -> Refused {
    Refused::because(action, format!("{policy:?}"), Reason::Invalid, NEXT)
}

/// Sets the policy for the calling thread's new pages.
///
/// # Errors
/// A node does not exist or is not this process's, or the kernel has no NUMA support.
pub fn set_thread(policy: &Policy) -> Result<(), Refused> {
    let action = "set the memory policy";
    let (mode, nodes) = policy.encode();
    let mask = mask_of(&nodes).ok_or_else(|| invalid(action, policy))?;
    let (pointer, bits) = if nodes.is_empty() {
        (std::ptr::null(), 0)
    } else {
        (mask.as_ptr(), MASK_BITS)
    };
    // SAFETY: the mask has the length passed, and is only read.
    match unsafe { libc::syscall(libc::SYS_set_mempolicy, mode, pointer, bits) } {
        0 => Ok(()),
        _ => Err(Refused::last(action, format!("{policy:?}"), NEXT)),
    }
}

/// The policy for the calling thread's new pages.
///
/// # Errors
/// The kernel has no NUMA support, or a filter forbids the question, as in many containers.
pub fn of_thread() -> Result<Policy, Refused> {
    let mut mode: libc::c_int = 0;
    let mut mask = vec![0usize; NODES_MAX / WORD_BITS];
    // SAFETY: both buffers have the size passed.
    let result = unsafe {
        libc::syscall(
            libc::SYS_get_mempolicy,
            &mut mode,
            mask.as_mut_ptr(),
            MASK_BITS,
            0usize,
            0usize,
        )
    };
    if result != 0 {
        let action = "read the memory policy of";
        return Err(Refused::last(action, "this thread", "go without"));
    }
    let nodes = members(&mask);
    Ok(match mode as usize & !MPOL_MODE_FLAGS {
        MPOL_DEFAULT => Policy::Default,
        MPOL_LOCAL => Policy::Local,
        MPOL_PREFERRED => match nodes.first() {
            Some(&node) => Policy::Preferred(node),
            None => Policy::Local,
        },
        MPOL_PREFERRED_MANY => Policy::PreferredMany(nodes),
        MPOL_BIND => Policy::Bind(nodes),
        MPOL_INTERLEAVE => Policy::Interleave(nodes),
        other => Policy::Unknown(other),
    })
}

/// The nodes that this process may take memory from, ascending.
///
/// # Errors
/// As for [`of_thread`].
pub fn nodes_allowed() -> Result<Vec<usize>, Refused> {
    let mut mask = vec![0usize; NODES_MAX / WORD_BITS];
    // SAFETY: the mask has the size passed; no mode is asked for.
    let result = unsafe {
        libc::syscall(
            libc::SYS_get_mempolicy,
            std::ptr::null_mut::<libc::c_int>(),
            mask.as_mut_ptr(),
            MASK_BITS,
            0usize,
            MPOL_F_MEMS_ALLOWED,
        )
    };
    match result {
        0 => Ok(members(&mask)),
        _ => Err(Refused::last(
            "read the memory nodes of",
            "this process",
            "measure without nodes",
        )),
    }
}

/// Sets the policy of a mapping's pages, and moves those that lie elsewhere.
///
/// # Errors
/// As for [`set_thread`], or some page could not be moved.
pub fn set_mapping(mapping: &mut Mapping, policy: &Policy) -> Result<(), Refused> {
    let action = "place a mapping by";
    let (mode, nodes) = policy.encode();
    let mask = mask_of(&nodes).ok_or_else(|| invalid(action, policy))?;
    let (pointer, bits) = if nodes.is_empty() {
        (std::ptr::null(), 0)
    } else {
        (mask.as_ptr(), MASK_BITS)
    };
    // SAFETY: the range is the mapping's; moving a page keeps its contents and address.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mbind,
            mapping.address(),
            mapping.bytes(),
            mode,
            pointer,
            bits,
            MPOL_MF_STRICT | MPOL_MF_MOVE,
        )
    };
    match result {
        0 => Ok(()),
        _ => Err(Refused::last(action, format!("{policy:?}"), NEXT)),
    }
}

/// Moves the pages of a process that lie on some nodes to others, the first node's to the first and
/// so on. Pages that other processes share stay. Number of pages that could not be moved.
///
/// # Errors
/// A node does not exist or is not that process's, the process is another user's, or the kernel
/// has no NUMA support.
pub fn migrate(process: u32, from: &[usize], to: &[usize]) -> Result<usize, Refused> {
    let action = "move the pages of";
    let object = || format!("process {process}");
    let next = "leave memory where it is";
    let masks = mask_of(from).zip(mask_of(to));
    let number = libc::c_int::try_from(process).ok();
    let Some(((from, to), number)) = masks.zip(number) else {
        return Err(Refused::because(action, object(), Reason::Invalid, next));
    };
    // SAFETY: both masks have the length passed, and are only read.
    let result = unsafe {
        libc::syscall(
            libc::SYS_migrate_pages,
            number,
            MASK_BITS,
            from.as_ptr(),
            to.as_ptr(),
        )
    };
    usize::try_from(result).map_err(|_| Refused::last(action, object(), next))
}

/// The node of each page of a mapping, in order. None for a page without memory behind it.
///
/// # Errors
/// The kernel has no NUMA support, or a filter forbids the question.
pub fn pages_of(mapping: &Mapping) -> Result<Vec<Option<usize>>, Refused> {
    let pages: Vec<usize> = (mapping.address()..mapping.address() + mapping.bytes())
        .step_by(page_bytes())
        .collect();
    let mut status = vec![libc::c_int::MIN; pages.len()];
    // SAFETY: both lists have the length passed; without target nodes nothing is moved.
    let result = unsafe {
        libc::syscall(
            libc::SYS_move_pages,
            0usize,
            pages.len(),
            pages.as_ptr(),
            std::ptr::null::<libc::c_int>(),
            status.as_mut_ptr(),
            0usize,
        )
    };
    if result < 0 {
        return Err(Refused::last(
            "ask where the pages lie of",
            "a mapping",
            "measure without page locations",
        ));
    }
    // Negative numbers are errors of single pages, most often a page without memory.
    Ok(status.iter().map(|&s| usize::try_from(s).ok()).collect())
}

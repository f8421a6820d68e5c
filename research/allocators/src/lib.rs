//! The allocators of the node-aware allocator study as published, and the meters that measure them.
//!
//! [`nmart`] is the source's own allocator; [`sequential`], [`half_fit`] and [`tlsf`] are its
//! peers. Each is a library over memory that it is given ([`heap::Heap`],
//! [`nmart::Nmart`]), so that tests can drive it, and a shared object to be preloaded in place of
//! `malloc`: the examples of this package, built by `cargo build -p hearth-allocators --examples`,
//! are one such object for each, so that nothing is chosen while the clock runs ([`mod@preload`]).
//! [`meter`] is preloaded before any allocator and counts, times or records each call; [`workload`]
//! has the programs that put load on one, [`synthetic`] the source's models of load.
//!
//! This is a study: nothing of Hearth itself allocates with it. It must never know what is measured
//! with it or what was published as a result, and it prints nothing. Its code is unsafe as it makes
//! blocks out of raw memory.
//!
//! ```
//! use hearth_allocators::heap::{Heap, Pool};
//! use hearth_allocators::tlsf::Tlsf;
//!
//! let mut memory = vec![0u8; 1 << 16];
//! // SAFETY: `memory` outlives the heap, and nothing else touches it meanwhile.
//! let pool = unsafe { Pool::over(memory.as_mut_ptr(), memory.len()) };
//! let mut heap: Tlsf<Pool> = Tlsf::new(pool);
//! let block = heap.allocate(100);
//! assert!(!block.is_null() && block.addr().is_multiple_of(16));
//! // SAFETY: it comes from this heap and is not used any more.
//! unsafe { heap.release(block) };
//! ```

pub mod chunk;
pub mod half_fit;
pub mod heap;
pub mod meter;
pub mod nmart;
pub mod preload;
pub mod sequential;
pub mod synthetic;
pub mod system;
pub mod tlsf;
pub mod workload;

//! `libhearth_claim`: claims and cores from C (`include/hearth_claim.h`), and, preloaded, a view of
//! the machine that has only the CPUs of a claim.
//!
//! ```text
//! hearth claim --cores 2..4 --preload -- ./program
//! ```
//!
//! A claim is applied to a program by the CPUs that its threads may use. Most programs count
//! these; `counts` tells them to those that count the machine's, and `openmp` has each parallel
//! region run as many threads. Neither asks the registry. `claims` and `cores` are the functions
//! of the header. See `docs/claims.md`.
//!
//! ```text
//! openmp → runtimes → objects
//! openmp → counts
//! claims, cores
//! ```

mod claims;
mod cores;
mod counts;
mod objects;
mod openmp;
mod runtimes;

//! `libhearth_malloc.so` under programs in C and C++: what it exports, what the standards ask for,
//! the life of processes, and what is found of misuse, always and with hardening; threads that have
//! to do with each other's blocks, and programs with one thread.
//!
//! The library is what is shipped, built in the release profile; and once more as it is developed,
//! where assertions hold. Cases of `conformance.c` are run with the system's malloc, too: a test
//! that asks for more than that is wrong.

mod alone;
mod conformance;
mod faults;
mod hangs;
mod hardened;
mod helpers;
mod life;
mod misuse;
mod operators;
mod races;
mod stress;
mod support;
mod symbols;

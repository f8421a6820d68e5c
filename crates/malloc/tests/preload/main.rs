//! `libhearth_malloc.so` under programs in C and C++: its exports, conformance with the standards,
//! the life of processes, the misuse that it finds, always and with hardening; threads that use
//! each other's blocks, and programs with one thread.
//!
//! The library is the shipped one, built in the release profile; and the development build, with
//! assertions. Cases of `conformance.c` run with the system's malloc, too: a test that asks for
//! more than that is wrong.

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

//! Tests of `libhearth_malloc.so` under programs in C and C++: its exports, conformance with the
//! standards, the life of processes, the misuse that it finds with and without hardening, threads
//! that use each other's blocks, and single-threaded programs.
//!
//! The tests use the shipped library, built in the release profile, and the development build, with
//! assertions. Cases of `conformance.c` also run with the system's malloc: a test that demands more
//! than that is wrong.

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

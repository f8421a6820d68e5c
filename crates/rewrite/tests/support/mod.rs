//! Random rule sets, and a rewriter that does everything in the plainest way, for tests of whole
//! runs.

#![allow(dead_code, unreachable_pub, reason = "each test uses a part")]

pub mod naive;
pub mod random;

//! Event servers: one core of a server under every pattern of threads and every way to wait for connections.
//!
//! This room never knows what the bytes of a connection mean.

#![forbid(unsafe_code)]

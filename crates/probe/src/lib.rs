//! Fills a profile on a live machine: latencies, transfers, distances, noise.
#![forbid(unsafe_code)]

//! Load for servers: closed and open loops, and latency that a server's stalls cannot hide.

#![forbid(unsafe_code)]

//! Critical sections: under a lock on the caller's core, or by message to the owner of the data on its own.
//!
//! A section of code over shared data may run in either way with the same code; which one is better depends on
//! what it costs to bring the data to the caller and the request to the owner. This room never knows what a
//! component or a channel is.

//! Servers that run on the worker of their caller.

mod serving;

const WAY: hearth::Servers = hearth::Servers::Synchronous;

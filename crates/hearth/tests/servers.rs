//! Servers that go to whoever calls them.

mod serving;

const WAY: hearth::Servers = hearth::Servers::Synchronous;

//! Servers that are called in either way, as is found better while they run.

mod serving;

const WAY: hearth::Servers = hearth::Servers::Auto;

//! Servers that run where measurements while they run say.

mod serving;

const WAY: hearth::Servers = hearth::Servers::Auto;

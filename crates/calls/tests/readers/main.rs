//! Each form, read by the tool that it is for. A test whose tool is missing says so.

#![allow(clippy::print_stderr, reason = "a test that is skipped says so")]

mod counts;
mod ctf;
mod fixture;
mod folded;
mod kieker;
mod otlp;
mod perfetto;

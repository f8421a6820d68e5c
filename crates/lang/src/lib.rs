//! The Insense language: text in, C11 or diagnostics out.
//!
//! A program goes through the modules in this order:
//!
//! - [`compile`]: the whole way in one file, and the door for everybody else.
//! - [`source`], [`symbol`], [`diagnostic`], [`codes`]: texts and spans, names, mistakes as data,
//!   and the story of each code.
//! - [`syntax`]: text to tokens to tree; [`format`](mod@format) prints the tree in the standard
//!   layout.
//! - [`check`]: names, types, directions. It goes on after mistakes and yields the typed [`tree`]
//!   over [`types`].
//! - [`core`]: the typed tree lowered to structured statements over pure values, and the passes.
//! - [`layout`]: the place of each variable in C structs, and C's names.
//! - [`analysis`]: the communication graph, bounds of heaps, sizes, futures.
//! - [`emit`]: resumable C functions over flat structs.
//! - [`patch`]: the text with the futures that were found written into it.
//!
//! The crate is a function of its arguments: it must never know files, the clock, the environment,
//! or the runtime beyond the C contract in `hearth.h`. The same text gives the same C.
//!
//! ```
//! use hearth_lang::compile::{self, CompileOptions};
//!
//! let program = "type I is interface(out integer x)\n\
//!                component C presents I {\n\
//!                    constructor() { }\n\
//!                    behaviour { send 1 on x }\n\
//!                }\n\
//!                c = new C()\n";
//! let compiled = compile::compile(program, "c.isf", &CompileOptions::default());
//! assert!(compiled.diagnostics.is_empty());
//! assert!(compiled.c.expect("it has no errors").contains("hearth_main"));
//!
//! let wrong = compile::compile("x = y", "wrong.isf", &CompileOptions::default());
//! assert!(wrong.c.is_none() && wrong.diagnostics[0].is_error());
//! ```
#![forbid(unsafe_code)]

pub mod compile;

pub mod codes;
pub mod diagnostic;
pub mod source;
pub mod symbol;

pub mod format;
pub mod syntax;

pub mod check;
pub mod tree;
pub mod types;

pub mod core;
pub mod layout;

pub mod analysis;
pub mod emit;

pub mod patch;

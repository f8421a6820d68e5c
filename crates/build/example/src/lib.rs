//! A Rust crate with two programs in Insense: `celsius` has only a component, for Rust to make;
//! `clerk` also has a main sequence, which makes its components.
//!
//! ```
//! use hearth::{Hearth, In, Out, block_on};
//! use hearth_build_example::celsius;
//!
//! let hearth = Hearth::start()?;
//! let (fahrenheit, degrees) = (Out::<f32>::new(), In::<f32>::new());
//! let converter = celsius::new_celsius(&hearth);
//! fahrenheit.connect_port(&converter.port("fahrenheit")?)?;
//! degrees.connect_port(&converter.port("celsius")?)?;
//! let _end = converter.run();
//! let boiling = hearth.spawn(async move {
//!     fahrenheit.send(212.0).await.unwrap();
//!     degrees.recv().await
//! });
//! assert_eq!(block_on(boiling)?, Ok(100.0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

hearth::include_insense!("celsius");
hearth::include_insense!("clerk");

//! Pictures and pages as text: data in, SVG or HTML out.
//!
//! - [`mod@line`]: lines and points over linear or logarithmic axes, with intervals and marks.
//! - [`rows`]: one figure a row, with its interval.
//! - [`bars`]: counts by class.
//! - [`heat`]: a table as colours.
//! - [`tiles`]: many equal cells, filled.
//! - [`spans`]: activities over time.
//! - [`ring`]: things that wait for each other.
//! - [`topology`]: the parts of a machine, as nested boxes.
//! - [`placement`]: components on the parts of a machine with their communication; as text, too.
//! - [`page`]: headings, tables and pictures as one HTML file that needs no network.
//!
//! A [`Picture`] goes into a page or becomes a file of its own. Either way one style sheet gives
//! its colours, for light and dark by the reader's preference. That is why pictures are drawn here
//! and not by a plotting crate: those write fixed colours into every shape.
//!
//! This crate must never know where data comes from or what it decides. All given text is plain
//! text: markup in it is escaped.
//!
//! ```
//! use hearth_draw::line::{Axis, LineChart, Point, Series};
//! use hearth_draw::page::{Page, Section};
//! use hearth_draw::scale::{Scale, Unit};
//!
//! let chart = LineChart {
//!     x: Axis::new("size", Scale::Log2, Unit::Bytes),
//!     y: Axis::new("time", Scale::Log10, Unit::Nanoseconds),
//!     series: vec![Series::line("measured", vec![Point::new(64.0, 10.0), Point::new(4096.0, 95.0)])],
//!     ..LineChart::new("Time by size")
//! };
//! let mut page = Page::new("An example");
//! page.add(Section::new("Times").picture(&chart.draw(), "One exchange, by size."));
//! assert!(page.html().starts_with("<!doctype html>"));
//! ```
#![forbid(unsafe_code)]

pub mod line;

pub mod rows;

pub mod bars;

pub mod heat;

pub mod tiles;

pub mod spans;

pub mod ring;

pub mod sequence;

pub mod topology;

pub mod placement;

pub mod page;

pub mod scale;

mod parts;
mod style;
mod svg;

pub use style::Look;
pub use svg::Picture;

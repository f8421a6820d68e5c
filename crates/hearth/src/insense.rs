//! Components written in Insense, in the same process.
//!
//! The crate `hearth-build` compiles an Insense program when Cargo builds a crate, in its
//! `build.rs`:
//!
//! ```ignore
//! fn main() {
//!     hearth_build::compile("src/thermometer.isf");
//! }
//! ```
//!
//! and [`include_insense!`](crate::include_insense) declares a module for it:
//!
//! ```ignore
//! hearth::include_insense!("thermometer");
//! ```
//!
//! That has a function for the program, and one for each kind of component whose first constructor
//! takes no arguments. The program then runs beside the components in Rust:
//!
//! ```no_run
//! # mod thermometer {
//! #     pub fn program() -> hearth::insense::Program { unimplemented!() }
//! # }
//! use hearth::{Hearth, In, Out};
//!
//! type Failure = Box<dyn std::error::Error + Send + Sync>;
//!
//! async fn measure(hearth: Hearth) -> Result<f32, Failure> {
//!     hearth.start_program(thermometer::program()).await?;
//!     let sensor = hearth.find("Sensor")?;
//!     let (period, readings) = (Out::<i32>::new(), In::<f32>::new());
//!     period.connect_port(&sensor.port("period")?)?;
//!     readings.connect_port(&sensor.port("reading")?)?;
//!     let reader = hearth.spawn(async move {
//!         period.send(100).await?;
//!         Ok::<_, Failure>(readings.recv().await?)
//!     });
//!     reader.await?
//! }
//! ```

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use hearth_runtime::embed::Foreign;
pub use hearth_runtime::embed::{ForeignType, Port, Portable, Program, Record};

use crate::error::{NoSuchPort, UncaughtException};
use crate::once::Once;

/// A component that was compiled from Insense: found by its name
/// ([`Hearth::find`](crate::Hearth::find)), or made here.
#[derive(Debug)]
pub struct Compiled {
    foreign: Foreign,
}

impl Compiled {
    /// Starts a component that [`Compiled::new`] made.
    ///
    /// # Panics
    /// Panics if it runs already, or has run.
    pub fn run(&self) -> Ending {
        let (ending, at_end) = Ending::new();
        self.foreign.start(Box::new(at_end));
        ending
    }

    pub(crate) fn found(foreign: Foreign) -> Compiled {
        Compiled { foreign }
    }

    /// Finds its port of a name.
    ///
    /// # Errors
    /// Fails with the names of its ports if there is none of this name.
    pub fn port(&self, name: &str) -> Result<Port, NoSuchPort> {
        self.foreign.port(name)
    }

    /// Asks the component to stop.
    pub fn stop(&self) {
        self.foreign.stop();
    }
}

/// The future of an Insense component's end. Dropping it leaves the component alone.
///
/// Gives an error if the component ended by an exception that nothing caught.
#[must_use = "futures do nothing unless polled"]
pub struct Ending {
    end: Arc<Once<Result<(), UncaughtException>>>,
}

impl Ending {
    /// Makes one, and the function that tells it of the end.
    pub(crate) fn new() -> (
        Ending,
        impl FnOnce(Result<(), UncaughtException>) + Send + 'static,
    ) {
        let end = Arc::new(Once::new());
        let ended = Arc::clone(&end);
        let at_end = move |result| {
            // Nobody leaves: an ending that is dropped leaves the cell as it is.
            let _ = ended.put(result);
        };
        (Ending { end }, at_end)
    }
}

impl Future for Ending {
    type Output = Result<(), UncaughtException>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.end.poll(context)
    }
}

/// Declares a Rust struct that is an Insense struct too, if that has fields of the same names and
/// types in the same order. The fields have [`Portable`] types that can be cloned.
///
/// ```
/// use hearth::insense::Record;
///
/// hearth::record! {
///     /// A reading of a sensor.
///     #[derive(Clone, Debug, PartialEq)]
///     pub struct Reading {
///         pub place: String,
///         pub degrees: f32,
///     }
/// }
///
/// let reading = Reading { place: "attic".to_owned(), degrees: 31.5 };
/// assert_eq!(Reading::from_fields(reading.to_fields()), reading);
/// ```
#[macro_export]
macro_rules! record {
    (
        $(#[$meta:meta])*
        $visible:vis struct $name:ident {
            $($(#[$field_meta:meta])* $field_visible:vis $field:ident: $of:ty),+ $(,)?
        }
    ) => {
        $(#[$meta])*
        $visible struct $name {
            $($(#[$field_meta])* $field_visible $field: $of),+
        }

        impl $crate::insense::Record for $name {
            type Fields = ($($of,)+);
            const NAMES: &'static [&'static str] = &[$(stringify!($field)),+];

            fn to_fields(&self) -> Self::Fields {
                ($(::std::clone::Clone::clone(&self.$field),)+)
            }

            fn from_fields(($($field,)+): Self::Fields) -> $name {
                $name { $($field),+ }
            }
        }
    };
}

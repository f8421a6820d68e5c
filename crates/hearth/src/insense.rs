//! Components written in Insense, in the same process.
//!
//! `hearth build --emit c` compiles an Insense program to C. What of it Rust is to know gets a name in
//! a few lines of C that include it:
//!
//! ```c
//! #define main insense_main
//! #include "thermometer.c"
//! const hearth_program *const thermometer = &program;
//! const hearth_component_type *const thermometer_sensor = &Sensor_type;
//! ```
//!
//! Compiled by a build script, with `hearth.h` at hand, these are static items to Rust:
//!
//! ```ignore
//! unsafe extern "C" {
//!     static thermometer: *const hearth_runtime::abi::Program;
//! }
//! // SAFETY: Hearth's compiler made it.
//! let program = unsafe { Program::from_raw(thermometer) }.expect("it is of this version");
//! ```
//!
//! Then the program runs beside the components in Rust:
//!
//! ```no_run
//! use hearth::insense::Program;
//! use hearth::{Error, Hearth, In, Out};
//!
//! async fn measure(hearth: Hearth, program: Program) -> Result<(), Error> {
//!     hearth.start_program(program).await?;
//!     let sensor = hearth.find("Sensor")?;
//!     let (period, readings) = (Out::<i32>::new(), In::<f32>::new());
//!     period.connect_port(&sensor.port("period")?)?;
//!     readings.connect_port(&sensor.port("reading")?)?;
//!     hearth
//!         .spawn(async move {
//!             period.send(100).await?;
//!             readings.recv().await
//!         })
//!         .await??;
//!     Ok(())
//! }
//! ```

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use hearth_runtime::embed::Foreign;
pub use hearth_runtime::embed::{ForeignType, Port, Portable, Program, Record};

use crate::error::Error;
use crate::wakers::wake;

/// A component that was compiled from Insense: found by its name
/// ([`Hearth::find`](crate::Hearth::find)), or made here.
#[derive(Debug)]
pub struct Compiled {
    foreign: Foreign,
}

impl Compiled {
    /// Makes a component of this kind. It does not run yet, so that its ports can be connected first.
    pub fn new(of: ForeignType) -> Compiled {
        Compiled { foreign: of.make() }
    }

    /// Lets a component run that was made by [`Compiled::new`].
    ///
    /// # Panics
    /// If it runs already, or has run.
    pub fn run(&self) -> Ending {
        let fate = Arc::new(Fate::default());
        let ended = Arc::clone(&fate);
        let at_end = move |result: Result<(), String>| {
            ended.end(result.map_err(|message| Error::Uncaught { message }));
        };
        self.foreign.start(Box::new(at_end));
        Ending { fate }
    }

    pub(crate) fn found(foreign: Foreign) -> Compiled {
        Compiled { foreign }
    }

    /// Its port of this name.
    ///
    /// # Errors
    /// [`Error::NoSuchPort`], which names those that there are.
    pub fn port(&self, name: &str) -> Result<Port, Error> {
        Ok(self.foreign.port(name)?)
    }

    /// Asks it to stop.
    pub fn stop(&self) {
        self.foreign.stop();
    }
}

/// What became of a component.
#[derive(Default)]
struct Fate {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    end: Option<Result<(), Error>>,
    waker: Option<Waker>,
}

impl Fate {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self, end: Result<(), Error>) {
        let waker = {
            let mut state = self.lock();
            state.end = Some(end);
            state.waker.take()
        };
        wake(waker);
    }
}

/// Waits for the end of an Insense component. Dropped, it leaves the component alone.
///
/// Gives [`Error::Uncaught`] if the component ended by an exception.
#[must_use = "futures do nothing unless polled"]
pub struct Ending {
    fate: Arc<Fate>,
}

impl Future for Ending {
    type Output = Result<(), Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let waker = context.waker().clone();
        let (end, _former) = {
            let mut state = self.fate.lock();
            match &state.end {
                Some(end) => (Poll::Ready(end.clone()), None),
                None => (Poll::Pending, state.waker.replace(waker)),
            }
        };
        end
    }
}

/// Declares a Rust struct that is an Insense struct too: of the same field names and types in the same
/// order. Fields are of [`Portable`] types that can be cloned.
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

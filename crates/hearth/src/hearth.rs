//! The runtime in this process.

use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll};

use hearth_runtime::embed::{self, AtRest, Rest, Settings};
pub use hearth_runtime::embed::{Placement, Servers};

use crate::component::{Component, Spawn};
use crate::error::Error;
use crate::insense::{Compiled, Ending, Program};
use crate::place::{Event, Plan, Station};

/// The runtime in this process, and what makes components. There is one: copies of this are the same.
///
/// Dropping it changes nothing: components run until they end or the process does.
///
/// # Beside tokio
///
/// Hearth's workers are threads of their own, and take nothing from tokio's. From async code under
/// tokio, components are joined, stopped and talked to ([`Sender`](crate::Sender),
/// [`Receiver`](crate::Receiver)) by awaiting. A component may await tokio's futures. Those that are
/// bound to tokio's timers and sockets are made within its context, or simply in a task:
///
/// ```
/// use std::time::Duration;
/// use hearth::Hearth;
///
/// #[tokio::main]
/// async fn main() -> Result<(), hearth::Error> {
///     let hearth = Hearth::start()?;
///     let tokio = tokio::runtime::Handle::current();
///     let component = hearth.spawn(async move {
///         let nap = tokio.spawn(async {
///             tokio::time::sleep(Duration::from_millis(1)).await;
///             "rested"
///         });
///         nap.await.unwrap()
///     });
///     assert_eq!(component.await?, "rested");
///     Ok(())
/// }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Hearth(());

impl Hearth {
    /// Starts the runtime with a worker a core.
    ///
    /// ```
    /// let hearth = hearth::Hearth::start()?;
    /// hearth.spawn(async {});
    /// # Ok::<(), hearth::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::AlreadyStarted`] if it runs with other settings.
    pub fn start() -> Result<Hearth, Error> {
        Hearth::builder().start()
    }

    /// Settings, and then the start.
    ///
    /// ```
    /// let hearth = hearth::Hearth::builder().workers(2).seed(7).start()?;
    /// # Ok::<(), hearth::Error>(())
    /// ```
    pub fn builder() -> Builder {
        Builder {
            settings: Settings::default(),
        }
    }

    /// Makes a component of a future, and lets it run.
    ///
    /// ```
    /// use hearth::{Hearth, block_on};
    ///
    /// let hearth = Hearth::start()?;
    /// let component = hearth.spawn(async { "hello".len() });
    /// assert_eq!(block_on(component)?, 5);
    /// # Ok::<(), hearth::Error>(())
    /// ```
    #[track_caller]
    pub fn spawn<F>(&self, future: F) -> Component<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send,
    {
        Spawn::new("", Location::caller()).spawn(future)
    }

    /// A component that is to have a name, or a place.
    ///
    /// ```
    /// use hearth::{Hearth, block_on};
    ///
    /// let hearth = Hearth::start()?;
    /// let counter = hearth.component("Counter").core(0).spawn(async { (0..10).sum::<i32>() });
    /// assert_eq!(block_on(counter)?, 45);
    /// # Ok::<(), hearth::Error>(())
    /// ```
    #[track_caller]
    pub fn component(&self, name: &str) -> Spawn {
        Spawn::new(name, Location::caller())
    }

    /// Waits until all components of the process have ended. To be awaited elsewhere: a component would
    /// wait for itself.
    ///
    /// ```
    /// use hearth::{Error, Hearth, block_on, channel};
    ///
    /// let hearth = Hearth::start()?;
    /// let (out, _into) = channel::<i32>();
    /// let left = hearth.component("Left").spawn(async move { out.send(1).await });
    /// let Err(Error::Deadlock { report }) = block_on(hearth.wait()) else {
    ///     panic!("nobody receives");
    /// };
    /// assert!(report.contains("Left"), "{report}");
    /// left.stop();
    /// assert_eq!(block_on(hearth.wait()), Ok(()));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Deadlock`] as soon as those that are left are all blocked and nothing outside can wake
    /// one. They stay as they are: what they wait for may still be connected, or they be stopped.
    pub fn wait(&self) -> Wait {
        Wait(embed::rest())
    }

    /// Starts a program that was compiled from Insense: its main sequence, as a component, which the
    /// result waits for.
    ///
    /// The page of [`insense`](crate::insense) has an example.
    ///
    /// # Panics
    /// The second time: a program's globals are there once.
    pub fn start_program(&self, program: Program) -> Ending {
        Compiled::found(program.main()).run()
    }

    /// The running Insense component of this name: `Ping`, or `Ping#2` if there are several of its
    /// kind.
    ///
    /// ```
    /// use hearth::{Error, Hearth};
    ///
    /// let hearth = Hearth::start()?;
    /// let nobody = hearth.find("Ping").unwrap_err();
    /// assert_eq!(nobody.to_string(), "there is no component Ping, or it has ended");
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NoSuchComponent`].
    pub fn find(&self, name: &str) -> Result<Compiled, Error> {
        let found = embed::find(name);
        found
            .map(Compiled::found)
            .ok_or_else(|| Error::NoSuchComponent {
                wanted: name.to_owned(),
            })
    }

    /// Where all components are that have not ended, in the order in which they were made.
    ///
    /// ```
    /// use hearth::{Hearth, block_on, channel};
    ///
    /// let hearth = Hearth::start()?;
    /// let (out, into) = channel::<i32>();
    /// let waiting = hearth.component("Waiting").spawn(async move { into.recv().await });
    /// let places = hearth.places();
    /// assert_eq!(places[0].component, "Waiting");
    /// assert_eq!((places[0].worker, places[0].moves), (Some(0), 0));
    /// drop(out);
    /// # let _ = block_on(waiting)?;
    /// # Ok::<(), hearth::Error>(())
    /// ```
    pub fn places(&self) -> Vec<Station> {
        embed::stations()
    }

    /// The names in the plan ([`Builder::plan`]) that no component has had yet, in the plan's order. Once all
    /// components are made, those are misspelt, or the plan is of another program: nobody follows it there.
    ///
    /// ```
    /// use hearth::Hearth;
    /// use hearth::place::Plan;
    ///
    /// let plan = Plan::new().put("Reader", 0).put("Wirter", 0);
    /// let hearth = Hearth::builder().plan(plan).start()?;
    /// hearth.component("Reader").spawn(async {});
    /// hearth.component("Writer").spawn(async {});
    /// assert_eq!(hearth.missing_of_plan(), ["Wirter"]);
    /// # Ok::<(), hearth::Error>(())
    /// ```
    pub fn missing_of_plan(&self) -> Vec<String> {
        embed::missing()
    }

    /// Has `listener` called from now on whenever [`Placement::Talk`] moves components, and when the
    /// CPUs that may be used have changed. A thread of Hearth's own calls it, and places nobody
    /// meanwhile. A listener that panics is not called again.
    ///
    /// ```
    /// use hearth::{Hearth, Placement};
    ///
    /// let hearth = Hearth::builder().placement(Placement::Talk).start()?;
    /// hearth.on_placement(|event| eprintln!("{event}"));
    /// # Ok::<(), hearth::Error>(())
    /// ```
    pub fn on_placement(&self, listener: impl FnMut(&Event) + Send + 'static) {
        embed::listen(Box::new(listener));
    }

    /// Takes the messages of Insense components that ended by an uncaught exception, and that nobody
    /// waits for.
    ///
    /// ```
    /// let hearth = hearth::Hearth::start()?;
    /// assert!(hearth.failures().is_empty());
    /// # Ok::<(), hearth::Error>(())
    /// ```
    pub fn failures(&self) -> Vec<String> {
        embed::failures()
    }
}

/// How to start.
///
/// ```
/// use hearth::{Hearth, Placement};
///
/// let hearth = Hearth::builder().workers(1).placement(Placement::Single).start()?;
/// # Ok::<(), hearth::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing runs before `start`"]
pub struct Builder {
    settings: Settings,
}

impl Builder {
    /// How many workers; one a core if not said.
    pub fn workers(mut self, count: usize) -> Builder {
        self.settings.workers = Some(count);
        self
    }

    /// Carries each component by a kernel thread of its own: for those that call what blocks.
    pub fn threads(mut self) -> Builder {
        self.settings.threads = true;
        self
    }

    /// Has choices among several senders follow from a seed, and not from whose turn it is.
    pub fn seed(mut self, seed: u64) -> Builder {
        self.settings.seed = Some(seed);
        self
    }

    /// Where components go that have no core of their own.
    ///
    /// The page of [`place`](crate::place) says more.
    pub fn placement(mut self, placement: Placement) -> Builder {
        self.settings.placement = placement;
        self
    }

    /// Where servers run, the components that several others send to: on a worker of their own, or on that
    /// of whoever calls them. The same code does either.
    ///
    /// ```
    /// use hearth::{Hearth, Placement, Servers, block_on, channel};
    ///
    /// let hearth = Hearth::builder()
    ///     .placement(Placement::Spread)
    ///     .servers(Servers::Synchronous)
    ///     .start()?;
    /// let (first, counted) = channel::<u64>();
    /// let second = hearth::Out::new();
    /// second.try_connect(&counted)?;
    /// let counter = hearth.component("Counter").spawn(async move {
    ///     let mut sum = 0;
    ///     while let Ok(number) = counted.recv().await {
    ///         sum += number;
    ///     }
    ///     sum
    /// });
    /// for out in [first, second] {
    ///     hearth.component("Client").spawn(async move {
    ///         for number in 1..=10 {
    ///             out.send(number).await.unwrap();
    ///         }
    ///     });
    /// }
    /// assert_eq!(block_on(counter)?, 110);
    /// # Ok::<(), hearth::Error>(())
    /// ```
    pub fn servers(mut self, servers: Servers) -> Builder {
        self.settings.servers = servers;
        self
    }

    /// Where components begin that the plan names. With [`Placement::Os`] they stay there, with
    /// [`Placement::Talk`] they move when that pays; the other policies know no plan. Which components there
    /// will be is not known yet: [`Hearth::missing_of_plan`] tells which names nobody has had.
    ///
    /// ```
    /// use hearth::Hearth;
    /// use hearth::place::Plan;
    ///
    /// let hearth = Hearth::builder().plan(Plan::new().put("Reader", 0)).start()?;
    /// hearth.component("Reader").spawn(async {});
    /// # Ok::<(), hearth::Error>(())
    /// ```
    pub fn plan(mut self, plan: Plan) -> Builder {
        self.settings.plan = Some(plan.into_places());
        self
    }

    /// What the machine is, for [`Placement::Talk`]: the text of a profile, as `hearth probe` and
    /// `hearth machine` write it. Without one, the file that `HEARTH_MACHINE` names tells; if there is
    /// none, all CPUs are taken for equally far from each other.
    pub fn machine(mut self, profile: impl Into<String>) -> Builder {
        self.settings.machine = Some(profile.into());
        self
    }

    /// Starts the runtime; with the settings of the one that runs, gives that.
    ///
    /// ```
    /// use hearth::{Error, Hearth};
    ///
    /// assert!(matches!(Hearth::builder().workers(0).start(), Err(Error::Workers { .. })));
    /// Hearth::builder().workers(2).start()?;
    /// assert!(Hearth::builder().workers(2).start().is_ok());
    /// assert_eq!(Hearth::builder().workers(3).start().unwrap_err(), Error::AlreadyStarted);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::AlreadyStarted`], [`Error::Workers`]; [`Error::Placement`] if the plan or the profile
    /// does not fit the machine or the other settings.
    pub fn start(self) -> Result<Hearth, Error> {
        embed::start(&self.settings)?;
        Ok(Hearth(()))
    }
}

/// The future of [`Hearth::wait`].
#[must_use = "futures do nothing unless polled"]
pub struct Wait(AtRest);

impl Future for Wait {
    type Output = Result<(), Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(context).map(|rest| match rest {
            Rest::Ended => Ok(()),
            Rest::Deadlock(report) => Err(Error::Deadlock { report }),
        })
    }
}

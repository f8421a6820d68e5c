//! Runtimes, and their start.

use std::future::Future;
use std::panic::Location;

use hearth_runtime::embed::{self, Runtime, Settings};
pub use hearth_runtime::embed::{Carrier, Placement, Servers};

use crate::component::{Component, ComponentBuilder};
use crate::error::{EnvironmentError, NoSuchComponent, StartError};
use crate::future::{Ending, Wait};
use crate::insense::{Compiled, ForeignType, Program};
use crate::place::{ComponentPlacement, PlacementEvent, Plan};

/// A runtime, which makes components.
///
/// Each start makes a runtime of its own: several share nothing but the machine. A clone is another
/// handle on the same runtime. When the last handle is dropped, the components that still run are
/// asked to stop, as by [`Component::stop`]; the drop waits until they have ended, and with them
/// the runtime's threads.
///
/// # Beside tokio
///
/// Hearth's workers are threads of their own and take nothing from tokio's. Async code under tokio
/// joins, stops and talks to components ([`Sender`](crate::Sender), [`Receiver`](crate::Receiver))
/// by awaiting. A component may await tokio's futures. Those that need tokio's timers and sockets
/// are made within its context, or simply in a task:
///
/// ```
/// use std::time::Duration;
/// use hearth::Hearth;
///
/// #[tokio::main]
/// async fn main() -> Result<(), Box<dyn std::error::Error>> {
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
#[derive(Clone, Debug)]
pub struct Hearth(pub(crate) Runtime);

impl Hearth {
    /// Starts the runtime with one worker a core.
    ///
    /// ```
    /// let hearth = hearth::Hearth::start()?;
    /// hearth.spawn(async {});
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Starting with these settings does not fail today.
    pub fn start() -> Result<Hearth, StartError> {
        Hearth::builder().start()
    }

    /// Returns the settings, to be changed before the start.
    ///
    /// ```
    /// let hearth = hearth::Hearth::builder().workers(2).seed(7).start()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
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
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn spawn<F>(&self, future: F) -> Component<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send,
    {
        ComponentBuilder::new(&self.0, "", Location::caller()).spawn(future)
    }

    /// Begins a component that has a name, or a place.
    ///
    /// ```
    /// use hearth::{Hearth, block_on};
    ///
    /// let hearth = Hearth::start()?;
    /// let counter = hearth.component("Counter").core(0).spawn(async { (0..10).sum::<i32>() });
    /// assert_eq!(block_on(counter)?, 45);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn component(&self, name: &str) -> ComponentBuilder {
        ComponentBuilder::new(&self.0, name, Location::caller())
    }

    /// Waits until all components of the process have ended. Await it outside of components: a
    /// component would wait for itself.
    ///
    /// ```
    /// use hearth::error::Deadlock;
    /// use hearth::{Hearth, block_on, channel};
    ///
    /// let hearth = Hearth::start()?;
    /// let (out, _into) = channel::<i32>();
    /// let left = hearth.component("Left").spawn(async move { out.send(1).await });
    /// let Err(Deadlock { report }) = block_on(hearth.wait()) else {
    ///     panic!("nobody receives");
    /// };
    /// assert!(report.contains("Left"), "{report}");
    /// left.stop();
    /// assert_eq!(block_on(hearth.wait()), Ok(()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Fails as soon as the remaining components are all blocked and nothing outside can wake one.
    /// They stay as they are: their peers may still be connected, or they may be stopped.
    pub fn wait(&self) -> Wait {
        embed::rest(&self.0)
    }

    /// Starts a program that was compiled from Insense: makes a component of its main sequence. The
    /// result waits for the end of that.
    ///
    /// The page of [`insense`](crate::insense) has an example.
    ///
    /// # Panics
    /// Panics the second time, because a program has one set of globals.
    pub fn start_program(&self, program: Program) -> Ending {
        let (ending, at_end) = Ending::new();
        program.start(&self.0, at_end);
        ending
    }

    /// True if the program's main sequence ran in this runtime and has ended. For
    /// [`include_insense!`](crate::include_insense).
    #[doc(hidden)]
    pub fn has_ended(&self, program: Program) -> bool {
        program.has_ended_in(&self.0)
    }

    /// Finds the running Insense component of a name: `Ping`, or `Ping#2` if there are several of
    /// its kind.
    ///
    /// ```
    /// use hearth::Hearth;
    ///
    /// let hearth = Hearth::start()?;
    /// let nobody = hearth.find("Ping").unwrap_err();
    /// assert_eq!(nobody.to_string(), "there is no component Ping, or it has ended");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Fails if no component has the name, or if it has ended.
    pub fn find(&self, name: &str) -> Result<Compiled, NoSuchComponent> {
        embed::find(&self.0, name).map(Compiled::found)
    }

    /// Lists the places of all components that have not ended, in the order in which they were
    /// made.
    ///
    /// ```
    /// use hearth::{Hearth, block_on, channel};
    ///
    /// let hearth = Hearth::start()?;
    /// let (out, into) = channel::<i32>();
    /// let waiting = hearth.component("Waiting").spawn(async move { into.recv().await });
    /// let placements = hearth.placements();
    /// assert_eq!(placements[0].component, "Waiting");
    /// assert_eq!((placements[0].worker, placements[0].moves), (Some(0), 0));
    /// drop(out);
    /// # let _ = block_on(waiting)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn placements(&self) -> Vec<ComponentPlacement> {
        embed::placements(&self.0)
    }

    /// Lists the names in the plan ([`Builder::plan`]) that no component has had yet, in the plan's
    /// order. Once all components are made, such a name is misspelt, or the plan belongs to another
    /// program.
    ///
    /// ```
    /// use hearth::Hearth;
    /// use hearth::place::Plan;
    ///
    /// let plan = Plan::new().put("Reader", 0).put("Wirter", 0);
    /// let hearth = Hearth::builder().plan(plan).start()?;
    /// hearth.component("Reader").spawn(async {});
    /// hearth.component("Writer").spawn(async {});
    /// assert_eq!(hearth.unmatched_plan_names(), ["Wirter"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn unmatched_plan_names(&self) -> Vec<String> {
        embed::missing(&self.0)
    }

    /// Calls `listener` from now on whenever [`Placement::Talk`] moves components, when
    /// [`Servers::Auto`] changes how a server is called, and when the usable CPUs have changed. A
    /// thread of Hearth makes the call, and places nothing meanwhile. A listener that panics is not
    /// called again.
    ///
    /// ```
    /// use hearth::{Hearth, Placement};
    ///
    /// let hearth = Hearth::builder().placement(Placement::Talk).start()?;
    /// hearth.on_placement(|event| eprintln!("{event}"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn on_placement(&self, listener: impl FnMut(&PlacementEvent) + Send + 'static) {
        embed::listen(&self.0, Box::new(listener));
    }

    /// Takes the messages of Insense components that ended by an uncaught exception and whose end
    /// nobody waits for. Each message is given once.
    ///
    /// ```
    /// let hearth = hearth::Hearth::start()?;
    /// assert!(hearth.take_failures().is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn take_failures(&self) -> Vec<String> {
        embed::failures(&self.0)
    }
}

impl Compiled {
    /// Makes a component of this kind. It does not run yet, so that its ports can be connected
    /// first.
    pub fn new(hearth: &Hearth, of: ForeignType) -> Compiled {
        Compiled::found(of.make(&hearth.0))
    }
}

/// The settings of a start.
///
/// ```
/// use hearth::{Hearth, Placement};
///
/// let hearth = Hearth::builder().workers(1).placement(Placement::Single).start()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing runs before `start`"]
pub struct Builder {
    settings: Settings,
}

impl Builder {
    /// Reads the settings from the variables `HEARTH_*` of the environment, which `hearth run
    /// --help` lists. Nothing else in this crate reads them.
    ///
    /// ```
    /// use hearth::Builder;
    ///
    /// let hearth = Builder::from_env()?.seed(7).start()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Fails if a variable has an unusable value.
    pub fn from_env() -> Result<Builder, EnvironmentError> {
        let settings = Settings::from_environment()?;
        Ok(Builder { settings })
    }

    /// Sets the number of workers. The default is one a core.
    pub fn workers(mut self, count: usize) -> Builder {
        self.settings.workers = Some(count);
        self
    }

    /// Sets the threads that run components: [`Carrier::Threads`] is for components that make
    /// blocking calls.
    ///
    /// ```
    /// use hearth::{Carrier, Hearth};
    ///
    /// let hearth = Hearth::builder().carrier(Carrier::Threads).start()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn carrier(mut self, carrier: Carrier) -> Builder {
        self.settings.carrier = carrier;
        self
    }

    /// Decides choices among several senders by a seed, and not by turn.
    pub fn seed(mut self, seed: u64) -> Builder {
        self.settings.seed = Some(seed);
        self
    }

    /// Sets the policy for components that have no core of their own.
    ///
    /// The page of [`place`](crate::place) says more.
    pub fn placement(mut self, placement: Placement) -> Builder {
        self.settings.placement = placement;
        self
    }

    /// Sets where servers run, which are components that several others send to: on a worker of
    /// their own, or on the worker of the caller. The code of the components is the same.
    ///
    /// ```
    /// use hearth::{Hearth, Placement, Servers, block_on, channel};
    ///
    /// let hearth = Hearth::builder()
    ///     .placement(Placement::Spread)
    ///     .servers(Servers::Synchronous)
    ///     .start()?;
    /// let (first, counted) = channel::<u64>();
    /// let second = first.clone();
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
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn servers(mut self, servers: Servers) -> Builder {
        self.settings.servers = servers;
        self
    }

    /// Sets the CPUs on which components begin that the plan names. With [`Placement::WithCreator`]
    /// they stay there, with [`Placement::Talk`] they move when that pays; the other policies take
    /// no plan. A name may turn out to match no component:
    /// [`Hearth::unmatched_plan_names`] lists those.
    ///
    /// ```
    /// use hearth::Hearth;
    /// use hearth::place::Plan;
    ///
    /// let hearth = Hearth::builder().plan(Plan::new().put("Reader", 0)).start()?;
    /// hearth.component("Reader").spawn(async {});
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn plan(mut self, plan: Plan) -> Builder {
        self.settings.plan = Some(plan.into_entries());
        self
    }

    /// Describes the machine, for [`Placement::Talk`]: the text of a profile, as `hearth probe` and
    /// `hearth machine` write it. Without a profile, all CPUs count as equally far from each other.
    pub fn machine(mut self, profile: impl Into<String>) -> Builder {
        self.settings.machine = Some(profile.into());
        self
    }

    /// Starts a runtime.
    ///
    /// ```
    /// use hearth::Hearth;
    /// use hearth::error::StartError;
    ///
    /// let none = Hearth::builder().workers(0).start();
    /// assert!(matches!(none, Err(StartError::Workers { asked: 0, .. })));
    /// let small = Hearth::builder().workers(1).start()?;
    /// let large = Hearth::builder().workers(2).start()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Fails if the number of workers is not possible, or if the plan or the profile does not fit
    /// the machine or the other settings.
    pub fn start(self) -> Result<Hearth, StartError> {
        Ok(Hearth(embed::start(&self.settings)?))
    }
}

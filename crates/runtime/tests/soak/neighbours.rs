//! Other runtimes in the same process, made and dropped while a round goes on: nothing of theirs
//! may reach the program's runtime, and nothing of them may be left.

use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

use hearth_runtime::embed::{
    self, Carrier, ComponentSettings, Half, JoinError, Placement, Runtime, Settings,
};

use crate::actors::Random;

/// The runtimes beside one round, each with a thread that makes it.
pub(crate) struct Neighbours(Vec<JoinHandle<u64>>);

impl Neighbours {
    /// Starts up to this many.
    pub(crate) fn new(most: usize, random: &mut Random) -> Neighbours {
        let count = random.below(most + 1);
        let threads = (0..count).map(|_| {
            let random = random.child();
            thread::spawn(move || live(random))
        });
        Neighbours(threads.collect())
    }

    /// Waits until all have ended. Returns the number of messages received in them.
    pub(crate) fn join(self) -> u64 {
        let threads = self.0.into_iter();
        threads
            .map(|thread| thread.join().expect("it has told why"))
            .sum()
    }
}

/// One runtime, from its start to its end.
fn live(mut random: Random) -> u64 {
    let runtime = embed::start(&settings(&mut random)).expect("valid settings");
    let talks: Vec<Talk> = (0..1 + random.below(6))
        .map(|_| Talk::new(&runtime, &mut random))
        .collect();
    let is_cut_short = random.once_in(2);
    if !is_cut_short {
        talks.iter().for_each(Talk::wait);
    }
    // Stops those that have not ended, and waits for their end.
    drop(runtime);
    talks.iter().map(|talk| talk.check(is_cut_short)).sum()
}

fn settings(random: &mut Random) -> Settings {
    let policies = [
        Placement::WithCreator,
        Placement::Spread,
        Placement::Random,
        Placement::Steal,
        Placement::Talk,
    ];
    let mut settings = Settings::default();
    settings.workers = Some(1 + random.below(3));
    if random.once_in(4) {
        settings.carrier = Carrier::Threads;
    }
    settings.placement = *random.one_of(&policies);
    settings
}

/// A message, counted while it exists.
struct Letter {
    number: u64,
    alive: Arc<AtomicU64>,
}

impl Letter {
    fn new(number: u64, alive: &Arc<AtomicU64>) -> Letter {
        alive.fetch_add(1, Ordering::Relaxed);
        Letter {
            number,
            alive: Arc::clone(alive),
        }
    }
}

impl Drop for Letter {
    fn drop(&mut self) {
        self.alive.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A component that sends letters, one that passes them on, and one that receives them.
struct Talk {
    letters: u64,
    alive: Arc<AtomicU64>,
    received: Arc<AtomicU64>,
    /// Number of its components that have not ended.
    running: Arc<AtomicU64>,
    panicked: Arc<AtomicU64>,
    _components: Vec<embed::Handle>,
}

impl Talk {
    fn new(runtime: &Runtime, random: &mut Random) -> Talk {
        let letters = 1 + random.below(3000) as u64;
        let (alive, received): (Arc<AtomicU64>, Arc<AtomicU64>) = Default::default();
        let [(first, passed), (second, last)] = [(); 2].map(|()| {
            let (out, into) = (Half::new(true), Half::new(false));
            embed::connect(&out, &into).expect("neither is in use");
            (out, into)
        });
        let counted = Arc::clone(&alive);
        let sends = async move {
            for number in 0..letters {
                if first.send(Letter::new(number, &counted)).await.is_err() {
                    break;
                }
            }
        };
        let passes = async move {
            while let Ok(letter) = passed.receive().await {
                if second.send(letter).await.is_err() {
                    break;
                }
            }
        };
        let count = Arc::clone(&received);
        let receives = async move {
            while let Ok(letter) = last.receive().await {
                let expected = count.fetch_add(1, Ordering::Relaxed);
                assert_eq!(letter.number, expected, "letters keep their order");
            }
        };
        let (running, panicked) = (Arc::new(AtomicU64::new(3)), Arc::<AtomicU64>::default());
        let bodies: [Body; 3] = [Box::pin(sends), Box::pin(passes), Box::pin(receives)];
        let components = bodies.map(|body| {
            let (running, panicked) = (Arc::clone(&running), Arc::clone(&panicked));
            let at_end = Box::new(move |end| {
                if matches!(end, Err(JoinError::Panicked { .. })) {
                    panicked.fetch_add(1, Ordering::Relaxed);
                }
                running.fetch_sub(1, Ordering::Release);
            });
            let settings = ComponentSettings::default();
            embed::spawn(runtime, &settings, Location::caller(), body, at_end)
        });
        Talk {
            letters,
            alive,
            received,
            running,
            panicked,
            _components: components.into(),
        }
    }

    fn wait(&self) {
        while self.running.load(Ordering::Acquire) > 0 {
            thread::yield_now();
        }
    }

    /// Checks, after the end of its runtime, that every letter arrived once and in order, up to the
    /// one where it was cut short. Returns their number.
    fn check(&self, is_cut_short: bool) -> u64 {
        assert_eq!(self.running.load(Ordering::Acquire), 0, "all are stopped");
        assert_eq!(self.panicked.load(Ordering::Relaxed), 0, "see above");
        assert_eq!(self.alive.load(Ordering::Relaxed), 0, "letters are left");
        let received = self.received.load(Ordering::Relaxed);
        assert!(received <= self.letters);
        assert!(is_cut_short || received == self.letters, "letters are lost");
        received
    }
}

type Body = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

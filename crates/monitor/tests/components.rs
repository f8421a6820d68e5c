//! Calls of components that go from thread to thread.

use std::sync::Mutex;
use std::{env, fs, process, thread};

use hearth_calls::{Recorded, Step};
use hearth_monitor::components::{self, Calls, Who};
use hearth_monitor::{Monitor, Options, Probe, Rule};
use hearth_watch::stream::Law;

static OUTER: Probe = Probe::new("Server.outer");
static INNER: Probe = Probe::new("Server.inner");

struct Component {
    number: u64,
    calls: Calls,
    /// Probes of the open calls whose beginning was noted, and whether it was.
    open: Vec<(&'static Probe, bool)>,
}

impl Component {
    fn begin(&mut self) {
        let probe = if self.open.is_empty() { &OUTER } else { &INNER };
        let who = || Who {
            kind: "Server",
            nth: self.number as u32,
        };
        let is_noted = components::begin(probe, self.number, &mut self.calls, who);
        self.open.push((probe, is_noted));
    }

    fn end(&mut self) {
        if let Some((probe, true)) = self.open.pop() {
            components::end(probe, self.number, &mut self.calls);
        }
    }
}

/// Components call, each time on another one of four threads.
fn run(components: &Mutex<Vec<Component>>, rounds: usize) {
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for round in 0..rounds {
                    let taken = components.lock().expect("no panic").pop();
                    let Some(mut component) = taken else { continue };
                    match component.open.len() {
                        0 => component.begin(),
                        3 => (0..3).for_each(|_| component.end()),
                        _ if round % 3 == 0 => component.end(),
                        _ => component.begin(),
                    }
                    components.lock().expect("no panic").insert(0, component);
                }
            });
        }
    });
}

fn made() -> Mutex<Vec<Component>> {
    let made = (1..=7).map(|number| Component {
        number,
        calls: Calls::default(),
        open: Vec::new(),
    });
    Mutex::new(made.collect())
}

/// One test, as a process has one monitor at a time.
#[test]
fn calls_go_from_thread_to_thread() {
    let file = env::temp_dir().join(format!("hearth-monitor-{}-components.calls", process::id()));
    for (law, buffer, rounds) in [
        (Law::Block, 1 << 20, 5_000),
        (Law::DropOldest, 1 << 17, 50_000),
        (Law::Sample, 1 << 17, 50_000),
    ] {
        let options = Options::to_file(&file)
            .on("*")
            .law(law)
            .buffer(buffer)
            .of_components();
        let monitor = Monitor::begin(options).expect("it begins");
        let components = made();
        run(&components, rounds);
        // Calls that are open while their probe is switched off still end.
        monitor.rule(Rule::off("*.inner"));
        run(&components, rounds);
        let mut components = components.into_inner().expect("no panic");
        for component in &mut components {
            (0..3).for_each(|_| component.end());
        }
        let report = monitor.finish();
        let recorded = Recorded::open(&file).expect("a recording");
        assert_eq!(recorded.callers(), (1..=7).collect::<Vec<_>>());
        let (mut begun, mut ended, mut unknown, mut missing) = (0, 0, 0, 0);
        let visited = recorded.visit(|step| match step {
            Step::Begins { .. } => begun += 1,
            Step::Ends { call, .. } => match call.length() {
                Some(_) => ended += 1,
                None => unknown += 1,
            },
            Step::Gap { records, .. } => missing += records,
            Step::Appears { .. } => {}
        });
        visited.expect("it is read");
        assert_eq!(missing, report.lost, "{law}");
        if law == Law::Block {
            assert_eq!((report.lost, unknown), (0, 0));
            assert_eq!(recorded.caller(3).to_string(), "Server#3");
            assert_eq!(begun, ended);
            // Two records a call, and two that name each component.
            assert_eq!(report.emitted, 2 * begun + 2 * 7);
        }
        assert!(begun > 100 && ended > 100, "{law}: {begun}, {ended}");
    }
    fs::remove_file(&file).expect("it was written");
}

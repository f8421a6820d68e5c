//! The simulator: runs a program on one thread, by a schedule that can be replayed.
//!
//! The components, half-channels and workers are the real ones; of a real run it leaves out only
//! simultaneity. Its one thread does the *steps* of all workers, one at a time: it resumes a
//! component until that waits, ends or is set aside. Every choice between two steps is a decision
//! of the [`schedule`]: made by a seed, recorded, and repeated from the same seed or its record.
//! Time is virtual ([`clock`]), and the outside comes in by a [`door`] that opens only when no
//! component can run. Meanwhile [`checks`] verify the runtime's promises, and a [`trace`] keeps the
//! events.
//!
//! `docs/internals/simulator.md` follows one step from end to end.

mod checks;
mod clock;
mod door;
mod ending;
mod schedule;
mod trace;

use std::sync::{Mutex, MutexGuard};

use crate::abi::{Component, ComponentType, Program, Site, Step, literal};
use crate::exchange::carrier::{self, Stage};
use crate::exchange::channel::Channel;
use crate::exchange::{block, collection, component, timers};
use crate::ground::options::{Collect, Policy};
use crate::ground::sync::lock_std as lock;
use crate::ground::{exits, options, output};
use crate::hooks::simulation::{self, At, Director};
use crate::report;
use crate::seats::seat::Identity;
use crate::seats::{exceptions, registry, waits};
use checks::Checks;
use ending::note_failure;
use schedule::{Kind, Schedule};
use trace::{Event, Outcome, Trace, What, Who};

/// Most steps in a row of a worker, and most operations in a row of a component without waiting,
/// while others could run; then the plain schedule, too, continues with the others.
const SLICE: u32 = 32;
/// Steps after which a worker looks at its arrivals.
const LOOK_EVERY: u64 = 8;

/// The simulation's state.
struct State {
    stage: Stage,
    schedule: Schedule,
    checks: Checks,
    trace: Trace,
    /// Steps and operations so far.
    steps: u64,
    /// The worker of the last step, and its number of steps in a row.
    worker: usize,
    streak: u32,
    /// Operations and passes in a row of the running component.
    row: u32,
    /// Step count at which all components are checked again.
    next_look: u64,
    /// Workers in the middle of a component.
    in_use: Vec<bool>,
    /// Components placed so far.
    placed: usize,
    /// A collection between two steps has begun and not ended.
    collects: bool,
    /// The failure, in a word.
    failure: Option<String>,
    /// Tells whether something is sure to come from outside at once, without any time passing.
    comes_soon: fn() -> bool,
}

static STATE: Mutex<Option<State>> = Mutex::new(None);

/// The locked state; meanwhile nothing of the runtime is called that might come back here.
struct Held(MutexGuard<'static, Option<State>>);

impl std::ops::Deref for Held {
    type Target = State;
    fn deref(&self) -> &State {
        match &*self.0 {
            Some(state) => state,
            None => unreachable!("a simulation has a state"),
        }
    }
}

impl std::ops::DerefMut for Held {
    fn deref_mut(&mut self) -> &mut State {
        match &mut *self.0 {
            Some(state) => state,
            None => unreachable!("a simulation has a state"),
        }
    }
}

fn state() -> Held {
    Held(lock(&STATE))
}

/// Begins a simulation, if one is requested: from here on its thread owns the program.
pub(crate) fn begin(program: &'static Program, comes_soon: fn() -> bool) -> bool {
    let Some(simulation) = &options::get().simulation else {
        return false;
    };
    simulation::begin(&DIRECTOR);
    exits::at_exit(ending::at_exit);
    // SAFETY: names of programs are literals.
    ending::remember_name(unsafe { literal(program.name) }.into_owned());
    let schedule = ending::schedule_of(simulation);
    struct Main(&'static Program);
    // SAFETY: programs are static and never written.
    unsafe impl Send for Main {}
    impl Main {
        fn make(self) {
            // SAFETY: a valid program has a main sequence.
            unsafe {
                let main = component::make(std::ptr::null_mut(), self.0.main, -1);
                component::start(main);
                block::release(main);
            }
        }
    }
    let main = Main(program);
    let started = Stage::start(move |stage| {
        door::belong();
        *lock(&STATE) = Some(State {
            stage,
            schedule,
            checks: Checks::default(),
            trace: Trace::default(),
            steps: 0,
            worker: 0,
            streak: 0,
            row: 0,
            next_look: 0,
            in_use: vec![false; Stage::count()],
            placed: 0,
            collects: false,
            failure: None,
            comes_soon,
        });
        main.make();
        live(stage)
    });
    if let Err(error) = started {
        exits::unfit(&format!(
            "could not start the thread of the simulation ({error}); raise ulimit -u"
        ));
    }
    true
}

/// The main loop of the simulator's thread.
fn live(stage: Stage) -> ! {
    loop {
        collect_perhaps(stage);
        if !step(stage) {
            idle(stage);
        }
        if exits::is_ending() {
            door::admit(false);
        }
    }
}

// ---- steps ------------------------------------------------------------------------------------

/// Collects between two steps if the schedule says so, as the collector's thread would: only if
/// the program has one, and something runs.
fn collect_perhaps(stage: Stage) {
    if !matches!(options::get().collect, Collect::Every(_)) {
        return;
    }
    {
        let mut state = state();
        let runs = |worker: usize| stage.has_ready(worker) || stage.has_arrivals(worker);
        if state.collects
            || !(0..Stage::count()).any(runs)
            || state.schedule.choose(Kind::Collect, 0, 2) == 0
        {
            return;
        }
        state.collects = true;
        let worker = state.worker;
        state.trace.add(worker, None, Event::Collects);
    }
    collection::collect();
    state().collects = false;
}

/// Lets workers step in the middle of a collection, which no component is the subject of.
fn meanwhile() {
    let (stage, steps) = {
        let mut state = state();
        let stage = state.stage;
        let able = |worker: &usize| {
            !state.in_use[*worker] && (stage.has_ready(*worker) || stage.has_arrivals(*worker))
        };
        let able = (0..state.in_use.len()).filter(able).count();
        let steps = state.schedule.choose(Kind::Beside, 0, 1 + 2 * able);
        if steps > 0 {
            let worker = state.worker;
            state.trace.add(worker, None, Event::CollectorStandsBy);
        }
        (stage, steps)
    };
    step_meanwhile(stage, steps);
}

/// Does some steps in the middle of another.
fn step_meanwhile(stage: Stage, steps: usize) {
    for _ in 0..steps {
        let outer = state().worker;
        let went = step(stage);
        state().worker = outer;
        if !went {
            break;
        }
    }
}

/// Does one step of some worker that is not in the middle of a component. False if no worker has
/// one.
fn step(stage: Stage) -> bool {
    fire_due();
    let Some(worker) = choose_worker(stage) else {
        return false;
    };
    count_step();
    stage_arrivals(stage, worker);
    let Some(component) = choose_component(stage, worker) else {
        return true;
    };
    // SAFETY: taken from its worker's queue.
    unsafe {
        if stage.send_off(component) {
            return true;
        }
        run(stage, worker, component);
    }
    true
}

fn count_step() {
    clock::pass();
    let steps = {
        let mut state = state();
        state.steps += 1;
        state.steps
    };
    let limit = options::get().simulation.as_ref().and_then(|one| one.steps);
    if limit.is_some_and(|limit| steps >= limit) {
        ending::out_of_steps();
    }
}

/// Chooses the worker of the next step: the last one, unless its turn is over or the schedule says
/// otherwise.
fn choose_worker(stage: Stage) -> Option<usize> {
    let mut state = state();
    let state = &mut *state;
    let count = state.in_use.len();
    let can_step = |&worker: &usize| {
        !state.in_use[worker] && (stage.has_ready(worker) || stage.has_arrivals(worker))
    };
    let first = if state.streak < SLICE { 0 } else { 1 };
    let order = (0..count).map(|offset| (state.worker + first + offset) % count);
    let able: Vec<usize> = order.filter(can_step).collect();
    if count > 1 {
        let idle: Vec<usize> = (0..count)
            .filter(|&worker| !state.in_use[worker] && !stage.has_ready(worker))
            .filter(|&worker| stage.watches(worker))
            .collect();
        let sleeper = state.schedule.choose(Kind::Sleep, 0, 1 + idle.len());
        if sleeper > 0 {
            state
                .trace
                .add(idle[sleeper - 1], None, Event::WorkerSleeps);
            stage.fall_asleep(idle[sleeper - 1]);
        }
    }
    let &plain = able.first()?;
    let worker = able[state.schedule.choose(Kind::Worker, 0, able.len())];
    if worker != plain {
        state.trace.add(worker, None, Event::WorkerGoesOn);
    }
    if worker != state.worker || state.streak >= SLICE {
        state.worker = worker;
        state.streak = 0;
    }
    state.streak += 1;
    Some(worker)
}

/// Has the worker look at its arrivals if it has nothing else to do, now and then, and when the
/// schedule says so.
fn stage_arrivals(stage: Stage, worker: usize) {
    if !stage.has_arrivals(worker) {
        return;
    }
    let looks = {
        let mut state = state();
        let must = !stage.has_ready(worker) || state.steps.is_multiple_of(LOOK_EVERY);
        if !must && state.schedule.choose(Kind::Look, worker as u64, 2) == 1 {
            state.trace.add(worker, None, Event::WorkerLooks);
            true
        } else {
            must
        }
    };
    if looks {
        stage.gather(worker);
    }
}

fn choose_component(stage: Stage, worker: usize) -> Option<*mut Component> {
    let mut state = state();
    let ready = stage.ready(worker);
    let choice = state.schedule.choose(Kind::Component, worker as u64, ready);
    let component = stage.take(worker, choice)?;
    if choice > 0 {
        // SAFETY: taken from the queue, so alive.
        let who = unsafe { Who::is(component) };
        state.trace.add(worker, Some(who), Event::IsPreferred);
    }
    Some(component)
}

/// Resumes a component until it waits, ends or is set aside.
///
/// # Safety
/// It was taken from its worker's queue.
unsafe fn run(stage: Stage, worker: usize, component: *mut Component) {
    goes_on(component);
    let outer_row = {
        let mut state = state();
        state.in_use[worker] = true;
        std::mem::take(&mut state.row)
    };
    let after = |step: Step| {
        let is_paused = {
            let mut state = state();
            // SAFETY: it has not been released yet.
            let who = unsafe { Who::is(component) };
            let record = state.checks.record(component);
            let is_paused = std::mem::take(&mut record.is_paused);
            if step != Step::Blocked && !is_paused {
                state.checks.ended(component);
                state.trace.add(worker, Some(who), Event::Ends);
            }
            is_paused
        };
        if is_paused {
            // `raised`, set at the end of its pass, means nothing here.
            // SAFETY: it waits for nothing and stands in no queue.
            unsafe { stage.put_back(component) };
        } else if step != Step::Blocked {
            // SAFETY: it has ended.
            unsafe { component::end(component, step) };
        }
    };
    // SAFETY: as the caller promises.
    unsafe { stage.resume(component, after) };
    let mut state = state();
    state.in_use[worker] = false;
    state.row = outer_row;
    drop(state);
    heed_faults();
}

/// Records that a component is about to resume: its wait has ended.
fn goes_on(component: *mut Component) {
    let mut state = state();
    if state.checks.record(component).open.is_none() {
        return;
    }
    // SAFETY: it is ready, and the simulator's.
    let (is_done, who) = unsafe { ((*component).outcome == Step::Done as u8, Who::is(component)) };
    let worker = Stage::index_of(component);
    if let Some(open) = state.checks.ends(component, is_done) {
        let outcome = if is_done {
            Outcome::Done
        } else {
            Outcome::Raised
        };
        let event = Event::GoesOn(open.what, open.site, outcome);
        state.trace.add(worker, Some(who), event);
    }
}

/// Ends the program if a check has failed.
fn heed_faults() {
    let fault = state().checks.take_fault();
    if let Some(fault) = fault {
        ending::tell_fault(fault);
    }
}

// ---- nothing to do ----------------------------------------------------------------------------

fn fire_due() {
    clock::hold_events();
    if timers::next_due().is_some_and(clock::has_come) {
        timers::fire_due(timers::now());
    }
}

/// Handles that nothing is ready: all workers fall asleep, and time passes or the outside comes in;
/// or the program has ended.
fn idle(stage: Stage) {
    for worker in 0..Stage::count() {
        stage.fall_asleep(worker);
    }
    if (0..Stage::count()).any(|worker| stage.has_ready(worker) || stage.has_arrivals(worker)) {
        return;
    }
    output::flush();
    let from_outside = waits::can_wake_any();
    let is_over =
        !from_outside && !exits::is_ending() && registry::users() > 0 && !timers::any_is_awaited();
    look_for_the_unwoken(is_over);
    if is_over {
        note_failure(|| "deadlock".to_owned());
        report::deadlock();
        exits::end(exits::FAILED);
    }
    // A file's next line arrives before any time has passed.
    if !(state().comes_soon)() && !exits::is_ending() {
        let due = [timers::next_due(), clock::next_event()];
        if let Some(due) = due.into_iter().flatten().min() {
            if !door::admit(false) {
                clock::jump_to(due);
                note(0, None, Event::Time(clock::elapsed()));
            }
            return;
        }
    }
    door::admit(true);
    note(0, None, Event::Visit);
}

/// Checks for components that were never woken. It looks through all components, so not each time
/// that nothing is ready.
fn look_for_the_unwoken(is_over: bool) {
    {
        let mut state = state();
        if !is_over && state.steps < state.next_look {
            return;
        }
        state.next_look = state.steps + registry::running() as u64;
    }
    let fault = checks::unwoken().or_else(|| is_over.then(checks::unmatched).flatten());
    if let Some(fault) = fault {
        ending::tell_fault(fault);
    }
}

fn note(worker: usize, who: Option<Who>, event: Event) {
    state().trace.add(worker, who, event);
}

// ---- what components do -----------------------------------------------------------------------

fn what(at: &At<'_>) -> What {
    match at {
        At::Send(_) => What::Send,
        At::Receive(_) => What::Receive,
        At::Acknowledge(_) => What::Acknowledge,
        At::Select(_) => What::Select,
    }
}

/// Returns the half-channel of a received value, by the chosen arm.
fn channel_of(at: &At<'_>, arm: u32) -> *const Channel {
    match at {
        At::Send(channel) | At::Receive(channel) | At::Acknowledge(channel) => channel.cast(),
        At::Select(arms) => arms
            .get(arm as usize)
            .map_or(std::ptr::null(), |arm| arm.channel.cast_const().cast()),
    }
}

/// Does an operation of the running component as the runtime does, and returns its outcome: a
/// finished operation may be followed by a pause.
///
/// # Safety
/// The component runs the calling code; `work` is the operation at these half-channels.
unsafe fn operate(
    component: *mut Component,
    at: At<'_>,
    site: *const Site,
    work: &mut dyn FnMut() -> Step,
) -> Step {
    count_step();
    // SAFETY: sites are static; the rest as the caller promises.
    unsafe {
        let site = site.as_ref().copied().unwrap_or(NOWHERE);
        {
            let mut state = state();
            let channel = channel_of(&at, 0);
            state.checks.begins(component, what(&at), channel, site);
        }
        let step = carrier::with_open_gate(component, work);
        let who = Who::is(component);
        let worker = Stage::index_of(component);
        let pauses = {
            let mut state = state();
            let outcome = match step {
                Step::Done => Outcome::Done,
                Step::Blocked => Outcome::Waits,
                Step::Raised => Outcome::Raised,
            };
            let event = Event::Operation(what(&at), site, outcome);
            state.trace.add(worker, Some(who), event);
            if step == Step::Blocked {
                state.checks.waits(component);
                return step;
            }
            if let (Step::Done, Some(into)) = (step, channel_of(&at, (*component).arm).as_ref())
                && what(&at) != What::Send
                && options::get().seed.is_none()
            {
                state.checks.took(into);
            }
            state.checks.ends(component, step == Step::Done);
            step == Step::Done && state.sets_aside(component, worker)
        };
        heed_faults();
        if !pauses {
            return step;
        }
        (*component).outcome = Step::Done as u8;
        Step::Blocked
    }
}

const NOWHERE: Site = Site {
    file: std::ptr::null(),
    line: 0,
    column: 0,
    text: std::ptr::null(),
};

impl State {
    /// Returns the worker for a new component, and the plain schedule's choice.
    fn place(&mut self, request: i32, identity: &Identity) -> (usize, usize) {
        let count = self.in_use.len();
        let asked = usize::try_from(request).ok().map(|core| core % count);
        let fixed = match options::get().policy {
            Policy::Single => Some(0),
            _ if identity.id == registry::MAIN => Some(0),
            _ => None,
        };
        if let Some(worker) = asked.or(fixed) {
            return (worker, worker);
        }
        let plain = if identity.service {
            self.worker
        } else {
            self.placed += 1;
            (self.placed - 1) % count
        };
        if options::get().policy == Policy::Spread {
            return (plain, plain);
        }
        let choice = self.schedule.choose(Kind::Place, identity.id, count);
        ((plain + choice) % count, plain)
    }

    /// Decides whether the running component is set aside after its operation.
    ///
    /// # Safety
    /// It is alive.
    unsafe fn sets_aside(&mut self, component: *mut Component, worker: usize) -> bool {
        self.row += 1;
        // SAFETY: as the caller promises.
        let who = unsafe { Who::is(component) };
        let chosen = self.schedule.choose(Kind::Pause, who.id, 2) == 1;
        if chosen {
            self.trace.add(worker, Some(who), Event::Paused);
        }
        let pauses = chosen || self.row >= SLICE;
        if pauses {
            self.checks.record(component).is_paused = true;
        }
        pauses
    }
}

/// Has a new component report the end of each of its passes.
///
/// # Safety
/// It was just made.
unsafe fn made(component: *mut Component, passes: u64) {
    // SAFETY: as the caller promises.
    unsafe {
        state().checks.made(component, passes);
        (*component).passes_left = 1;
    }
}

/// Counts a finished pass, and decides whether the component is set aside before the next.
///
/// # Safety
/// The component runs the calling code, and begins another pass unless set aside.
unsafe fn ends_pass(component: *mut Component) {
    count_step();
    let mut state = state();
    let record = state.checks.record(component);
    record.passes -= 1;
    let is_over = record.passes == 0;
    // SAFETY: as the caller promises.
    unsafe { (*component).passes_left = u32::from(!is_over) };
}

/// Decides whether a component about to begin its next pass is set aside.
///
/// # Safety
/// As for `ends_pass`. If so, it returns to its carrier.
unsafe fn pauses_between_passes(component: *mut Component) -> bool {
    let worker = Stage::index_of(component);
    // SAFETY: as the caller promises.
    unsafe { state().sets_aside(component, worker) }
}

/// Has the running component do something visible to others: other workers may step first, then
/// `work` runs with the gate open.
///
/// # Safety
/// The component runs the calling code and holds no lock.
unsafe fn deed(
    component: *mut Component,
    words: &'static str,
    site: *const Site,
    work: &mut dyn FnMut(),
) {
    count_step();
    // SAFETY: as the caller promises.
    unsafe {
        let who = Who::is(component);
        let worker = Stage::index_of(component);
        let (stage, others_go_first) = {
            let mut state = state();
            let stage = state.stage;
            let others = (0..state.in_use.len())
                .filter(|&other| !state.in_use[other] && stage.has_ready(other))
                .count();
            let steps = state.schedule.choose(Kind::Beside, who.id, 1 + 2 * others);
            if steps > 0 {
                state.trace.add(worker, Some(who), Event::StandsBy);
            }
            (stage, steps)
        };
        step_meanwhile(stage, others_go_first);
        if !words.is_empty() {
            note(
                worker,
                Some(who),
                Event::Deed(words, site.as_ref().copied()),
            );
        }
        carrier::with_open_gate(component, work);
    }
}

/// Chooses the worker of a new component without a core of its own: in turn, or as the schedule
/// says. In the plain schedule, the main sequence and services stay with their creator.
fn place(request: i32, of: *const ComponentType, identity: &Identity) -> usize {
    let mut state = state();
    let (worker, plain) = state.place(request, identity);
    let event = match worker == plain {
        true => Event::IsMade,
        false => Event::IsPlaced(plain),
    };
    let who = Who::will_be(identity, of);
    state.trace.add(worker, Some(who), event);
    worker
}

/// The simulator's functions that the exchange calls.
static DIRECTOR: Director = Director {
    operate,
    deed,
    beside: |subject, options| state().schedule.choose(Kind::Record, subject, options),
    place,
    made,
    ends_pass,
    pauses_between_passes,
    passed: |from, to| state().checks.passed(from, to),
    ticked: |to| state().checks.ticked(to),
    enter: door::enter,
    leave: door::leave,
    now: clock::now,
    after: clock::after,
    seed: ending::seed,
    workers: ending::workers,
    // SAFETY: its carrier still has the component.
    failed: |seat| note_failure(|| unsafe { exceptions::uncaught_kind(seat) }),
    meanwhile,
};

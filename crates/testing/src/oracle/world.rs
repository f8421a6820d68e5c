//! Concurrent components: the schedule, half-channels and rendezvous.

use super::Escape;
use super::value::{Half, Instance, Value};
use crate::random::Random;
use crate::tree::SEND_STATUS_UNKNOWN;
use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

pub(super) type Task<'p> = Pin<Box<dyn Future<Output = ()> + 'p>>;

/// The tasks, in the order of their components' numbers.
#[derive(Default)]
pub(super) struct Schedule<'p> {
    tasks: Vec<Option<Task<'p>>>,
}

impl<'p> Schedule<'p> {
    pub(super) fn add(&mut self, number: usize, task: Task<'p>) {
        debug_assert_eq!(number, self.tasks.len());
        self.tasks.push(Some(task));
    }

    /// Resumes one runnable component. False if there is none.
    pub(super) fn step(&mut self, world: &World) -> bool {
        let runnable: Vec<usize> = (0..self.tasks.len())
            .filter(|&number| self.tasks[number].is_some() && !world.is_waiting(number))
            .collect();
        if runnable.is_empty() || world.state.borrow().all_ended {
            return false;
        }
        let number = runnable[world.choose(runnable.len())];
        if let Some(task) = &mut self.tasks[number] {
            let mut context = Context::from_waker(Waker::noop());
            if task.as_mut().poll(&mut context).is_ready() {
                self.tasks[number] = None;
            }
        }
        // Components created in this step are not started any more.
        let all_ended = world.state.borrow().all_ended;
        if all_ended {
            self.tasks.clear();
        }
        !all_ended
    }

    pub(super) fn any_left(&self) -> bool {
        self.tasks.iter().any(Option::is_some)
    }
}

/// End of a wait.
#[derive(Debug)]
enum Wake {
    /// A send was taken.
    Sent,
    /// A value came through this arm; with the sender to release if it was acknowledged.
    Received(usize, Value, Option<Held>),
    Refused,
    Stopped,
}

/// A sender that an `acknowledge` holds: its component's number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held(usize);

/// A pending receive: arms as (half, acknowledge).
struct Receiver {
    number: usize,
    arms: Vec<(Rc<Half>, bool)>,
}

struct Sender {
    number: usize,
    half: Rc<Half>,
    value: Value,
}

#[derive(Default)]
struct State {
    wakes: Vec<Option<Wake>>,
    waiting: Vec<bool>,
    stopped: Vec<bool>,
    instances: Vec<Rc<Instance>>,
    born: Vec<(Rc<Instance>, usize, Vec<Value>)>,
    senders: Vec<Sender>,
    receivers: Vec<Receiver>,
    halves: usize,
    all_ended: bool,
}

pub(super) struct World {
    state: RefCell<State>,
    random: RefCell<Random>,
}

impl World {
    pub(super) fn new(seed: u64) -> Self {
        World {
            state: RefCell::default(),
            random: RefCell::new(Random::new(seed)),
        }
    }

    fn choose(&self, count: usize) -> usize {
        self.random.borrow_mut().below(count)
    }

    /// Gives an instance its place.
    pub(super) fn admit(&self, instance: Rc<Instance>) -> Rc<Instance> {
        let mut state = self.state.borrow_mut();
        state.wakes.push(None);
        state.waiting.push(false);
        state.stopped.push(false);
        state.instances.push(instance.clone());
        instance
    }

    pub(super) fn create(
        &self,
        component: usize,
        ports: usize,
        constructor: usize,
        args: Vec<Value>,
    ) -> Rc<Instance> {
        let ports = (0..ports).map(|_| self.half()).collect();
        let number = self.state.borrow().instances.len();
        let instance = self.admit(Rc::new(Instance::new(number, component, ports)));
        let mut state = self.state.borrow_mut();
        state.born.push((instance.clone(), constructor, args));
        instance
    }

    pub(super) fn take_born(&self) -> Vec<(Rc<Instance>, usize, Vec<Value>)> {
        std::mem::take(&mut self.state.borrow_mut().born)
    }

    pub(super) fn half(&self) -> Rc<Half> {
        let mut state = self.state.borrow_mut();
        state.halves += 1;
        Rc::new(Half {
            id: state.halves,
            peers: RefCell::default(),
        })
    }

    fn is_waiting(&self, number: usize) -> bool {
        let state = self.state.borrow();
        state.waiting[number] && state.wakes[number].is_none()
    }

    pub(super) fn is_stopped(&self, number: usize) -> bool {
        self.state.borrow().stopped[number]
    }

    pub(super) fn end_all(&self) {
        self.state.borrow_mut().all_ended = true;
    }

    /// Ends a component: its channels lose their peers.
    pub(super) fn retire(&self, instance: &Instance) {
        instance.ended.set(true);
        for half in instance.ports.borrow().iter() {
            self.disconnect(half);
        }
    }

    pub(super) fn stop(&self, number: usize) {
        let mut state = self.state.borrow_mut();
        state.stopped[number] = true;
        if state.waiting[number] && state.wakes[number].is_none() {
            state.wakes[number] = Some(Wake::Stopped);
            state.senders.retain(|sender| sender.number != number);
            state.receivers.retain(|receiver| receiver.number != number);
        }
    }

    /// Lets others run, sometimes.
    pub(super) async fn breathe(&self, _number: usize) {
        let mut yields = self.choose(3);
        poll_fn(|_| {
            if yields == 0 {
                return Poll::Ready(());
            }
            yields -= 1;
            Poll::Pending
        })
        .await;
    }

    async fn wait(&self, number: usize) -> Wake {
        self.state.borrow_mut().waiting[number] = true;
        poll_fn(|_| {
            let mut state = self.state.borrow_mut();
            match state.wakes[number].take() {
                Some(wake) => {
                    state.waiting[number] = false;
                    Poll::Ready(wake)
                }
                None => Poll::Pending,
            }
        })
        .await
    }

    pub(super) fn connect(&self, a: &Rc<Half>, b: &Rc<Half>) {
        if !a.peers.borrow().iter().any(|peer| peer.id == b.id) {
            a.peers.borrow_mut().push(b.clone());
            b.peers.borrow_mut().push(a.clone());
        }
        self.match_up();
    }

    pub(super) fn disconnect(&self, half: &Rc<Half>) {
        for peer in half.peers.borrow_mut().drain(..) {
            peer.peers.borrow_mut().retain(|other| other.id != half.id);
        }
    }

    pub(super) async fn send(
        &self,
        number: usize,
        half: Rc<Half>,
        value: Value,
    ) -> Result<(), Escape> {
        self.breathe(number).await;
        if self.is_stopped(number) {
            return Err(Escape::Stop);
        }
        let value = value.deep_copy();
        self.state.borrow_mut().senders.push(Sender {
            number,
            half,
            value,
        });
        self.match_up();
        match self.wait(number).await {
            Wake::Refused => Err(Escape::Raise(SEND_STATUS_UNKNOWN)),
            Wake::Stopped => Err(Escape::Stop),
            _ => Ok(()),
        }
    }

    /// The chosen arm, its value and the sender to release afterwards. With a default: None if
    /// nothing is ready.
    pub(super) async fn receive(
        &self,
        number: usize,
        arms: Vec<(Rc<Half>, bool)>,
        has_default: bool,
    ) -> Result<Option<(usize, Value, Option<Held>)>, Escape> {
        self.breathe(number).await;
        if self.is_stopped(number) {
            return Err(Escape::Stop);
        }
        self.state
            .borrow_mut()
            .receivers
            .push(Receiver { number, arms });
        self.match_up();
        {
            let mut state = self.state.borrow_mut();
            if has_default && state.wakes[number].is_none() {
                state.receivers.retain(|receiver| receiver.number != number);
                return Ok(None);
            }
        }
        match self.wait(number).await {
            Wake::Received(arm, value, held) => Ok(Some((arm, value, held))),
            Wake::Stopped => Err(Escape::Stop),
            other => unreachable!("a receive woken by {other:?}"),
        }
    }

    pub(super) fn release(&self, held: Held, ok: bool) {
        let wake = if ok { Wake::Sent } else { Wake::Refused };
        let mut state = self.state.borrow_mut();
        if !state.stopped[held.0] {
            state.wakes[held.0] = Some(wake);
        }
    }

    /// Completes every possible rendezvous, choosing partners by the seed.
    fn match_up(&self) {
        loop {
            let mut state = self.state.borrow_mut();
            let mut ready = Vec::new();
            for (s, sender) in state.senders.iter().enumerate() {
                for (r, receiver) in state.receivers.iter().enumerate() {
                    for (arm, (half, _)) in receiver.arms.iter().enumerate() {
                        let joined = sender.half.peers.borrow();
                        if joined.iter().any(|peer| peer.id == half.id) {
                            ready.push((s, r, arm));
                        }
                    }
                }
            }
            if ready.is_empty() {
                return;
            }
            let (s, r, mut arm) = ready[self.choose(ready.len())];
            let sender = state.senders.remove(s);
            let receiver = state.receivers.remove(r);
            // Of two arms on one channel the first open one wins.
            let chosen = receiver.arms[arm].0.id;
            arm = receiver
                .arms
                .iter()
                .position(|(half, _)| half.id == chosen)
                .unwrap_or(arm);
            let acknowledges = receiver.arms[arm].1;
            let held = acknowledges.then_some(Held(sender.number));
            state.wakes[receiver.number] = Some(Wake::Received(arm, sender.value, held));
            if !acknowledges {
                state.wakes[sender.number] = Some(Wake::Sent);
            }
        }
    }
}

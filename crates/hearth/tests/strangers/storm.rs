//! Operations that are begun, dropped here and there, handed to threads and forgotten, in an order
//! that a seed decides, while a thread wakes components and drops futures. All components must end
//! and all values must be whole; memory that is freed too early shows in `./x memcheck`.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use super::elsewhere::Task;
use super::{own_pair, pause, take_what_is_free};
use crate::start;
use fastrand::Rng;
use hearth::{In, Out, block_on, connect, select};

const STORMS: u64 = if cfg!(miri) { 1 } else { 40 };
const COMPONENTS: u64 = if cfg!(miri) { 2 } else { 5 };
const DEEDS: usize = if cfg!(miri) { 4 } else { 12 };
const VALUE: u64 = 0x0123_4567_89ab_cdef;

/// Futures and wakers that the components and the disturbing thread share.
#[derive(Default)]
struct Bag {
    tasks: Mutex<Vec<Task>>,
    wakers: Mutex<Vec<Waker>>,
}

impl Bag {
    fn drop_one(&self) {
        let task = self.tasks.lock().unwrap().pop();
        drop(task);
    }

    fn ring(&self, number: usize) {
        let waker = {
            let wakers = self.wakers.lock().unwrap();
            wakers.get(number % wakers.len().max(1)).cloned()
        };
        waker.inspect(Waker::wake_by_ref);
    }
}

type Ends = (Vec<Arc<Out<Box<u64>>>>, Vec<Arc<In<Box<u64>>>>);

/// Makes four outs and four ins, some with two peers.
fn ends(rng: &mut Rng) -> Ends {
    let ends: Ends = (
        (0..4).map(|_| Arc::default()).collect(),
        (0..4).map(|_| Arc::default()).collect(),
    );
    for (index, out) in ends.0.iter().enumerate() {
        connect(out, &ends.1[index]);
        if rng.bool() {
            connect(out, &ends.1[(index + 1) % 4]);
        }
    }
    ends
}

/// Makes an operation on shared half-channels, or on its own ones.
fn task(rng: &mut Rng, (outs, ins): &Ends) -> Task {
    let (out, into) = (rng.choice(outs).cloned(), rng.choice(ins).cloned());
    let other = rng.choice(ins).cloned();
    match (rng.u8(0..6), out, into, other) {
        (0, Some(out), ..) => Box::pin(async move {
            let _ = out.send(Box::new(VALUE)).await;
        }),
        (1, _, Some(into), Some(other)) => Box::pin(async move {
            let _ = select((&*into, &*other)).await;
        }),
        (2, _, Some(into), _) => Box::pin(async move {
            if let Ok(value) = into.recv().await {
                assert_eq!(*value, VALUE);
            }
        }),
        (3, ..) => {
            let (out, into) = own_pair::<Box<u64>>();
            Box::pin(async move {
                let _into = into;
                let _ = out.send(Box::new(VALUE)).await;
            })
        }
        (4, ..) => {
            let (out, into) = own_pair::<u32>();
            Box::pin(async move {
                let _out = out;
                let _ = into.recv().await;
            })
        }
        _ => {
            let ((out, into), (other_out, other)) = (own_pair::<Box<u64>>(), own_pair::<u8>());
            Box::pin(async move {
                let _outs = (out, other_out);
                let _ = select((&into, &other)).await;
            })
        }
    }
}

/// Looks at the component's waker.
async fn with_waker<R>(look: impl FnOnce(&Waker) -> R) -> R {
    let mut look = Some(look);
    std::future::poll_fn(move |context| match look.take() {
        Some(look) => Poll::Ready(look(context.waker())),
        None => Poll::Pending,
    })
    .await
}

async fn deed(rng: &mut Rng, bag: &Bag, ends: &mut Ends) {
    let mut task = task(rng, ends);
    let is_own = rng.bool();
    with_waker(|waker| {
        let waker = if is_own { waker } else { Waker::noop() };
        let _ = Pin::new(&mut task).poll(&mut Context::from_waker(waker));
    })
    .await;
    match rng.u8(0..8) {
        0 => bag.tasks.lock().unwrap().push(task),
        1 => bag.drop_one(),
        2 => {
            let place = rng.usize(0..4);
            drop((place < ends.0.len()).then(|| ends.0.swap_remove(place)));
        }
        3 => {
            drop(task);
            let place = rng.usize(0..4);
            drop((place < ends.1.len()).then(|| ends.1.swap_remove(place)));
        }
        4 if rng.u8(0..6) == 0 => std::mem::forget(task),
        5 | 6 => {
            if rng.bool() {
                // Woken already, the component hears nothing more before it waits.
                with_waker(Waker::wake_by_ref).await;
            }
            let thread = std::thread::spawn(move || drop(task));
            if rng.bool() {
                thread.join().unwrap();
                take_what_is_free();
            }
        }
        _ => {
            pause().await;
            drop(task);
        }
    }
    if rng.bool() {
        pause().await;
    }
}

#[test]
fn a_storm() {
    let hearth = start();
    for storm in 0..STORMS {
        let mut rng = Rng::with_seed(storm);
        let mut ends = ends(&mut rng);
        let bag: Arc<Bag> = Arc::default();
        let components: Vec<_> = (0..COMPONENTS)
            .map(|_| {
                let (mut rng, mut ends, bag) = (rng.fork(), ends.clone(), Arc::clone(&bag));
                hearth.spawn(async move {
                    with_waker(|waker| bag.wakers.lock().unwrap().push(waker.clone())).await;
                    for _ in 0..DEEDS {
                        deed(&mut rng, &bag, &mut ends).await;
                    }
                })
            })
            .collect();
        let disturber = {
            let bag = Arc::clone(&bag);
            std::thread::spawn(move || {
                for step in 0..5 * DEEDS {
                    bag.ring(7 * step);
                    if step % 5 == 0 {
                        bag.drop_one();
                        drop((ends.0.pop(), ends.1.pop()));
                    }
                    std::thread::yield_now();
                }
            })
        };
        disturber.join().unwrap();
        for component in &components {
            component.stop();
        }
        for component in components {
            // A component that was not done is stopped; none panics.
            let end = block_on(component);
            assert!(
                matches!(end, Ok(()) | Err(hearth::error::JoinError::Stopped)),
                "{end:?}"
            );
        }
    }
}

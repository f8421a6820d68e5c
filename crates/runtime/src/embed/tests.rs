//! Slots, and records, whose user code reads the fields while a component's heap is in use.

use std::future::Future;
use std::panic::Location;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::task::{Context, Poll, Waker};

use super::slot::ValueSlot;
use super::*;

/// A record's action while it gives its fields, or is made of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Talk {
    Nothing,
    Receives,
    Panics,
}

/// The action of the next record, by kind.
static TELLS: Mutex<[Talk; 2]> = Mutex::new([Talk::Nothing; 2]);
/// The half-channel that records receive from.
static OTHER: Mutex<Option<Half<Vec<i32>>>> = Mutex::new(None);
/// Held by each test: the statics above are shared.
static ONE_BY_ONE: Mutex<()> = Mutex::new(());

#[derive(Debug, PartialEq)]
struct Reading {
    place: String,
    numbers: Vec<i32>,
}

fn talk(way: usize) {
    let talk = std::mem::replace(&mut lock(&TELLS)[way], Talk::Nothing);
    match talk {
        Talk::Nothing => {}
        Talk::Panics => panic!("a record's"),
        Talk::Receives => {
            let other = lock(&OTHER);
            let other = other.as_ref().expect("set before");
            let mut receive = other.receive();
            // A sender waits there with a value, so it would finish at once.
            assert!(poll(&mut receive).is_pending(), "nothing begins");
        }
    }
}

impl Record for Reading {
    type Fields = (String, Vec<i32>);
    const NAMES: &'static [&'static str] = &["place", "numbers"];
    fn to_fields(&self) -> Self::Fields {
        talk(0);
        (self.place.clone(), self.numbers.clone())
    }
    fn from_fields((place, numbers): Self::Fields) -> Reading {
        talk(1);
        Reading { place, numbers }
    }
}

fn poll<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

/// Makes records receive where a component waits to send.
fn serve_others() {
    let (out, into) = as_objects::<Vec<i32>>();
    *lock(&OTHER) = Some(into);
    let send = async move { drop(out.send(vec![9; 9]).await) };
    let _handle = spawn(
        runtime(),
        &one_place(),
        Location::caller(),
        Box::pin(send),
        Box::new(drop),
    );
}

/// An out and an in whose values travel as objects, as if Insense were at the other end.
fn as_objects<T: Portable>() -> (Half<T>, Half<T>) {
    let (out, into) = (Half::new(true), Half::new(false));
    out.connect_port(&Port::unowned::<T>(false)).unwrap();
    connect(&out, &into).unwrap();
    (out, into)
}

/// Runs a component to its end.
fn run(body: impl Future<Output = ()> + std::marker::Send + 'static) -> End {
    let (says, said) = mpsc::channel();
    let at_end = Box::new(move |end| says.send(end).unwrap());
    let _handle = spawn(
        runtime(),
        &one_place(),
        Location::caller(),
        Box::pin(body),
        at_end,
    );
    said.recv().unwrap()
}

/// The runtime of these tests.
fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| start(&Settings::default()).unwrap())
}

fn started() -> std::sync::MutexGuard<'static, ()> {
    lock(&ONE_BY_ONE)
}

/// Settings that put all components on one worker, where they run in turn.
fn one_place() -> ComponentSettings {
    ComponentSettings {
        core: Some(0),
        ..ComponentSettings::default()
    }
}

fn reading() -> Reading {
    Reading {
        place: "attic".to_owned(),
        numbers: vec![1, 2, 3],
    }
}

/// Sends a record from one component to another, with this action on the way.
fn passed(way: usize, what: Talk) -> (End, End, Option<Reading>) {
    let (out, into) = as_objects::<Reading>();
    serve_others();
    lock(&TELLS)[way] = what;
    let received = Arc::new(Mutex::new(None));
    let place = Arc::clone(&received);
    let (says, said) = mpsc::channel();
    let at_end = Box::new(move |end| says.send(end).unwrap());
    let receiver = async move {
        if let Ok(reading) = into.receive().await {
            *lock(&place) = Some(reading);
        }
    };
    let _handle = spawn(
        runtime(),
        &one_place(),
        Location::caller(),
        Box::pin(receiver),
        at_end,
    );
    let sent = run(async move {
        let _ = out.send(reading()).await;
    });
    let ended = said.recv().unwrap();
    lock(&OTHER).take();
    let received = lock(&received).take();
    (sent, ended, received)
}

#[test]
fn a_record_begins_nothing_where_it_is_told() {
    let _started = started();
    for way in 0..2 {
        let (sent, ended, received) = passed(way, Talk::Receives);
        assert_eq!((sent, ended), (Ok(()), Ok(())), "{way}");
        assert_eq!(received, Some(reading()));
    }
}

#[test]
fn a_record_panics_where_it_is_told() {
    let _started = started();
    let panicked = End::Err(JoinError::Panicked {
        message: "a record's".to_owned(),
    });
    let (sent, ended, received) = passed(0, Talk::Panics);
    // The receiver learns that no peer is left.
    assert_eq!((sent, ended), (panicked.clone(), Ok(())));
    assert_eq!(received, None);
    let (sent, ended, received) = passed(1, Talk::Panics);
    assert_eq!((sent, ended), (Ok(()), panicked));
    assert_eq!(received, None);
}

/// The value of a dropped receive becomes a record as a chore.
#[test]
fn a_record_that_nobody_wants_is_kept_though_it_talks() {
    let _started = started();
    for what in [Talk::Nothing, Talk::Receives, Talk::Panics] {
        let (out, into) = as_objects::<Reading>();
        serve_others();
        let kept = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&kept);
        let (says, said) = mpsc::channel();
        let at_end = Box::new(move |end| says.send(end).unwrap());
        let receiver = async move {
            let mut receive = into.receive();
            assert!(poll(&mut receive).is_pending());
            // Until it has come: the sender has continued.
            let mut is_over = false;
            std::future::poll_fn(|_| match std::mem::replace(&mut is_over, true) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            })
            .await;
            lock(&TELLS)[1] = what;
            drop(receive);
            if let Ok(kept) = into.try_receive() {
                assert_eq!(kept, reading());
                count.fetch_add(1, Ordering::Relaxed);
            }
        };
        let _handle = spawn(
            runtime(),
            &one_place(),
            Location::caller(),
            Box::pin(receiver),
            at_end,
        );
        let sent = run(async move {
            let mut send = pin!(out.send(reading()));
            let _ = send.as_mut().await;
        });
        assert_eq!(sent, Ok(()));
        let (end, count) = match what {
            Talk::Panics => (
                Err(JoinError::Panicked {
                    message: "a record's".to_owned(),
                }),
                0,
            ),
            _ => (Ok(()), 1),
        };
        assert_eq!(said.recv().unwrap(), end, "{what:?}");
        assert_eq!(kept.load(Ordering::Relaxed), count, "{what:?}");
        lock(&OTHER).take();
    }
}

/// A port is listed once, however often it is connected: each list that has it holds a reference.
#[test]
fn a_port_is_connected_again() {
    let _started = started();
    let out = Half::<i32>::new(true);
    let port = Port::unowned::<i32>(false);
    for _ in 0..3 {
        out.connect_port(&port).unwrap();
    }
    assert_eq!(port.references(), 2);
    drop(out);
    assert_eq!(port.references(), 1);
}

/// A value is dropped with its room, and the room goes even if the value panics.
#[test]
fn a_slot_gives_its_value_away_whole() {
    static DROPPED: AtomicBool = AtomicBool::new(false);
    struct Value([u64; 20]);
    impl Drop for Value {
        fn drop(&mut self) {
            assert_eq!(self.0, [7; 20]);
            DROPPED.store(true, Ordering::Relaxed);
            panic!("a value's");
        }
    }
    let mut slot = ValueSlot::new();
    slot.put(String::from("first"));
    // SAFETY: that was put in.
    assert_eq!(unsafe { slot.take::<String>() }.as_deref(), Some("first"));
    slot.put(Value([7; 20]));
    let whole = slot.take_whole();
    assert!(slot.take_whole().is_none());
    // The slot is free while the value is dropped.
    slot.put([1_u8; 300]);
    assert_eq!(
        crate::ground::calls::call(|| drop(whole)),
        Err("a value's".to_owned())
    );
    assert!(DROPPED.load(Ordering::Relaxed));
    // SAFETY: that was put in.
    assert_eq!(unsafe { slot.take::<[u8; 300]>() }, Some([1; 300]));
}

//! Sending and receiving as futures.

use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::codec::Manner;
use super::error::{ReceiveError, SendError, TryReceiveError};
use super::half::{Half, Left, collect};
use super::life::{How, Leftover, Life, with_current};
use super::slot::ValueSlot;
use super::{bell, site};
use crate::abi::{Arm, DEFAULT, Step, Value};
use crate::c;

/// The future of a send.
#[must_use = "futures do nothing unless polled"]
pub struct Send<'a, T: std::marker::Send + 'static> {
    half: &'a Half<T>,
    /// Absent while the component holds it.
    value: Option<T>,
    began: Began,
    location: &'static Location<'static>,
}

/// The life and number of an operation, once begun.
#[derive(Clone, Copy, Default)]
pub(super) struct Began {
    pub(super) life: u64,
    pub(super) number: u64,
}

impl Began {
    pub(super) fn is_open(self) -> bool {
        self.number != 0
    }

    /// Takes its ending, if it has ended. Panics in another component than the one where it began.
    pub(super) fn end(&mut self, life: &Life, context: &Context<'_>) -> Option<How> {
        assert!(
            self.life == life.id,
            "an operation goes on in the component where it began"
        );
        let how = life.take_end(self.number);
        match how {
            Some(_) => *self = Began::default(),
            None => life.remember(context),
        }
        how
    }
}

// Nothing is pinned: a value lent to the runtime is in the component.
impl<T: std::marker::Send + 'static> Unpin for Send<'_, T> {}

impl<T: std::marker::Send + 'static> Half<T> {
    /// Sends a value once a receiver takes it.
    #[track_caller]
    pub fn send(&self, value: T) -> Send<'_, T> {
        Send {
            half: self,
            value: Some(value),
            began: Began::default(),
            location: Location::caller(),
        }
    }

    /// Receives a value once a sender offers one.
    #[track_caller]
    pub fn receive(&self) -> Receive<'_, T> {
        Receive {
            half: self,
            began: Began::default(),
            location: Location::caller(),
        }
    }

    /// Receives a value if a sender waits with one.
    #[track_caller]
    pub fn try_receive(&self) -> Result<T, TryReceiveError> {
        let location = Location::caller();
        if let Some(value) = self.take_returned() {
            return Ok(value);
        }
        with_current(|life| {
            let life = life.ok_or(TryReceiveError::NotInComponent)?;
            if self.is_lost() {
                return Err(TryReceiveError::Disconnected);
            }
            if !life.is_free() {
                return Err(TryReceiveError::Empty);
            }
            let site = site::of(location, std::any::type_name::<Self>());
            let arm = Arm {
                channel: self.channel(life).cast(),
                acknowledge: false,
                site,
            };
            // SAFETY: the component runs the calling code, and the half-channel is alive.
            let step = unsafe { c::hearth_select(life.component, &arm, 1, true, site) };
            // SAFETY: as above.
            if step != Step::Done || unsafe { (*life.component).arm } == DEFAULT {
                return Err(TryReceiveError::Empty);
            }
            // SAFETY: received just now.
            Ok(unsafe { collect(life, self.codec()) })
        })
    }
}

impl<T: std::marker::Send + 'static> Send<'_, T> {
    fn advance(&mut self, life: &Life, context: &Context<'_>) -> Poll<Result<(), SendError<T>>> {
        if self.began.is_open() {
            match self.began.end(life, context) {
                None => return Poll::Pending,
                Some(How::Done) => return Poll::Ready(Ok(())),
                Some(How::Refused) => return Poll::Ready(Err(SendError::NotAcknowledged)),
                // The value is where it was put, unless a rendezvous that a stop then ended took
                // it.
                Some(How::CalledOff) if self.value.is_none() => {
                    // SAFETY: the life runs this, and this operation's value is there.
                    self.value = unsafe { (*life.departures()).take() };
                }
                Some(How::CalledOff) => {}
            }
        }
        if !life.may_begin(context) {
            return Poll::Pending;
        }
        let Some(value) = self.value.take() else {
            return Poll::Ready(Ok(()));
        };
        // Before the check that it is lost: see `Half::channel`.
        let channel = self.half.channel(life);
        if self.half.is_lost() {
            return Poll::Ready(Err(SendError::Disconnected(value)));
        }
        let codec = self.half.codec();
        let site = site::of(self.location, std::any::type_name::<T>());
        // SAFETY: the component runs the calling code; the half-channel is alive, and a lent value
        // stays in the component until the operation has ended.
        let step = unsafe {
            let lent = match codec.manner {
                Manner::Moved => {
                    let slot = life.departures();
                    (*slot).put(value);
                    Value::of_pointer(slot)
                }
                Manner::Scalar => {
                    let bits = (codec.encode)(life.component, &value);
                    self.value = Some(value);
                    bits
                }
                Manner::Object => {
                    // User code reads a record's fields.
                    let closed = life.close();
                    let object = (codec.encode)(life.component, &value);
                    drop(closed);
                    life.lend((codec.of)(), object);
                    self.value = Some(value);
                    object
                }
            };
            c::hearth_send(life.component, channel, lent, false, site)
        };
        match step {
            Step::Done => {
                life.reclaim();
                Poll::Ready(Ok(()))
            }
            Step::Blocked => {
                self.began = Began {
                    life: life.id,
                    number: life.begin(),
                };
                life.block(self.began.number, context);
                Poll::Pending
            }
            Step::Raised => {
                // The value goes with the component: see `Life::finish`.
                life.reclaim();
                life.stop();
                Poll::Pending
            }
        }
    }
}

impl<T: std::marker::Send + 'static> Future for Send<'_, T> {
    type Output = Result<(), SendError<T>>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let is_open = self.began.is_open();
        with_current(|life| match life {
            Some(life) => self.advance(life, context),
            // A begun operation may have sent the value, though it is still here: some are copied.
            None => match self.value.take_if(|_| !is_open) {
                Some(value) => Poll::Ready(Err(SendError::NotInComponent(value))),
                None => panic!("an operation goes on in the component where it began"),
            },
        })
    }
}

impl<T: std::marker::Send + 'static> Drop for Send<'_, T> {
    fn drop(&mut self) {
        if self.began.is_open() {
            bell::abandon(self.began.life, self.began.number, Box::new(Unsent(None)));
        }
    }
}

/// The value of a send whose future is gone, unless a receiver took it.
struct Unsent(Option<ValueSlot>);

impl Leftover for Unsent {
    fn take(&mut self, life: &Life, _: How) {
        // SAFETY: the life runs this, and the operation has ended.
        self.0 = unsafe { (*life.departures()).take_whole() };
    }

    fn give_back(self: Box<Self>, _: &Life) {
        // The value is dropped, like those of futures that had not begun.
    }
}

/// The future of a receive.
#[must_use = "futures do nothing unless polled"]
pub struct Receive<'a, T: std::marker::Send + 'static> {
    half: &'a Half<T>,
    began: Began,
    location: &'static Location<'static>,
}

impl<T: std::marker::Send + 'static> Receive<'_, T> {
    fn advance(&mut self, life: &Life, context: &Context<'_>) -> Poll<Result<T, ReceiveError>> {
        if self.began.is_open() {
            match self.began.end(life, context) {
                None => return Poll::Pending,
                Some(How::Done) => {
                    // SAFETY: this operation has just ended, well.
                    return Poll::Ready(Ok(unsafe { collect(life, self.half.codec()) }));
                }
                Some(How::CalledOff | How::Refused) => {}
            }
        }
        if let Some(value) = self.half.take_returned() {
            return Poll::Ready(Ok(value));
        }
        if !life.may_begin(context) {
            return Poll::Pending;
        }
        // Before the check that it is lost: see `Half::channel`.
        let channel = self.half.channel(life);
        if self.half.is_lost() {
            return Poll::Ready(Err(ReceiveError::Disconnected));
        }
        let site = site::of(self.location, std::any::type_name::<T>());
        // SAFETY: the component runs the calling code, and the half-channel is alive.
        match unsafe { c::hearth_receive(life.component, channel, site) } {
            // SAFETY: received just now.
            Step::Done => Poll::Ready(Ok(unsafe { collect(life, self.half.codec()) })),
            Step::Blocked => {
                self.began = Began {
                    life: life.id,
                    number: life.begin(),
                };
                life.block(self.began.number, context);
                Poll::Pending
            }
            Step::Raised => {
                life.stop();
                Poll::Pending
            }
        }
    }
}

impl<T: std::marker::Send + 'static> Future for Receive<'_, T> {
    type Output = Result<T, ReceiveError>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        with_current(|life| match life {
            Some(life) => self.advance(life, context),
            None => Poll::Ready(Err(ReceiveError::NotInComponent)),
        })
    }
}

impl<T: std::marker::Send + 'static> Drop for Receive<'_, T> {
    fn drop(&mut self) {
        if self.began.is_open() {
            let left = Left::of(self.half);
            bell::abandon(self.began.life, self.began.number, Box::new(left));
        }
    }
}

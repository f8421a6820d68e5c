//! Receives from the one of several half-channels that has a sender.

use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::ptr;
use std::task::{Context, Poll};

use super::error::ReceiveError;
use super::half::{Half, Left, collect};
use super::life::{How, Leftover, Life, with_current};
use super::operation::Began;
use super::{bell, site};
use crate::abi::{Arm, Site, Step};
use crate::c;

/// Number of arms above which they need space of their own.
const FEW: usize = 8;

/// The arms of a select.
///
/// # Safety
/// `arm` returns the same half-channel each time for each number below `count`, which does not
/// change. `collect` takes the value that came for that arm, once.
pub unsafe trait Arms {
    /// The arm and its value.
    type Output;
    #[doc(hidden)]
    fn count(&self) -> usize;
    #[doc(hidden)]
    fn arm(&self, index: usize) -> &dyn Receiver;
    /// # Safety
    /// A life runs the calling code. Its last operation was a select over these arms and received
    /// for this one, and nothing has taken the value.
    #[doc(hidden)]
    unsafe fn collect(&self, arm: usize) -> Self::Output;
    #[doc(hidden)]
    fn take_returned(&self) -> Option<Self::Output>;
}

/// A half-channel as a select needs it, whatever its type.
#[doc(hidden)]
pub trait Receiver {
    #[doc(hidden)]
    fn is_lost(&self) -> bool;
    #[doc(hidden)]
    fn keeper(&self) -> Keeper;
    #[doc(hidden)]
    fn channel_here(&self) -> *mut crate::exchange::channel::Channel;
}

/// Gives the value of a dropped select back to the half-channel.
#[doc(hidden)]
pub struct Keeper(Box<dyn Leftover>);

impl<T: Send + 'static> Receiver for Half<T> {
    fn is_lost(&self) -> bool {
        Half::is_lost(self)
    }

    fn keeper(&self) -> Keeper {
        Keeper(Box::new(Left::of(self)))
    }

    fn channel_here(&self) -> *mut crate::exchange::channel::Channel {
        with_current(|life| life.map_or(ptr::null_mut(), |life| self.channel(life)))
    }
}

/// # Safety
/// A life runs the calling code. Its last operation received from this half-channel, and nothing
/// has taken the value.
unsafe fn collect_here<T: Send + 'static>(half: &Half<T>) -> T {
    with_current(|life| match life {
        // SAFETY: as the caller promises.
        Some(life) => unsafe { collect(life, half.codec()) },
        None => unreachable!("a life runs this"),
    })
}

macro_rules! arms {
    ($of:ident: $($t:ident $variant:ident $index:tt),+) => {
        /// The value that a select received, by the arm that it came from.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $of<$($t),+> {
            $($variant($t)),+
        }

        // SAFETY: arms are counted from 0 in the order of the tuple.
        unsafe impl<$($t: Send + 'static),+> Arms for ($(&Half<$t>,)+) {
            type Output = $of<$($t),+>;
            fn count(&self) -> usize {
                [$($index),+].len()
            }
            fn arm(&self, index: usize) -> &dyn Receiver {
                match index {
                    $($index => self.$index,)+
                    _ => unreachable!("there is no arm {index}"),
                }
            }
            unsafe fn collect(&self, arm: usize) -> Self::Output {
                // SAFETY: as the caller promises.
                unsafe {
                    match arm {
                        $($index => $of::$variant(collect_here(self.$index)),)+
                        _ => unreachable!("there is no arm {arm}"),
                    }
                }
            }
            fn take_returned(&self) -> Option<Self::Output> {
                $(if let Some(value) = self.$index.take_returned() {
                    return Some($of::$variant(value));
                })+
                None
            }
        }
    };
}
arms!(Either: A First 0, B Second 1);
arms!(Either3: A First 0, B Second 1, C Third 2);
arms!(Either4: A First 0, B Second 1, C Third 2, D Fourth 3);
arms!(Either5: A First 0, B Second 1, C Third 2, D Fourth 3, E Fifth 4);
arms!(Either6: A First 0, B Second 1, C Third 2, D Fourth 3, E Fifth 4, F Sixth 5);

/// Half-channels of one type, as the arms of a select.
pub struct Slice<'a, T: Send + 'static>(pub Vec<&'a Half<T>>);

// SAFETY: arms are counted from 0 in the order of the list.
unsafe impl<T: Send + 'static> Arms for Slice<'_, T> {
    type Output = (usize, T);
    fn count(&self) -> usize {
        self.0.len()
    }
    fn arm(&self, index: usize) -> &dyn Receiver {
        self.0[index]
    }
    unsafe fn collect(&self, arm: usize) -> Self::Output {
        // SAFETY: as the caller promises.
        (arm, unsafe { collect_here(self.0[arm]) })
    }
    fn take_returned(&self) -> Option<Self::Output> {
        self.0
            .iter()
            .enumerate()
            .find_map(|(index, half)| Some((index, half.take_returned()?)))
    }
}

/// The future of a select. It receives from the first half-channel to have a sender or, if several
/// have one, from the one served longest ago.
#[must_use = "futures do nothing unless polled"]
pub struct Select<A: Arms> {
    arms: A,
    began: Began,
    location: &'static Location<'static>,
}

impl<A: Arms> Select<A> {
    /// Makes a select of these arms.
    pub fn new(arms: A, location: &'static Location<'static>) -> Select<A> {
        Select {
            arms,
            began: Began::default(),
            location,
        }
    }

    fn advance(
        &mut self,
        life: &Life,
        context: &Context<'_>,
    ) -> Poll<Result<A::Output, ReceiveError>> {
        if self.began.is_open() {
            match self.began.end(life, context) {
                None => return Poll::Pending,
                Some(How::Done) => return Poll::Ready(Ok(self.collect(life))),
                Some(How::CalledOff | How::Refused) => {}
            }
        }
        if let Some(output) = self.arms.take_returned() {
            return Poll::Ready(Ok(output));
        }
        if !life.may_begin(context) {
            return Poll::Pending;
        }
        let site = site::of(self.location, std::any::type_name::<A::Output>());
        let step = self.begin(life, site);
        match step {
            None => Poll::Ready(Err(ReceiveError::Disconnected)),
            Some(Step::Done) => Poll::Ready(Ok(self.collect(life))),
            Some(Step::Blocked) => {
                self.began = Began {
                    life: life.id,
                    number: life.begin(),
                };
                life.block(self.began.number, context);
                Poll::Pending
            }
            Some(Step::Raised) => {
                life.stop();
                Poll::Pending
            }
        }
    }

    /// Begins the select; None if no arm is connected any more.
    fn begin(&self, life: &Life, site: *const Site) -> Option<Step> {
        let count = self.arms.count();
        let closed = Arm {
            channel: ptr::null_mut(),
            acknowledge: false,
            site: ptr::null(),
        };
        let mut few = [closed; FEW];
        let mut many = Vec::new();
        let list = if count <= FEW {
            &mut few[..count]
        } else {
            many.resize(count, closed);
            &mut many[..]
        };
        let mut is_open = false;
        for (index, place) in list.iter_mut().enumerate() {
            let arm = self.arms.arm(index);
            // Before the check that it is lost: see `Half::channel`.
            let channel = arm.channel_here();
            if !arm.is_lost() {
                place.channel = channel.cast();
                is_open = true;
            }
        }
        if !is_open {
            return None;
        }
        // SAFETY: the component runs the calling code, and the half-channels are alive.
        Some(unsafe { c::hearth_select(life.component, list.as_ptr(), count as u32, false, site) })
    }

    fn collect(&self, life: &Life) -> A::Output {
        // SAFETY: the component's own field; this operation has just ended, well.
        unsafe { self.arms.collect((*life.component).arm as usize) }
    }
}

impl<A: Arms + Unpin> Future for Select<A> {
    type Output = Result<A::Output, ReceiveError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        with_current(|life| match life {
            Some(life) => self.advance(life, context),
            None => Poll::Ready(Err(ReceiveError::NotInComponent)),
        })
    }
}

impl<A: Arms> Drop for Select<A> {
    fn drop(&mut self) {
        if self.began.is_open() {
            let left = SelectLeft {
                keepers: (0..self.arms.count())
                    .map(|index| self.arms.arm(index).keeper())
                    .collect(),
                served: None,
            };
            bell::abandon(self.began.life, self.began.number, Box::new(left));
        }
    }
}

/// The value that came for a select whose future is gone.
struct SelectLeft {
    keepers: Vec<Keeper>,
    served: Option<Box<dyn Leftover>>,
}

impl Leftover for SelectLeft {
    fn take(&mut self, life: &Life, how: How) {
        // SAFETY: the component's own field.
        let arm = unsafe { (*life.component).arm } as usize;
        if how == How::Done && arm < self.keepers.len() {
            let Keeper(mut served) = self.keepers.swap_remove(arm);
            served.take(life, how);
            self.served = Some(served);
        }
    }

    fn give_back(mut self: Box<Self>, life: &Life) {
        if let Some(served) = self.served.take() {
            served.give_back(life);
        }
    }
}

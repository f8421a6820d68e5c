//! Typed half-channels, which the first component that uses them makes.
//!
//! | field | written by | read by | when |
//! |---|---|---|---|
//! | `channel` | holders of `WIRING`, once | all | any time |
//! | `codec` | holders of `WIRING`, once | all | any time |
//! | `peers`, `ports` | holders of `WIRING` | the same | |
//! | `is_lost` | holders of `WIRING` | the user | any time |
//! | `user`, `users` | the components that use it | the same, and holders of `WIRING` | any time; `users` locked |
//! | `returned` | threads that give back the value of a dropped receive | the user | |
//!
//! Connected half-channels have the same `codec`, or none has one yet. It is chosen when the first
//! of them is used, or connected to a port of a compiled component.

use std::collections::VecDeque;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};

use super::codec::{self, Codec, Manner, Portable};
use super::error::{ConnectError, InUse};
use super::foreign::Port;
use super::life::{How, Leftover, Life};
use super::{bell, visit};
use crate::abi::{Component, Type, Value, literal};
use crate::c;
use crate::exchange::carrier::runtime_of;
use crate::exchange::channel::Channel;
use crate::ground::runtime::{self, Runtime as Inner, enter};
use crate::ground::sync::lock_std as lock;
use crate::outside::idle::Visit;

/// Held while connections change.
static WIRING: Mutex<()> = Mutex::new(());

/// Number of lives in `users` above which those that have ended are removed.
const USERS_KEPT: usize = 8;

/// A typed half-channel.
pub struct Half<T: Send + 'static> {
    pub(super) shared: Arc<Shared<T>>,
}

pub(super) struct Shared<T: Send + 'static> {
    is_out: bool,
    channel: AtomicPtr<Channel>,
    /// The runtime of its half-channel, once made: it outlives the channel.
    runtime: OnceLock<Arc<Inner>>,
    codec: AtomicPtr<Codec<T>>,
    /// True once it has lost its last connection.
    is_lost: AtomicBool,
    /// The number of the last life that used it.
    user: AtomicU64,
    /// All lives that used it and may not have ended.
    users: Mutex<Vec<u64>>,
    wires: Mutex<Wires<T>>,
    has_returned: AtomicBool,
    returned: Mutex<VecDeque<T>>,
}

struct Wires<T: Send + 'static> {
    peers: Vec<Weak<Shared<T>>>,
    ports: Vec<Port>,
}

impl<T: Send + 'static> Half<T> {
    /// Makes an unconnected half-channel.
    pub fn new(is_out: bool) -> Half<T> {
        let (is_scalar, codec) = codec::default_of::<T>();
        let codec = if is_scalar {
            ptr::from_ref(codec).cast_mut()
        } else {
            ptr::null_mut()
        };
        Half {
            shared: Arc::new(Shared {
                is_out,
                channel: AtomicPtr::new(ptr::null_mut()),
                runtime: OnceLock::new(),
                codec: AtomicPtr::new(codec),
                is_lost: AtomicBool::new(false),
                user: AtomicU64::new(0),
                users: Mutex::new(Vec::new()),
                wires: Mutex::new(Wires {
                    peers: Vec::new(),
                    ports: Vec::new(),
                }),
                has_returned: AtomicBool::new(false),
                returned: Mutex::new(VecDeque::new()),
            }),
        }
    }

    /// Removes all peers.
    pub fn disconnect(&self) {
        let (_visit, wiring) = self.shared.visit_wired();
        let rings = {
            let _wiring = wiring;
            let mut rings = self.shared.cut_off();
            if let Some(channel) = self.shared.made() {
                // SAFETY: alive, by our reference.
                unsafe { c::hearth_disconnect(ptr::null_mut(), channel, ptr::null()) };
            }
            self.shared.is_lost.store(true, Ordering::SeqCst);
            rings.extend_from_slice(&lock(&self.shared.users));
            rings
        };
        rings.into_iter().for_each(bell::ring);
    }

    /// Connects with the port of a compiled component.
    pub fn connect_port(&self, port: &Port) -> Result<(), ConnectError>
    where
        T: Portable,
    {
        let ours = codec::portable::<T>();
        // SAFETY: codes are literals, and the port's half-channel is alive.
        let (ours_code, theirs_code) =
            unsafe { (literal((ours.of)().code), literal((*port.payload()).code)) };
        if ours_code != theirs_code {
            return Err(ConnectError::Types {
                ours: ours_code.into_owned(),
                theirs: theirs_code.into_owned(),
            });
        }
        if port.is_out() == self.shared.is_out {
            return Err(ConnectError::Direction);
        }
        let _visit = port.visit();
        let _wiring = lock(&WIRING);
        self.shared.decide(ours)?;
        self.shared.is_lost.store(false, Ordering::SeqCst);
        {
            // A port connected again: a compiled program may have disconnected it meanwhile.
            let ports = &mut lock(&self.shared.wires).ports;
            if !ports.iter().any(|known| known.channel() == port.channel()) {
                ports.push(port.clone());
            }
        }
        if let Some(channel) = self.shared.made() {
            join(channel, port.channel());
        }
        Ok(())
    }

    /// Returns the half-channel for the life that is about to use it, which is rung if the
    /// half-channel is lost from now on.
    pub(super) fn channel(&self, life: &Life) -> *mut Channel {
        let shared = &self.shared;
        if shared.user.load(Ordering::Relaxed) != life.id {
            shared.note_user(life.id);
        }
        let channel = shared.channel.load(Ordering::Acquire);
        if channel.is_null() {
            self.make(life)
        } else {
            channel
        }
    }

    #[cold]
    fn make(&self, life: &Life) -> *mut Channel {
        let _visit = visit(life.component);
        let _wiring = lock(&WIRING);
        self.shared.make(life.component)
    }

    /// Returns the codec of its values; it has a half-channel.
    pub(super) fn codec(&self) -> &'static Codec<T> {
        let codec = self.shared.codec.load(Ordering::Acquire);
        debug_assert!(!codec.is_null(), "decided when the half-channel was made");
        // SAFETY: codecs are static.
        unsafe { &*codec }
    }

    pub(super) fn is_lost(&self) -> bool {
        self.shared.is_lost.load(Ordering::Acquire)
    }

    pub(super) fn is_out(&self) -> bool {
        self.shared.is_out
    }

    /// Takes a value that came for a dropped receive.
    pub(super) fn take_returned(&self) -> Option<T> {
        if !self.shared.has_returned.load(Ordering::Acquire) {
            return None;
        }
        let mut returned = lock(&self.shared.returned);
        let value = returned.pop_front();
        self.shared
            .has_returned
            .store(!returned.is_empty(), Ordering::Release);
        value
    }
}

/// Makes another half-channel, connected with this one's current peers.
impl<T: Send + 'static> Clone for Half<T> {
    fn clone(&self) -> Half<T> {
        let copy = Half::new(self.is_out());
        let (_visit, _wiring) = self.shared.visit_wired();
        let (from, to) = (&self.shared, &copy.shared);
        // Connected half-channels share their codec.
        to.codec
            .store(from.codec.load(Ordering::Acquire), Ordering::Release);
        to.is_lost
            .store(from.is_lost.load(Ordering::SeqCst), Ordering::SeqCst);
        // None of these is the last reference: a peer in the list is owned by its half-channel.
        let peers = from.peers();
        for peer in &peers {
            lock(&peer.wires).peers.push(Arc::downgrade(to));
        }
        let ports = lock(&from.wires).ports.clone();
        *lock(&to.wires) = Wires {
            peers: peers.iter().map(Arc::downgrade).collect(),
            ports,
        };
        copy
    }
}

impl<T: Send + 'static> Drop for Half<T> {
    fn drop(&mut self) {
        let (_visit, wiring) = self.shared.visit_wired();
        let rings = {
            let _wiring = wiring;
            let rings = self.shared.cut_off();
            if let Some(channel) = self.shared.made() {
                // SAFETY: alive, by our reference. Nothing else uses it from here on.
                unsafe {
                    c::hearth_disconnect(ptr::null_mut(), channel, ptr::null());
                    let users = std::mem::take(&mut *lock(&self.shared.users));
                    bell::keep_for(&users, channel);
                }
            }
            rings
        };
        rings.into_iter().for_each(bell::ring);
    }
}

impl<T: Send + 'static> Drop for Shared<T> {
    fn drop(&mut self) {
        if let Some(channel) = self.made() {
            let _inside = self.runtime.get().map(|runtime| enter(runtime));
            // SAFETY: our reference, from `make`.
            unsafe { c::hearth_channel_release(channel) };
        }
    }
}

impl<T: Send + 'static> Shared<T> {
    /// Begins a visit to its runtime, if it has one.
    fn visit(&self) -> Option<Visit> {
        self.runtime.get().map(|runtime| Visit::begin_in(runtime))
    }

    /// Begins a visit and takes the lock. The visit is begun before and ends after, since its end
    /// may call user code.
    fn visit_wired(&self) -> (Option<Visit>, MutexGuard<'static, ()>) {
        loop {
            let visit = self.visit();
            let wiring = lock(&WIRING);
            // Has it got a runtime in between?
            if visit.is_some() || self.runtime.get().is_none() {
                return (visit, wiring);
            }
        }
    }

    fn made(&self) -> Option<*mut Channel> {
        let channel = self.channel.load(Ordering::Acquire);
        (!channel.is_null()).then_some(channel)
    }

    #[cold]
    fn note_user(&self, life: u64) {
        let mut users = lock(&self.users);
        if users.len() > USERS_KEPT {
            users.retain(|&user| bell::is_there(user));
        }
        if !users.contains(&life) {
            users.push(life);
        }
        self.user.store(life, Ordering::Relaxed);
    }

    /// Gives a value back for later receives. Waiting ones look again.
    fn give_back(&self, value: T) {
        {
            let mut returned = lock(&self.returned);
            returned.push_back(value);
            self.has_returned.store(true, Ordering::Release);
        }
        let users = lock(&self.users).clone();
        users.into_iter().for_each(bell::ring);
    }

    // ---- with WIRING ----------------------------------------------------------------------------

    fn peers(&self) -> Vec<Arc<Shared<T>>> {
        lock(&self.wires)
            .peers
            .iter()
            .filter_map(Weak::upgrade)
            .collect()
    }

    pub(super) fn codec(&self) -> Option<&'static Codec<T>> {
        // SAFETY: codecs are static.
        unsafe { self.codec.load(Ordering::Acquire).as_ref() }
    }

    fn make(&self, component: *mut Component) -> *mut Channel {
        if let Some(channel) = self.made() {
            return channel;
        }
        if self.codec().is_none() {
            let (_, codec) = codec::default_of::<T>();
            // No codec is chosen among the connected, so none disagrees.
            let _ = self.decide(codec);
        }
        let of = self.codec().map(|codec| (codec.of)());
        let of = of.unwrap_or_else(|| unreachable!("decided above"));
        // SAFETY: the component runs the calling code; descriptors are static.
        let channel = unsafe { c::hearth_channel_new(component, of, u32::from(self.is_out)) };
        // The component runs the calling code, so its runtime is the current one.
        let _ = self.runtime.set(runtime::handle());
        self.channel.store(channel, Ordering::Release);
        // Peers of other runtimes, unknown until now, stay unconnected.
        for peer in self.peers() {
            if let Some(theirs) = peer.made()
                && peer.runtime.get().map(Arc::as_ptr) == self.runtime.get().map(Arc::as_ptr)
            {
                join(channel, theirs);
            }
        }
        for port in &lock(&self.wires).ports {
            if ptr::eq(port.runtime(), runtime_of(component)) {
                join(channel, port.channel());
            }
        }
        channel
    }

    /// Chooses the codec of this half-channel and of all connected to it.
    fn decide(&self, codec: &'static Codec<T>) -> Result<(), InUse> {
        if let Some(known) = self.codec() {
            return match known.manner == codec.manner {
                true => Ok(()),
                false => Err(InUse),
            };
        }
        let codec = ptr::from_ref(codec).cast_mut();
        self.codec.store(codec, Ordering::Release);
        let mut left = self.peers();
        while let Some(peer) = left.pop() {
            if peer.codec().is_none() {
                peer.codec.store(codec, Ordering::Release);
                left.extend(peer.peers());
            }
        }
        Ok(())
    }

    /// Forgets all peers, and marks those left without any as lost. Returns the lives to ring.
    fn cut_off(&self) -> Vec<u64> {
        let (peers, ports) = {
            let mut wires = lock(&self.wires);
            (
                std::mem::take(&mut wires.peers),
                std::mem::take(&mut wires.ports),
            )
        };
        drop(ports);
        let mut rings = Vec::new();
        for peer in peers.iter().filter_map(Weak::upgrade) {
            let mut wires = lock(&peer.wires);
            wires.peers.retain(|known| !ptr::eq(known.as_ptr(), self));
            if wires.peers.is_empty() && wires.ports.is_empty() {
                peer.is_lost.store(true, Ordering::SeqCst);
                // A user not in the list yet sees that it is lost: it looks after it has entered
                // itself, under the same lock.
                rings.extend_from_slice(&lock(&peer.users));
            }
        }
        rings
    }
}

/// Joins two half-channels of opposite directions and equal types.
fn join(a: *mut Channel, b: *mut Channel) {
    // SAFETY: both are alive, by their owners' references.
    unsafe { c::hearth_connect(ptr::null_mut(), a, b, ptr::null()) };
}

/// Connects an out and an in.
pub fn connect<T: Send + 'static>(out: &Half<T>, into: &Half<T>) -> Result<(), InUse> {
    assert!(
        out.is_out() && !into.is_out(),
        "an out is connected with an in"
    );
    let (a, b) = (&out.shared, &into.shared);
    let (_visit, _wiring) = loop {
        let visit = a.visit().or_else(|| b.visit());
        let wiring = lock(&WIRING);
        // Has either got a runtime in between?
        if visit.is_some() || a.runtime.get().or(b.runtime.get()).is_none() {
            break (visit, wiring);
        }
    };
    if let (Some(ours), Some(theirs)) = (a.runtime.get(), b.runtime.get()) {
        assert!(
            Arc::ptr_eq(ours, theirs),
            "the half-channels belong to two runtimes, which share nothing"
        );
    }
    let is_known = a.peers().iter().any(|peer| Arc::ptr_eq(peer, b));
    if is_known {
        return Ok(());
    }
    match (a.codec(), b.codec()) {
        (Some(codec), _) => b.decide(codec)?,
        (None, Some(codec)) => a.decide(codec)?,
        (None, None) => {}
    }
    for (end, other) in [(a, b), (b, a)] {
        lock(&end.wires).peers.push(Arc::downgrade(other));
        end.is_lost.store(false, Ordering::SeqCst);
    }
    if let (Some(a), Some(b)) = (a.made(), b.made()) {
        join(a, b);
    }
    Ok(())
}

/// Takes a receive's value. It may call user code, which finds the results taken.
///
/// # Safety
/// The life runs the calling code; its last operation received from this half-channel.
pub(super) unsafe fn collect<T: Send + 'static>(life: &Life, codec: &'static Codec<T>) -> T {
    // SAFETY: as the caller promises, the results are this operation's.
    let value = unsafe {
        match codec.manner {
            Manner::Moved => (*life.arrivals()).take::<T>(),
            Manner::Scalar => (codec.decode)((*life.component).received),
            Manner::Object => {
                let _closed = life.close();
                Object::received(life, (codec.of)()).decoded(codec)
            }
        }
    };
    value.unwrap_or_else(|| unreachable!("a receive that is done brought a value"))
}

/// A received object in its component's heap.
struct Object {
    component: *mut Component,
    of: &'static Type,
    value: Value,
}

// SAFETY: only its component uses it, wherever that runs.
unsafe impl Send for Object {}

impl Object {
    /// # Safety
    /// The life runs the calling code; its last operation received this type.
    unsafe fn received(life: &Life, of: &'static Type) -> Object {
        Object {
            component: life.component,
            of,
            // SAFETY: as the caller promises.
            value: unsafe { (*life.component).received },
        }
    }

    /// Decodes its value. A record's code is user code.
    ///
    /// # Safety
    /// The codec is of its type; the component runs the calling code, and begins nothing meanwhile.
    unsafe fn decoded<T>(self, codec: &Codec<T>) -> Option<T> {
        // SAFETY: as the caller promises.
        unsafe { (codec.decode)(self.value) }
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        // SAFETY: counted, and in the heap of the component that runs this.
        unsafe { codec::release(self.component, self.of, self.value) };
    }
}

/// The value that came for a receive whose future is gone.
pub(super) struct Left<T: Send + 'static> {
    shared: Arc<Shared<T>>,
    codec: &'static Codec<T>,
    value: Option<T>,
    object: Option<Object>,
}

impl<T: Send + 'static> Left<T> {
    /// Makes the leftover of a receive from this half-channel.
    pub(super) fn of(half: &Half<T>) -> Left<T> {
        Left {
            shared: Arc::clone(&half.shared),
            codec: half.codec(),
            value: None,
            object: None,
        }
    }
}

impl<T: Send + 'static> Leftover for Left<T> {
    fn take(&mut self, life: &Life, how: How) {
        if how != How::Done {
            return;
        }
        // SAFETY: the life runs this, and its last operation received from this half-channel.
        unsafe {
            match self.codec.manner {
                Manner::Object => self.object = Some(Object::received(life, (self.codec.of)())),
                // No user code is called for these.
                Manner::Moved | Manner::Scalar => self.value = Some(collect(life, self.codec)),
            }
        }
    }

    fn give_back(mut self: Box<Self>, _: &Life) {
        let mut value = self.value.take();
        if let Some(object) = self.object.take() {
            // SAFETY: of this half-channel's type; the component runs this, and begins nothing.
            value = unsafe { object.decoded(self.codec) };
        }
        if let Some(value) = value {
            self.shared.give_back(value);
        }
    }
}

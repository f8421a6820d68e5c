//! A link: a connection between a half-channel here and one on another node.
//!
//! Each end has a *proxy*, a component that stands for the other node. Its half-channel is
//! connected to the local one like any other.
//!
//! ```text
//!        here                                    there
//! sender ─ out ─ in │ exporter ──── Value ───▶ importer │ out ─ in ─ receiver
//!                             ◀─── Taken ────
//! ```
//!
//! Neither proxy waits for the stream: a helper thread writes the bytes that it does not take at
//! once.
//!
//! The exporter acknowledges: the sender stays blocked until the Taken has come. The importer sends
//! like any component. The poller reports when the stream is readable ([`Reader`]). The link ends
//! when the stream does, or when the proxy's half-channel loses its last peer; the thread that
//! notices shuts the stream down, and the readers of both sides clean up.

use std::io::{self, ErrorKind, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use hearth_sys::descriptor;

use super::wire::{Message, Received};
use crate::abi::{Component, ComponentType, Held, Site, Step, Type, Value, held_of};
use crate::exchange::channel::{
    self, Channel, Direction, hearth_acknowledge, hearth_connect, hearth_release_sender,
    hearth_send,
};
use crate::exchange::external::{self, Ticket};
use crate::exchange::values::object;
use crate::exchange::{block, component};
use crate::ground::sync::lock_std as lock;
use crate::ground::{helpers, output};
use crate::outside::idle::Visit;
use crate::outside::poller::{self, Then};
use crate::portable::{self, Portable};
use crate::seats::offer::Stage;
use crate::seats::registry::Label;
use crate::seats::seat::seat_of;
use crate::seats::waiting;
use crate::services::mailbox::Mailbox;

/// The state that a proxy and its reader share.
struct Link {
    stream: UnixStream,
    payload: &'static Type,
    /// Values on their way to the importer. The protocol has one at a time.
    arrivals: Mailbox<Arrival>,
    /// The exporter's wait for a Taken.
    unanswered: Mutex<Option<Ticket>>,
    /// True while the importer has a value and has not sent Taken for it yet.
    owes: AtomicBool,
    outgoing: Mutex<Outgoing>,
}

/// Bytes being written to the other node.
#[derive(Default)]
struct Outgoing {
    /// True while some thread writes.
    is_busy: bool,
    /// The next to be written, at most one: an answer may come, and cause the next message, before
    /// the thread that has written the last one notices.
    next: Option<Outbound>,
}

struct Outbound {
    bytes: Vec<u8>,
    /// Bytes already written. A value may be large: the rest is not moved.
    written: usize,
    then: Said,
}

/// A callback, called with whether all of it was written.
type Said = Box<dyn FnOnce(&Link, bool) + Send>;

struct Arrival {
    value: Portable,
    of: &'static Type,
}

/// A proxy's struct.
#[repr(C)]
struct Proxy {
    base: Component,
    /// From `Arc::into_raw`.
    link: *const Link,
    /// Counted.
    channel: *mut Channel,
    /// `base.received` holds a value of the payload type.
    has_value: bool,
    /// An exporter's: the sender that waits for the value to be taken.
    held: Held,
}

/// A proxy's `stage`.
const START: u16 = 0;
const RECEIVING: u16 = 1;
const AWAITING_TAKEN: u16 = 2;
const AWAITING_VALUE: u16 = 1;
const SENDING: u16 = 2;

struct ProxyType(ComponentType);
// SAFETY: component types are immutable.
unsafe impl Sync for ProxyType {}

const fn proxy_type(
    name: &'static std::ffi::CStr,
    resume: unsafe extern "C" fn(*mut Component) -> Step,
) -> ProxyType {
    ProxyType(ComponentType {
        name: name.as_ptr(),
        size: size_of::<Proxy>(),
        resume,
        destroy: Some(destroy),
        trace: None,
        port_count: 0,
        ports: ptr::null(),
        service: true,
        declared: Site {
            file: c"".as_ptr(),
            line: 0,
            column: 0,
            text: c"".as_ptr(),
        },
        heap_bytes: 0,
        heap_largest: 0,
    })
}

static EXPORTER: ProxyType = proxy_type(c"link to another node", resume_exporter);
static IMPORTER: ProxyType = proxy_type(c"link from another node", resume_importer);

/// Importers and their links, for [`settle`].
static IMPORTERS: Mutex<Vec<(Counted, Weak<Link>)>> = Mutex::new(Vec::new());

/// Signals [`settle`] that an importer's state may have changed.
static PROGRESS: Mutex<()> = Mutex::new(());
static PROGRESSED: Condvar = Condvar::new();

/// A counted reference to a proxy.
struct Counted(*mut Component);
// SAFETY: counted atomically, and only the atomic parts of its seat are read.
unsafe impl Send for Counted {}

/// Makes a link of a stream and a half-channel. When this returns they are connected.
pub(super) fn start(stream: UnixStream, channel: Kept) {
    // SAFETY: payload types are static.
    let payload: &'static Type = unsafe { &*channel.get().payload() };
    let place = |component, arrival: Arrival| {
        // SAFETY: the value was read for this type.
        unsafe { arrival.value.place(arrival.of, component) }
    };
    // A socket never refuses it. If one did, a component that writes would block its worker.
    let _ = stream.set_nonblocking(true);
    let link = Arc::new(Link {
        stream,
        payload,
        arrivals: Mailbox::new("another node", 1, place),
        unanswered: Mutex::new(None),
        owes: AtomicBool::new(false),
        outgoing: Mutex::default(),
    });
    let proxy = Counted(start_proxy(&link, channel.get()));
    // Like any other peer, the link does not keep the half-channel: when its last reference is
    // released the half-channel goes, and the link with it.
    drop(channel);
    let mut reader = Reader {
        link: Arc::clone(&link),
        piece: vec![0; PIECE].into(),
        received: Received::default(),
        proxy: Some(proxy),
    };
    // Refused only for lack of memory: then the reader ends the link as it is dropped.
    let _ = poller::watch(link, move || reader.read());
}

/// Reads a link's stream, and ends the link when it is dropped.
struct Reader {
    link: Arc<Link>,
    piece: Box<[u8]>,
    received: Received,
    proxy: Option<Counted>,
}

fn start_proxy(link: &Arc<Link>, local: &Channel) -> *mut Component {
    let _visit = Visit::begin();
    let (of, direction) = match local.direction {
        Direction::Out => (&EXPORTER.0, Direction::In),
        Direction::In => (&IMPORTER.0, Direction::Out),
    };
    // SAFETY: a valid type; the proxy is ours until it is started, and zeroed but for its base.
    unsafe {
        let proxy = component::make(ptr::null_mut(), of, -1).cast::<Proxy>();
        let identity = seat_of(proxy.cast()).identity();
        let label = Label {
            owner: identity.id,
            owner_type: of,
            owner_number: identity.number,
            port: c"channel".as_ptr(),
        };
        let severed = Arc::clone(link);
        // Called under a lock: it must not wait. The reader does the rest. Only reading ends: a
        // value already received may still be acknowledged.
        let on_alone = Box::new(move || severed.shut(Shutdown::Read));
        let channel = Channel::new_watched(local.payload(), direction, label, on_alone);
        (*proxy).link = Arc::into_raw(Arc::clone(link));
        (*proxy).channel = channel;
        hearth_connect(
            ptr::null_mut(),
            ptr::from_ref(local).cast_mut(),
            channel,
            ptr::null(),
        );
        if local.direction == Direction::In {
            block::hearth_component_retain(proxy.cast());
            lock(&IMPORTERS).push((Counted(proxy.cast()), Arc::downgrade(link)));
        }
        component::start(proxy.cast());
        proxy.cast()
    }
}

/// Bytes of one read, and number of reads in a row: others are to have their turn.
const PIECE: usize = 16 << 10;
const PIECES: u32 = 16;

impl Reader {
    /// Reads the available messages.
    fn read(&mut self) -> Then {
        for _ in 0..PIECES {
            match descriptor::receive_now(self.link.as_fd(), &mut self.piece) {
                Ok(0) => return Then::Over,
                Ok(count) => self.received.add(&self.piece[..count]),
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock => return Then::Again,
                    ErrorKind::Interrupted => continue,
                    _ => return Then::Over,
                },
            }
            loop {
                let has_sense = match self.received.next() {
                    Ok(None) => break,
                    Ok(Some(message)) => self.link.heed(message),
                    Err(_) => false,
                };
                if !has_sense {
                    return Then::Over;
                }
            }
        }
        Then::Again
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let (link, proxy) = (Arc::clone(&self.link), self.proxy.take());
        if let Some(proxy) = proxy {
            // It may have to wait for an answer.
            helpers::hand(move || {
                let proxy = proxy;
                // SAFETY: `start_proxy` gave us a counted reference.
                unsafe { end(&link, proxy.0) };
            });
        }
    }
}

/// # Safety
/// `proxy` is counted for the caller.
unsafe fn end(link: &Link, proxy: *mut Component) {
    wait_while(importers_owe);
    let _visit = Visit::begin();
    link.shut(Shutdown::Both);
    link.arrivals.close();
    link.answer(false);
    // SAFETY: as the caller promises.
    unsafe {
        component::stop(seat_of(proxy));
        block::release(proxy);
    }
    lock(&IMPORTERS).retain(|(importer, _)| {
        let is_other = importer.0 != proxy;
        if !is_other {
            // SAFETY: counted by the list.
            unsafe { block::release(importer.0) };
        }
        is_other
    });
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

impl Link {
    /// Handles a message; false if it makes no sense.
    fn heed(&self, message: Message) -> bool {
        match message {
            Message::Value(bytes) => portable::read(self.payload, &bytes).is_some_and(|value| {
                self.arrivals.deliver(Arrival {
                    value,
                    of: self.payload,
                })
            }),
            Message::Taken(well) => {
                self.answer(well);
                true
            }
            _ => false,
        }
    }

    /// Sends a message to the other node.
    fn say(self: Arc<Link>, message: &Message, then: impl FnOnce(&Link, bool) + Send + 'static) {
        let mut outbound = Outbound {
            bytes: message.to_bytes(),
            written: 0,
            then: Box::new(then),
        };
        {
            let mut outgoing = lock(&self.outgoing);
            match (outgoing.is_busy, &outgoing.next) {
                (false, _) => outgoing.is_busy = true,
                (true, None) => {
                    outgoing.next = Some(outbound);
                    return;
                }
                (true, Some(_)) => {
                    drop(outgoing);
                    // The peer answered a message that was not even written.
                    self.shut(Shutdown::Both);
                    (outbound.then)(&self, false);
                    return;
                }
            }
        }
        // A component runs this: it must not block.
        match write_now(&self.stream, &outbound.bytes) {
            Ok(count) if count < outbound.bytes.len() => {
                outbound.written = count;
                helpers::hand(move || self.write(outbound));
            }
            result => {
                (outbound.then)(&self, result.is_ok());
                if let Some(next) = self.next_outbound() {
                    helpers::hand(move || self.write(next));
                }
            }
        }
    }

    /// Writes, blocking on the stream.
    fn write(self: Arc<Link>, first: Outbound) {
        let mut outbound = first;
        loop {
            let result = write_all(&self.stream, &outbound.bytes[outbound.written..]);
            (outbound.then)(&self, result.is_ok());
            match self.next_outbound() {
                Some(next) => outbound = next,
                None => return,
            }
        }
    }

    /// Returns the writing thread's next message; with none, that thread stops writing.
    fn next_outbound(&self) -> Option<Outbound> {
        let mut outgoing = lock(&self.outgoing);
        let next = outgoing.next.take();
        outgoing.is_busy = next.is_some();
        next
    }

    fn shut(&self, how: Shutdown) {
        // It may be shut already.
        let _ = self.stream.shutdown(how);
    }

    /// Completes the exporter's wait.
    fn answer(&self, well: bool) {
        let ticket = lock(&self.unanswered).take();
        if let Some(ticket) = ticket {
            ticket.complete(|_| Value::of_bool(well));
        }
    }
}

/// Writes as much as a non-blocking stream takes; returns how much that was.
fn write_now(mut stream: &UnixStream, bytes: &[u8]) -> io::Result<usize> {
    let mut count = 0;
    while count < bytes.len() {
        match stream.write(&bytes[count..]) {
            Ok(more) => count += more,
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock => return Ok(count),
                ErrorKind::Interrupted => {}
                _ => return Err(error),
            },
        }
    }
    Ok(count)
}

/// Writes all. Gives up on a stream that is shut down.
fn write_all(stream: &UnixStream, mut bytes: &[u8]) -> io::Result<()> {
    loop {
        bytes = &bytes[write_now(stream, bytes)?..];
        if bytes.is_empty() {
            return Ok(());
        }
        descriptor::wait_writable(stream.as_fd());
    }
}

/// Resumes an exporter: values leave this node.
unsafe extern "C" fn resume_exporter(this: *mut Component) -> Step {
    let proxy = this.cast::<Proxy>();
    // SAFETY: the carrier resumes a proxy, which is this thread's alone.
    unsafe {
        loop {
            match (*this).stage {
                START => {
                    (*this).stage = RECEIVING;
                    let step = hearth_acknowledge(this, (*proxy).channel, ptr::null());
                    if step == Step::Blocked {
                        // From now on the thread that completes or stops the wait writes the
                        // outcome.
                        return step;
                    }
                    (*this).outcome = step as u8;
                }
                RECEIVING => {
                    if (*this).outcome == Step::Raised as u8 {
                        return Step::Raised;
                    }
                    (*proxy).has_value = true;
                    (*proxy).held = held_of(this).read();
                    let message = value_message(proxy);
                    drop_value(proxy);
                    let Some(message) = message else {
                        hearth_release_sender(this, &raw mut (*proxy).held, false);
                        (*this).stage = START;
                        continue;
                    };
                    (*this).stage = AWAITING_TAKEN;
                    return hand_over(proxy, &message);
                }
                _ => {
                    let well = (*this).outcome == Step::Done as u8 && (*this).received.boolean;
                    hearth_release_sender(this, &raw mut (*proxy).held, well);
                    if (*this).outcome == Step::Raised as u8 {
                        return Step::Raised;
                    }
                    (*this).stage = START;
                }
            }
        }
    }
}

/// Takes one more reference to a proxy's link.
///
/// # Safety
/// The caller runs the proxy.
unsafe fn link_of(proxy: *const Proxy) -> Arc<Link> {
    // SAFETY: from `Arc::into_raw`, and the proxy's own until it ends.
    unsafe {
        Arc::increment_strong_count((*proxy).link);
        Arc::from_raw((*proxy).link)
    }
}

/// Sends a value's bytes and waits for the Taken.
unsafe fn hand_over(proxy: *mut Proxy, message: &Message) -> Step {
    // SAFETY: the caller runs the proxy. It is not touched once it waits; the link is kept.
    unsafe {
        let link = link_of(proxy);
        let (step, ticket) = external::wait(proxy.cast(), ptr::null(), "another node", true);
        if step != Step::Blocked {
            // The carrier takes it that there was no wait.
            (*proxy).base.outcome = step as u8;
            return step;
        }
        *lock(&link.unanswered) = Some(ticket);
        link.say(message, |link, well| {
            if !well {
                link.answer(false);
            }
        });
        step
    }
}

/// Makes a message of the received value; None, after printing the reason, if it cannot leave.
unsafe fn value_message(proxy: *mut Proxy) -> Option<Message> {
    let mut bytes = Vec::new();
    // SAFETY: the caller runs the proxy, which has received a value.
    let written =
        unsafe { portable::write((*(*proxy).link).payload, (*proxy).base.received, &mut bytes) };
    let message = match written {
        Ok(()) => Message::value(bytes).map_err(|reason| reason.to_string()),
        Err(reason) => Err(reason.to_string()),
    };
    message
        .map_err(|reason| {
            output::complain(&format!("a value is not sent to another node: {reason}"));
        })
        .ok()
}

/// Resumes an importer: values come to this node.
unsafe extern "C" fn resume_importer(this: *mut Component) -> Step {
    let proxy = this.cast::<Proxy>();
    // SAFETY: the carrier resumes a proxy, which is this thread's alone; its link is alive.
    unsafe {
        loop {
            let link = &*(*proxy).link;
            match (*this).stage {
                START => {
                    (*this).stage = AWAITING_VALUE;
                    // The link may go while the proxy waits, but not before `ask` is done: the
                    // proxy ends only after it was resumed.
                    let step = link.arrivals.ask(this, ptr::null());
                    if step == Step::Blocked {
                        return step;
                    }
                    (*this).outcome = step as u8;
                }
                AWAITING_VALUE => {
                    if (*this).outcome == Step::Raised as u8 {
                        return Step::Raised;
                    }
                    link.owes.store(true, Ordering::SeqCst);
                    (*this).stage = SENDING;
                    let value = (*this).received;
                    let step = hearth_send(this, (*proxy).channel, value, true, ptr::null());
                    if step == Step::Blocked {
                        note_progress();
                        return step;
                    }
                    (*this).outcome = step as u8;
                }
                _ => {
                    let well = (*this).outcome == Step::Done as u8;
                    // A receiver whose acknowledge failed has answered too: no reason to end.
                    let is_stopped = !well && (*this).raised == crate::abi::STOPPED;
                    if is_stopped {
                        return Step::Raised;
                    }
                    (*this).raised = 0;
                    let said = |link: &Link, is_said: bool| {
                        link.owes.store(false, Ordering::SeqCst);
                        note_progress();
                        if !is_said {
                            link.shut(Shutdown::Both);
                        }
                    };
                    link_of(proxy).say(&Message::Taken(well), said);
                    (*this).stage = START;
                }
            }
        }
    }
}

unsafe fn drop_value(proxy: *mut Proxy) {
    // SAFETY: the caller runs the proxy or ends it.
    unsafe {
        if std::mem::take(&mut (*proxy).has_value) {
            let value = (*proxy).base.received;
            object::release_value(proxy.cast(), (*(*proxy).link).payload, value);
        }
    }
}

/// Ends a proxy.
unsafe extern "C" fn destroy(this: *mut Component) {
    let proxy = this.cast::<Proxy>();
    // SAFETY: its carrier calls, and nothing else uses the proxy's fields.
    unsafe {
        drop_value(proxy);
        hearth_release_sender(this, &raw mut (*proxy).held, false);
        channel::disconnect(&*(*proxy).channel);
        channel::release((*proxy).channel);
        drop(Arc::from_raw((*proxy).link));
    }
}

/// Requests of other nodes being served here, not answered yet.
static REQUESTS: AtomicUsize = AtomicUsize::new(0);

/// A request of another node, from its first possible effect until it is answered. Its effect here
/// may be all that the program waited for.
pub(super) struct Request(());

impl Request {
    pub(super) fn begin() -> Request {
        REQUESTS.fetch_add(1, Ordering::SeqCst);
        Request(())
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        REQUESTS.fetch_sub(1, Ordering::SeqCst);
        note_progress();
    }
}

/// Tells whether a value received here, or a request, is unacknowledged yet.
pub(crate) fn owes_answers() -> bool {
    REQUESTS.load(Ordering::SeqCst) > 0 || importers_owe()
}

fn importers_owe() -> bool {
    lock(&IMPORTERS).iter().any(is_about_to_answer)
}

/// Lets received values be acknowledged, and requests be answered, before the program ends, so that
/// the other nodes learn the outcome.
pub(crate) fn settle() {
    wait_while(owes_answers);
}

/// Waits, but not for long: an importer that does not run may never.
fn wait_while(owes: fn() -> bool) {
    let deadline = Instant::now() + Duration::from_millis(200);
    let mut progress = lock(&PROGRESS);
    while owes() {
        let Some(left) = deadline.checked_duration_since(Instant::now()) else {
            return;
        };
        progress = PROGRESSED
            .wait_timeout(progress, left)
            .unwrap_or_else(PoisonError::into_inner)
            .0;
    }
}

/// Signals that an importer has answered, or waits for a receiver.
fn note_progress() {
    // With the lock, so that the signal does not fall between a look and the wait.
    drop(lock(&PROGRESS));
    PROGRESSED.notify_all();
}

/// Tells whether the receiver has taken the value, and the importer has not said so yet.
fn is_about_to_answer((importer, link): &(Counted, Weak<Link>)) -> bool {
    let owes = link
        .upgrade()
        .is_some_and(|link| link.owes.load(Ordering::SeqCst));
    // While it waits for a receiver it has nothing to say.
    // SAFETY: counted by the list.
    owes && !unsafe {
        waiting::seems_to_wait(importer.0)
            || matches!(seat_of(importer.0).state.stage(), Stage::Open | Stage::Held)
    }
}

/// A counted reference to a half-channel, for threads that outlive the native that got it.
pub(super) struct Kept(*const Channel);
// SAFETY: half-channels are shared between threads and counted atomically.
unsafe impl Send for Kept {}

impl Kept {
    /// # Safety
    /// `channel` is alive.
    pub(super) unsafe fn new(channel: *const Channel) -> Kept {
        // SAFETY: as the caller promises.
        unsafe { (*channel).retain() };
        Kept(channel)
    }

    pub(super) fn get(&self) -> &Channel {
        // SAFETY: counted.
        unsafe { &*self.0 }
    }
}

impl Clone for Kept {
    fn clone(&self) -> Kept {
        self.get().retain();
        Kept(self.0)
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let _visit = Visit::begin();
        // SAFETY: counted, and no lock is held.
        unsafe { channel::release(self.0) };
    }
}

//! The radio: datagrams between programs on this machine.
//!
//! The node with address A listens at port base + A of the loopback interface. A broadcast goes to
//! every switched-on radio in the same network directory with the same base. A payload is a box of
//! at most 128 bytes, its type not counted; a bigger one, or one with a channel in it, is not sent,
//! and a line on standard error says so.

mod packet;
mod reliable;

use std::collections::HashMap;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

use hearth_sys::descriptor;
use packet::{Kind, Packet};

use crate::abi::{AnyBox, Component, Object, Site, Step, Type, Value, literal};
use crate::exchange::external;
use crate::ground::settings;
use crate::ground::sync::lock_std as lock;
use crate::ground::{exits, options, output};
use crate::outside::poller::{self, Then, Watch};
use crate::portable::{self, Portable, type_of_code};
use crate::services::claims::{self, Claim};
use crate::services::mailbox::Mailbox;
use crate::services::node;
use crate::services::values;

const VARIABLE: &str = "HEARTH_DEVICE_RADIO";
const BASE_PORT: u16 = 25000;
/// Most bytes of a payload.
const LARGEST: usize = 128;
/// Packets kept until some component receives them; more are lost.
const ROOM: usize = 64;
/// Most bytes of a datagram; type codes have no other limit.
const DATAGRAM: usize = 4096;

/// The radio's settings.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Setting {
    base: u16,
    /// The share of packets that is lost.
    drop: f64,
}

/// Parses `off`, or a base port and `drop=PART`, either or both.
fn parse(text: &str) -> Result<Option<Setting>, String> {
    if text == "off" {
        return Ok(None);
    }
    let mut setting = Setting {
        base: BASE_PORT,
        drop: 0.0,
    };
    for part in text.split(',') {
        let understood = match part.strip_prefix("drop=") {
            Some(drop) => drop.parse().is_ok_and(|drop| {
                setting.drop = drop;
                (0.0..=1.0).contains(&drop)
            }),
            None => part.parse().is_ok_and(|base| {
                setting.base = base;
                base >= 1024
            }),
        };
        if !understood {
            return Err(
                "the radio is `off` or BASEPORT (from 1024 up), BASEPORT,drop=PART or \
                        drop=PART (from 0 to 1)"
                    .to_owned(),
            );
        }
    }
    Ok(Some(setting))
}

fn setting() -> Option<Setting> {
    static SETTING: OnceLock<Option<Setting>> = OnceLock::new();
    *SETTING.get_or_init(|| settings::read(VARIABLE, || parse("drop=0").unwrap_or(None), parse))
}

/// A socket that listens at an address.
struct Ear {
    address: u32,
    socket: UdpSocket,
    watch: Watch,
    _claim: Claim,
}

impl AsFd for Ear {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The ear in use; None before the first use and when the radio is off.
static EAR: Mutex<Option<Arc<Ear>>> = Mutex::new(None);
static POWER: AtomicBool = AtomicBool::new(true);
static NUMBER: OnceLock<AtomicU32> = OnceLock::new();

/// A packet for the program.
struct Arrival {
    sender: u32,
    payload: Portable,
}

static ARRIVALS: Mailbox<Arrival> = Mailbox::new("the radio", ROOM, |component, arrival| {
    // SAFETY: the payload was read as a box; the mailbox's component may be used.
    let payload = unsafe { arrival.payload.place(any(), component) };
    let packet = RadioPacket {
        object: values::COUNTED_ONCE,
        addr: arrival.sender,
        payload,
    };
    Value::of_pointer(values::structure(component, packet))
});

/// The prelude's struct of that name.
#[repr(C)]
struct RadioPacket {
    object: Object,
    addr: u32,
    payload: Value,
}

fn any() -> &'static Type {
    match type_of_code("a") {
        Some(any) => any,
        None => unreachable!("`a` is the code of a box"),
    }
}

/// Returns the radio, opened if it is not off.
fn ear() -> Option<Arc<Ear>> {
    let setting = setting()?;
    let mut ear = lock(&EAR);
    Some(Arc::clone(
        ear.get_or_insert_with(|| open(setting, node::own().address)),
    ))
}

fn directory(setting: Setting) -> &'static Path {
    static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();
    DIRECTORY.get_or_init(|| node::directory(&format!("radio-{}", setting.base)))
}

fn open(setting: Setting, address: u32) -> Arc<Ear> {
    let Some(place) = place_of(setting, address) else {
        exits::unfit(&format!(
            "radio: there is no port {} + {address}; set {VARIABLE} to a lower base or HEARTH_NODE \
             to a lower address",
            setting.base
        ));
    };
    let unfit = |error| -> ! {
        exits::unfit(&format!(
            "radio: could not listen at {place} ({error}); set {VARIABLE} to another base port"
        ))
    };
    let socket = UdpSocket::bind(place).unwrap_or_else(|error| unfit(error));
    if let Err(error) = socket.set_nonblocking(true) {
        unfit(error);
    }
    // After the socket: a node that sees the claim can send.
    let claim =
        claims::take(directory(setting), address).unwrap_or_else(|error| node::unusable(&error));
    let Some(claim) = claim else {
        exits::unfit(&format!("radio: another program uses address {address}"));
    };
    let ear = Arc::new(Ear {
        address,
        socket,
        watch: Watch::reserve(),
        _claim: claim,
    });
    let (listening, mut heard) = (Arc::clone(&ear), HashMap::new());
    let watched = poller::watch_as(ear.watch, ear.clone(), move || {
        listen(&listening, &mut heard);
        Then::Again
    });
    if let Err(error) = watched {
        unfit(error);
    }
    ear
}

fn place_of(setting: Setting, address: u32) -> Option<SocketAddr> {
    let port = u16::try_from(u32::from(setting.base).checked_add(address)?).ok()?;
    Some(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
}

/// Receives the waiting packets, but not so many that others wait for long.
fn listen(ear: &Arc<Ear>, heard: &mut HashMap<u32, u32>) {
    let mut bytes = [0; DATAGRAM];
    for _ in 0..ROOM {
        let (length, from) = match ear.socket.recv_from(&mut bytes) {
            Ok(packet) => packet,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return,
            // Errors tell of packets without a receiver: no concern of the radio's.
            Err(_) => continue,
        };
        // Has another ear taken over?
        let is_current = lock(&EAR)
            .as_ref()
            .is_some_and(|current| Arc::ptr_eq(current, ear));
        if !is_current {
            return;
        }
        if let Some(packet) = Packet::read(&bytes[..length]) {
            take_in(ear, &packet, from, heard);
        }
    }
}

/// Tells whether a radio could have sent it: its address has a port then. So senders are few,
/// whatever a packet claims.
fn has_a_place(packet: &Packet<'_>) -> bool {
    setting().is_some_and(|setting| place_of(setting, packet.sender).is_some())
}

/// Takes in a packet. `heard`: the last reliable packet of each sender.
fn take_in(ear: &Ear, packet: &Packet<'_>, from: SocketAddr, heard: &mut HashMap<u32, u32>) {
    if !is_on() || !has_a_place(packet) {
        return;
    }
    if packet.kind == Kind::Answer {
        reliable::answered(packet.number);
        return;
    }
    let is_reliable = packet.kind == Kind::Reliable;
    let answer = || {
        if is_reliable {
            let answer = Packet {
                kind: Kind::Answer,
                sender: ear.address,
                number: packet.number,
                payload: &[],
            };
            transmit(&answer.to_bytes(), from);
        }
    };
    if is_reliable && heard.get(&packet.sender) == Some(&packet.number) {
        answer();
        return;
    }
    let Some(payload) = portable::read(any(), packet.payload) else {
        return;
    };
    let arrival = Arrival {
        sender: packet.sender,
        payload,
    };
    // Answered first: the program may end as soon as it has the packet, and its sender would take
    // it for lost.
    if ARRIVALS.deliver_after(arrival, answer) && is_reliable {
        heard.insert(packet.sender, packet.number);
    }
}

/// Sends a datagram, unless it is lost by chance.
fn transmit(packet: &[u8], to: SocketAddr) {
    let (Some(setting), Some(ear)) = (setting(), ear()) else {
        return;
    };
    if setting.drop > 0.0 && is_lost(setting.drop) {
        return;
    }
    // A radio never knows whether another listens.
    while let Err(error) = ear.socket.send_to(packet, to) {
        match error.kind() {
            ErrorKind::Interrupted => {}
            ErrorKind::WouldBlock => descriptor::wait_writable(ear.as_fd()),
            _ => return,
        }
    }
}

fn is_lost(part: f64) -> bool {
    static CHANCE: Mutex<Option<u64>> = Mutex::new(None);
    let mut chance = lock(&CHANCE);
    let seed = || options::get().seed.unwrap_or(1) ^ u64::from(node::own().address) << 32;
    super::sensors::draw(chance.get_or_insert_with(seed)) as f64 / (u64::MAX as f64) < part
}

/// Returns the payload's bytes, or None after printing the reason that it is not sent.
///
/// # Safety
/// `payload` is a borrowed box.
unsafe fn payload_bytes(payload: *const AnyBox) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    // SAFETY: a borrowed box of the component that runs this.
    let (result, code) = unsafe {
        let value = Value::of_pointer(payload.cast_mut());
        (
            portable::write(any(), value, &mut bytes),
            literal((*(*payload).r#type).code),
        )
    };
    if let Err(reason) = result {
        output::complain(&format!("radio: a packet is not sent: {reason}"));
        return None;
    }
    // The code comes first, after its length.
    let value_length = bytes.len() - code.len() - if code.len() < 0x80 { 1 } else { 2 };
    if value_length > LARGEST {
        output::complain(&format!(
            "radio: a packet is not sent: its payload has {value_length} bytes, and {LARGEST} is the most"
        ));
        return None;
    }
    if bytes.len() + 12 > DATAGRAM {
        output::complain("radio: a packet is not sent: the type of its payload is too large");
        return None;
    }
    Some(bytes)
}

fn next_number() -> u32 {
    // Starts at random, so that a restarted program does not repeat itself.
    let first = || {
        let time = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        AtomicU32::new(time.subsec_nanos() ^ std::process::id() << 20)
    };
    NUMBER.get_or_init(first).fetch_add(1, Ordering::Relaxed)
}

/// Sends to all.
///
/// # Safety
/// `payload` is a borrowed box.
pub(crate) unsafe fn broadcast(payload: *const AnyBox) {
    // SAFETY: as the caller promises.
    let Some(payload) = (unsafe { payload_bytes(payload) }) else {
        return;
    };
    let (Some(setting), Some(ear)) = (setting(), ear()) else {
        return;
    };
    if !is_on() {
        return;
    }
    let packet = Packet {
        kind: Kind::Broadcast,
        sender: ear.address,
        number: next_number(),
        payload: &payload,
    };
    let bytes = packet.to_bytes();
    for address in claims::taken(directory(setting)) {
        match place_of(setting, address) {
            Some(place) if address != ear.address => transmit(&bytes, place),
            _ => {}
        }
    }
}

/// Sends to one, without an answer.
///
/// # Safety
/// `payload` is a borrowed box.
pub(crate) unsafe fn send(address: u32, payload: *const AnyBox) {
    // SAFETY: as the caller promises.
    let Some(payload) = (unsafe { payload_bytes(payload) }) else {
        return;
    };
    let (Some(setting), Some(ear)) = (setting(), ear()) else {
        return;
    };
    let Some(place) = place_of(setting, address) else {
        return;
    };
    if is_on() {
        let packet = Packet {
            kind: Kind::Unicast,
            sender: ear.address,
            number: next_number(),
            payload: &payload,
        };
        transmit(&packet.to_bytes(), place);
    }
}

/// Sends to one, again and again until it answers; the result says whether it did.
///
/// # Safety
/// `this` runs the calling native, which returns the step at once; `payload` is a borrowed box.
pub(crate) unsafe fn send_reliably(
    this: *mut Component,
    address: u32,
    payload: *const AnyBox,
    site: *const Site,
) -> Step {
    // SAFETY: as the caller promises.
    unsafe {
        let prepared = (|| {
            let payload = payload_bytes(payload)?;
            let (setting, ear) = (setting()?, ear()?);
            let place = place_of(setting, address).filter(|_| is_on())?;
            let number = next_number();
            let packet = Packet {
                kind: Kind::Reliable,
                sender: ear.address,
                number,
                payload: &payload,
            };
            Some((number, packet.to_bytes(), place))
        })();
        let Some((number, packet, place)) = prepared else {
            (*this).received = Value::of_bool(false);
            return Step::Done;
        };
        let (step, ticket) = external::wait(this, site, "an answer by radio", true);
        if step == Step::Blocked {
            reliable::expect(number, packet.clone(), place, ticket);
            transmit(&packet, place);
        }
        step
    }
}

/// Receives the next packet.
///
/// # Safety
/// `this` runs the calling native, which returns the step at once.
pub(crate) unsafe fn next(this: *mut Component, site: *const Site) -> Step {
    if ear().is_none() {
        ARRIVALS.close();
    }
    // SAFETY: as the caller promises.
    unsafe { ARRIVALS.ask(this, site) }
}

/// Tells whether it is switched on.
pub(crate) fn is_on() -> bool {
    POWER.load(Ordering::Relaxed)
}

/// Switches it on or off. Off, it neither sends nor hears anything.
pub(crate) fn switch(power: bool) {
    POWER.store(power, Ordering::Relaxed);
}

/// Returns the address that packets carry.
pub(crate) fn address() -> u32 {
    ear().map_or_else(node::likely_address, |ear| ear.address)
}

/// Listens at another address from now on.
pub(crate) fn set_address(address: u32) {
    let Some(setting) = setting() else { return };
    let mut current = lock(&EAR);
    if current.as_ref().is_some_and(|ear| ear.address == address) {
        return;
    }
    let old = current.replace(open(setting, address));
    drop(current);
    if let Some(old) = old {
        poller::forget(old.watch);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings() {
        let setting = |base, drop| Ok(Some(Setting { base, drop }));
        assert_eq!(parse("off"), Ok(None));
        assert_eq!(parse("30000"), setting(30000, 0.0));
        assert_eq!(parse("30000,drop=0.25"), setting(30000, 0.25));
        assert_eq!(parse("drop=1"), setting(BASE_PORT, 1.0));
        for bad in [
            "on",
            "80",
            "70000",
            "30000,drop=2",
            "drop=x",
            "drop=NaN",
            "30000,",
        ] {
            assert!(parse(bad).unwrap_err().contains("BASEPORT"), "{bad}");
        }
    }

    #[test]
    fn ports_end_somewhere() {
        let setting = Setting {
            base: 65000,
            drop: 0.0,
        };
        assert_eq!(place_of(setting, 535).unwrap().port(), 65535);
        assert_eq!(place_of(setting, 536), None);
        assert_eq!(place_of(setting, u32::MAX), None);
    }
}

//! The remote forms of `publish`, `connect` and `disconnect`, and the questions about other nodes.

use std::ffi::c_void;

use super::link::Kept;
use super::wire::{Notice, Status};
use super::{listener, published};
use crate::abi::{Component, Label, Object, Site, Step, Text, Value};
use crate::exchange::channel::{Channel, Direction};
use crate::exchange::external;
use crate::exchange::values::object::text_of;
use crate::ground::helpers;
use crate::seats::exceptions;
use crate::services::node;
use crate::services::values::{self, COUNTED_ONCE};

/// `publish`: raises DuplicateLCNException if the node has a channel of that name.
///
/// # Safety
/// As the header says: `self` runs this, the arguments are borrowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_publish(
    this: *mut Component,
    channel: *mut Channel,
    name: *const Text,
    site: *const Site,
) -> Step {
    // Before others can see the name.
    listener::open();
    // SAFETY: as the caller promises.
    unsafe {
        if published::add(text_of(name), Kept::new(channel)) {
            return Step::Done;
        }
        raise(
            this,
            Label::DuplicateLcn,
            site,
            c"this node has published another channel under that name",
        )
    }
}

/// `connect c to name on address`
///
/// # Safety
/// As for `hearth_publish`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_connect_remote(
    this: *mut Component,
    channel: *mut Channel,
    name: *const Text,
    address: u32,
    site: *const Site,
) -> Step {
    // SAFETY: as the caller promises.
    unsafe {
        let channel = Kept::new(channel);
        let name = text_of(name).to_vec();
        elsewhere(this, site, move || {
            listener::connect(&channel, &name, address)
        })
    }
}

/// `connect a on address_a to b on address_b`
///
/// # Safety
/// As for `hearth_publish`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_connect_remotes(
    this: *mut Component,
    name_a: *const Text,
    address_a: u32,
    name_b: *const Text,
    address_b: u32,
    site: *const Site,
) -> Step {
    // SAFETY: as the caller promises.
    unsafe {
        let (a, b) = (text_of(name_a).to_vec(), text_of(name_b).to_vec());
        elsewhere(this, site, move || {
            listener::join(&a, address_a, &b, address_b)
        })
    }
}

/// `disconnect name on address`
///
/// # Safety
/// As for `hearth_publish`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_disconnect_remote(
    this: *mut Component,
    name: *const Text,
    address: u32,
    site: *const Site,
) -> Step {
    // SAFETY: as the caller promises.
    unsafe {
        let name = text_of(name).to_vec();
        elsewhere(this, site, move || listener::part(&name, address))
    }
}

/// Blocks the component while another thread asks other nodes.
///
/// # Safety
/// `this` runs the calling native, which returns the step at once.
unsafe fn elsewhere(
    this: *mut Component,
    site: *const Site,
    ask: impl FnOnce() -> Status + Send + 'static,
) -> Step {
    // SAFETY: as the caller promises.
    let (step, ticket) = unsafe { external::wait(this, site, "another node", true) };
    if step == Step::Blocked {
        helpers::hand(move || match ask().exception() {
            None => ticket.complete(|_| Value::NOTHING),
            Some(label) => ticket.raise(label),
        });
    }
    step
}

/// # Safety
/// `this` runs the calling native.
unsafe fn raise(
    this: *mut Component,
    label: Label,
    site: *const Site,
    detail: &'static std::ffi::CStr,
) -> Step {
    // SAFETY: as the caller promises; the detail is a literal.
    unsafe { exceptions::raise(this, label, site, detail.as_ptr()) };
    Step::Raised
}

/// # Safety
/// `this` runs the calling native.
unsafe fn answer(this: *mut Component, value: Value) -> Step {
    // SAFETY: as the caller promises.
    unsafe { (*this).received = value };
    Step::Done
}

/// `getNodeAddress`
#[unsafe(no_mangle)]
pub extern "C" fn hearth_get_node_address(_this: *mut Component) -> u32 {
    node::own().address
}

/// `enableInterNodeChannelRouting`: every node reaches every other, so the node only makes itself
/// known.
#[unsafe(no_mangle)]
pub extern "C" fn hearth_enable_inter_node_channel_routing(_this: *mut Component) {
    node::own();
}

/// The label of `ChannelDirection` that stands for any direction.
const EITHER: i32 = 2;

/// The label for a direction: Out comes first.
fn label_of(direction: Direction) -> i32 {
    match direction {
        Direction::Out => 0,
        Direction::In => 1,
    }
}

/// `findNodesPublishing`: the addresses of living nodes, ascending. An empty type or name fits any.
///
/// # Safety
/// As for `hearth_publish`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_find_nodes_publishing(
    this: *mut Component,
    direction: i32,
    code: *const Text,
    name: *const Text,
    _site: *const Site,
) -> Step {
    // SAFETY: as the caller promises.
    let (code, name) = unsafe { (text_of(code), text_of(name)) };
    let fits = |notice: &Notice| {
        (direction == EITHER || direction == label_of(notice.direction))
            && (code.is_empty() || code == notice.code.as_bytes())
            && (name.is_empty() || name == notice.name)
    };
    let mut nodes = node::living();
    nodes.retain(|&node| published::of_node(node).iter().any(fits));
    // SAFETY: as the caller promises.
    unsafe { answer(this, Value::of_pointer(values::array(this, &nodes))) }
}

/// `getNumberHopsTo`: 0 to this node, 1 to any other.
///
/// # Safety
/// As for `hearth_publish`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_get_number_hops_to(
    this: *mut Component,
    node: u32,
    site: *const Site,
) -> Step {
    let hops = i32::from(node != node::own().address);
    // SAFETY: as the caller promises.
    unsafe {
        match node::lives(node) {
            true => answer(this, Value::of_integer(hops)),
            false => unreachable_node(this, site),
        }
    }
}

/// # Safety
/// `this` runs the calling native.
unsafe fn unreachable_node(this: *mut Component, site: *const Site) -> Step {
    // SAFETY: as the caller promises.
    unsafe {
        raise(
            this,
            Label::NodesUnreachable,
            site,
            c"no program runs as that node",
        )
    }
}

/// `getNeighbours`: all other nodes.
///
/// # Safety
/// As for `hearth_publish`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_get_neighbours(this: *mut Component, site: *const Site) -> Step {
    // SAFETY: as the caller promises.
    unsafe { hearth_get_neighbours_of(this, node::own().address, site) }
}

/// `getNeighboursOf`
///
/// # Safety
/// As for `hearth_publish`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_get_neighbours_of(
    this: *mut Component,
    node: u32,
    site: *const Site,
) -> Step {
    // This node is a neighbour of the others.
    node::own();
    let mut neighbours = node::living();
    let lives = neighbours.contains(&node);
    neighbours.retain(|&neighbour| neighbour != node);
    // SAFETY: as the caller promises.
    unsafe {
        if lives {
            answer(this, Value::of_pointer(values::array(this, &neighbours)))
        } else {
            unreachable_node(this, site)
        }
    }
}

/// The prelude's struct of that name.
#[repr(C)]
struct PublicChannel {
    object: Object,
    direction: i32,
    typerep: *mut c_void,
    name: *mut c_void,
}

/// `getPublicChannels`: those of this node.
///
/// # Safety
/// As for `hearth_publish`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_get_public_channels(
    this: *mut Component,
    site: *const Site,
) -> Step {
    // SAFETY: as the caller promises.
    unsafe { hearth_get_public_channels_of(this, node::own().address, site) }
}

/// `getPublicChannelsOf`: in the order of their names.
///
/// # Safety
/// As for `hearth_publish`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_get_public_channels_of(
    this: *mut Component,
    node: u32,
    site: *const Site,
) -> Step {
    if !node::lives(node) {
        // SAFETY: as the caller promises.
        return unsafe { unreachable_node(this, site) };
    }
    let text = |bytes: &[u8]| {
        // SAFETY: a text is a reference.
        unsafe { external::text_in(this, bytes).pointer }
    };
    let channel = |notice: &Notice| {
        let channel = PublicChannel {
            object: COUNTED_ONCE,
            direction: label_of(notice.direction),
            typerep: text(notice.code.as_bytes()),
            name: text(&notice.name),
        };
        values::structure(this, channel)
    };
    let channels: Vec<_> = published::of_node(node).iter().map(channel).collect();
    // SAFETY: as the caller promises.
    unsafe { answer(this, Value::of_pointer(values::array(this, &channels))) }
}

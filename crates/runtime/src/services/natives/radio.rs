//! The radio, and addresses as older programs write them.

use std::ffi::c_void;

use crate::abi::{AnyBox, Array, Component, Site, Step};
use crate::services::devices::radio;
use crate::services::values;

/// Sends to all radios.
///
/// # Safety
/// Called by compiled code.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_device_radio_broadcast(
    _this: *mut Component,
    payload: *const AnyBox,
) {
    // SAFETY: a borrowed box.
    unsafe { radio::broadcast(payload) };
}

/// Sends to one radio.
///
/// # Safety
/// Called by compiled code.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_device_radio_send(
    _this: *mut Component,
    node: u32,
    payload: *const AnyBox,
) {
    // SAFETY: a borrowed box.
    unsafe { radio::send(node, payload) };
}

/// Sends to one radio and tells whether it answered.
///
/// # Safety
/// Called by compiled code.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_device_radio_send_reliably(
    this: *mut Component,
    node: u32,
    payload: *const AnyBox,
    site: *const Site,
) -> Step {
    // SAFETY: a borrowed box; the component runs this.
    unsafe { radio::send_reliably(this, node, payload, site) }
}

/// Receives the next packet.
///
/// # Safety
/// Called by compiled code.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_device_radio_next(this: *mut Component, site: *const Site) -> Step {
    // SAFETY: the component runs this.
    unsafe { radio::next(this, site) }
}

/// `setRadioPower`
#[unsafe(no_mangle)]
pub extern "C" fn hearth_set_radio_power(_this: *mut Component, power: bool) {
    radio::switch(power);
}

/// `getRadioPower`
#[unsafe(no_mangle)]
pub extern "C" fn hearth_get_radio_power(_this: *mut Component) -> bool {
    radio::is_on()
}

/// `setRadioNodeAddress`
///
/// # Safety
/// Called by compiled code.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_set_radio_node_address(_this: *mut Component, address: *mut Array) {
    // SAFETY: a borrowed array of bytes.
    radio::set_address(unsafe { hearth_address_of_bytes(address) });
}

/// `getRadioNodeAddress`
///
/// # Safety
/// Called by compiled code.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_get_radio_node_address(this: *mut Component) -> *mut c_void {
    // SAFETY: the component runs this.
    unsafe { hearth_device_address_bytes(this, radio::address()) }
}

/// Returns the number of an address in bytes.
///
/// # Safety
/// Called by compiled code.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_device_address(_this: *mut Component, bytes: *mut Array) -> u32 {
    // SAFETY: a borrowed array of bytes.
    unsafe { hearth_address_of_bytes(bytes) }
}

/// Returns an address as bytes: two where they suffice, as on the motes, else four.
///
/// # Safety
/// Called by compiled code.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_device_address_bytes(
    this: *mut Component,
    node: u32,
) -> *mut c_void {
    let bytes = node.to_le_bytes();
    let needed = if node <= u32::from(u16::MAX) { 2 } else { 4 };
    values::array(this, &bytes[..needed]).cast()
}

/// Returns the number of an address in bytes: lowest byte first; bytes beyond the fourth do not
/// count.
///
/// # Safety
/// Called by compiled code with a borrowed array of bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_address_of_bytes(bytes: *mut Array) -> u32 {
    // SAFETY: as the caller promises.
    let bytes: &[u8] = unsafe { values::elements(bytes) };
    bytes
        .iter()
        .take(4)
        .rev()
        .fold(0, |number, &byte| number << 8 | u32::from(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_bytes_begin_with_the_lowest() {
        let number = |bytes: &[u8]| {
            let array = values::array(std::ptr::null_mut(), bytes);
            // SAFETY: an array of bytes; the system's allocator needs no component.
            unsafe {
                let number = hearth_address_of_bytes(array);
                crate::exchange::values::heap::free(std::ptr::null_mut(), array.cast());
                number
            }
        };
        assert_eq!(number(&[]), 0);
        assert_eq!(number(&[7]), 7);
        assert_eq!(number(&[1, 2]), 0x0201);
        assert_eq!(number(&[1, 2, 3, 4, 9]), 0x04030201);
    }
}

//! Lights, sensors, the button, the serial line, storage and input.

use std::ffi::c_void;

use crate::abi::{Array, Component, Site, Step};
use crate::services::devices::leds::{self, Led};
use crate::services::devices::sensors::{self, Sensor};
use crate::services::devices::{button, lines, storage};
use crate::services::mailbox::Mailbox;
use crate::services::values;

/// `getString`: the next line of input.
///
/// # Safety
/// Called by compiled code.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_get_string(this: *mut Component, site: *const Site) -> Step {
    // SAFETY: the component runs this.
    unsafe { lines::next_of_console(this, site) }
}

/// Receives the next line of the serial line.
///
/// # Safety
/// Called by compiled code.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_device_serial_line(
    this: *mut Component,
    site: *const Site,
) -> Step {
    // SAFETY: the component runs this.
    unsafe { lines::next_of_serial(this, site) }
}

/// Receives the next press of the button.
///
/// # Safety
/// Called by compiled code.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_device_press(this: *mut Component, site: *const Site) -> Step {
    // SAFETY: the component runs this.
    unsafe { button::next(this, site) }
}

/// Waits until the component is stopped: for services whose parts do the work.
///
/// # Safety
/// Called by compiled code.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_device_rest(this: *mut Component, site: *const Site) -> Step {
    static NEVER: Mailbox<()> = Mailbox::new("its parts", 0, |_, ()| crate::abi::Value::NOTHING);
    NEVER.close();
    // SAFETY: the component runs this.
    unsafe { NEVER.ask(this, site) }
}

/// `setRedLedPower`
#[unsafe(no_mangle)]
pub extern "C" fn hearth_set_red_led_power(_this: *mut Component, on: bool) {
    leds::switch(Led::Red, on);
}

/// `setGreenLedPower`
#[unsafe(no_mangle)]
pub extern "C" fn hearth_set_green_led_power(_this: *mut Component, on: bool) {
    leds::switch(Led::Green, on);
}

/// `setBlueLedPower`
#[unsafe(no_mangle)]
pub extern "C" fn hearth_set_blue_led_power(_this: *mut Component, on: bool) {
    leds::switch(Led::Blue, on);
}

/// `setLeds`: the labels of `ledState` are in the order of the bits.
#[unsafe(no_mangle)]
pub extern "C" fn hearth_set_leds(_this: *mut Component, state: i32) {
    leds::set(state as u8);
}

/// `setLedsUsingInt`: the lowest three bits.
#[unsafe(no_mangle)]
pub extern "C" fn hearth_set_leds_using_int(_this: *mut Component, bits: i32) {
    leds::set(bits as u8);
}

/// Reads the next number of a sensor, numbered as in the prelude.
#[unsafe(no_mangle)]
pub extern "C" fn hearth_device_reading(_this: *mut Component, sensor: u32) -> i32 {
    numbered(sensor) as i32
}

/// Reads the same with its fraction.
#[unsafe(no_mangle)]
pub extern "C" fn hearth_device_real_reading(_this: *mut Component, sensor: u32) -> f32 {
    numbered(sensor) as f32
}

fn numbered(sensor: u32) -> f64 {
    match Sensor::numbered(sensor as usize) {
        Some(sensor) => sensors::reading(sensor),
        None => unreachable!("the prelude has no sensor {sensor}"),
    }
}

/// `photoReading`
#[unsafe(no_mangle)]
pub extern "C" fn hearth_photo_reading(_this: *mut Component) -> i32 {
    sensors::reading(Sensor::Photo) as i32
}

/// `solarReading`
#[unsafe(no_mangle)]
pub extern "C" fn hearth_solar_reading(_this: *mut Component) -> i32 {
    sensors::reading(Sensor::Solar) as i32
}

/// `tempReading`
#[unsafe(no_mangle)]
pub extern "C" fn hearth_temp_reading(_this: *mut Component) -> i32 {
    sensors::reading(Sensor::Temp) as i32
}

/// `humidReading`
#[unsafe(no_mangle)]
pub extern "C" fn hearth_humid_reading(_this: *mut Component) -> i32 {
    sensors::reading(Sensor::Humid) as i32
}

/// `batteryReading`
#[unsafe(no_mangle)]
pub extern "C" fn hearth_battery_reading(_this: *mut Component) -> i32 {
    sensors::reading(Sensor::Battery) as i32
}

/// Reads the requested number of integers from storage, from its offset on.
///
/// # Safety
/// Called by compiled code.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_device_storage_read(
    this: *mut Component,
    count: i32,
) -> *mut c_void {
    let values = storage::read(usize::try_from(count).unwrap_or(0));
    values::array(this, &values).cast()
}

/// Reads from an offset of the caller's.
///
/// # Safety
/// Called by compiled code.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_device_storage_read_at(
    this: *mut Component,
    count: i32,
    offset: u32,
) -> *mut c_void {
    let values = storage::read_at(offset, usize::try_from(count).unwrap_or(0));
    values::array(this, &values).cast()
}

/// Appends to the end of storage.
///
/// # Safety
/// Called by compiled code.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_device_storage_write(_this: *mut Component, values: *mut Array) {
    // SAFETY: a borrowed array of integers.
    storage::write(unsafe { values::elements(values) });
}

/// Writes to a place in storage.
///
/// # Safety
/// Called by compiled code.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_device_storage_write_at(
    _this: *mut Component,
    values: *mut Array,
    offset: u32,
) {
    // SAFETY: a borrowed array of integers.
    storage::write_at(offset, unsafe { values::elements(values) });
}

/// Erases all of storage.
#[unsafe(no_mangle)]
pub extern "C" fn hearth_device_storage_erase(_this: *mut Component) {
    storage::erase();
}

/// Erases a part of storage.
#[unsafe(no_mangle)]
pub extern "C" fn hearth_device_storage_erase_part(_this: *mut Component, offset: u32, count: u32) {
    storage::erase_part(offset, count);
}

/// Returns the start of storage's next read.
#[unsafe(no_mangle)]
pub extern "C" fn hearth_device_storage_offset(_this: *mut Component) -> u32 {
    storage::offset()
}

/// Sets the start of storage's next read.
#[unsafe(no_mangle)]
pub extern "C" fn hearth_device_storage_set_offset(_this: *mut Component, offset: u32) {
    storage::set_offset(offset);
}

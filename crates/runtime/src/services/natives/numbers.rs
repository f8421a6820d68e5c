//! Conversions and arithmetic.

use crate::abi::Component;
use crate::services::numbers;

/// `intToByte`: modulo 256.
#[unsafe(no_mangle)]
pub extern "C" fn hearth_int_to_byte(_this: *mut Component, value: i32) -> u8 {
    value as u8
}

/// `intToUnsigned`: modulo 2³².
#[unsafe(no_mangle)]
pub extern "C" fn hearth_int_to_unsigned(_this: *mut Component, value: i32) -> u32 {
    value as u32
}

/// `realToInt`
#[unsafe(no_mangle)]
pub extern "C" fn hearth_real_to_int(_this: *mut Component, value: f32) -> i32 {
    numbers::real_to_int(value)
}

/// `absInt`: the smallest integer stays as it is.
#[unsafe(no_mangle)]
pub extern "C" fn hearth_abs_int(_this: *mut Component, value: i32) -> i32 {
    value.wrapping_abs()
}

/// `squareInt`
#[unsafe(no_mangle)]
pub extern "C" fn hearth_square_int(_this: *mut Component, value: i32) -> i32 {
    value.wrapping_mul(value)
}

/// `absReal`
#[unsafe(no_mangle)]
pub extern "C" fn hearth_abs_real(_this: *mut Component, value: f32) -> f32 {
    value.abs()
}

/// `squareReal`
#[unsafe(no_mangle)]
pub extern "C" fn hearth_square_real(_this: *mut Component, value: f32) -> f32 {
    numbers::square_real(value)
}

/// `squareRoot`
#[unsafe(no_mangle)]
pub extern "C" fn hearth_square_root(_this: *mut Component, value: f32) -> f32 {
    numbers::square_root(value)
}

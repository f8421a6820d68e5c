//! Three lights, shown as lines on standard error: if that is a terminal, or on request.

use std::sync::{Mutex, OnceLock};

use hearth_sys::descriptor;

use crate::ground::output;
use crate::ground::settings;
use crate::ground::sync::lock_std as lock;

/// One light, by its bit in the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Led {
    Red = 1,
    Green = 2,
    Blue = 4,
}

const MASK: u8 = 7;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Display {
    Off,
    Log,
}

static STATE: Mutex<u8> = Mutex::new(0);

/// Switches one light.
pub(crate) fn switch(led: Led, on: bool) {
    change(|state| {
        if on {
            state | led as u8
        } else {
            state & !(led as u8)
        }
    });
}

/// Sets all three from the lowest bits: red 1, green 2, blue 4.
pub(crate) fn set(bits: u8) {
    change(|_| bits & MASK);
}

fn change(next: impl FnOnce(u8) -> u8) {
    let display = display();
    let mut state = lock(&STATE);
    let new = next(*state);
    if new == *state {
        return;
    }
    *state = new;
    if display == Display::Log {
        // Under the lock, so that lines come in the order of the changes.
        output::complain(&describe(new));
    }
}

fn display() -> Display {
    static DISPLAY: OnceLock<Display> = OnceLock::new();
    *DISPLAY.get_or_init(|| settings::read("HEARTH_DEVICE_LEDS", default, parse))
}

/// A terminal shows the lights; redirected output stays clean.
fn default() -> Display {
    if descriptor::is_terminal(descriptor::STDERR) {
        Display::Log
    } else {
        Display::Off
    }
}

fn parse(text: &str) -> Result<Display, String> {
    match text {
        "off" => Ok(Display::Off),
        "log" => Ok(Display::Log),
        _ => Err("the lights are `off` or written to standard error with `log`".to_owned()),
    }
}

fn describe(state: u8) -> String {
    let word = |led: Led| if state & led as u8 != 0 { "on" } else { "off" };
    format!(
        "leds: red {}, green {}, blue {}",
        word(Led::Red),
        word(Led::Green),
        word(Led::Blue)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_light_has_its_bit() {
        assert_eq!(describe(0), "leds: red off, green off, blue off");
        assert_eq!(describe(1), "leds: red on, green off, blue off");
        assert_eq!(describe(6), "leds: red off, green on, blue on");
    }

    #[test]
    fn settings() {
        assert_eq!(parse("off"), Ok(Display::Off));
        assert_eq!(parse("log"), Ok(Display::Log));
        assert!(parse("on").is_err());
    }
}

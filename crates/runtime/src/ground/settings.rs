//! The environment variables that configure devices.

use crate::ground::{exits, output};

/// Common prefix of the devices' variables.
const PREFIX: &str = "HEARTH_DEVICE_";

/// The known devices.
const DEVICES: [&str; 16] = [
    "PHOTO",
    "SOLAR",
    "HUMID",
    "TEMP",
    "BATTERY",
    "PRESSURE",
    "TILTX",
    "TILTY",
    "ACCELX",
    "ACCELY",
    "INTERNALTEMP",
    "LEDS",
    "BUTTON",
    "RADIO",
    "STORAGE",
    "SERIAL",
];

/// Refuses variables for unknown devices: a misspelt one would otherwise be ignored silently.
pub(crate) fn check_names() -> Result<(), String> {
    for (variable, _) in std::env::vars_os() {
        let variable = variable.to_string_lossy();
        if let Some(name) = variable
            .strip_prefix(PREFIX)
            .filter(|name| !DEVICES.contains(name))
        {
            return Err(format!(
                "{variable} is set, but there is no device {}; the devices are {}",
                name.to_ascii_lowercase(),
                DEVICES.join(", ").to_ascii_lowercase()
            ));
        }
    }
    Ok(())
}

/// The parsed value of a variable, or `default` where it is unset or empty. Ends the program if
/// `parse` refuses the text; the refusal says what is allowed.
pub(crate) fn read<T>(
    variable: &str,
    default: impl FnOnce() -> T,
    parse: impl FnOnce(&str) -> Result<T, String>,
) -> T {
    let Some(value) = std::env::var_os(variable) else {
        return default();
    };
    let Some(text) = value.to_str() else {
        refuse(variable, &value.to_string_lossy(), "it is not valid UTF-8");
    };
    if text.is_empty() {
        return default();
    }
    parse(text).unwrap_or_else(|reason| refuse(variable, text, &reason))
}

/// Ends the program because of an invalid device setting.
pub(crate) fn refuse(variable: &str, value: &str, reason: &str) -> ! {
    output::complain(&format!("{variable}={value}: {reason}"));
    exits::end(exits::USAGE)
}

/// The rest of `prefix:rest`.
pub(crate) fn after<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    text.strip_prefix(prefix)?.strip_prefix(':')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_needs_its_colon() {
        assert_eq!(after("fifo:/tmp/a:b", "fifo"), Some("/tmp/a:b"));
        assert_eq!(after("fifo", "fifo"), None);
        assert_eq!(after("fifox:a", "fifo"), None);
    }
}

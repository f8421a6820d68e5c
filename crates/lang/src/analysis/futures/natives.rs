//! The effects of the runtime's procedures, by their C names.

use super::effects::Deed;

/// The possible effects of a procedure of the runtime.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Native {
    /// Computes its result from its arguments.
    Pure,
    /// Reads the elements of its arguments, too.
    Reads,
    /// Changes the first elements of its first argument, as many as its second one says.
    Transforms,
    Does(Deed),
}

const PURE: [&str; 16] = [
    "argument",
    "argument_count",
    "abs_int",
    "abs_real",
    "char_at",
    "int_to_byte",
    "int_to_unsigned",
    "parse_int",
    "parse_real",
    "parse_unsigned_int",
    "real_to_int",
    "square_int",
    "square_real",
    "square_root",
    "string_equals",
    "string_starts_with",
];

const READS: [&str; 3] = ["avg_int_array", "avg_real_array", "byte_array_equal"];

/// The effects of the procedure of this C name. One that is not known acts on the world.
pub(super) fn of(name: &str, blocks: bool) -> Native {
    let name = name.strip_prefix("hearth_").unwrap_or(name);
    match name {
        _ if blocks => Native::Does(Deed::Waits),
        _ if PURE.contains(&name) => Native::Pure,
        _ if READS.contains(&name) => Native::Reads,
        "ifft" => Native::Transforms,
        _ if name.starts_with("print_") => Native::Does(Deed::Prints),
        _ => Native::Does(Deed::Acts),
    }
}

//! Systems for tests, and how many.
#![allow(dead_code, reason = "each test program uses a part")]

use hearth_consolidate::check::{Checked, check};
use hearth_consolidate::generate::Recipe;
use hearth_consolidate::mapping::Mapping;
use hearth_consolidate::model::{Bound, Mixing, System};
use hearth_consolidate::switch;

/// Whether the long versions of tests are asked for.
pub(crate) fn is_deep() -> bool {
    std::env::var_os("HEARTH_TEST_DEEP").is_some()
}

/// Checks a mapping with its switches.
pub(crate) fn checked(system: &System, mapping: &Mapping) -> Checked {
    check(system, mapping, &switch::plans(system, mapping))
}

/// A recipe with everything at random; small.
pub(crate) fn any_recipe(random: &mut fastrand::Rng, components_max: usize) -> Recipe {
    let high = [0.1, 0.25, 0.6][random.usize(..3)];
    Recipe {
        components: random.usize(1..=components_max),
        units: random.bool().then(|| random.usize(1..=6)),
        bound: match random.bool() {
            true => Bound::Response,
            false => Bound::Utilisation([0.69, 0.8, 1.0][random.usize(..3)]),
        },
        mixing: [Mixing::Any, Mixing::Adjacent, Mixing::Same][random.usize(..3)],
        load: (0.01, high),
        messages: random.f64() * 2.0,
        tight: 0.05,
        sorts: random.usize(1..=2),
    }
}

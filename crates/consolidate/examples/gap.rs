//! Gap and time of random systems: `gap COMPONENTS SECONDS SEEDS [SORTS]`.
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::time::Instant;

use hearth_consolidate::check;
use hearth_consolidate::figures::Figures;
use hearth_consolidate::generate::Recipe;
use hearth_consolidate::search::{Goals, search};
use hearth_consolidate::switch;

fn main() {
    let mut words = std::env::args()
        .skip(1)
        .map(|word| word.parse::<u64>().expect("a number"));
    let mut next = |missing| words.next().unwrap_or(missing);
    let (components, seconds, seeds) = (next(1000) as usize, next(60) as f64, next(3));
    let sorts = next(1) as usize;
    println!("components seed s units least gap cores least gap goal least valid");
    for seed in 0..seeds {
        let recipe = Recipe {
            components,
            sorts,
            ..Recipe::default()
        };
        let system = recipe.system(seed);
        let start = Instant::now();
        let mut numbers_at = 0.0;
        let mut before = None;
        let found = search(&system, &Goals::default(), seed, &mut |progress| {
            let now = progress.best.map(|best| (best.units, best.cores));
            let passed = start.elapsed().as_secs_f64();
            if now != before {
                (before, numbers_at) = (now, passed);
            }
            passed / seconds
        });
        let found = match found {
            Ok(found) => found,
            Err(error) => {
                println!("{components} {seed} {error}");
                continue;
            }
        };
        let plans = switch::plans(&system, &found.mapping);
        let checked = check::check(&system, &found.mapping, &plans);
        let figures = Figures::of(&system, &found.mapping);
        println!(
            "{components} {seed} {:.1} {} {} {:.1}% {} {} {:.1}% {:.4} {:.4} {} (numbers after {numbers_at:.1} s; {:.0} kbit/s, {:.1} m, {:.1} W)",
            start.elapsed().as_secs_f64(),
            found.value.units,
            found.least.units,
            100.0 * found.gap_units(),
            found.value.cores,
            found.least.cores,
            100.0 * found.gap_cores(),
            found.value.goal,
            found.least.goal,
            checked.is_valid(),
            figures.traffic_bits_s / 1e3,
            figures.cabling_m,
            figures.power_w,
        );
        for violation in checked.violations.iter().take(3) {
            println!("  {violation}");
        }
    }
}

//! The programs of Savina give the answers that their table promises, on one worker and on two.

use std::sync::atomic::{AtomicUsize, Ordering};

use hearth_benches::savina::{Program, programs};

#[test]
fn small_inputs_give_the_promised_answers() {
    let programs: Vec<Program> = programs();
    let next = AtomicUsize::new(0);
    let check = || {
        let mut failures = Vec::new();
        while let Some(program) = programs.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Err(error) = program.check() {
                failures.push(format!("{}: {error}", program.name));
            }
        }
        failures
    };
    // Most of the time goes to C compilers, two at a time.
    let failures: Vec<String> = std::thread::scope(|scope| {
        let halves = [scope.spawn(check), scope.spawn(check)];
        let joined = halves.into_iter().flat_map(|half| half.join());
        joined.flatten().collect()
    });
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

//! Prints a long program: lines and seed are the arguments.
#![allow(clippy::print_stdout, reason = "a command prints")]

fn main() {
    let mut numbers = std::env::args().skip(1).map(|arg| arg.parse().ok());
    let lines = numbers.next().flatten().unwrap_or(100_000);
    let seed = numbers.next().flatten().unwrap_or(2013);
    print!("{}", hearth_testing::large::program(lines, seed as u64));
}

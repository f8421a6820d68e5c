//! Prints the program of a seed, and after it the expected output.
#![allow(clippy::print_stdout, reason = "a command prints")]

fn main() {
    let seed = std::env::args().nth(1).and_then(|arg| arg.parse().ok());
    let case = hearth_testing::generate::case(seed.unwrap_or(1));
    println!("{}", case.text);
    println!("/* exit code {}", case.expected.exit_code);
    println!("{}*/", case.expected.stdout);
}

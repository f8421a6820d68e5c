//! Linker arguments of the library.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // A program may open and close the library. The monitor's thread, ending threads and handlers
    // of forks and of the exit call into it afterwards, so it stays loaded.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
}

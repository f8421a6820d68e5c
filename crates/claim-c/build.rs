//! Linker arguments of the library.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // A program may open and close the library while a steward runs in it.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
}

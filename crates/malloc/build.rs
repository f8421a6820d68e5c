//! Linker arguments of the library.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // A program may open and close the library. Ending threads, children of forks and the helper
    // call into it afterwards, so it stays loaded.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    // In a library that is opened, not preloaded, the C library's functions come before these; a
    // call from one function here to another must still reach this library's.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-Bsymbolic-functions");
}

//! How the library is linked.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // A program may open and close it. Threads that end, children of forks and the helper call into it
    // afterwards, so it stays.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    // Where it is opened, not preloaded, the C library's functions come before these: what calls another one here
    // means this library's.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-Bsymbolic-functions");
}

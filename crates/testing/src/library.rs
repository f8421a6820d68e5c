//! Shared libraries of the workspace, built for the tests that preload or link them.

use std::env;
use std::path::PathBuf;
use std::process::Command;

/// Builds a package's library as the calling test was built, and returns the folder with it.
///
/// # Panics
/// The calling program is no test of this workspace, or the package does not build.
pub fn build(package: &str) -> PathBuf {
    // Test programs lie in the folder `deps` of their profile, in the target folder.
    let this = env::current_exe().expect("a test has a path");
    let target = this.ancestors().nth(3).expect("it is in the target folder");
    let output = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--package", package, "--lib"])
        .arg("--target-dir")
        .arg(target)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo can be started");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    target.join("debug")
}

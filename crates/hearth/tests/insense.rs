//! A program of two halves, in Insense and in Rust: compiled, linked and run.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use hearth_lang::compile::{Options, compile};
use hearth_testing::toolchain::{End, Toolchain, Workshop, run};

/// The C that gives Rust what it is to know, behind the program that was compiled.
const DOOR: &str = "
#undef main
extern int rust_side(const hearth_program *, const hearth_component_type *);
int main(void) {
    (void)insense_main;
    return rust_side(&program, &Hasty_type);
}
";

#[test]
fn components_in_rust_and_insense_talk_both_ways() {
    let text = include_str!("insense/clerk.isf");
    let compiled = compile(text, "clerk.isf", &Options::default());
    let c = compiled.c.expect("the program has no mistakes");
    let c = format!("#define main insense_main\n{c}{DOOR}");
    let mut toolchain = Toolchain::of_this_profile(&["-O1", "-g", "-Wno-unused"]).unwrap();
    toolchain.library = rust_side();
    let workshop = Workshop::new("beside-insense").unwrap();
    let program = toolchain.build(&c, workshop.path()).unwrap();
    let ran = run(&mut Command::new(program), Duration::from_secs(60)).unwrap();
    assert_eq!(ran.end, End::Exit(0), "{}{}", ran.stdout, ran.stderr);
    assert_eq!((ran.stdout, ran.stderr), (String::new(), String::new()));
}

/// The example `beside_insense`, a static library. Cargo builds it only if it is asked to.
fn rust_side() -> std::path::PathBuf {
    let this = std::env::current_exe().unwrap();
    let home = this.parent().and_then(Path::parent).unwrap();
    let profile = match home.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(other) => other,
    };
    let status = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()))
        .args(["build", "--quiet", "--package", "hearth"])
        .args([
            "--example",
            "beside_insense",
            "--profile",
            profile,
            "--target-dir",
        ])
        .arg(home.parent().unwrap())
        .status()
        .unwrap();
    assert!(status.success(), "the Rust side does not build");
    home.join("examples/libbeside_insense.a")
}

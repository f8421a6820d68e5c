//! Compiles the programs in Insense.

fn main() {
    hearth_build::compile("src/celsius.isf");
    hearth_build::compile("src/clerk.isf");
}

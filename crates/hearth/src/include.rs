//! The macros that bring compiled Insense programs into a crate.

/// Declares a module for an Insense program that `hearth_build::compile` compiled in `build.rs`.
/// The argument is the name of the program's file without its ending.
///
/// The module has the file's name. It has a function `program`, for
/// [`Hearth::start_program`](crate::Hearth::start_program), and for each kind of component whose
/// first constructor takes no arguments a function that makes one: `new_water_pump` for
/// `WaterPump`.
///
/// Start the program before you run a component whose code uses services of the prelude, such as
/// `storage`: the program's main sequence creates them, in the runtime that it is started in.
///
/// The page of [`insense`](crate::insense) has an example.
#[macro_export]
macro_rules! include_insense {
    ($name:literal) => {
        ::core::include!(::core::concat!(
            ::core::env!("OUT_DIR"),
            "/hearth-insense/",
            $name,
            ".rs"
        ));
    };
}

/// The text that `hearth-build` writes calls this. The unsafe code is here so that crates which
/// forbid it can include Insense: the compiler made what the symbols name.
#[doc(hidden)]
#[macro_export]
macro_rules! __insense_module {
    (
        $module:ident, $file:literal, $program:literal,
        $($make:ident $kind:literal $symbol:literal),* $(,)?
    ) => {
        #[doc = ::core::concat!("The Insense program `", $file, "`.")]
        #[allow(dead_code, reason = "a crate need not use all of a program")]
        pub mod $module {
            /// The program, to be started once.
            pub fn program() -> $crate::insense::Program {
                unsafe extern "C" {
                    #[link_name = $program]
                    static PROGRAM: *const $crate::__private::ProgramDescriptor;
                }
                // SAFETY: hearth-build compiled this symbol, and it stays.
                let program = unsafe { $crate::insense::Program::from_raw(PROGRAM) };
                program.expect("hearth and hearth-build have the same version")
            }

            $(
                #[doc = ::core::concat!("Makes a component `", $kind, "`, not yet running.")]
                pub fn $make(hearth: &$crate::Hearth) -> $crate::insense::Compiled {
                    unsafe extern "C" {
                        #[link_name = $symbol]
                        static KIND: *const $crate::__private::ComponentDescriptor;
                    }
                    // The descriptors are of this version if the program is.
                    let _ = program();
                    // SAFETY: hearth-build compiled this symbol, it stays, and the constructor
                    // takes no arguments.
                    let kind = unsafe { $crate::insense::ForeignType::from_raw(KIND) };
                    $crate::insense::Compiled::new(hearth, kind)
                }
            )*
        }
    };
}

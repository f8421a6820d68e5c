//! The macros that bring compiled Insense programs into a crate.

/// Declares a module for an Insense program that `hearth_build::compile` compiled in `build.rs`.
/// The argument is the name of the program's file without its ending.
///
/// The module has the file's name. It has a function `program`, for
/// [`Hearth::start_program`](crate::Hearth::start_program), and for each kind of component whose
/// first constructor takes no arguments a function that makes one: `new_water_pump` for
/// `WaterPump`.
///
/// If a component's code uses services of the prelude, such as `storage`, its function gives a
/// [`Result`]: the program's main sequence creates the services, in the runtime that it is started
/// in, so before the end of that the function fails with
/// [`NoServices`](crate::error::NoServices).
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
        $($make:ident $kind:literal $symbol:literal $(if $has_services:literal)?),* $(,)?
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

            $($crate::__insense_maker! { $make $kind $symbol $(if $has_services)? })*
        }
    };
}

/// The function that makes components of one kind, in the module of its program.
#[doc(hidden)]
#[macro_export]
macro_rules! __insense_maker {
    ($make:ident $kind:literal $symbol:literal) => {
        #[doc = ::core::concat!("Makes a component `", $kind, "`, not yet running.")]
        pub fn $make(hearth: &$crate::Hearth) -> $crate::insense::Compiled {
            unsafe extern "C" {
                #[link_name = $symbol]
                static KIND: *const $crate::__private::ComponentDescriptor;
            }
            // The descriptors are of this version if the program is.
            let _ = program();
            // SAFETY: hearth-build compiled this symbol, it stays, the constructor takes no
            // arguments, and the component's code uses no services.
            let kind = unsafe { $crate::insense::ForeignType::from_raw(KIND) };
            $crate::insense::Compiled::new(hearth, kind)
        }
    };
    ($make:ident $kind:literal $symbol:literal if $has_services:literal) => {
        #[doc = ::core::concat!("Makes a component `", $kind, "`, not yet running.")]
        ///
        /// # Errors
        /// Fails before the program's main sequence has created the services of the prelude in
        /// this runtime, and has ended.
        pub fn $make(
            hearth: &$crate::Hearth,
        ) -> ::core::result::Result<$crate::insense::Compiled, $crate::error::NoServices> {
            unsafe extern "C" {
                #[link_name = $symbol]
                static KIND: *const $crate::__private::ComponentDescriptor;
                #[link_name = $has_services]
                fn has_services() -> bool;
            }
            // SAFETY: hearth-build compiled this function; it reads pointers that only the main
            // sequence writes, which has ended.
            if !hearth.has_ended(program()) || !unsafe { has_services() } {
                let component = ::std::borrow::ToOwned::to_owned($kind);
                return ::core::result::Result::Err($crate::error::NoServices { component });
            }
            // SAFETY: hearth-build compiled this symbol, it stays, the constructor takes no
            // arguments, and the services of the prelude exist in this runtime.
            let kind = unsafe { $crate::insense::ForeignType::from_raw(KIND) };
            ::core::result::Result::Ok($crate::insense::Compiled::new(hearth, kind))
        }
    };
}

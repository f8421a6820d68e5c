//! Programs with more rights than their callers: set-user-ID ones, or with capabilities. Their
//! environment is another user's, who must not choose files for them.

use std::env;

/// Whether the kernel started the process with more rights than its caller has.
#[must_use]
pub fn exceed_callers() -> bool {
    // SAFETY: it only reads the process's auxiliary vector.
    !cfg!(miri) && unsafe { libc::getauxval(libc::AT_SECURE) } != 0
}

/// Removes the variables whose names begin so from the environment, if it is another user's.
///
/// # Safety
/// No other thread uses the environment meanwhile, as at the beginning of `main`.
pub unsafe fn forget_callers_variables(prefix: &str) {
    if !exceed_callers() {
        return;
    }
    let names: Vec<_> = env::vars_os().map(|(name, _)| name).collect();
    for name in names {
        if name.as_encoded_bytes().starts_with(prefix.as_bytes()) {
            #[expect(
                clippy::disallowed_methods,
                reason = "the caller promises no other user"
            )]
            // SAFETY: as the caller promises.
            unsafe {
                env::remove_var(name);
            };
        }
    }
}

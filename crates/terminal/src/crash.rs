//! The page for mistakes of our own: it says so, and what to send.

use std::fmt::Write as _;
use std::panic::PanicHookInfo;
use std::path::Path;

/// From now on a panic shows the page and ends with exit code 4.
pub fn install() {
    std::panic::set_hook(Box::new(|info| {
        eprint!("{}", page(&what_happened(info), &[]));
        #[expect(
            clippy::disallowed_methods,
            reason = "after a panic there is nothing left to return through"
        )]
        std::process::exit(4);
    }));
}

fn what_happened(info: &PanicHookInfo<'_>) -> String {
    let payload = info.payload();
    let message = payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a panic without a message");
    match info.location() {
        Some(place) => format!("{place}: {message}"),
        None => message.to_owned(),
    }
}

/// The page. `files` are worth sending along.
pub fn page(what: &str, files: &[&Path]) -> String {
    let command: Vec<_> = std::env::args_os()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let mut text = String::new();
    let _ = writeln!(
        text,
        "hearth: internal error. This is our fault, not a mistake in your program."
    );
    let _ = writeln!(text);
    let _ = writeln!(text, "  version  {}", version());
    let _ = writeln!(text, "  command  {}", command.join(" "));
    for (i, line) in what.trim_end().lines().enumerate() {
        let name = if i == 0 { "what" } else { "" };
        let _ = writeln!(text, "  {name:<7}  {line}");
    }
    let _ = writeln!(text);
    let _ = writeln!(
        text,
        "Please report it. Send these lines and the program you compiled{}",
        if files.is_empty() { "." } else { ", and:" }
    );
    for file in files {
        let _ = writeln!(text, "  {}", file.display());
    }
    text
}

/// The version and the machine it was built for.
pub fn version() -> String {
    format!(
        "hearth {} ({} {})",
        env!("CARGO_PKG_VERSION"),
        std::env::consts::ARCH,
        std::env::consts::OS
    )
}

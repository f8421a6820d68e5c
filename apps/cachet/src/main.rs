//! `cachet`: a drop-in for memcached.

#![forbid(unsafe_code)]

use std::fs;
use std::process::ExitCode;
use std::time::Duration;

use cachet::options::{Arguments, ServerOptions, Wanted};
use cachet::server::Running;
use clap::Parser;
use hearth_machine::profile::Brief;
use hearth_sys::{limits, paths, service, signal};

fn main() -> ExitCode {
    // Help is no error; wrong usage ends with 2.
    let wanted = match Arguments::parse().wanted() {
        Ok(wanted) => wanted,
        Err(wrong) => return fail(&wrong.to_string(), 2),
    };
    match wanted {
        Wanted::Version => say(concat!(
            "cachet ",
            env!("CARGO_PKG_VERSION"),
            ", as memcached 1.6.18"
        )),
        Wanted::License => say("cachet: MIT OR Apache-2.0, as all of Hearth"),
        Wanted::Server(options) => return serve(*options),
    }
    ExitCode::SUCCESS
}

#[allow(clippy::print_stdout, reason = "it was asked for")]
fn say(text: &str) {
    println!("{text}");
}

#[allow(clippy::print_stderr, reason = "a program tells why it does not start")]
fn complain(text: &str) {
    eprintln!("cachet: {text}");
}

fn fail(text: &str, code: u8) -> ExitCode {
    complain(text);
    ExitCode::from(code)
}

fn serve(options: ServerOptions) -> ExitCode {
    if service::is_superuser() && options.user.is_none() {
        return fail(
            "started as root: name the user to become with -u (-u root to stay root)",
            2,
        );
    }
    let signals = [
        signal::TERMINATE,
        signal::INTERRUPT,
        signal::HANG_UP,
        signal::USER_1,
    ];
    let signals = signal::Signals::of(&signals);
    // Before any thread starts, so that all block them and only this one gets them.
    signals.block();
    if options.core_files {
        service::allow_core_files();
    }
    let descriptors = options
        .descriptors_besides()
        .saturating_add(options.connections as u64);
    if let Err(refused) = limits::allow_open_files(descriptors) {
        return fail(&refused.to_string(), 3);
    }
    if options.daemon
        && let Err(refused) = service::go_to_background()
    {
        return fail(&refused.to_string(), 3);
    }
    if options.lock_memory {
        service::allow_locked_memory();
    }
    if let Some(user) = &options.user
        && service::is_superuser()
        && user != "root"
        && let Err(refused) = service::become_user(user)
    {
        return fail(&refused.to_string(), 3);
    }
    if options.lock_memory
        && let Err(refused) = service::lock_memory()
    {
        // Serves nevertheless, as memcached does.
        complain(&format!("-k does nothing: {refused}"));
    }
    set_costs();
    let pid_file = options.pid_file.clone();
    let running = match Running::start(options) {
        Ok(running) => running,
        Err(error) => return fail(&error.to_string(), 3),
    };
    if let Some(path) = &pid_file
        && let Err(error) = fs::write(path, format!("{}\n", std::process::id()))
    {
        running
            .server()
            .complain(&format!("cannot write {}: {error}", path.display()));
    }
    for at in running.addresses() {
        running.server().tell(1, || format!("listening at {at}"));
    }
    let gracefully = wait(&running, &signals);
    running.stop(gracefully);
    if let Some(path) = &pid_file {
        let _ = fs::remove_file(path);
    }
    ExitCode::SUCCESS
}

/// Sets what wake-ups and cache lines cost on this machine, if its profile says so.
fn set_costs() {
    let text = paths::profile_path().and_then(|path| fs::read_to_string(path).ok());
    let costs = text.and_then(|text| Brief::from_json(&text));
    if let Some(ns) = costs.as_ref().and_then(|costs| costs.wake_ns)
        && ns.is_finite()
        && ns > 0.0
    {
        hearth_sync::set_wake_cost(Duration::from_nanos(ns as u64));
    }
    if let Some(ns) = costs.and_then(|costs| costs.transfer_ns) {
        hearth_sync::set_line_cost(ns);
    }
}

/// Waits for a signal to stop. True for a graceful stop.
fn wait(running: &Running, signals: &signal::Signals) -> bool {
    loop {
        match signals.wait() {
            Ok(signal::HANG_UP) => running.server().read_again(),
            Ok(signal::USER_1) => return true,
            Ok(_) => return false,
            // A system that cannot wait for signals cannot be asked to stop either.
            Err(_) => return false,
        }
    }
}

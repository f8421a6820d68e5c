//! Letting members go when the one who held them does not: it was killed, or is stopped itself.

use std::collections::BTreeSet;

use hearth_sys::affinity;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::description::Description;
use crate::group;
use crate::table::{Held, Table};
use crate::tree;

/// Lets the members of a set run, by what its words say, on the CPUs that they had. Does nothing
/// to a set whose members run already; may be done by several processes at once.
pub(crate) fn release(description: &Description, table: &Table) {
    let processes = table.processes();
    if table.held() == Held::Stopped {
        for (number, began) in &processes {
            go_on(*number, *began);
        }
    }
    if let Some(folder) = &description.group {
        let _ = group::set_frozen(folder, false);
    }
    table.open();
    table.set_held(Held::No);
    let known: BTreeSet<u32> = processes.iter().map(|(number, _)| *number).collect();
    for thread in table.moved_threads() {
        // Another process's thread may have the number by now.
        if tree::process_of(thread).is_some_and(|process| known.contains(&process)) {
            let _ = affinity::allow_thread(thread, &description.cpus);
        }
    }
    table.set_moved_threads(std::iter::empty());
}

/// Lets the members of a set go whose process has ended, and takes their group away.
pub(crate) fn end(description: &Description, table: &Table) {
    release(description, table);
    if let Some(folder) = &description.group {
        group::remove(folder);
    }
}

fn go_on(number: u32, began: u32) {
    let number_signed = i32::try_from(number).ok().and_then(Pid::from_raw);
    let descriptor = number_signed.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
    // Looked at once the descriptor holds the process: the number cannot pass on in between.
    let is_same = || tree::stat(number).is_some_and(|stat| stat.began == began);
    if let Some(descriptor) = descriptor
        && is_same()
    {
        let _ = pidfd_send_signal(&descriptor, Signal::CONT);
    }
}

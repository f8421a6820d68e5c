//! Processes, and whether they have ended.

use std::collections::HashMap;
use std::fs;
use std::mem;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::state::ProcessId;

/// Time of a question that does not wait.
const NOW: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 0,
};

/// The calling process. None if there is no `/proc`.
pub(crate) fn own() -> Option<ProcessId> {
    of(std::process::id())
}

/// A process by its number. None if there is none.
pub(crate) fn of(number: u32) -> Option<ProcessId> {
    began(number).map(|began| ProcessId { number, began })
}

/// The time when a process began, in ticks since the system's beginning.
fn began(number: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
    // The name, in brackets, may contain blanks. The state behind it is the third field.
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(22 - 3)?.parse().ok()
}

/// Descriptors of processes, each opened once: they tell of the end at once, whatever ended it.
#[derive(Debug, Default)]
pub(crate) struct Processes {
    known: HashMap<ProcessId, Descriptor>,
}

/// A descriptor of a process. Its number may be another file's by now, if the program has closed
/// all that it did not know.
#[derive(Debug)]
struct Descriptor(Option<OwnedFd>);

impl Descriptor {
    fn get(&self) -> &OwnedFd {
        self.0.as_ref().expect("it is there until it is dropped")
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        let Some(descriptor) = self.0.take() else {
            return;
        };
        let link = fs::read_link(format!("/proc/self/fd/{}", descriptor.as_raw_fd()));
        // `anon_inode:[pidfd]`, or `pidfd:[12]` in newer kernels.
        if !link.is_ok_and(|link| link.to_string_lossy().contains("pidfd")) {
            mem::forget(descriptor);
        }
    }
}

impl Processes {
    /// Whether a process has not ended. One with threads left has not, and a stopped one neither.
    pub(crate) fn is_alive(&mut self, process: ProcessId) -> bool {
        if let Some(descriptor) = self.known.get(&process) {
            if !has_ended(descriptor.get()) {
                return true;
            }
            // One that was closed says the same; another knows.
            self.known.remove(&process);
        }
        let number = i32::try_from(process.number).ok().and_then(Pid::from_raw);
        let Some(number) = number else { return false };
        match pidfd_open(number, PidfdFlags::empty()) {
            // Another process may have the number by now. Of other users' it may not be told.
            Ok(descriptor) => {
                let is_same = began(process.number).is_none_or(|began| began == process.began);
                let is_alive = is_same && !has_ended(&descriptor);
                if is_alive {
                    self.known.insert(process, Descriptor(Some(descriptor)));
                }
                is_alive
            }
            Err(Errno::SRCH) => false,
            // No descriptors of processes, or none left.
            Err(_) => began(process.number) == Some(process.began),
        }
    }

    /// Those of some processes that have ended. All whose descriptors are known are asked at once.
    pub(crate) fn ended(&mut self, processes: &[ProcessId]) -> Vec<ProcessId> {
        let known = processes.iter().filter(|one| self.known.contains_key(one));
        let known: Vec<ProcessId> = known.copied().collect();
        let asked = known.iter().map(|process| self.known[process].get());
        let mut asked: Vec<PollFd<'_>> = asked.map(|one| PollFd::new(one, PollFlags::IN)).collect();
        let ready = match asked.is_empty() {
            true => Ok(0),
            false => poll(&mut asked, Some(&NOW)),
        };
        let rests = |asked: &PollFd<'_>| ready.is_ok() && asked.revents().is_empty();
        let alive = known.iter().zip(&asked).filter(|(_, asked)| rests(asked));
        let alive: Vec<ProcessId> = alive.map(|(process, _)| *process).collect();
        let rest = processes.iter().filter(|one| !alive.contains(one));
        rest.copied().filter(|one| !self.is_alive(*one)).collect()
    }

    /// Copies of the descriptors.
    pub(crate) fn descriptors(&self) -> Vec<OwnedFd> {
        let known = self.known.values();
        known.filter_map(|one| one.get().try_clone().ok()).collect()
    }

    /// Forgets all but some.
    pub(crate) fn keep(&mut self, is_needed: impl Fn(&ProcessId) -> bool) {
        self.known.retain(|process, _| is_needed(process));
    }
}

fn has_ended(descriptor: &OwnedFd) -> bool {
    let mut asked = [PollFd::new(descriptor, PollFlags::IN)];
    matches!(poll(&mut asked, Some(&NOW)), Ok(ready) if ready > 0)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn ends_are_noticed_at_once() {
        let mut processes = Processes::default();
        let own = own().expect("it is here");
        assert!(processes.is_alive(own));
        let another = ProcessId { began: 1, ..own };
        assert!(!processes.is_alive(another), "it began at another time");
        let mut child = Command::new("cat")
            .stdin(Stdio::piped())
            .spawn()
            .expect("it starts");
        let number = child.id();
        let began = began(number).expect("it is there");
        let process = ProcessId { number, began };
        assert_eq!(processes.ended(&[process, own, another]), [another]);
        assert_eq!(processes.ended(&[]), []);
        child.kill().expect("it is ours");
        // A process that nobody has waited for has ended, too.
        while processes.ended(&[process, own]).is_empty() {
            std::thread::yield_now();
        }
        assert_eq!(processes.ended(&[process, own]), [process]);
        child.wait().expect("it ends");
        assert!(!processes.is_alive(process));
    }
}

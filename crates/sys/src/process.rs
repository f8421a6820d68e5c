//! Other processes: their mappings and their memory, read without stopping them; and children that
//! die with their parent.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use crate::refused::{Reason, Refused};

/// Rights needed to look into a process.
const RIGHTS: &str = "a process may be looked at by its own user, if \
                      /proc/sys/kernel/yama/ptrace_scope is 0, and by root, who needs CAP_SYS_PTRACE \
                      for it in a container";

/// A process, by its number, which may become another's when the process has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    number: i32,
}

/// A range of a process's addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range {
    /// First byte.
    pub start: u64,
    /// The byte behind the last.
    pub end: u64,
    /// Readable.
    pub is_readable: bool,
    /// Writable.
    pub is_writable: bool,
    /// Not backed by a file.
    pub is_anonymous: bool,
    /// The file, or the kernel's name for it: `[heap]`, `[anon:NAME]`; empty if neither.
    pub name: String,
}

impl Process {
    /// The process with this number.
    ///
    /// # Errors
    /// There is none.
    pub fn of(number: u32) -> Result<Process, Refused> {
        let known = i32::try_from(number).ok().filter(|number| *number > 0);
        match known.map(|number| Process { number }) {
            Some(process) if process.is_there() => Ok(process),
            _ => Err(absent(number)),
        }
    }

    /// Its number.
    pub fn number(&self) -> u32 {
        self.number.unsigned_abs()
    }

    /// True if it has not ended. A zombie counts as ended.
    pub fn is_there(&self) -> bool {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.number));
        // The state follows the name, which may contain brackets and blanks.
        let state = stat.as_deref().ok().and_then(|text| text.rsplit_once(") "));
        state.is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
    }

    /// Name of its program as the kernel keeps it: 15 letters.
    pub fn name(&self) -> Option<String> {
        let text = fs::read_to_string(format!("/proc/{}/comm", self.number)).ok()?;
        Some(text.trim_end().to_owned())
    }

    /// The processes started by its first thread that have not ended; none where the kernel does
    /// not say.
    pub fn children(&self) -> Vec<Process> {
        let path = format!("/proc/{0}/task/{0}/children", self.number);
        let text = fs::read_to_string(path).unwrap_or_default();
        let numbers = text.split_whitespace();
        numbers
            .filter_map(|number| Process::of(number.parse().ok()?).ok())
            .collect()
    }

    /// Its mappings, by address. None for a thread of the kernel.
    ///
    /// # Errors
    /// It has ended, or may not be looked at.
    pub fn mappings(&self) -> Result<Vec<Range>, Refused> {
        match fs::read_to_string(format!("/proc/{}/maps", self.number)) {
            Ok(text) => Ok(parse_maps(&text)),
            Err(_) if !self.is_there() => Err(absent(self.number())),
            Err(error) => Err(self.refused(&error)),
        }
    }

    /// Reads from an address, filling the whole buffer. False where it has no memory or may no
    /// longer be read.
    pub fn read(&self, address: u64, into: &mut [u8]) -> bool {
        matches!(self.try_read(address, into), Ok(read) if read == into.len())
    }

    /// Checks that its memory may be read: the list of mappings may be readable where the memory is
    /// not.
    ///
    /// # Errors
    /// The rights do not suffice, or it has ended.
    pub fn may_read(&self) -> Result<(), Refused> {
        // Nothing is at this address; the kernel checks the rights before it finds that.
        match self.try_read(8, &mut [0]) {
            Ok(_) => Ok(()),
            Err(error) => match error.raw_os_error() {
                Some(libc::EFAULT) => Ok(()),
                Some(libc::ESRCH) => Err(absent(self.number())),
                _ => Err(self.refused(&error)),
            },
        }
    }

    fn try_read(&self, address: u64, into: &mut [u8]) -> io::Result<usize> {
        let Ok(address) = usize::try_from(address) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let here = libc::iovec {
            iov_base: into.as_mut_ptr().cast(),
            iov_len: into.len(),
        };
        let there = libc::iovec {
            iov_base: std::ptr::without_provenance_mut(address),
            iov_len: into.len(),
        };
        // SAFETY: the local buffer has the length passed; the kernel checks the other process's
        // address.
        let read = unsafe { libc::process_vm_readv(self.number, &here, 1, &there, 1, 0) };
        usize::try_from(read).map_err(|_| io::Error::last_os_error())
    }

    fn refused(&self, error: &io::Error) -> Refused {
        Refused::new(
            "look into",
            format!("process {}", self.number),
            error,
            RIGHTS,
        )
    }
}

/// Has the child killed when the calling thread ends, however that ends: even by `kill -9`, when
/// this process could not pass a signal on. So the calling thread must start the child, and wait
/// for its end.
///
/// The signal is SIGKILL: a program may ignore, block or handle any other. Who wants to end the
/// child gently sends a signal to this process, which passes it on.
pub fn ends_with_this_thread(command: &mut Command) {
    // SAFETY: getpid touches no memory.
    let parent = unsafe { libc::getpid() };
    // SAFETY: the closure runs in the child, possibly of many threads, before exec: it makes only
    // system calls that are allowed there, and allocates only if the first is refused.
    unsafe {
        command.pre_exec(move || {
            if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) != 0 {
                return Err(io::Error::last_os_error());
            }
            // A parent that ended before that call sends no signal. 0 is a parent in another
            // namespace of processes, as of `unshare --pid`: nothing is known about it.
            let now = libc::getppid();
            if now != parent && now != 0 {
                libc::raise(libc::SIGKILL);
            }
            Ok(())
        });
    }
}

/// Starts a program that belongs to nobody: in a session of its own, so that signals of the
/// terminal and of its group do not reach it, and without a parent that would have to wait for its
/// end. It has no standard input and outputs.
///
/// # Errors
/// It cannot be started.
pub fn start_detached(command: &mut Command) -> io::Result<()> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    // SAFETY: the closure runs in the child, possibly of many threads, before exec: it makes only
    // system calls that are allowed there. Of the two processes after the fork, one ends at once,
    // without running any exit actions; the other is as the child was.
    unsafe {
        command.pre_exec(|| {
            if libc::setsid() < 0 {
                return Err(io::Error::last_os_error());
            }
            match libc::fork() {
                0 => Ok(()),
                child if child > 0 => libc::_exit(0),
                _ => Err(io::Error::last_os_error()),
            }
        });
    }
    // The end of the child between; the program itself is the system's.
    command.spawn()?.wait().map(|_| ())
}

/// Has the child continued, should it be stopped, when the calling thread ends, however that ends.
/// It concerns the child alone, not those that it will start. So the calling thread must start the
/// child, and wait for its end.
pub fn goes_on_after_this_thread(command: &mut Command) {
    // SAFETY: the closure runs in the child, possibly of many threads, before exec: it makes one
    // system call that is allowed there. A child that is not stopped takes no notice of the signal,
    // so a parent that ended before needs no care.
    unsafe {
        command.pre_exec(
            || match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGCONT) {
                0 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            },
        );
    }
}

/// Has the child enter a control group, whose file `cgroup.procs` is open for writing, before it
/// becomes the command: nothing of it is ever outside.
pub fn enters_group(command: &mut Command, processes: File) {
    // SAFETY: the closure runs in the child, possibly of many threads, before exec: it makes one
    // system call that is allowed there, on a descriptor that it owns. 0 is the writer itself.
    unsafe {
        command.pre_exec(move || {
            match libc::write(processes.as_raw_fd(), b"0".as_ptr().cast(), 1) {
                1 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            }
        });
    }
}

fn absent(number: u32) -> Refused {
    Refused::because(
        "find",
        format!("process {number}"),
        Reason::Invalid,
        "`ps -e` lists those that there are",
    )
}

/// Parses `/proc/PID/maps`. Lines that make no sense are left out.
pub fn parse_maps(text: &str) -> Vec<Range> {
    text.lines().filter_map(parse_line).collect()
}

fn parse_line(line: &str) -> Option<Range> {
    // 7f00-7f01 r--p 00000000 00:00 0    [anon:name]
    let (range, rest) = line.split_once(' ')?;
    let (start, end) = range.split_once('-')?;
    let address = |text| u64::from_str_radix(text, 16).ok();
    let mut words = rest.splitn(5, ' ');
    let (rights, _offset, _device) = (words.next()?, words.next()?, words.next()?);
    let inode = words.next()?;
    Some(Range {
        start: address(start)?,
        end: address(end)?,
        is_readable: rights.starts_with('r'),
        is_writable: rights.get(1..2) == Some("w"),
        is_anonymous: inode == "0",
        name: words.next().unwrap_or_default().trim_start().to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_are_read() {
        let text = "55d0-55d1 r-xp 00002000 fe:01 1234                /usr/bin/a b\n\
                    7f00-7f01 r--p 00000000 00:00 0                  [anon:some name]\n\
                    7f01-7f02 rw-p 00000000 00:00 0 \n\
                    nonsense\n\
                    x-y r--p 0 0 0\n\
                    7f03-7f04\n";
        let found = parse_maps(text);
        let names: Vec<&str> = found.iter().map(|range| range.name.as_str()).collect();
        assert_eq!(names, ["/usr/bin/a b", "[anon:some name]", ""]);
        assert!(!found[0].is_anonymous && found[1].is_anonymous && found[2].is_writable);
        assert_eq!((found[1].start, found[1].end), (0x7f00, 0x7f01));
    }

    #[test]
    fn a_process_reads_itself() {
        let own = Process::of(std::process::id()).expect("it is there");
        let wanted = *b"what is to be read";
        let mut found = [0; 18];
        assert!(own.read(wanted.as_ptr().addr() as u64, &mut found));
        assert_eq!(found, wanted);
        assert!(!own.read(8, &mut found) && !own.read(u64::MAX, &mut found));
        assert_eq!(own.may_read(), Ok(()));
        let mappings = own.mappings().expect("its own");
        assert!(mappings.iter().any(|range| range.name == "[stack]"));
    }

    #[test]
    fn who_was_started_ends_with_the_thread() {
        let (send, told) = std::sync::mpsc::channel();
        let (leave, left) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            let mut command = Command::new("cat");
            command.stdin(std::process::Stdio::piped());
            ends_with_this_thread(&mut command);
            send.send(command.spawn().expect("it starts"))
                .expect("somebody listens");
            let _ = left.recv();
        });
        let mut child = told.recv().expect("it was started");
        assert!(matches!(child.try_wait(), Ok(None)), "it waits for input");
        // The standard library's `wait` would close the input, which would end the child.
        let _input = child.stdin.take();
        drop(leave);
        thread.join().expect("it ends");
        let ended = child.wait().expect("it can be waited for");
        let signal = std::os::unix::process::ExitStatusExt::signal(&ended);
        assert_eq!(signal, Some(libc::SIGKILL));
    }

    #[test]
    fn there_is_no_such_process() {
        for number in [0, u32::MAX, i32::MAX as u32] {
            let refused = Process::of(number).expect_err("no system has so many");
            assert_eq!(refused.reason, Reason::Invalid, "{refused}");
        }
    }
}

//! A server of job tokens, as GNU make defines them: make, cargo, ninja and compilers take a token
//! for each job beyond their first and put it back afterwards. Here the number of tokens follows a
//! claim while the jobs run.
//!
//! The protocol is one byte a token in a pipe; there is nobody to ask for a token, and a client
//! that dies takes its tokens with it. So the server also counts: tokens that are neither in the
//! pipe nor can be with a running thread are lost, and are put back.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};

use crate::threads::family;

/// A token, as make writes it. Clients give back the byte that they took.
const TOKEN: u8 = b'+';
/// Most tokens: a pipe takes more.
const TOKENS_MAX: u32 = 4096;
/// Tokens that nobody can have for so long are lost: a client starts its job between two looks.
const LOST_AFTER: Duration = Duration::from_secs(2);

/// A pipe or named pipe with tokens.
#[derive(Debug)]
pub struct Jobserver {
    /// Descriptors that clients inherit; a named pipe needs none.
    inherited: Option<(OwnedFd, OwnedFd)>,
    /// The named pipe, removed at the end by whoever owns it.
    path: Option<PathBuf>,
    /// Both ends, apart from the clients' and never blocking.
    own: File,
    /// Tokens in the pipe and with clients.
    issued: u32,
    wanted: u32,
    lost: Option<(u32, Instant)>,
}

/// How clients reach the tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Inherited descriptors: make of all versions, cargo.
    Pipe,
    /// A named pipe: make from version 4.4, ninja from 1.13, cargo.
    Fifo,
}

impl Jobserver {
    /// A server without tokens. A named pipe is made in the folder.
    ///
    /// # Errors
    /// There are no descriptors left, or the folder cannot be written to.
    pub fn new(form: Form, folder: &Path) -> io::Result<Jobserver> {
        match form {
            Form::Pipe => {
                // Clients inherit these.
                let (read, write) = pipe_with(PipeFlags::empty())?;
                Jobserver::with_pipe(read, write)
            }
            Form::Fifo => {
                let path = folder.join(format!("jobs-{}", std::process::id()));
                let _ = std::fs::remove_file(&path);
                rustix::fs::mkfifoat(rustix::fs::CWD, &path, Mode::RUSR | Mode::WUSR)?;
                Jobserver::with_fifo(path)
            }
        }
    }

    /// Goes on with a pipe that another process made.
    ///
    /// # Errors
    /// It is no pipe, or there are no descriptors left.
    pub fn with_pipe(read: OwnedFd, write: OwnedFd) -> io::Result<Jobserver> {
        // Opened anew, not copied: clients must not see that it does not block.
        let path = format!("/proc/self/fd/{}", write.as_raw_fd());
        let own = open(Path::new(&path))?;
        Ok(Jobserver::with(Some((read, write)), None, own))
    }

    /// Goes on with a named pipe.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn with_fifo(path: PathBuf) -> io::Result<Jobserver> {
        let own = open(&path)?;
        Ok(Jobserver::with(None, Some(path), own))
    }

    fn with(inherited: Option<(OwnedFd, OwnedFd)>, path: Option<PathBuf>, own: File) -> Jobserver {
        Jobserver {
            inherited,
            path,
            own,
            issued: 0,
            wanted: 0,
            lost: None,
        }
    }

    /// Numbers of the descriptors that clients inherit: to read from, and to write to.
    #[must_use]
    pub fn descriptors(&self) -> Option<(i32, i32)> {
        let (read, write) = self.inherited.as_ref()?;
        Some((read.as_raw_fd(), write.as_raw_fd()))
    }

    /// The named pipe.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Value of `MAKEFLAGS` for clients, with what it was before.
    #[must_use]
    pub fn make_flags(&self, before: &str) -> String {
        let place = match (self.descriptors(), self.path()) {
            (Some((read, write)), _) => {
                format!("--jobserver-fds={read},{write} --jobserver-auth={read},{write}")
            }
            (None, Some(path)) => format!("--jobserver-auth=fifo:{}", path.display()),
            (None, None) => return before.to_owned(),
        };
        // Letters without dashes, which make itself puts first, must stay first.
        format!("{before} -j {place}")
    }

    /// Counts tokens that another process has issued.
    pub fn adopt(&mut self, issued: u32) {
        (self.issued, self.wanted) = (issued, issued);
    }

    /// Has so many jobs run at the same time from now on, the first of which needs no token. Jobs
    /// that run already go on; their tokens are taken when they come back.
    ///
    /// # Errors
    /// The pipe cannot be used any more.
    pub fn allow(&mut self, jobs: usize) -> io::Result<()> {
        let tokens = jobs.saturating_sub(1);
        self.wanted = u32::try_from(tokens).unwrap_or(u32::MAX).min(TOKENS_MAX);
        self.settle()
    }

    /// Issues tokens that are missing, and takes back some of those that are too many, as far as
    /// they are in the pipe.
    ///
    /// # Errors
    /// The pipe cannot be used any more.
    pub fn settle(&mut self) -> io::Result<()> {
        while self.issued < self.wanted {
            match rustix::io::write(&self.own, &[TOKEN]) {
                Ok(_) => self.issued += 1,
                Err(Errno::AGAIN) => break,
                Err(error) => return Err(error.into()),
            }
        }
        while self.issued > self.wanted {
            match rustix::io::read(&self.own, &mut [0]) {
                Ok(1) => self.issued -= 1,
                Ok(_) | Err(Errno::AGAIN) => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Puts back tokens that died with their holders: more than there are threads in the client's
    /// family that could have one, for two seconds. Number of tokens that were put back. To be
    /// called now and then.
    ///
    /// # Errors
    /// The pipe cannot be used any more.
    pub fn recover(&mut self, client: u32) -> io::Result<u32> {
        let in_pipe = rustix::io::ioctl_fionread(&self.own)?;
        let in_pipe = u32::try_from(in_pipe).unwrap_or(u32::MAX);
        let out = self.issued.saturating_sub(in_pipe);
        // The first needs none.
        let can_have = u32::try_from(family(client).len())
            .unwrap_or(u32::MAX)
            .saturating_sub(1);
        let lost = out.saturating_sub(can_have);
        let now = Instant::now();
        // The least that was lost all the time.
        let (least, since) = match self.lost {
            Some((before, since)) if lost > 0 => (before.min(lost), since),
            _ => (lost, now),
        };
        self.lost = (lost > 0).then_some((least, since));
        if lost == 0 || now.duration_since(since) < LOST_AFTER {
            return Ok(0);
        }
        self.lost = None;
        self.issued -= least;
        self.settle()?;
        Ok(least)
    }
}

fn open(path: &Path) -> io::Result<File> {
    let how = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::open(path, how, Mode::empty())?))
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;
    use crate::testing::Folder;

    fn take(jobserver: &Jobserver) -> bool {
        rustix::io::read(&jobserver.own, &mut [0]) == Ok(1)
    }

    fn give(jobserver: &Jobserver) {
        rustix::io::write(&jobserver.own, &[TOKEN]).expect("there is room");
    }

    #[test]
    fn tokens_follow_the_number_of_jobs() {
        let folder = Folder::new("jobs");
        for form in [Form::Pipe, Form::Fifo] {
            let mut jobserver = Jobserver::new(form, folder.path()).expect("it is made");
            jobserver.allow(4).expect("it works");
            assert!((0..3).all(|_| take(&jobserver)));
            assert!(!take(&jobserver), "the first job needs none");
            // Two jobs run beside the first; one token comes back to be taken away.
            jobserver.allow(2).expect("it works");
            assert_eq!((jobserver.issued, jobserver.wanted), (3, 1));
            give(&jobserver);
            give(&jobserver);
            jobserver.settle().expect("it works");
            assert_eq!(jobserver.issued, 1);
            assert!(!take(&jobserver), "one job has the only token");
            give(&jobserver);
            assert!(take(&jobserver));
            give(&jobserver);
            jobserver.allow(0).expect("it works");
            assert!(!take(&jobserver));
        }
    }

    #[test]
    fn flags_name_the_pipe() {
        let folder = Folder::new("flags");
        let pipe = Jobserver::new(Form::Pipe, folder.path()).expect("it is made");
        let (read, write) = pipe.descriptors().expect("a pipe");
        let expected =
            format!("k -j --jobserver-fds={read},{write} --jobserver-auth={read},{write}");
        assert_eq!(pipe.make_flags("k"), expected);
        let fifo = Jobserver::new(Form::Fifo, folder.path()).expect("it is made");
        let path = fifo.path().expect("a named pipe").display().to_string();
        assert_eq!(
            fifo.make_flags(""),
            format!(" -j --jobserver-auth=fifo:{path}")
        );
    }

    #[test]
    fn tokens_of_the_dead_come_back() {
        let folder = Folder::new("dead");
        let mut jobserver = Jobserver::new(Form::Fifo, folder.path()).expect("it is made");
        jobserver.allow(3).expect("it works");
        assert!(take(&jobserver) && take(&jobserver));
        let mut command = Command::new("sh");
        let command = command.args(["-c", "sleep 1000 & read line; kill $!"]);
        let mut client = command.stdin(Stdio::piped()).spawn().expect("it starts");
        while family(client.id()).len() < 2 {
            std::thread::yield_now();
        }
        // Its child may have one token, so one is lost.
        let begin = Instant::now();
        let mut recovered = 0;
        while recovered == 0 {
            assert!(
                begin.elapsed() < Duration::from_secs(60),
                "nothing is put back"
            );
            recovered = jobserver.recover(client.id()).expect("it works");
            std::thread::sleep(Duration::from_millis(50));
        }
        assert_eq!(recovered, 1);
        assert!(begin.elapsed() >= LOST_AFTER);
        assert!(take(&jobserver) && !take(&jobserver));
        drop(client.stdin.take());
        client.wait().expect("it ends");
    }
}

//! Resource usage: faults, switches, time.

/// The threads or processes whose usage is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// The calling thread's.
    Thread,
    /// The whole process's, threads that ended included.
    Process,
    /// Usage of all child processes that were waited for.
    Children,
}

/// Counts since the thread or process began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Page faults served without a device.
    pub faults_minor: u64,
    /// Page faults that waited for a device.
    pub faults_major: u64,
    /// Times that it gave up its core.
    pub switches_voluntary: u64,
    /// Times that its core was taken away.
    pub switches_forced: u64,
    /// Time in its own code, in microseconds.
    pub user_us: u64,
    /// Time in the kernel for it, in microseconds.
    pub system_us: u64,
}

impl Usage {
    /// Usage between an earlier reading and this one.
    pub fn since(&self, earlier: &Usage) -> Usage {
        Usage {
            faults_minor: self.faults_minor.saturating_sub(earlier.faults_minor),
            faults_major: self.faults_major.saturating_sub(earlier.faults_major),
            switches_voluntary: self
                .switches_voluntary
                .saturating_sub(earlier.switches_voluntary),
            switches_forced: self.switches_forced.saturating_sub(earlier.switches_forced),
            user_us: self.user_us.saturating_sub(earlier.user_us),
            system_us: self.system_us.saturating_sub(earlier.system_us),
        }
    }
}

/// Reads the counts. All zero where the system refuses, which Linux never does.
pub fn read(whose: Whose) -> Usage {
    let who = match whose {
        Whose::Thread => libc::RUSAGE_THREAD,
        Whose::Process => libc::RUSAGE_SELF,
        Whose::Children => libc::RUSAGE_CHILDREN,
    };
    // SAFETY: rusage is plain numbers, for which zero is good.
    let mut raw: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the call writes the structure given.
    unsafe { libc::getrusage(who, &mut raw) };
    let us = |time: libc::timeval| time.tv_sec as u64 * 1_000_000 + time.tv_usec as u64;
    Usage {
        faults_minor: raw.ru_minflt as u64,
        faults_major: raw.ru_majflt as u64,
        switches_voluntary: raw.ru_nvcsw as u64,
        switches_forced: raw.ru_nivcsw as u64,
        user_us: us(raw.ru_utime),
        system_us: us(raw.ru_stime),
    }
}

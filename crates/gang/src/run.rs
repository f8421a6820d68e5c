//! Commands as sets: their process starts the command, passes signals on, and divides the time if
//! nobody else does.

use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use hearth_sys::{process, signal};
use rustix::process::{WaitOptions, set_child_subreaper, wait};

use crate::conductor::Conductor;
use crate::description::{BackEnd, Description};
use crate::error::GangError;
use crate::folder;
use crate::group;
use crate::keeper::{Keeper, OF_USERS};
use crate::member;
use crate::mend;
use crate::probe;
use crate::registry::Registry;
use crate::set::{Set, release_if_stalled, step};
use crate::table::Table;

/// Number of keepers that are started at most: one that ends by itself would do so again.
const KEEPERS_MAX: u32 = 10;
impl Set {
    /// Runs a command as a set, and waits for its end; members are all processes it starts, and
    /// those that these start. To be called by the first and only thread of a process: it changes
    /// the process's signals, adopts orphans of the set, and reaps all children.
    ///
    /// `keeper` starts a process that calls [`keep`](crate::keep) with the registry's folder, its
    /// standard input and its standard output. It lets everybody go should this process be killed.
    ///
    /// # Errors
    /// The registry cannot be used, the command cannot be started, no back end works, or there is
    /// no such set to be inside of.
    pub fn run(
        &self,
        command: &mut Command,
        keeper: impl Fn(&Path) -> Command,
    ) -> Result<ExitStatus, GangError> {
        let folder = folder::find()?;
        let registry = Registry::in_folder(&folder);
        let back_end = probe::choose(self.back_end)?;
        // A member of an outer set that conducts must not be held with it.
        group::leave();
        let name = command.get_program().to_string_lossy();
        let name = name.rsplit('/').next().unwrap_or(&name).to_owned();
        let own_name = match self.has_own_name {
            true => self.clone(),
            false => Set {
                name: name.clone(),
                ..self.clone()
            },
        };
        let mut description = own_name.describe(&registry, back_end)?;
        if back_end == BackEnd::Freezer {
            description.group = Some(make_group(&description)?);
        }
        let prepared = registry.prepare(description.id);
        let (words, table) = prepared.inspect_err(|_| remove_group(&description))?;
        // Dropped last: the set has ended when its lock does.
        let _file;
        let mut running = Running {
            registry,
            description,
            table,
            words,
            conductor: None,
            keeper: None,
            keepers: 0,
        };
        // Before anybody can hold a member.
        running.start_keeper(&keeper);
        _file = running.registry.announce(&running.description)?;
        running.run(command, &name, &keeper)
    }
}

fn make_group(description: &Description) -> Result<std::path::PathBuf, GangError> {
    let refuse = |why: String| GangError::BackEnd(BackEnd::Freezer.name(), why);
    let home = group::home().ok_or_else(|| refuse("there are no control groups".into()))?;
    let id = description.id;
    let made = group::make(&home, id.process, id.nth);
    made.map_err(|error| refuse(hearth_text::cause(&error)))
}

fn remove_group(description: &Description) {
    if let Some(folder) = &description.group {
        group::remove(folder);
    }
}

struct Running {
    registry: Registry,
    description: Description,
    table: Table,
    /// The file of the table.
    words: File,
    conductor: Option<Conductor>,
    keeper: Option<Keeper>,
    /// Number of keepers that were started.
    keepers: u32,
}

impl Running {
    fn run(
        &mut self,
        command: &mut Command,
        name: &str,
        keeper: &dyn Fn(&Path) -> Command,
    ) -> Result<ExitStatus, GangError> {
        let mut awaited: Vec<i32> = OF_USERS.to_vec();
        // Ignored as under `nohup`, they stay so.
        awaited.retain(|one| !signal::is_ignored(*one));
        awaited.extend([signal::CHILD, signal::CONTINUE]);
        let signals = signal::Signals::of(&awaited);
        signal::ignore_stopped_children();
        // Orphans of the set stay members of it. Where that is refused they are none any more.
        let _ = set_child_subreaper(Some(rustix::process::getpid()));
        process::goes_on_after_this_thread(command);
        let id = self.description.id;
        command.env(
            member::VARIABLE,
            member::variable(self.registry.folder(), id),
        );
        // Signals of the first moments are passed on, too; the command itself takes all.
        signals.block();
        signals.unblock_in(command);
        let started = match &self.description.group {
            None => command.spawn(),
            Some(folder) => group::entrance(folder).and_then(|entrance| {
                process::enters_group(command, entrance);
                command.spawn()
            }),
        };
        let child = started.map_err(|error| GangError::Command(name.to_owned(), error))?;
        // It may have ended already, which nobody will tell any more.
        if let Some(status) = self.reap(child.id()) {
            return Ok(status);
        }
        loop {
            if self.conductor.is_none() {
                release_if_stalled(&self.registry, &self.description, &self.table);
            }
            let pause = step(&self.registry, &mut self.conductor);
            if self.keeper.is_none() {
                self.start_keeper(keeper);
            }
            let end = Instant::now() + pause;
            loop {
                let left = end.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    break;
                }
                if let Some(status) = self.await_signal(&signals, left, child.id()) {
                    return Ok(status);
                }
            }
        }
    }

    /// Starts a keeper, also in place of one that was killed.
    fn start_keeper(&mut self, keeper: &dyn Fn(&Path) -> Command) {
        if self.keepers < KEEPERS_MAX {
            self.keepers += 1;
            let command = keeper(self.registry.folder());
            self.keeper = Keeper::start(command, &self.description, &self.words);
            let number = self.keeper.as_ref().map_or(0, Keeper::number);
            self.table.set_keeper(number);
        }
    }

    /// Handles one signal, if one comes in time. The command's status if it has ended.
    fn await_signal(
        &mut self,
        signals: &signal::Signals,
        time: Duration,
        child: u32,
    ) -> Option<ExitStatus> {
        match signals.wait_for(time)? {
            (signal::CHILD, _) => return self.reap(child),
            (signal::CONTINUE, _) => {}
            (signal::SUSPEND, is_ours_alone) => {
                if is_ours_alone {
                    signal::send(child, signal::SUSPEND);
                }
                self.suspend();
            }
            (other, is_ours_alone) => {
                // A key at a terminal has reached the command already.
                if is_ours_alone {
                    signal::send(child, other);
                }
            }
        }
        None
    }

    /// Suspends this process as the key at a terminal does to those that do not handle it. Nobody
    /// waits for it meanwhile.
    fn suspend(&mut self) {
        self.table.set_suspended(true);
        self.conductor = None;
        mend::release(&self.description, &self.table);
        signal::send_self(signal::STOP);
        self.table.set_suspended(false);
    }

    fn reap(&mut self, child: u32) -> Option<ExitStatus> {
        let mut ended = None;
        while let Ok(Some((number, status))) = wait(WaitOptions::NOHANG) {
            let number = number.as_raw_nonzero().get().unsigned_abs();
            if number == child {
                ended = Some(ExitStatus::from_raw(status.as_raw()));
            }
            if self.keeper.as_ref().map(Keeper::number) == Some(number) {
                self.keeper = None;
            }
        }
        ended
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.conductor = None;
        self.registry.remove(self.description.id);
        mend::release(&self.description, &self.table);
        remove_group(&self.description);
        if let Some(keeper) = self.keeper.take() {
            keeper.end();
        }
    }
}

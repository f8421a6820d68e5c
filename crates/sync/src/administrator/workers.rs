//! Worker threads for jobs that take long.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use crate::NoProprietor;
use crate::request::drop_quietly;

type Job = Box<dyn FnOnce() + Send>;

/// A few threads that take jobs in order. They end when all handles are dropped and all jobs are
/// done. Nothing waits for that: if the process ends earlier, the remaining jobs are lost. A job
/// that panics is lost, with its replies; its thread continues.
#[derive(Clone)]
pub struct Workers {
    jobs: Option<Sender<Job>>,
    count: usize,
}

impl Workers {
    /// Starts `count` threads. Without threads, jobs run in the caller.
    ///
    /// # Errors
    /// The system has no thread.
    pub fn start(count: usize) -> Result<Workers, NoProprietor> {
        if count == 0 {
            return Ok(Workers { jobs: None, count });
        }
        let (jobs, waiting) = channel();
        let waiting = Arc::new(Mutex::new(waiting));
        for number in 0..count {
            let waiting = Arc::clone(&waiting);
            std::thread::Builder::new()
                .name(format!("hearth-worker-{number}"))
                .spawn(move || work(&waiting))
                .map_err(NoProprietor)?;
        }
        Ok(Workers {
            jobs: Some(jobs),
            count,
        })
    }

    /// Gives a job to one of the threads.
    pub fn run(&self, job: impl FnOnce() + Send + 'static) {
        match &self.jobs {
            // The threads take jobs while there are handles.
            Some(jobs) => drop(jobs.send(Box::new(job))),
            None => job(),
        }
    }

    /// Number of threads.
    pub fn count(&self) -> usize {
        self.count
    }
}

fn work(waiting: &Mutex<Receiver<Job>>) {
    loop {
        // One thread waits for the next job, the others for the lock.
        let job = waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .recv();
        match job {
            // The panic's payload may panic in turn.
            Ok(job) => _ = drop_quietly(catch_unwind(AssertUnwindSafe(job))),
            Err(_) => return,
        }
    }
}

impl fmt::Debug for Workers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Workers({})", self.count)
    }
}

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

#[allow(dead_code)]
#[derive(Clone, Copy)]
enum Step {
    Run,
    Lock(usize),
    Unlock(usize),
    Push(usize),
    Pop(usize),
}

/// A job: nominal arrival and arrival after the start (or delay after what wakes it), times of its
/// `Run` steps, all in nanoseconds.
struct Job(u64, u64, &'static [u64]);

struct Task {
    name: &'static str,
    /// Task that wakes it at its end, or queue that wakes it at a push.
    after: Option<usize>,
    on_push: Option<usize>,
    deadline: Option<u64>,
    priority: i32,
    cores: &'static [usize],
    steps: &'static [Step],
    jobs: &'static [Job],
}

/// A lock without an owner's guard, since steps lock and unlock in any order.
#[derive(Default)]
struct Gate(Mutex<bool>, Condvar);

impl Gate {
    fn lock(&self) {
        let mut taken = self.0.lock().unwrap();
        while *taken {
            taken = self.1.wait(taken).unwrap();
        }
        *taken = true;
    }

    fn unlock(&self) {
        *self.0.lock().unwrap() = false;
        self.1.notify_one();
    }
}

#[derive(Default)]
struct Queue(Mutex<usize>, Condvar);

#[cfg(target_os = "linux")]
mod system {
    #[repr(C)]
    struct Time(i64, i64);
    unsafe extern "C" {
        fn clock_gettime(clock: i32, time: *mut Time) -> i32;
        fn sched_setscheduler(pid: i32, policy: i32, priority: *const i32) -> i32;
        fn sched_setaffinity(pid: i32, size: usize, mask: *const u64) -> i32;
    }

    /// CPU time of this thread, in nanoseconds.
    pub fn used() -> u64 {
        let mut time = Time(0, 0);
        // SAFETY: the struct is the C library's timespec on 64-bit systems.
        unsafe { clock_gettime(3, &mut time) };
        time.0 as u64 * 1_000_000_000 + time.1 as u64
    }

    /// Priority and cores of this thread. Whether the system gave them.
    pub fn become_one(priority: i32, cores: &[usize]) -> bool {
        let mut mask = [0_u64; 16];
        for core in cores {
            mask[core / 64 % 16] |= 1 << (core % 64);
        }
        // SAFETY: both read what they are given, of this size.
        unsafe {
            let placed = sched_setaffinity(0, 128, mask.as_ptr()) == 0;
            placed && (priority == 0 || sched_setscheduler(0, 1, &priority) == 0)
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    pub fn used() -> u64 {
        use std::time::Instant;
        thread_local!(static START: Instant = Instant::now());
        START.with(|start| start.elapsed().as_nanos() as u64)
    }

    pub fn become_one(_: i32, _: &[usize]) -> bool {
        false
    }
}

fn run(ns: u64) {
    let end = system::used() + ns;
    while system::used() < end {}
}

fn wait_until(start: Instant, ns: u64) {
    if let Some(rest) = Duration::from_nanos(ns).checked_sub(start.elapsed()) {
        thread::sleep(rest);
    }
}

struct Shared {
    start: Instant,
    gates: Vec<Gate>,
    queues: Vec<Queue>,
    wakers: Vec<Sender<()>>,
}

fn push(shared: &Shared, queue: usize) {
    let (capacity, waits) = QUEUES[queue];
    let Queue(fill, changed) = &shared.queues[queue];
    let mut fill = fill.lock().unwrap();
    while *fill >= capacity {
        if !waits {
            println!("queue {queue} lost an item at {} ns", shared.start.elapsed().as_nanos());
            return;
        }
        fill = changed.wait(fill).unwrap();
    }
    *fill += 1;
    changed.notify_all();
    drop(fill);
    for (nth, task) in TASKS.iter().enumerate() {
        if task.on_push == Some(queue) {
            let _ = shared.wakers[nth].send(());
        }
    }
}

fn pop(shared: &Shared, queue: usize) {
    let Queue(fill, changed) = &shared.queues[queue];
    let mut fill = fill.lock().unwrap();
    while *fill == 0 {
        fill = changed.wait(fill).unwrap();
    }
    *fill -= 1;
    changed.notify_all();
}

fn work(number: usize, shared: &Shared, woken: &Receiver<()>) {
    let task = &TASKS[number];
    let given = system::become_one(task.priority, task.cores);
    if !given && number == 0 {
        eprintln!("priorities or cores were not given: run it as root, with as many cores");
    }
    let is_woken = task.after.is_some() || task.on_push.is_some();
    for (nth, job) in task.jobs.iter().enumerate() {
        let due = if is_woken {
            // Whoever would wake it may never do so: then the program ends it.
            let Ok(()) = woken.recv_timeout(Duration::from_nanos(HORIZON) * 2) else { return };
            let now = shared.start.elapsed().as_nanos() as u64;
            wait_until(shared.start, now + job.1);
            now + job.1
        } else {
            wait_until(shared.start, job.1);
            job.0
        };
        let mut times = job.2.iter();
        for step in task.steps {
            match *step {
                Step::Run => run(*times.next().unwrap_or(&0)),
                Step::Lock(gate) => shared.gates[gate].lock(),
                Step::Unlock(gate) => shared.gates[gate].unlock(),
                Step::Push(queue) => push(shared, queue),
                Step::Pop(queue) => pop(shared, queue),
            }
        }
        for (other, one) in TASKS.iter().enumerate() {
            if one.after == Some(number) {
                let _ = shared.wakers[other].send(());
            }
        }
        let response = shared.start.elapsed().as_nanos() as i64 - due as i64;
        let late = task.deadline.map(|deadline| response - deadline as i64);
        match late {
            Some(late) => println!("{} {nth} response {response} ns lateness {late} ns", task.name),
            None => println!("{} {nth} response {response} ns", task.name),
        }
    }
}

fn main() {
    let (wakers, woken): (Vec<_>, Vec<_>) = TASKS.iter().map(|_| channel()).unzip();
    let shared = Arc::new(Shared {
        // Time for all threads to begin.
        start: Instant::now() + Duration::from_millis(20),
        gates: (0..GATES).map(|_| Gate::default()).collect(),
        queues: QUEUES.iter().map(|_| Queue::default()).collect(),
        wakers,
    });
    let wait = shared.start.saturating_duration_since(Instant::now());
    let (done, ended) = channel();
    for (number, woken) in woken.into_iter().enumerate() {
        let (shared, done) = (shared.clone(), done.clone());
        thread::spawn(move || {
            thread::sleep(wait);
            work(number, &shared, &woken);
            let _ = done.send(number);
        });
    }
    drop(done);
    // A deadlock is what such a scenario may be about: do not wait for ever.
    let patience = Duration::from_nanos(HORIZON) * 10 + Duration::from_secs(2);
    let limit = Instant::now() + patience;
    let mut left: Vec<usize> = (0..TASKS.len()).collect();
    while !left.is_empty() {
        match ended.recv_timeout(limit.saturating_duration_since(Instant::now())) {
            Ok(number) => left.retain(|one| *one != number),
            Err(_) => break,
        }
    }
    for number in &left {
        println!("{} never ended", TASKS[*number].name);
    }
    std::process::exit(i32::from(!left.is_empty()));
}

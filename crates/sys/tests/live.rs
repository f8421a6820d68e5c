//! Clocks, usage, scheduling, counters and semaphores on the real system. Nothing asserts a speed.

use hearth_sys::clock::{self, Clock, Source};
use hearth_sys::counters::{Counter, Event};
use hearth_sys::mapping::MapOptions;
use hearth_sys::ping_pong::{PingPong, Seat};
use hearth_sys::policy::{self, Policy};
use hearth_sys::semaphore::Semaphore;
use hearth_sys::usage::{self, Whose};
use hearth_sys::{Fake, Linux, Reason, System, schedule};

#[test]
fn the_clock_agrees_with_the_systems() {
    let clock = Clock::calibrate(&Linux, 20);
    let (ns, ticks) = (clock::monotonic_ns(), clock.ticks_ordered());
    while clock::monotonic_ns() < ns + 20_000_000 {}
    let (after_ns, after) = (clock::monotonic_ns(), clock.ticks_ordered());
    let ratio = clock.ns(after - ticks) / (after_ns - ns) as f64;
    // A thread may lose its core between two readings, on either side.
    assert!((0.5..2.0).contains(&ratio), "{ratio} {clock:?}");
    assert!(clock.relative_error() < 1e-3);
    assert_eq!(clock.ticks_of(clock.ns(1 << 40)).abs_diff(1 << 40) >> 8, 0);
}

#[test]
fn without_promises_the_clock_is_the_systems() {
    let silent = Fake::with_cores(&[0]);
    assert_eq!(Clock::calibrate(&silent, 4).source(), Source::Monotonic);
    let changing = silent.file("/proc/cpuinfo", "flags\t: tsc rdtscp\n");
    assert_eq!(Clock::calibrate(&changing, 4).source(), Source::Monotonic);
}

#[test]
fn offsets_between_cores_are_bounded() {
    let cores = Linux.allowed().unwrap();
    let clock = Clock::calibrate(&Linux, 4);
    let (first, last) = (cores[0], *cores.last().unwrap());
    let offset = clock.offset(&Linux, first, last, 200).unwrap();
    assert!(offset.uncertainty_ns > 0.0);
    assert!(clock.offset(&Linux, first, 100_000, 3).is_err());
}

#[test]
fn usage_grows() {
    let before = usage::read(Whose::Thread);
    // Larger than any allocator keeps for later: pages that were never touched.
    let touched = vec![1u8; 64 << 20];
    std::hint::black_box(&touched);
    schedule::give_way();
    let used = usage::read(Whose::Thread).since(&before);
    assert!(used.faults_minor > 0, "{used:?}");
    let process = usage::read(Whose::Process);
    assert!(process.faults_minor >= used.faults_minor);
    assert!(schedule::shortest_call() >= 0);
}

#[test]
fn niceness_only_grows_without_rights() {
    std::thread::spawn(|| {
        assert_eq!(schedule::class(), schedule::Class::Other);
        let nice = schedule::nice();
        schedule::set_nice((nice + 1).min(19)).unwrap();
        assert_eq!(schedule::nice(), (nice + 1).min(19));
        assert!(schedule::set_class(schedule::Class::Deadline).is_err());
        schedule::set_class(schedule::Class::Batch).unwrap();
        assert_eq!(schedule::class(), schedule::Class::Batch);
    })
    .join()
    .unwrap();
}

#[test]
fn counters_count_or_say_why_not() {
    for event in Event::ALL {
        match Counter::open(event) {
            Ok(counter) => {
                assert_eq!(counter.event(), event);
                let begin = counter.read().unwrap();
                // Larger than any allocator keeps for later: pages that were never touched.
                let touched = vec![1u8; 64 << 20];
                std::hint::black_box(&touched);
                let end = counter.read().unwrap();
                assert!(end.enabled_ns >= begin.enabled_ns && end.value >= begin.value);
                if event == Event::PageFaults {
                    assert!(end.value > begin.value);
                }
            }
            Err(refused) => {
                assert!(
                    matches!(refused.reason, Reason::Absent | Reason::Permission),
                    "{refused}"
                );
                assert!(refused.to_string().contains(&format!("{event:?}")));
            }
        }
    }
}

#[test]
fn a_semaphore_lets_as_many_pass_as_were_posted() {
    let semaphore = Semaphore::new(1).unwrap();
    assert!(semaphore.try_wait());
    assert!(!semaphore.try_wait());
    std::thread::scope(|scope| {
        scope.spawn(|| semaphore.post());
        semaphore.wait();
    });
    assert!(!semaphore.try_wait());
    assert!(Semaphore::new(u32::MAX).is_err());
}

#[test]
fn memory_policies_hold_where_there_are_nodes() {
    std::thread::spawn(|| {
        let Ok(nodes) = policy::nodes_allowed() else {
            return;
        };
        let before = policy::of_thread().unwrap();
        let bound = Policy::Bind(vec![nodes[0]]);
        policy::set_thread(&bound).unwrap();
        assert_eq!(policy::of_thread().unwrap(), bound);
        policy::set_thread(&Policy::Preferred(nodes[0])).unwrap();
        assert_eq!(policy::of_thread().unwrap(), Policy::Preferred(nodes[0]));
        policy::set_thread(&before).unwrap();
        assert!(policy::set_thread(&Policy::Bind(vec![1000])).is_err());
        assert!(policy::set_thread(&Policy::Bind(vec![5000])).is_err());
    })
    .join()
    .unwrap();
}

#[test]
fn turns_alternate_and_hand_memory_over() {
    let mut relay = PingPong::new(MapOptions::small(8192)).unwrap();
    assert_eq!(relay.bytes(), 8192);
    const TURNS: u64 = 200;
    for is_asleep in [false, true] {
        let [mut first, mut second] = relay.seats();
        assert!(second.try_take().is_none(), "the first begins");
        let side = |seat: &mut Seat<'_>, parity: u64| {
            for number in 0..TURNS {
                let mut turn = if is_asleep {
                    seat.take_asleep()
                } else {
                    while !seat.is_mine() {
                        schedule::give_way();
                    }
                    seat.try_take().unwrap()
                };
                let words = turn.words();
                if number + parity > 0 {
                    assert!(words.iter().all(|&word| word == 2 * number + parity));
                }
                words.fill(2 * number + parity + 1);
                if is_asleep {
                    turn.pass_on_and_wake();
                } else {
                    turn.pass_on();
                }
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(|| side(&mut second, 1));
            side(&mut first, 0);
        });
        let mut last = first.try_take().unwrap();
        assert!(last.words().iter().all(|&word| word == 2 * TURNS));
        assert!(second.try_take().is_none());
    }
}

//! Fake systems, the text files, and what the real system must support at least.

use hearth_sys::mapping::{self, MapOptions, Mapping};
use hearth_sys::policy::Policy;
use hearth_sys::procfs::{self, Interrupts};
use hearth_sys::{Fake, Linux, Reason, System};

#[test]
fn lists_of_cores() {
    assert_eq!(procfs::parse_list("0-3,8,10-11\n"), [0, 1, 2, 3, 8, 10, 11]);
    assert_eq!(procfs::parse_list("5,2,2-3"), [2, 3, 5]);
    assert!(procfs::parse_list("").is_empty());
    assert!(procfs::parse_list("x-3,,9-z").is_empty());
    assert!(procfs::parse_list("0-99999999999999").is_empty());
}

#[test]
fn times_of_cores() {
    let text = "cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 10 1 20 300 5 2 3 7 0 0\ncpu3 1 2 3 4\nintr 5\n";
    let times = procfs::parse_stat(text);
    assert_eq!(times.len(), 2);
    assert_eq!((times[0].core, times[0].user, times[0].system), (0, 11, 25));
    assert_eq!((times[0].idle, times[0].steal), (305, 7));
    assert_eq!(
        (times[1].core, times[1].steal, times[1].total()),
        (3, 0, 10)
    );
}

#[test]
fn interrupts_are_counted_by_core_and_kind() {
    let text = "           CPU0       CPU4\n  24:          1         20  IO-APIC   5-edge  ACPI:Ged\n\
                LOC:      1000       2000   Local timer interrupts\nERR:          3\n";
    let interrupts = Interrupts(text.to_owned());
    assert_eq!(interrupts.by_core(), [(0, 1001), (4, 2020)]);
    assert_eq!(
        interrupts.by_kind(),
        [("24", vec![1, 20]), ("LOC", vec![1000, 2000])]
    );
    assert!(Interrupts::default().by_core().is_empty());
    assert!(
        Interrupts("nonsense\nLOC: x".to_owned())
            .by_kind()
            .is_empty()
    );
}

#[test]
fn a_recorded_machine_answers_from_its_files() {
    let files = [
        ("/sys/devices/system/cpu/online", "0-1,4"),
        ("/sys/devices/system/cpu/cpu4/topology/core_id", "2"),
        ("/sys/devices/system/node/has_memory", "0,2"),
    ];
    let machine = Fake::recorded(files.map(|(p, t)| (p.to_owned(), t.to_owned())));
    assert_eq!(machine.online().unwrap(), [0, 1, 4]);
    assert_eq!(machine.allowed().unwrap(), [0, 1, 4]);
    assert_eq!(machine.memory_nodes().unwrap(), [0, 2]);
    assert_eq!(
        machine.list("/sys/devices/system/cpu").unwrap(),
        ["cpu4", "online"]
    );
    assert!(machine.read("/proc/cpuinfo").is_err());
    assert!(machine.place_memory(&Policy::Bind(vec![2])).is_ok());
    let refused = machine.place_memory(&Policy::Bind(vec![1])).unwrap_err();
    assert_eq!(refused.reason, Reason::Invalid);
    assert_eq!(machine.placements(), [Policy::Bind(vec![2])]);
}

#[test]
fn cores_leave_and_files_are_forbidden() {
    let machine = Fake::with_cores(&[0, 1])
        .offline_after(1, 2)
        .file("/proc/stat", "cpu0 1")
        .forbid("/proc");
    assert!(machine.pin(1).is_ok());
    assert!(machine.pin(1).is_ok());
    let refused = machine.pin(1).unwrap_err();
    assert_eq!(refused.reason, Reason::Invalid);
    assert_eq!(
        refused.to_string(),
        "cannot pin a thread to core 1: no such object, or it went away; \
         choose a core that is online and in this process's set"
    );
    assert_eq!(machine.allowed().unwrap(), [0]);
    let error = machine.read("/proc/stat").unwrap_err();
    assert_eq!(Reason::of(&error), Reason::Permission);
    let bound = Fake::with_cores(&[0]).without_pinning();
    assert_eq!(bound.pin(0).unwrap_err().reason, Reason::Permission);
}

#[test]
fn a_pin_is_undone_when_dropped() {
    std::thread::spawn(|| {
        let before = Linux.allowed().unwrap();
        let core = *before.last().unwrap();
        let pinned = Linux.pin(core).unwrap();
        assert_eq!(pinned.core(), core);
        assert_eq!(Linux.allowed().unwrap(), [core]);
        assert_eq!(hearth_sys::affinity::current(), Some(core));
        drop(pinned);
        assert_eq!(Linux.allowed().unwrap(), before);
        let refused = Linux.pin(100_000).unwrap_err();
        assert_eq!(refused.reason, Reason::Invalid);
    })
    .join()
    .unwrap();
}

#[test]
fn mapped_memory_is_aligned_zeroed_and_ours() {
    let mut memory = Mapping::new(MapOptions::huge(3 << 20)).unwrap();
    assert_eq!(memory.address() % (2 << 20), 0);
    assert_eq!(memory.words().len(), (3 << 20) / 8);
    assert!(memory.words().iter().all(|&word| word == 0));
    memory.words_mut()[5] = 7;
    let atomics = memory.atomics();
    assert_eq!(atomics[5].load(std::sync::atomic::Ordering::Relaxed), 7);
    mapping::flush(&atomics[5]);
    mapping::fence();
    assert_eq!(memory.words()[5], 7);
    memory.forget_contents();
    assert_eq!(memory.words()[5], 0);
    let mut options = MapOptions::small(1);
    assert_eq!(
        Mapping::new(options).unwrap().bytes(),
        mapping::page_bytes()
    );
    options.align = 12345;
    assert_eq!(Mapping::new(options).unwrap_err().reason, Reason::Invalid);
    options = MapOptions::small(usize::MAX - 5);
    assert_eq!(Mapping::new(options).unwrap_err().reason, Reason::Invalid);
    options = MapOptions::small(1 << 60);
    assert_eq!(Mapping::new(options).unwrap_err().reason, Reason::Exhausted);
}

#[test]
fn prefaulted_pages_are_located_or_the_refusal_says_why() {
    let memory = Mapping::new(MapOptions::small(8 * mapping::page_bytes())).unwrap();
    match hearth_sys::policy::pages_of(&memory) {
        Ok(nodes) => {
            assert_eq!(nodes.len(), 8);
            let allowed = Linux.memory_nodes().unwrap();
            assert!(
                nodes
                    .iter()
                    .all(|n| n.is_some_and(|n| allowed.contains(&n)))
            );
        }
        Err(refused) => assert!(
            matches!(refused.reason, Reason::Absent | Reason::Permission),
            "{refused}"
        ),
    }
}

#[test]
fn a_slow_clock_moves_only_when_looked_at() {
    let machine = Fake::with_cores(&[0]).with_slow_clock(1_000_000);
    let first = machine.now_ns();
    assert_eq!(machine.now_ns(), first + 1_000_000);
    assert_eq!(machine.now_ns(), first + 2_000_000);
    assert!(Linux.now_ns() > 0);
}

#[test]
fn memory_that_is_left_in_all_and_on_a_node() {
    let whole = "MemTotal:       24000000 kB\nMemFree:  1000 kB\nMemAvailable:   2048 kB\n";
    let node = "Node 1 MemTotal:       98304 kB\nNode 1 MemFree:        1024 kB\n\
                Node 1 Inactive(anon):   77 kB\nNode 1 Inactive(file):  512 kB\n";
    let fake = Fake::with_cores(&[0, 1])
        .file("/proc/meminfo", whole)
        .file("/sys/devices/system/node/node1/meminfo", node);
    assert_eq!(procfs::available_bytes(&fake), Some(2 << 20));
    assert_eq!(procfs::available_on_node(&fake, 1), Some(1536 << 10));
    assert_eq!(procfs::available_on_node(&fake, 2), None);
}

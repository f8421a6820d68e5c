//! Placements for other tools: command lines, variables, rankfiles, cpusets.

use std::process::Command;

use fastrand::Rng;
use hearth_machine::synthetic;
use hearth_machine::topology::{OsNode, OsThread, Topology, parse_list};
use hearth_place::forms::{
    BindError, CpuSet, MemoryPolicy, Placed, SlotNumbering, VARIABLE_BYTES_MAX, gomp, numactl,
    numactl_each, openmp, openmp_program, quote, rankfile, taskset, taskset_each, taskset_threads,
};

fn placed() -> Vec<Placed> {
    let place = |name: &str, cpu, node| Placed::new(name, OsThread(cpu)).on_node(OsNode(node));
    vec![
        place("maker", 1, 0),
        place("the relay", 0, 0),
        place("it's", 1, 0),
        place("taker", 40, 2),
    ]
}

fn machine(description: &str) -> Topology {
    synthetic::parse(description).expect("a description")
}

#[test]
fn a_whole_program_on_what_its_placement_uses() {
    let set = CpuSet::of(&placed()).unwrap();
    assert_eq!(
        taskset(&set, &["./pipeline", "--rounds=5", "a b"]).unwrap(),
        "taskset --cpu-list 0-1,40 ./pipeline '--rounds=5' 'a b'"
    );
    assert_eq!(
        numactl(&set, MemoryPolicy::Bind, &["./pipeline"]).unwrap(),
        "numactl --physcpubind=0-1,40 --membind=0,2 ./pipeline"
    );
    assert_eq!(
        numactl(&set, MemoryPolicy::Local, &["-odd"]).unwrap(),
        "numactl --physcpubind=0-1,40 --localalloc -- -odd"
    );
    assert_eq!(set.cpuset(), "cpuset.cpus=0-1,40\ncpuset.mems=0,2\n");
    assert_eq!(set.cpu_mask(), "00000100,00000003");
    assert_eq!(
        openmp_program(&set)
            .unwrap()
            .command(&["./pipeline"])
            .unwrap(),
        "OMP_PLACES='{0},{1},{40}' OMP_PROC_BIND=close ./pipeline"
    );
    // The node of one is not known.
    let mut some = placed();
    some[0].node = None;
    let set = CpuSet::of(&some).unwrap();
    assert_eq!(
        numactl(&set, MemoryPolicy::Bind, &["./pipeline"]).unwrap(),
        "numactl --physcpubind=0-1,40 --localalloc ./pipeline"
    );
    assert_eq!(set.cpuset(), "cpuset.cpus=0-1,40\n");
}

#[test]
fn a_line_for_each_component() {
    assert_eq!(
        taskset_each(
            &placed(),
            &["./worker", "--name={name}", "{number}", "{na{name}}"]
        )
        .unwrap(),
        [
            "taskset --cpu-list 1 ./worker '--name=maker' 0 '{namaker}'",
            "taskset --cpu-list 0 ./worker '--name=the relay' 1 '{nathe relay}'",
            r"taskset --cpu-list 1 ./worker '--name=it'\''s' 2 '{nait'\''s}'",
            "taskset --cpu-list 40 ./worker '--name=taker' 3 '{nataker}'",
        ]
    );
    assert_eq!(
        numactl_each(&placed()[2..], MemoryPolicy::Bind, &["./worker"]).unwrap(),
        [
            "numactl --physcpubind=1 --membind=0 ./worker",
            "numactl --physcpubind=40 --membind=2 ./worker",
        ]
    );
    assert_eq!(
        taskset_threads(&placed()[2..], &[700, 701]).unwrap(),
        [
            "taskset --cpu-list --pid 1 700",
            "taskset --cpu-list --pid 40 701",
        ]
    );
}

#[test]
fn variables_of_openmp() {
    assert_eq!(
        openmp(&placed()).unwrap().exports(),
        "export OMP_NUM_THREADS=4\n\
         export OMP_PLACES='{1},{0},{1},{40}'\n\
         export OMP_PROC_BIND=close\n"
    );
    let cpus = [3, 0, 1, 2, 2, 5, 6];
    let placed: Vec<Placed> = cpus.map(|cpu| Placed::new("c", OsThread(cpu))).to_vec();
    assert_eq!(
        gomp(&placed).unwrap().command(&["./p"]).unwrap(),
        "OMP_NUM_THREADS=7 GOMP_CPU_AFFINITY='3 0-2 2 5 6' ./p"
    );
    let many = |cpu: fn(u32) -> u32| -> Vec<Placed> {
        (0..100_000)
            .map(|at| Placed::new("c", OsThread(cpu(at))))
            .collect()
    };
    let error = openmp(&many(|at| at % 2 * 100)).unwrap_err();
    assert!(
        matches!(
            error,
            BindError::TooLong {
                variable: "OMP_PLACES",
                ..
            }
        ),
        "{error}"
    );
    for (_, value) in openmp(&many(|at| at)).unwrap().iter() {
        assert!(value.len() < VARIABLE_BYTES_MAX);
    }
}

#[test]
fn rankfiles_number_as_hwloc_does() {
    // The system numbers in turns: 0 2 | 1 3 are the cores' first threads, 4 6 | 5 7 the second.
    let machine = machine("2 packages, 2 cores, 2 threads, numbering dealt");
    let placed: Vec<Placed> = [("a", 0), ("b", 6), ("c\n", 5), ("d", 7)]
        .map(|(name, cpu)| Placed::new(name, OsThread(cpu)))
        .to_vec();
    assert_eq!(
        rankfile(&placed, "+n0", SlotNumbering::Threads(&machine)).unwrap(),
        "# mpirun --use-hwthread-cpus --rankfile FILE PROGRAM\n\
         # a\nrank 0=+n0 slot=0\n\
         # b\nrank 1=+n0 slot=3\n\
         # c\\u{a}\nrank 2=+n0 slot=5\n\
         # d\nrank 3=+n0 slot=7\n"
    );
    let slots = |text: String| -> Vec<String> {
        let slots = text.lines().filter_map(|line| line.split_once("slot="));
        slots.map(|(_, slot)| slot.to_owned()).collect()
    };
    let cores = rankfile(&placed, "localhost", SlotNumbering::Cores(&machine)).unwrap();
    assert_eq!(slots(cores), ["0", "1", "2", "3"]);
    let system = rankfile(&placed, "localhost", SlotNumbering::System).unwrap();
    assert!(system.starts_with("# mpirun --mca rmaps_rank_file_physical 1 --rankfile FILE"));
    assert_eq!(slots(system), ["0", "6", "5", "7"]);
}

/// Logical numbers are dense, and threads of nested parts follow each other.
#[test]
fn logical_numbers_keep_parts_together() {
    for description in [
        "2 packages, 4 cores, 2 threads, 4 nodes, l3 8M per 2 cores, l2 1M per core, numbering dealt",
        "2 packages, 3 cores, 2 threads, 1 nodes, offline 0,7, numbering spread",
        "1 packages, 8 cores, 2 nodes, l2 1M per 2 cores, offline 3",
    ] {
        let machine = machine(description);
        let placed: Vec<Placed> = machine
            .threads()
            .iter()
            .map(|thread| Placed::new("c", thread.os))
            .collect();
        let text = rankfile(&placed, "h", SlotNumbering::Threads(&machine)).unwrap();
        let slots: Vec<u32> = text
            .lines()
            .filter_map(|line| line.split_once("slot=")?.1.parse().ok())
            .collect();
        let mut sorted = slots.clone();
        sorted.sort_unstable();
        assert!(
            sorted.iter().zip(0..).all(|(slot, at)| *slot == at),
            "{slots:?}"
        );
        let caches = machine.caches().iter().map(|cache| &cache.threads);
        let packages = machine.packages().iter().map(|package| &package.threads);
        let cores = machine.cores().iter().map(|core| &core.threads);
        for part in caches.chain(packages).chain(cores) {
            let of = part.iter().map(|thread| slots[thread.index()]);
            let width = of.clone().max().unwrap() - of.min().unwrap();
            assert_eq!(
                width as usize,
                part.len() - 1,
                "{description}: {part:?} {slots:?}"
            );
        }
    }
}

#[test]
fn what_cannot_be_written_is_told() {
    let complaint = |error: BindError| error.to_string();
    let nothing = "no component is placed, so there is nothing to bind: place a program that has \
                   components";
    assert_eq!(complaint(CpuSet::of(&[]).unwrap_err()), nothing);
    assert_eq!(
        complaint(rankfile(&[], "h", SlotNumbering::System).unwrap_err()),
        nothing
    );
    assert_eq!(complaint(taskset_each(&[], &["x"]).unwrap_err()), nothing);
    assert_eq!(complaint(openmp(&[]).unwrap_err()), nothing);
    let set = CpuSet::of(&placed()).unwrap();
    for none in [&[] as &[&str], &[""]] {
        assert_eq!(taskset(&set, none), Err(BindError::NoProgram));
        assert_eq!(
            numactl(&set, MemoryPolicy::Bind, none),
            Err(BindError::NoProgram)
        );
    }
    assert_eq!(
        complaint(taskset(&set, &["a", "b\0c"]).unwrap_err()),
        r"`b\0c` holds the character 0, which no argument can: leave it out"
    );
    assert_eq!(
        complaint(taskset_threads(&placed(), &[1]).unwrap_err()),
        "1 threads are named for 4 components: name one for each, in the same order"
    );
    for host in ["", "+", "a b", "a=b", "a#", "a\n"] {
        let error = rankfile(&placed(), host, SlotNumbering::System).unwrap_err();
        assert!(matches!(error, BindError::Host { .. }), "{error}");
    }
    let small = machine("1 packages, 2 cores");
    assert_eq!(
        complaint(rankfile(&placed(), "h", SlotNumbering::Cores(&small)).unwrap_err()),
        "`taker` is placed on cpu40, which this machine does not have online: place it for this \
         machine, or take the system's own numbers"
    );
}

#[test]
fn lists_and_masks_say_the_same() {
    let mut rng = Rng::with_seed(9);
    for _ in 0..300 {
        let cpus: Vec<u32> = (0..rng.usize(1..40)).map(|_| rng.u32(0..200)).collect();
        let placed: Vec<Placed> = cpus
            .iter()
            .map(|cpu| Placed::new("c", OsThread(*cpu)))
            .collect();
        let set = CpuSet::of(&placed).unwrap();
        let known: Vec<u32> = set.cpus().iter().map(|cpu| cpu.0).collect();
        assert_eq!(parse_list(&set.cpu_list()).unwrap(), known);
        let parts: Vec<String> = set.cpu_mask().split(',').map(String::from).collect();
        let is_in = |cpu: u32| {
            let part = parts.iter().rev().nth(cpu as usize / 32);
            let part = part.map_or(0, |part| u32::from_str_radix(part, 16).unwrap());
            part & 1 << (cpu % 32) != 0
        };
        assert!(
            (0..256).all(|cpu| is_in(cpu) == cpus.contains(&cpu)),
            "{parts:?} {cpus:?}"
        );
        assert!(parts[0] != "00000000" || parts.len() == 1);
    }
}

/// Words as the shell reads our quotes, compared with the originals.
#[test]
fn the_shell_reads_words_back() {
    let mut words: Vec<String> = [
        "", " ", "'", "''", "\\", "$HOME", "`x`", "a\nb", "-n", "~", "*", "{a,b}", "!x", "é",
        "A=b", "#",
    ]
    .map(String::from)
    .to_vec();
    let mut rng = Rng::with_seed(1);
    let signs: Vec<char> = " '\"\\$`!*?[]{}()<>|&;#~=%\n\té-a0".chars().collect();
    for _ in 0..100 {
        let length = rng.usize(0..8);
        words.push((0..length).map(|_| *rng.choice(&signs).unwrap()).collect());
    }
    let quoted: Vec<String> = words.iter().map(|word| quote(word).unwrap()).collect();
    let line = format!("printf '%s\\0' {}", quoted.join(" "));
    let output = Command::new("sh")
        .arg("-c")
        .arg(line)
        .output()
        .expect("a shell is there");
    let text = String::from_utf8(output.stdout).expect("words are text");
    let read: Vec<&str> = text.split_terminator('\0').collect();
    assert_eq!(read, words);
    // As the first word of a line, a word with `=` is still a program's name.
    let line = format!("{} 2>/dev/null || echo refused", quote("A=b").unwrap());
    let output = Command::new("sh")
        .arg("-c")
        .arg(line)
        .output()
        .expect("a shell is there");
    assert_eq!(output.stdout, b"refused\n");
}

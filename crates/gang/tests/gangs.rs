//! Real gangs of real processes: they run apart, and nothing stays held, whoever is killed.
//!
//! The bounds are loose, as other programs run beside tests. `HEARTH_TEST_DEEP=1`, on an idle
//! machine, demands what gangs promise.

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitCode};
use std::time::{Duration, Instant};

use hearth_gang::witness::judge;
use hearth_gang::{BackEnd, Gangs, look_in, probe};
use hearth_sys::signal;
use libtest_mimic::{Arguments, Trial};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use support::{in_folder, part, read};

/// Time for which a test waits for other processes, on a busy machine too.
const PATIENCE: Duration = Duration::from_secs(300);

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let Some(code) = part(&words) {
        return code;
    }
    let mut arguments = Arguments::from_args();
    // Each test fills the machine.
    arguments.test_threads = Some(1);
    let mut trials = vec![
        test("exit_codes_and_signals_are_passed_on", codes),
        test("who_is_killed_leaves_nobody_held", killed),
        test("all_killed_at_once_leave_nobody_held", all_killed),
        test("a_stopped_conductor_holds_nobody", stalled),
        test("long_turns_last", long_turns),
        test("what_its_user_stopped_stays_stopped", left_alone),
        test("a_key_at_the_terminal_ends_all", interrupted),
        test("processes_may_come_and_go", forks),
        test("inner_gangs_have_turns_of_the_outer", nested),
        test("gangs_are_made_while_others_have_their_turn", made_inside),
        test("threads_of_programs_join", joined),
        test("names_are_found_and_unique", names),
    ];
    for back_end in [BackEnd::Stop, BackEnd::Freezer] {
        let name = format!("held_without_a_registry_by_{}", back_end.name());
        trials.push(test(&name, move || without_registry(back_end)));
    }
    for back_end in BackEnd::ALL {
        let name = format!("two_gangs_run_apart_by_{}", back_end.name());
        trials.push(test(&name, move || apart(back_end)));
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn test(name: &str, run: impl FnOnce() + Send + 'static) -> Trial {
    Trial::test(name, move || {
        run();
        Ok(())
    })
}

/// A folder that is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let name = format!("hearth-gangs-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).expect("it is new");
        Folder(path)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    fn gangs(&self) -> Gangs {
        look_in(&self.0).expect("a registry")
    }

    /// A gang of a shell's script, whose process it returns, once it has begun.
    fn script(&self, options: &str, name: &str, script: &str) -> (Killed, u32) {
        let file = self.file(name);
        let script = format!("echo $$ > {file}.draft; mv {file}.draft {file}; {script}");
        let child = in_folder(&self.0, &["gang", options, "sh", "-c", &script])
            .spawn()
            .expect("it starts");
        let child = Killed(child);
        let process = wait_for("the script", || {
            fs::read_to_string(&file).ok()?.trim().parse().ok()
        });
        (child, process)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A process that does not outlive its test.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        // A gang's command outlives the process that made it.
        for child in children(self.0.id()) {
            kill(child, Signal::KILL);
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A command's process, which ends with the test although the gang's own was killed.
struct Ends(u32);

impl Drop for Ends {
    fn drop(&mut self) {
        kill(self.0, Signal::KILL);
    }
}

fn kill(process: u32, signal: Signal) {
    if let Some(process) = i32::try_from(process).ok().and_then(Pid::from_raw) {
        let _ = kill_process(process, signal);
    }
}

fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begin.elapsed() < PATIENCE, "{what} does not come");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn state(process: u32) -> char {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let state = stat
        .rsplit_once(") ")
        .and_then(|(_, rest)| rest.chars().next());
    state.unwrap_or('X')
}

/// Waits until turns go on: some set has had more of them.
fn turns_go_on(folder: &Folder) {
    let turns = || -> Vec<u64> {
        let gangs = folder.gangs();
        gangs.sets.iter().map(|set| set.account.turns).collect()
    };
    let before = turns();
    wait_for("more turns", || {
        let now = turns();
        let both = now.iter().zip(&before);
        (now.len() == before.len() && both.clone().all(|(now, before)| *now > before + 3))
            .then_some(())
    });
}

/// Waits until a process is not stopped any more, and then sees that it stays so for some turns.
fn runs_on(process: u32) {
    wait_for("a process that goes on", || {
        (state(process) != 'T').then_some(())
    });
    let until = Instant::now() + Duration::from_millis(300);
    while Instant::now() < until {
        assert_ne!(state(process), 'T', "process {process} is stopped");
        std::thread::sleep(Duration::from_millis(1));
    }
}

const BUSY: &str = "while :; do :; done";

fn codes() {
    let folder = Folder::new("codes");
    let run = |script: &str| {
        let mut command = in_folder(&folder.0, &["gang", "cores=1", "sh", "-c", script]);
        command.status().expect("it starts").code()
    };
    assert_eq!(run("exit 7"), Some(7));
    assert_eq!(run("kill -KILL $$"), Some(128 + 9));
    let script = "trap 'exit 9' TERM; while :; do sleep 0.01; done";
    let (mut child, _) = folder.script("cores=1", "traps", script);
    // The trap is set some time after the file is there: the signal comes until it is.
    let code = wait_for("the end", || {
        signal::send(child.0.id(), signal::TERMINATE);
        child.0.try_wait().expect("it is ours")
    });
    assert!(matches!(code.code(), Some(9 | 143)), "{code}");
    let mut missing = in_folder(&folder.0, &["gang", "cores=1", "/no/such/program"]);
    let output = missing.output().expect("it starts");
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error.contains("cannot start program"), "{error}");
}

fn cpus() -> usize {
    hearth_sys::affinity::allowed().len()
}

fn killed() {
    let folder = Folder::new("killed");
    let options = format!("isolate,cores={},back_end=stop", cpus());
    let (mut first, one) = folder.script(&options, "first", BUSY);
    wait_for("a conductor", || folder.gangs().conductor);
    let (second, other) = folder.script(&options, "second", BUSY);
    let _ends = [Ends(one), Ends(other)];
    // At a moment when it has stopped somebody.
    wait_for("a stopped member", || (state(one) == 'T').then_some(()));
    first.0.kill().expect("it is ours");
    first.0.wait().expect("it ends");
    runs_on(one);
    runs_on(other);
    wait_for("another conductor", || {
        (folder.gangs().conductor == Some(second.0.id())).then_some(())
    });
    // Those who are left take turns with those who come.
    let (_third, _) = folder.script(&options, "third", BUSY);
    turns_go_on(&folder);
}

fn all_killed() {
    let folder = Folder::new("all-killed");
    let options = format!("isolate,cores={},back_end=stop", cpus());
    let (mut first, one) = folder.script(&options, "first", "sh -c 'while :; do :; done'; :");
    let (mut second, other) = folder.script(&options, "second", "sh -c 'while :; do :; done'; :");
    let _ends = [Ends(one), Ends(other)];
    turns_go_on(&folder);
    let children: Vec<u32> = [children(one), children(other)].concat();
    let _inner: Vec<Ends> = children.iter().map(|one| Ends(*one)).collect();
    assert_eq!(children.len(), 2);
    wait_for("a stopped member", || {
        (state(children[0]) == 'T').then_some(())
    });
    for child in [&mut first, &mut second] {
        child.0.kill().expect("it is ours");
    }
    for child in [&mut first, &mut second] {
        child.0.wait().expect("it ends");
    }
    for child in children {
        runs_on(child);
    }
    assert!(folder.gangs().sets.is_empty());
}

/// The process of a gang whose members are held is killed, with the one that conducts, and the
/// registry is removed at the same moment: only what their keepers were handed is left.
fn without_registry(back_end: BackEnd) {
    if !works(back_end) {
        return;
    }
    let folder = Folder::new(&format!("gone-{}", back_end.name()));
    // Turns are long, so that the one who is held at the look is so at the kill.
    let options = format!(
        "isolate,slice=300,cores={},back_end={}",
        cpus(),
        back_end.name()
    );
    let script = "sh -c 'while :; do :; done'; :";
    let (mut first, one) = folder.script(&options, "first", script);
    let (mut second, other) = folder.script(&options, "second", script);
    let _ends = [Ends(one), Ends(other)];
    turns_go_on(&folder);
    let children = [children(one), children(other)].concat();
    let _inner: Vec<Ends> = children.iter().map(|one| Ends(*one)).collect();
    assert_eq!(children.len(), 2);
    let groups: Vec<PathBuf> = folder
        .gangs()
        .sets
        .iter()
        .filter_map(|set| set.description.group.clone())
        .collect();
    wait_for("a member that is held", || {
        let sets = folder.gangs().sets;
        sets.iter().any(|set| !set.is_on).then_some(())
    });
    for child in [&mut first, &mut second] {
        child.0.kill().expect("it is ours");
    }
    // At once, and whole: somebody may be about to write into it.
    let gone = folder.0.with_extension("gone");
    fs::rename(&folder.0, &gone).expect("it is ours");
    let _gone = Folder(gone);
    for child in [&mut first, &mut second] {
        child.0.wait().expect("it ends");
    }
    for child in children {
        let before = ran_ns(child);
        wait_for("a process that goes on", || {
            (ran_ns(child) > before + 50_000_000).then_some(())
        });
    }
    for group in groups {
        wait_for("the end of the group", || (!group.exists()).then_some(()));
    }
}

/// CPU time of a process's first thread.
fn ran_ns(process: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{process}/schedstat")).unwrap_or_default();
    let first = text.split_whitespace().next();
    first.and_then(|word| word.parse().ok()).unwrap_or(0)
}

fn children(process: u32) -> Vec<u32> {
    let path = format!("/proc/{process}/task/{process}/children");
    let text = fs::read_to_string(path).unwrap_or_default();
    text.split_whitespace().flat_map(str::parse).collect()
}

/// Whether a back end works here. Tells if it does not.
fn works(back_end: BackEnd) -> bool {
    let tried = probe().into_iter().find(|one| one.back_end == back_end);
    let obstacle = tried.and_then(|one| one.obstacle);
    if let Some(why) = &obstacle {
        tell(&format!("{} does not work here: {why}", back_end.name()));
    }
    obstacle.is_none()
}

fn stalled() {
    let folder = Folder::new("stalled");
    let options = format!("isolate,cores={},back_end=stop", cpus());
    let (first, one) = folder.script(&options, "first", BUSY);
    let conductor = wait_for("a conductor", || folder.gangs().conductor);
    assert_eq!(conductor, first.0.id());
    let (_second, other) = folder.script(&options, "second", BUSY);
    wait_for("a stopped member", || (state(other) == 'T').then_some(()));
    kill(conductor, Signal::STOP);
    runs_on(other);
    kill(conductor, Signal::CONT);
    turns_go_on(&folder);
    let _ends = [Ends(one), Ends(other)];
}

/// Turns may be longer than the time after which a silent conductor counts as stopped.
fn long_turns() {
    let folder = Folder::new("long-turns");
    let options = format!("isolate,slice=4000,cores={},back_end=stop", cpus());
    let (_first, one) = folder.script(&options, "first", BUSY);
    let (_second, other) = folder.script(&options, "second", BUSY);
    let held = wait_for("a stopped member", || {
        [one, other].into_iter().find(|one| state(*one) == 'T')
    });
    // It waits for a whole turn, once the other's ends and its own has passed.
    wait_for("its turn", || (state(held) != 'T').then_some(()));
    wait_for("the turn's end", || (state(held) == 'T').then_some(()));
    let until = Instant::now() + Duration::from_millis(2500);
    while Instant::now() < until {
        assert_eq!(state(held), 'T');
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn left_alone() {
    let folder = Folder::new("left-alone");
    let file = folder.file("sleeper");
    let script = format!("sleep 1000 & echo $! > {file}; {BUSY}");
    let options = format!("isolate,cores={},back_end=stop", cpus());
    let (_first, _one) = folder.script(&options, "first", &script);
    let (_second, _other) = folder.script(&options, "second", BUSY);
    let sleeper: u32 = wait_for("the sleeper", || {
        fs::read_to_string(&file).ok()?.trim().parse().ok()
    });
    turns_go_on(&folder);
    // In a moment when its gang runs, so that the stop is its user's.
    wait_for("its turn", || (state(sleeper) == 'S').then_some(()));
    kill(sleeper, Signal::STOP);
    wait_for("the stop", || (state(sleeper) == 'T').then_some(()));
    turns_go_on(&folder);
    assert_eq!(state(sleeper), 'T');
    kill(sleeper, Signal::CONT);
    wait_for("its end of the stop", || {
        (state(sleeper) == 'S').then_some(())
    });
    kill(sleeper, Signal::KILL);
}

fn interrupted() {
    use std::os::unix::process::CommandExt;
    let folder = Folder::new("interrupted");
    let options = format!("isolate,cores={},back_end=stop", cpus());
    let (_other, _) = folder.script(&options, "other", BUSY);
    let mut command = in_folder(&folder.0, &["gang", &options, "sh", "-c", BUSY]);
    let mut child = Killed(command.process_group(0).spawn().expect("it starts"));
    wait_for("two gangs", || {
        (folder.gangs().sets.len() == 2).then_some(())
    });
    turns_go_on(&folder);
    let group = i32::try_from(child.0.id()).ok().and_then(Pid::from_raw);
    kill_process_group(group.expect("a number"), Signal::INT).expect("it is there");
    let ended = wait_for("the end", || child.0.try_wait().expect("it is ours"));
    assert_eq!(ended.code(), Some(128 + 2));
    wait_for("one gang", || {
        (folder.gangs().sets.len() == 1).then_some(())
    });
}

fn forks() {
    let folder = Folder::new("forks");
    let options = format!("isolate,slice=5,cores={},back_end=stop", cpus());
    let script = "i=0; while [ $i -lt 300 ]; do (exec true); i=$((i+1)); done; exit 5";
    let (mut first, _) = folder.script(&options, "first", script);
    let (mut second, _) = folder.script(&options, "second", script);
    for child in [&mut first, &mut second] {
        let ended = wait_for("the end", || child.0.try_wait().expect("it is ours"));
        assert_eq!(ended.code(), Some(5));
    }
}

fn nested() {
    let folder = Folder::new("nested");
    let program = std::env::current_exe().expect("this program");
    let program = program.display();
    let all = cpus();
    let busy = folder.file("busy");
    let inner = |name: &str| {
        format!("{program} gang cores={all},name={name},within=outer,back_end=stop spin free 1 1 {busy}-{name}")
            .replace(" spin", &format!(" {program} spin"))
    };
    let script = format!("{} & {} & wait", inner("a"), inner("b"));
    let outer = format!("name=outer,cores={all},back_end=stop");
    let (mut outer, _) = folder.script(&outer, "outer", &script);
    let options = format!("name=other,isolate,cores={all},back_end=stop");
    let (_other, _) = folder.script(&options, "other", BUSY);
    wait_for("inner gangs", || {
        let gangs = folder.gangs();
        let id = |name: &str| {
            let found = gangs.sets.iter().find(|set| set.description.name == name)?;
            Some((found.description.id, found.description.within))
        };
        let outer = id("outer")?.0;
        let all = [id("a")?.1, id("b")?.1];
        assert_eq!(all, [Some(outer); 2]);
        Some(())
    });
    let ended = wait_for("the end", || outer.0.try_wait().expect("it is ours"));
    assert!(ended.success());
    for name in ["a", "b"] {
        assert!(read(Path::new(&format!("{busy}-{name}"))).rounds > 0);
    }
}

/// Members of two gangs make gangs of their own, one after the other: again and again one is held
/// between the moment when it makes its set and the one when the conductor knows of it.
fn made_inside() {
    let folder = Folder::new("made-inside");
    let program = std::env::current_exe().expect("this program");
    let all = cpus();
    let children = ["a", "b"].map(|name| {
        let options = format!("isolate,slice=2,cores={all},name={name},back_end=stop");
        let inner = format!("cores={all},slice=2,within={name},back_end=stop");
        let inner = format!("{} gang {inner} true", program.display());
        let script =
            format!("i=0; while [ $i -lt 40 ]; do {inner} || exit 1; i=$((i+1)); done; exit 5");
        folder.script(&options, name, &script).0
    });
    for mut child in children {
        let ended = wait_for("the end", || child.0.try_wait().expect("it is ours"));
        assert_eq!(ended.code(), Some(5));
    }
}

fn joined() {
    let folder = Folder::new("joined");
    let files = ["a", "b"].map(|name| folder.file(name));
    let options = format!("isolate,cores={}", cpus());
    let children = files.clone().map(|file| {
        let words = ["join", &options, "1.5", &file];
        Killed(in_folder(&folder.0, &words).spawn().expect("it starts"))
    });
    for mut child in children {
        assert!(child.0.wait().expect("it ends").success());
    }
    let verdict = judge(&files.map(|file| read(Path::new(&file)).threads));
    let apart = verdict.apart().expect("they ran");
    assert!(apart >= 0.9, "{apart}: {verdict:?}");
}

fn names() {
    let folder = Folder::new("names");
    let (_one, _) = folder.script("cores=1,name=one", "one", "sleep 30");
    let complaint = |options: &str| {
        let mut command = in_folder(&folder.0, &["gang", options, "true"]);
        let output = command.output().expect("it starts");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let error = complaint("cores=1,name=one");
    assert!(
        error.contains("a gang named one is there already"),
        "{error}"
    );
    let error = complaint("cores=1,within=two");
    assert!(error.contains("there is no gang named two now"), "{error}");
    assert_eq!(complaint("cores=1,within=one"), "");
}

/// Runs programs at once, as gangs that need all CPUs or without.
fn spun(
    folder: &Folder,
    programs: usize,
    options: Option<&str>,
    seconds: &str,
) -> Vec<support::Spun> {
    let files = ["a", "b"][..programs].iter().map(|name| folder.file(name));
    let files: Vec<String> = files.collect();
    let program = std::env::current_exe().expect("this program");
    let program = program.display().to_string();
    let threads = cpus().to_string();
    let children = files.iter().map(|file| {
        let spin = ["spin", "barrier", &threads, seconds, file];
        let words: Vec<&str> = match options {
            None => spin.to_vec(),
            Some(options) => [&["gang", options, &program], &spin[..]].concat(),
        };
        Killed(in_folder(&folder.0, &words).spawn().expect("it starts"))
    });
    let children: Vec<Killed> = children.collect();
    for mut child in children {
        assert!(child.0.wait().expect("it ends").success());
    }
    files.iter().map(|file| read(Path::new(file))).collect()
}

fn rounds(spun: &[support::Spun]) -> u64 {
    spun.iter().map(|spun| spun.rounds).sum()
}

fn verdict(spun: Vec<support::Spun>) -> hearth_gang::witness::Verdict {
    let threads: Vec<_> = spun.into_iter().map(|spun| spun.threads).collect();
    judge(&threads)
}

fn apart(back_end: BackEnd) {
    if !works(back_end) {
        return;
    }
    let is_deep = std::env::var_os("HEARTH_TEST_DEEP").is_some();
    let folder = Folder::new(back_end.name());
    let seconds = if is_deep { "10" } else { "1.5" };
    let options = format!("cores={},back_end={}", cpus(), back_end.name());
    let both = spun(&folder, 2, Some(&options), seconds);
    let done = rounds(&both);
    let found = verdict(both);
    let apart = found.apart().expect("they ran");
    assert!(apart >= 0.9, "{apart}");
    if !is_deep {
        return;
    }
    // What this machine allows, to read a failure by: others part the threads of a single program,
    // too.
    let one = spun(&folder, 1, None, seconds);
    let (most, whole) = (rounds(&one), verdict(one).together(0).expect("it ran"));
    for set in 0..2 {
        let together = found.together(set).expect("it ran");
        assert!(
            together >= 0.99,
            "{together}; one program alone has {whole}"
        );
    }
    let skew = found.skew_ns(0.99).expect("turns");
    assert!(skew <= 200_000, "{skew} ns");
    let left = rounds(&spun(&folder, 2, None, seconds));
    assert!(
        done >= 3 * left,
        "{done} with gangs, {left} without; one program alone does {most}"
    );
}

fn tell(line: &str) {
    let _ = fs::write("/dev/stderr", format!("{line}\n"));
}

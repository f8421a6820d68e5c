//! Other monitors, which `research/benches/install-peers watch` puts beside Hearth's programs.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::plan::Case;
use super::ways::{Monitor, Way};

/// Advice where one is missing.
pub const HINT: &str = "`research/benches/install-peers watch` installs it";
/// Version of Kieker that is installed.
pub const KIEKER: &str = "2.0.2";
/// Version of fastrace.
pub const FASTRACE: &str = "0.7";
/// The files that Kieker's runs need, in the folder of the watch benchmark.
const OF_KIEKER: [&str; 4] = ["kieker.jar", "aop.xml", "Monitored.class", "Calls.class"];

/// Programs of other monitors.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Peers {
    /// The folder of Kieker's agent and of the classes that it monitors.
    pub kieker: Option<PathBuf>,
    /// The program with fastrace's spans.
    pub fastrace: Option<PathBuf>,
}

impl Peers {
    /// The programs that are installed beside a program of Cargo's.
    #[must_use]
    pub fn beside(program: &Path) -> Peers {
        let folder = program.parent().unwrap_or(Path::new("."));
        let peers = folder.join("../peers");
        let kieker = peers.join("watch");
        let fastrace = peers.join("bin/watch-peers");
        let is_whole = OF_KIEKER.iter().all(|file| kieker.join(file).is_file());
        Peers {
            kieker: (is_whole && has_java()).then_some(kieker),
            fastrace: fastrace.is_file().then_some(fastrace),
        }
    }

    /// The monitors that are there, with ours.
    #[must_use]
    pub fn monitors(&self) -> Vec<Monitor> {
        let is_there = |monitor: &Monitor| match monitor {
            Monitor::Hearth => true,
            Monitor::Kieker => self.kieker.is_some(),
            Monitor::Fastrace => self.fastrace.is_some(),
        };
        Monitor::ALL.into_iter().filter(is_there).collect()
    }
}

fn has_java() -> bool {
    let version = Command::new("java").arg("-version").output();
    version.is_ok_and(|output| output.status.success())
}

/// Numbers of calls of a run.
#[derive(Clone, Copy, Debug)]
pub struct Calls {
    /// Calls, of which the second half counts.
    pub calls: u32,
    /// Calls before these.
    pub warm_up: u32,
}

/// The process of a run with Kieker: woven at load time, its own defaults, a file of text. Without
/// an agent for the run without probes. The heap is the source's.
pub fn kieker(folder: &Path, case: &Case, calls: Calls, logs: &Path) -> Command {
    let mut command = Command::new("java");
    command.args(["-Xms1g", "-Xmx1g", "-Xss16m"]);
    if case.way != Way::Plain {
        let writer = match case.way {
            Way::File => "filesystem.FileWriter",
            _ => "dump.DumpWriter",
        };
        let agent = folder.join("kieker.jar");
        let woven = folder.join("aop.xml");
        command.arg(format!("-javaagent:{}", agent.display()));
        for (name, value) in [
            (
                "org.aspectj.weaver.loadtime.configuration",
                format!("file:{}", woven.display()),
            ),
            (
                "kieker.monitoring.skipDefaultAOPConfiguration",
                "true".to_owned(),
            ),
            (
                "kieker.monitoring.enabled",
                (case.way != Way::Off).to_string(),
            ),
            (
                "kieker.monitoring.writer",
                format!("kieker.monitoring.writer.{writer}"),
            ),
            (
                "kieker.monitoring.writer.filesystem.FileWriter.customStoragePath",
                logs.display().to_string(),
            ),
        ] {
            command.arg(format!("-D{name}={value}"));
        }
    }
    command.arg("-cp").arg(folder).arg("Calls");
    numbers(&mut command, case, calls);
    command
}

/// The process of a run with fastrace, whose spans go to a reporter that drops them.
pub fn fastrace(program: &Path, case: &Case, calls: Calls) -> Command {
    let mut command = Command::new(program);
    command.args(["calls", case.way.id()]);
    numbers(&mut command, case, calls);
    command
}

fn numbers(command: &mut Command, case: &Case, calls: Calls) {
    for number in [calls.calls, calls.warm_up, case.method_ns, case.depth] {
        command.arg(number.to_string());
    }
}

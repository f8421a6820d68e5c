//! Forms, read by tools that are not ours: Python's JSON and XML, and the Rust compiler.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use hearth_scenario::forms::{harness, rt_app, trace};
use hearth_scenario::model::Model;
use hearth_scenario::scenario::Scenario;
use hearth_scenario::sim::simulate;

const MODEL: &str = r#"
format = 1
horizon = "30ms"
[[core]]
name = "core0"
[[resource]]
name = "bus"
protocol = "inheritance"
[[queue]]
name = "frames"
capacity = 2
[[task]]
name = "camera \"left\""
arrival = { period = "10ms", offset = "1ms", jitter = "1ms" }
steps = [{ run = "500us" }, { push = "frames" }, { lock = "bus" }, { run = "100us" }, { unlock = "bus" }]
deadline = "9ms"
priority = 2
[[task]]
name = "filter"
arrival = { push = "frames" }
steps = [{ pop = "frames" }, { lock = "bus" }, { run = "1ms" }, { unlock = "bus" }]
priority = 1
[[task]]
name = "log"
arrival = { after = "filter", delay = "10us" }
duration = "200us"
"#;

fn model() -> (Model, Scenario) {
    let model = Model::from_toml(MODEL).unwrap_or_else(|error| panic!("{error}"));
    let scenario = Scenario::fullest(&model, 0);
    (model, scenario)
}

/// Output of a Python program that is given a text; none without Python.
fn python(program: &str, text: &str) -> Option<String> {
    let child = Command::new("python3")
        .args(["-c", program])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let mut child = child.ok()?;
    let mut input = child.stdin.take()?;
    std::io::Write::write_all(&mut input, text.as_bytes()).expect("Python reads");
    drop(input);
    let output = child.wait_with_output().expect("Python ends");
    assert!(output.status.success(), "Python cannot read:\n{text}");
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[test]
fn python_reads_traces_and_workloads() {
    let (model, scenario) = model();
    let run = simulate(&model, &scenario);
    let program = "import json,sys; e=json.load(sys.stdin)['traceEvents']; \
                   print(round(sum(x['dur'] for x in e if x['ph']=='X' and x['pid']==1),3))";
    if let Some(found) = python(program, &trace::perfetto(&model, &run)) {
        let busy_ns: u64 = run.busy_ns.iter().sum();
        assert_eq!(found.parse(), Ok(busy_ns as f64 / 1000.0));
    }
    let program = "import json,sys; t=json.load(sys.stdin)['tasks']; \
                   print(sum(len(x['phases']) for x in t.values()), \
                   sum(v for x in t.values() for p in x['phases'].values() for k,v in p.items() if k.startswith('run')))";
    if let Some(found) = python(program, &rt_app::write(&model, &scenario).text) {
        assert_eq!(found, "9 5400", "three jobs of each task, in microseconds");
    }
    let program = "import csv,sys; \
                   rows=[r for r in csv.reader(l for l in sys.stdin if not l.startswith('#'))]; \
                   print(len(rows), sum(r[6]=='terminate' for r in rows), all(len(r) in (7,8) for r in rows))";
    if let Some(found) = python(program, &trace::btf(&model, &run)) {
        assert_eq!(
            found,
            format!("{} {} True", run.events.len(), run.jobs.len())
        );
    }
}

/// `rt-app` takes the workload, if it is installed; without the right to set priorities it says so
/// after it has read it.
#[test]
fn rt_app_runs_the_workload() {
    let (model, scenario) = model();
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let file = folder.join("workload.json");
    fs::write(&file, rt_app::write(&model, &scenario).text).expect("the folder can be written");
    let output = Command::new("rt-app")
        .arg(&file)
        .current_dir(&folder)
        .output();
    let Ok(output) = output else { return };
    let told = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    let has_no_right = told.contains("not permitted");
    assert!(output.status.success() || has_no_right, "{told}");
    assert!(told.contains("SCHED_FIFO policy with priority"), "{told}");
}

#[test]
fn the_harness_compiles_and_runs() {
    let (model, scenario) = model();
    let written = harness::harness(&model, &scenario);
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let (source, program) = (folder.join("harness.rs"), folder.join("harness"));
    fs::write(&source, &written.text).expect("the folder can be written");
    let rustc = Command::new("rustc")
        .args(["--edition", "2024", "-O", "-D", "warnings", "-o"])
        .arg(&program)
        .arg(&source)
        .output();
    let rustc = rustc.expect("rustc built this test");
    let told = String::from_utf8_lossy(&rustc.stderr).into_owned();
    assert!(rustc.status.success(), "{told}\n{}", written.text);
    let output = Command::new(&program).output().expect("it was just built");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let responses = printed.lines().filter(|line| line.contains(" response "));
    let of_camera = responses.filter(|line| line.starts_with("camera \"left\" "));
    assert_eq!(of_camera.count(), 3, "{printed}");
}

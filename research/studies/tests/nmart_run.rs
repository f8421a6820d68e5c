//! A tiny nMART study on the machine at hand. What it measures is not judged: only that it is
//! there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hearth_studies::Outcome;
use hearth_studies::nmart::distances::{self, Effort, Mode};
use hearth_studies::nmart::monitor::{self, Status};
use hearth_studies::nmart::{Experiment, Nmart, NmartOptions, Results, page};
use hearth_studies::results::{Folder, RESULTS};
use hearth_studies::study::run;
use hearth_studies::{Progress, StudyError, named};
use hearth_sys::Linux;

/// The allocators' folder. Cargo builds another package's examples only if it is asked to.
fn objects() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
        let profile = if cfg!(debug_assertions) {
            "dev"
        } else {
            "release"
        };
        let status = Command::new(env!("CARGO"))
            .args([
                "build",
                "--quiet",
                "--package",
                "hearth-allocators",
                "--examples",
            ])
            .args(["--profile", profile, "--target-dir"])
            .arg(target)
            .status()
            .unwrap();
        assert!(status.success());
        target
            .join(if profile == "dev" { "debug" } else { profile })
            .join("examples")
    })
}

fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("nmart-{name}"));
    let _ = fs::remove_dir_all(&folder);
    folder
}

fn tiny(experiments: &[Experiment], workloads: &[&str]) -> NmartOptions {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    NmartOptions {
        quick: true,
        repeats: Some(2),
        experiments: experiments.to_vec(),
        allocators: names(&["first-fit", "nmart", "system"]),
        workloads: names(workloads),
        objects: Some(objects().to_owned()),
    }
}

fn is_installed(name: &str) -> bool {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).any(|folder| folder.join(name).is_file())
}

fn go(
    options: &NmartOptions,
    folder: &Path,
    resume: bool,
    cancel: &AtomicBool,
    progress: &mut dyn FnMut(Progress),
) -> Result<(Results, Outcome), StudyError> {
    let mut study = Nmart::default();
    run(
        &mut study, &Linux, options, folder, resume, cancel, progress,
    )
}

#[test]
fn a_tiny_study_measures_everything_it_is_asked_for() {
    assert!(named("nmart").is_ok());
    let folder = folder("tiny");
    let threads = [
        "shbench",
        "larson",
        "cache-scratch",
        "cache-thrash",
        "mean/2/local",
        "cdf/8/local",
    ];
    // Programs that are installed.
    let programs = [("gawk", "gawk1"), ("bc", "bc1"), ("f2c", "f2c1")];
    let programs = programs.into_iter().filter(|(name, _)| is_installed(name));
    let workloads = threads.into_iter().chain(programs.map(|(_, first)| first));
    let options = tiny(&[], &workloads.collect::<Vec<_>>());
    let mut fractions = Vec::new();
    let cancel = AtomicBool::new(false);
    let (results, outcome) = go(&options, &folder, false, &cancel, &mut |progress| {
        fractions.push(progress.fraction)
    })
    .unwrap();
    assert_eq!(outcome, Outcome::Complete);
    assert!(results.about.is_complete);
    assert!(fractions.windows(2).all(|pair| pair[0] <= pair[1]));
    let expected = [
        (Experiment::Sharing, "cache-scratch", "seconds"),
        (Experiment::Sharing, "cache-thrash", "seconds"),
        (Experiment::Larson, "larson", "allocations"),
        (Experiment::Shbench, "shbench", "seconds"),
        (Experiment::Memory, "shbench", "peak_kb"),
        (Experiment::Mean, "mean/2/local", "seconds"),
        (Experiment::Cdf, "cdf/8/local", "seconds"),
    ];
    for allocator in ["first-fit", "nmart", "system"] {
        for (experiment, workload, figure) in expected {
            let cell = results.find(experiment, workload, allocator);
            let cell = cell.unwrap_or_else(|| panic!("{workload} with {allocator}"));
            assert_eq!(cell.failed, None, "{workload} with {allocator}");
            let found = cell.summary(figure).unwrap();
            assert!(found.mean > 0.0, "{workload} with {allocator}: {figure}");
        }
        for (program, _) in results.workloads(Experiment::Times) {
            let cell = results.find(Experiment::Times, program, allocator).unwrap();
            let one = |figure: &str| cell.summary(figure).unwrap().mean;
            assert!(
                one("allocate_max") >= one("floor_allocate_max"),
                "{program}"
            );
            assert!(one("floor_allocate_sum") > 0.0);
            let cell = results
                .find(Experiment::Fragments, program, allocator)
                .unwrap();
            assert!(cell.summary("payload_waste_percent").is_some());
            assert_eq!(
                cell.summary("waste_percent").is_some(),
                allocator != "system"
            );
            let character = &results.site.characters[program];
            assert!(character.quantities[0].count > 100 && character.blocks_max > 10);
        }
    }
    // The distances' files and header.
    assert!(results.distances().is_some());
    let header = fs::read_to_string(folder.join("numa_distance_table.h")).unwrap();
    assert!(header.contains("{ 10"), "{header}");
    // The kept results are those that were found, and the page can be drawn from it.
    let kept: Results = Folder::at(&folder).results().unwrap().unwrap();
    assert_eq!(kept.cells.len(), results.cells.len());
    assert_eq!(kept.about.notes, results.about.notes);
    let table = fs::read_to_string(folder.join("shbench.csv")).unwrap();
    assert!(
        table
            .lines()
            .any(|line| line.starts_with("shbench,shbench,nmart,seconds,2,")),
        "{table}"
    );
    let html = page::page(&results);
    assert!(html.contains("published: nMART") && html.contains("<svg"));
    assert!(!html.contains("src=\"http") && !html.contains("href=\"http"));
    // Nothing is run again.
    let mut shown = 0;
    let (again, _) = go(&options, &folder, true, &cancel, &mut |_| shown += 1).unwrap();
    assert_eq!((again.cells.len(), shown), (results.cells.len(), 0));
}

#[test]
fn a_study_that_was_stopped_goes_on_where_it_was() {
    let folder = folder("stopped");
    let options = tiny(&[Experiment::Shbench, Experiment::Sharing], &[]);
    let cancel = AtomicBool::new(false);
    let stopped = go(&options, &folder, false, &cancel, &mut |progress| {
        if progress.what.starts_with(Experiment::Shbench.id()) {
            cancel.store(true, Ordering::Relaxed);
        }
    });
    let (results, outcome) = stopped.unwrap();
    assert_eq!(
        (outcome, results.about.is_complete),
        (Outcome::Cancelled, false)
    );
    // Cells are whole or absent.
    assert!(
        results
            .cells
            .iter()
            .all(|cell| cell.case.experiment == Experiment::Sharing)
    );
    assert!(folder.join(RESULTS).exists());
    let cancel = AtomicBool::new(false);
    let occupied = go(&options, &folder, false, &cancel, &mut |_| {});
    assert!(matches!(occupied, Err(StudyError::Occupied { .. })));
    let other = NmartOptions {
        repeats: Some(1),
        ..options.clone()
    };
    let other = go(&other, &folder, true, &cancel, &mut |_| {});
    assert!(matches!(other, Err(StudyError::OtherRun { .. })));
    let (results, outcome) = go(&options, &folder, true, &cancel, &mut |_| {}).unwrap();
    assert_eq!(
        (outcome, results.about.is_complete),
        (Outcome::Complete, true)
    );
    assert!(results.of(Experiment::Shbench).count() == 3);
}

#[test]
fn an_older_folder_is_refused_by_its_format() {
    let folder = folder("older");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(RESULTS), "{\"format\": 1, \"cells\": [{}]}").unwrap();
    let options = tiny(&[Experiment::Shbench], &[]);
    let cancel = AtomicBool::new(false);
    let error = go(&options, &folder, true, &cancel, &mut |_| {}).unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("it has format 1, and this Hearth reads 2"),
        "{text}"
    );
}

#[test]
fn without_the_objects_the_study_says_so() {
    let folder = folder("nothing");
    let named = NmartOptions {
        objects: Some(folder.clone()),
        ..tiny(&[Experiment::Times, Experiment::Zones], &[])
    };
    let cancel = AtomicBool::new(false);
    let refused = go(&named, &folder, false, &cancel, &mut |_| {});
    assert!(matches!(refused, Err(StudyError::NotThere { .. })));
    let options = NmartOptions {
        allocators: Vec::new(),
        ..named
    };
    let (results, outcome) = go(&options, &folder, false, &cancel, &mut |_| {}).unwrap();
    assert_eq!(outcome, Outcome::Complete);
    assert!(results.cells.is_empty());
    assert!(
        results
            .about
            .notes
            .iter()
            .any(|note| note.contains("cargo build --release -p hearth-allocators"))
    );
    assert!(page::page(&results).contains("Not measured."));
}

#[test]
fn the_latency_tool_copies_in_both_modes() {
    let cancel = AtomicBool::new(false);
    let effort = Effort {
        bytes: 1 << 20,
        repeats: 2,
    };
    for mode in [Mode::Bound, Mode::FirstTouch] {
        let files = distances::measure(&Linux, mode, &[0], effort, &cancel)
            .unwrap()
            .unwrap();
        for file in &files {
            assert!(
                file.lines.lines().all(|line| line.split('\t').count() == 3),
                "{}",
                file.lines
            );
        }
        let means = distances::means(&[files[0].lines.clone()], 1, |_| Some(0));
        assert!(means[0][0] > 0.0);
    }
    cancel.store(true, Ordering::Relaxed);
    assert_eq!(
        distances::measure(&Linux, Mode::Bound, &[0], effort, &cancel).unwrap(),
        None
    );
}

#[test]
fn the_monitor_sees_a_process_grow() {
    let mut child = Command::new("sh")
        .args([
            "-c",
            "x=$(head -c 200000 /dev/zero | tr '\\0' x); sleep 0.05",
        ])
        .spawn()
        .unwrap();
    let mut peaks: Option<Status> = None;
    let cancel = AtomicBool::new(false);
    let status = monitor::watch(
        &mut child,
        Duration::from_micros(200),
        &cancel,
        &mut |seen| match &mut peaks {
            Some(peaks) => peaks.join(&seen),
            None => peaks = Some(seen),
        },
    );
    assert!(status.unwrap().unwrap().success());
    let peaks = peaks.unwrap();
    assert!(peaks.peak_kb > 0 && peaks.peak_kb >= peaks.size_kb && !peaks.processors.is_empty());
}

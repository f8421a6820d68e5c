//! A tiny study on the machine at hand. What it measures is not judged: only that it is there.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use hearth_published::source::Type;
use hearth_studies::cache_impact::record::Sweep;
use hearth_studies::cache_impact::results::table_name;
use hearth_studies::cache_impact::{
    CacheImpact, CacheImpactOptions, Defect, Experiment, Results, Sizes, page,
};
use hearth_studies::results::{Folder, RESULTS};
use hearth_studies::study::{experiments, run};
use hearth_studies::{Outcome, Progress, StudyError, named};
use hearth_sys::Linux;

fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("study-{name}"));
    let _ = fs::remove_dir_all(&folder);
    folder
}

/// Three sizes, two runs each.
fn tiny(experiments: &[Experiment]) -> CacheImpactOptions {
    CacheImpactOptions {
        quick: true,
        repeats: Some(2),
        sizes: Sizes::Powers,
        bytes_max: 128,
        experiments: experiments.to_vec(),
        ..CacheImpactOptions::default()
    }
}

fn go(
    options: &CacheImpactOptions,
    folder: &Path,
    resume: bool,
) -> Result<(Results, Outcome), StudyError> {
    watched(
        options,
        folder,
        resume,
        &AtomicBool::new(false),
        &mut |_| {},
    )
}

fn watched(
    options: &CacheImpactOptions,
    folder: &Path,
    resume: bool,
    cancel: &AtomicBool,
    progress: &mut dyn FnMut(Progress),
) -> Result<(Results, Outcome), StudyError> {
    let mut study = CacheImpact::default();
    run(
        &mut study, &Linux, options, folder, resume, cancel, progress,
    )
}

#[test]
fn a_tiny_study_measures_everything_it_is_asked_for() {
    let folder = folder("tiny");
    let options = tiny(&[
        Experiment::Opening,
        Experiment::Register,
        Experiment::Sweep,
        Experiment::SameCore,
        Experiment::SameChip,
        Experiment::OtherChip,
        Experiment::Ready,
    ]);
    let mut fractions = Vec::new();
    let never = AtomicBool::new(false);
    let (results, outcome) = watched(&options, &folder, false, &never, &mut |progress| {
        fractions.push(progress.fraction);
    })
    .unwrap();
    assert_eq!(outcome, Outcome::Complete);
    assert!(results.about.is_complete);
    assert!(fractions.windows(2).all(|pair| pair[0] <= pair[1]));
    assert!(results.site.register.is_some() && results.site.opening.is_some());
    for kind in Type::ALL {
        let sweep = Sweep::Exchange(kind.into());
        let rows = results.joined(sweep);
        let Some(places) = results.site.place.places(kind) else {
            assert!(rows.is_empty());
            let experiment = format!("experiment {} is left out", kind.experiment());
            assert!(
                results
                    .about
                    .notes
                    .iter()
                    .any(|note| note.contains(&experiment))
            );
            continue;
        };
        assert_eq!(rows.len(), 4, "{rows:?}");
        for row in rows {
            assert_eq!(row.runs.len(), 2);
            for run in &row.runs {
                assert!(run.time.is_some_and(|time| time > 0));
                assert_eq!(run.sender.map(|core| core as i64), Some(places.sender));
                assert_eq!(run.receiver.map(|core| core as i64), Some(places.receiver));
            }
        }
        let name = table_name(&results, sweep, 1, "dirty");
        assert!(name.ends_with(&format!("-{}-1.dirty.csv", kind.experiment())));
        let table = fs::read_to_string(folder.join(name)).unwrap();
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(
            lines[0],
            "N,Time,TimeMin,1.INT,1.PFMIN,1.PFMAJ,2.INT,2.PFMIN,2.PFMAJ"
        );
        assert_eq!(lines.len(), 5);
        // The time of no data stands in each row.
        let cell = |line: usize, at: usize| lines[line].split(',').nth(at);
        assert!((1..5).all(|line| cell(line, 2) == cell(1, 1)));
    }
    // The kept results are those that were found, and the page can be drawn from it.
    let kept: Results = Folder::at(&folder).results().unwrap().unwrap();
    assert_eq!(kept.cells, results.cells);
    assert_eq!(kept.site, results.site);
    assert_eq!(kept.about.notes, results.about.notes);
    let html = page::page(&results, None);
    assert!(html.contains("RQ4") && html.contains("<svg"));
    assert!(!html.contains("src=\"http") && !html.contains("href=\"http"));
}

#[test]
fn a_study_that_was_stopped_goes_on_where_it_was() {
    let folder = folder("stopped");
    let options = tiny(&[Experiment::SameCore]);
    let cancel = AtomicBool::new(false);
    let (half, outcome) = watched(&options, &folder, false, &cancel, &mut |progress| {
        if progress.what.ends_with(" 128 bytes") {
            cancel.store(true, Ordering::Relaxed);
        }
    })
    .unwrap();
    assert_eq!(outcome, Outcome::Cancelled);
    assert!(!half.about.is_complete);
    let sweep = Sweep::Exchange(Type::One.into());
    let before = half.joined(sweep);
    assert!(!before.is_empty() && before.iter().all(|row| row.bytes < 128));

    let again = go(&options, &folder, false).unwrap_err();
    assert!(matches!(again, StudyError::Occupied { .. }));
    assert!(again.to_string().contains("--resume"));
    let other = CacheImpactOptions {
        repeats: Some(3),
        ..options.clone()
    };
    let other = go(&other, &folder, true).unwrap_err();
    assert!(other.to_string().contains("the repeats"), "{other}");

    let (whole, outcome) = go(&options, &folder, true).unwrap();
    assert_eq!(outcome, Outcome::Complete);
    let after = whole.joined(sweep);
    assert_eq!(after.len(), 4);
    // What was measured before was kept, not measured again.
    assert_eq!(after[..before.len()], before);
    let (same, _) = go(&options, &folder, true).unwrap();
    assert_eq!(same.joined(sweep), after);
}

#[test]
fn damaged_results_are_named() {
    let folder = folder("damaged");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(RESULTS), "{\"format\": 1").unwrap();
    let error = go(&tiny(&[Experiment::Opening]), &folder, true).unwrap_err();
    assert!(matches!(error, StudyError::Damaged { .. }));
    assert!(error.to_string().contains(RESULTS), "{error}");
    let absent: Folder<Results> = Folder::at(&folder.join("absent"));
    assert!(absent.results().unwrap().is_none());
}

#[test]
fn a_refused_pin_leaves_the_receiver_with_the_sender() {
    let folder = folder("pinning");
    let options = CacheImpactOptions {
        defects: vec![Defect::Pinning],
        ..tiny(&[Experiment::OtherChip])
    };
    let allowed = hearth_sys::affinity::allowed();
    let (results, _) = go(&options, &folder, false).unwrap();
    let rows = results.joined(Sweep::Exchange(Type::Three.into()));
    assert_eq!(rows.len(), 4);
    for run in rows.iter().flat_map(|row| &row.runs) {
        if allowed.contains(&0) {
            assert_eq!(run.sender, Some(0));
            assert_eq!(run.receiver, Some(0));
        }
    }
    assert!(
        results
            .about
            .notes
            .iter()
            .any(|note| note.contains("to core -1"))
    );
}

#[test]
fn a_folder_that_is_a_file_is_refused() {
    let path = folder("file");
    fs::write(&path, "").unwrap();
    let error = go(&tiny(&[Experiment::Opening]), &path, false).unwrap_err();
    assert!(
        error.to_string().contains("choose another folder"),
        "{error}"
    );
    fs::remove_file(&path).unwrap();
}

#[test]
fn names_are_known_or_refused_with_those_that_are() {
    assert!(named("cache-impact").is_ok());
    let error = named("cash-impact").unwrap_err().to_string();
    assert!(error.contains("there is cache-impact"), "{error}");
    for experiment in Experiment::ALL {
        let named = experiments::<Experiment>(&[experiment.id().to_owned()]);
        assert_eq!(named.unwrap(), [experiment]);
    }
    let error = experiments::<Experiment>(&["5".to_owned()]).unwrap_err();
    let error = error.to_string();
    assert!(error.contains("1b") && error.contains("zero"), "{error}");
    for defect in Defect::ALL {
        assert_eq!(Defect::parse(defect.id()).unwrap(), defect);
    }
    let error = Defect::parse("bug").unwrap_err().to_string();
    assert!(error.contains("cliff"), "{error}");
}

//! Every way to trace makes its run; the probes from outside where the kernel lets them.

use std::time::Duration;

use hearth_transactions::contender::{CONTENDERS, Load, Task, Tracing, measure};
use hearth_transactions::kernels::{Name, Size};

#[test]
fn every_way_traces_the_bank() {
    let task = Task {
        load: Load::Bank(Duration::from_millis(5)),
        threads: 2,
        seed: 3,
        folder: None,
    };
    for &(name, tracing) in CONTENDERS {
        let is_probed = matches!(tracing, Tracing::Outside { probes: Some(_) });
        let is_silent = matches!(
            tracing,
            Tracing::None | Tracing::Silent | Tracing::Outside { probes: None }
        );
        match measure(tracing, &task) {
            Ok(outcome) => {
                assert!(outcome.ran.commits > 0, "{name}");
                assert_eq!(outcome.bytes == 0, is_silent, "{name}: {outcome:?}");
                assert!(outcome.lost == 0 || is_probed, "{name}: {outcome:?}");
            }
            // Without root or a mounted tracefs it is said so.
            Err(why) => assert!(is_probed && why.contains("probe"), "{name}: {why}"),
        }
        assert_eq!(Tracing::named(name), Some(tracing));
    }
}

#[test]
fn a_kernels_trace_goes_to_files() {
    let name = format!("hearth-transactions-files-{}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    for way in ["hearth-full", "full-lz4-2ct", "reduced-zstd"] {
        std::fs::create_dir_all(&folder).expect("there is room");
        let task = Task {
            load: Load::Kernel(Name::Genome, Size::Small),
            threads: 2,
            seed: 1,
            folder: Some(folder.clone()),
        };
        let tracing = Tracing::named(way).expect("there is such a way");
        let outcome = measure(tracing, &task).expect("it runs");
        let files = std::fs::read_dir(&folder).expect("it is there").flatten();
        let sizes = files.map(|file| file.metadata().expect("it is there").len());
        assert_eq!(sizes.sum::<u64>(), outcome.bytes, "{way}");
        std::fs::remove_dir_all(&folder).expect("it can be removed");
    }
}

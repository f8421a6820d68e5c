//! Every kernel ends with the right result, under both algorithms and traced.

use std::sync::Arc;

use hearth_stm::trace::{Options, Recorder, Session};
use hearth_stm::{Algorithm, Lsa, Norec, Stm, Traced};
use hearth_transactions::kernels::{Name, Ran, Size, run};
use hearth_transactions::{Form, Paper, Plan};

fn all<A: Algorithm>(memory: impl Fn() -> Stm<A>, what: &str) -> Vec<Ran> {
    let mut all = Vec::new();
    for name in Name::ALL {
        for threads in 1..=3 {
            let seed = threads as u64;
            let kernel = name.make(memory(), Size::Small, threads, seed);
            let ran = run::<A>(&*kernel, threads);
            let (id, ran_well) = (name.id(), kernel.check());
            assert_eq!(ran_well, Ok(()), "{id} under {what}, {threads} threads");
            assert!(ran.commits > 0, "{id} under {what}");
            if threads == 1 {
                assert_eq!(ran.conflicts, 0, "{id} under {what}");
            }
            all.push(ran);
        }
    }
    all
}

#[test]
fn results_are_right_under_lsa() {
    all(Stm::<Lsa>::with_algorithm, "LSA");
}

#[test]
fn results_are_right_under_norec() {
    all(Stm::<Norec>::with_algorithm, "NOrec");
}

#[test]
fn results_are_right_while_traced() {
    let session = Session::begin(Vec::new(), Options::default()).expect("memory is there");
    let memory = || Stm::<Traced<Lsa, Recorder<true>>>::with_algorithm().traces(session.target());
    let ran = all(memory, "LSA with a full trace");
    let account = session.end();
    let commits: u64 = ran.iter().map(|ran| ran.commits).sum();
    assert_eq!(account.lost, 0);
    assert!(account.emitted > 2 * commits);
    let plan = Arc::new(Plan::new(None, Form::Binary(100)));
    let memory =
        || Stm::<Traced<Norec, Paper<false>>>::with_algorithm().traces(Some(Arc::clone(&plan)));
    let ran = all(memory, "NOrec with the paper's trace");
    let commits: u64 = ran.iter().map(|ran| ran.commits).sum();
    assert!(plan.bytes() >= 4 * 17 * commits);
}

/// One thread makes the same transactions each time, and a seed another input.
#[test]
fn a_seed_says_all() {
    for name in Name::ALL {
        let commits = |seed| {
            let kernel = name.make(Stm::<Lsa>::with_algorithm(), Size::Small, 1, seed);
            run::<Lsa>(&*kernel, 1).commits
        };
        assert_eq!(commits(5), commits(5), "{}", name.id());
        assert!(!name.parameters(Size::Published).is_empty());
        assert_eq!(Name::named(name.id()), Some(name));
    }
}

//! One module a command. Each takes its arguments and does the whole job.

mod advise;
mod build;
mod check;
mod claim;
mod claim_steward;
mod claims;
mod consolidate;
mod cores;
mod explain;
mod fmt;
mod futures;
mod gang;
mod heap;
mod heap_top;
mod lines;
mod locality;
mod machine;
mod manual;
mod new;
mod place;
mod predict;
mod probe;
mod rewrite;
mod run;
mod scenario;
mod simulate;
mod study;
mod thrashing;
mod top;
mod watch;

use hearth_terminal::Failure;

use crate::arguments::Command;

pub(crate) fn dispatch(command: Command) -> Result<(), Failure> {
    match command {
        Command::Run(arguments) => run::run(&arguments),
        Command::Build(arguments) => build::build(&arguments),
        Command::Check(arguments) => check::check(&arguments),
        Command::Futures(arguments) => futures::futures(&arguments),
        Command::Fmt(arguments) => fmt::fmt(&arguments),
        Command::New(arguments) => new::new(&arguments),
        Command::Explain(arguments) => explain::explain(&arguments),
        Command::Probe(arguments) => probe::probe(&arguments),
        Command::Predict(arguments) => predict::predict(&arguments),
        Command::Advise(arguments) => advise::advise(&arguments),
        Command::Place(arguments) => place::place(&arguments),
        Command::Scenario(arguments) => scenario::scenario(&arguments),
        Command::Consolidate(arguments) => consolidate::consolidate(&arguments),
        Command::Machine(arguments) => machine::machine(&arguments),
        Command::Cores(arguments) => cores::cores(&arguments),
        Command::Claim(arguments) => claim::claim(&arguments),
        Command::Claims(arguments) => claims::claims(&arguments),
        Command::ClaimSteward(arguments) => claim_steward::look_after(&arguments),
        Command::Gang(arguments) => gang::gang(&arguments),
        Command::Gangs(arguments) => gang::gangs(&arguments),
        Command::Locality(arguments) => locality::locality(&arguments),
        Command::Heap(arguments) => heap::heap(&arguments),
        Command::Top(arguments) => top::top(&arguments),
        Command::Watch(arguments) => watch::watch(&arguments),
        Command::Rewrite(arguments) => rewrite::rewrite(&arguments),
        Command::Study(_) => study::study(),
        Command::Completions(arguments) => manual::completions(&arguments),
        Command::Man(arguments) => manual::man(&arguments),
    }
}

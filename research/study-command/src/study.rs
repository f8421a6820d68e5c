//! The three words behind `hearth study`: `list`, `run` and `tool`.

use std::path::PathBuf;

use hearth_studies::collection::{self, Collection};
use hearth_studies::coscheduling::{self, Coscheduling};
use hearth_studies::event_patterns::{self, EventPatterns};
use hearth_studies::insense_multicore::{self, InsenseMulticore};
use hearth_studies::memcached::{self, Memcached};
use hearth_studies::message_passing::{self, MessagePassing};
use hearth_studies::monitoring::{self, Monitoring};
use hearth_studies::nmart::{self, Nmart};
use hearth_studies::oversubscription::{self, Oversubscription};
use hearth_studies::study::experiments;
use hearth_studies::transactions::{self, Transactions};
use hearth_studies::{STUDIES, StudyError};
use hearth_study_arguments::{Action, RunStudy};
use hearth_terminal::failure::Failure;
use hearth_terminal::output;

use crate::course::{conduct, failure, hearth, profile, this_program};
use crate::{cache_impact, tool};

pub(crate) fn study(action: &Action) -> Result<(), Failure> {
    match action {
        Action::List => list(),
        Action::Run(run_arguments) => run(run_arguments),
        Action::Tool(tool) => tool::tool(&tool.tool),
    }
}

fn list() -> Result<(), Failure> {
    let mut text = String::new();
    for study in STUDIES {
        text += &format!("{}: {}\n", study.name, study.title);
        let experiments = (study.experiments)();
        let names = experiments.iter().map(|(name, _)| name.len());
        let width = names.max().unwrap_or(0);
        for (name, title) in experiments {
            text += &format!("  {name:<width$}  {title}\n");
        }
    }
    output::write(text)
}

fn run(arguments: &RunStudy) -> Result<(), Failure> {
    let study = hearth_studies::named(&arguments.name).map_err(failure)?;
    if let Some(option) = arguments.foreign(study.name) {
        let study = study.name;
        return Err(failure(StudyError::NotOfThisStudy { study, option }));
    }
    let named = PathBuf::from(study.name);
    let path = arguments.out.as_ref().unwrap_or(&named);
    let (quick, repeats, resume) = (arguments.quick, arguments.repeats, arguments.resume);
    let names = &arguments.experiments;
    match study.name {
        "nmart" => {
            let options = nmart::NmartOptions {
                quick,
                repeats,
                experiments: experiments(names).map_err(failure)?,
                allocators: arguments.allocators.clone(),
                workloads: arguments.workloads.clone(),
                objects: arguments.objects.clone(),
            };
            conduct(Nmart::default(), &options, path, resume)
        }
        "insense-multicore" => {
            let options = insense_multicore::InsenseMulticoreOptions {
                quick,
                repeats,
                experiments: experiments(names).map_err(failure)?,
                seed: arguments.seed.unwrap_or(1),
            };
            conduct(InsenseMulticore::new(hearth()?), &options, path, resume)
        }
        "memcached" => {
            let options = memcached::MemcachedOptions {
                quick,
                repeats,
                experiments: experiments(names).map_err(failure)?,
                threads: arguments.threads.clone(),
                cachet: arguments.cachet.clone(),
            };
            conduct(Memcached::default(), &options, path, resume)
        }
        "event-patterns" => {
            let options = event_patterns::EventPatternsOptions {
                quick,
                repeats,
                measure_ms: arguments.milliseconds,
                experiments: experiments(names).map_err(failure)?,
            };
            conduct(EventPatterns::new(this_program()?), &options, path, resume)
        }
        "monitoring" => {
            let options = monitoring::MonitoringOptions {
                quick,
                repeats,
                measure_ms: arguments.milliseconds,
                experiments: experiments(names).map_err(failure)?,
            };
            conduct(Monitoring::new(this_program()?), &options, path, resume)
        }
        "transactions" => {
            let options = transactions::TransactionsOptions {
                quick,
                repeats,
                measure_ms: arguments.milliseconds,
                experiments: experiments(names).map_err(failure)?,
            };
            conduct(Transactions::new(this_program()?), &options, path, resume)
        }
        "oversubscription" => {
            let options = oversubscription::OversubscriptionOptions {
                quick,
                repeats,
                measure_ms: arguments.milliseconds,
                experiments: experiments(names).map_err(failure)?,
            };
            conduct(
                Oversubscription::new(this_program()?),
                &options,
                path,
                resume,
            )
        }
        "coscheduling" => {
            let options = coscheduling::CoschedulingOptions {
                quick,
                repeats,
                measure_ms: arguments.milliseconds,
                experiments: experiments(names).map_err(failure)?,
            };
            conduct(Coscheduling::new(this_program()?), &options, path, resume)
        }
        "collection" => {
            let options = collection::CollectionOptions {
                quick,
                repeats,
                experiments: experiments(names).map_err(failure)?,
            };
            conduct(Collection, &options, path, resume)
        }
        "message-passing" => {
            let study = MessagePassing::new(profile(arguments)?);
            conduct(study, &message_passing(arguments)?, path, resume)
        }
        _ => cache_impact::run(arguments, path),
    }
}

fn message_passing(
    arguments: &RunStudy,
) -> Result<message_passing::MessagePassingOptions, Failure> {
    let mut options = message_passing::MessagePassingOptions {
        quick: arguments.quick,
        repeats: arguments.repeats,
        seconds: arguments.seconds,
        experiments: experiments(&arguments.experiments).map_err(failure)?,
        threads: arguments.threads.iter().map(|n| *n as usize).collect(),
        seed: arguments.seed.unwrap_or(1),
        ..message_passing::MessagePassingOptions::default()
    };
    for name in &arguments.defects {
        message_passing::options::set_defect(&mut options.defects, name).map_err(failure)?;
    }
    Ok(options)
}

//! A member that is asked for its next step: its program runs from the beginning, gets the answers
//! that it got before, and is left where it asks for the next one.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::rc::Rc;

use super::text::{Text, number};
use crate::constraints::Core;
use crate::error::ClaimError;
use crate::outside::{Fault, Limits, Outside};
use crate::registry::{Plan, Registry};
use crate::state::{ProcessId, State};

/// Part of a program.
#[derive(Clone, Copy, Debug)]
pub(super) enum Act {
    /// Joins, also as the next image of the same process.
    Join,
    /// Takes up to so many free cores, the lowest ones.
    Invade(usize),
    /// Gives back all but so many of its cores.
    Retreat(usize),
    /// Gives everything back and leaves.
    Leave,
    /// A child tries to take a core.
    Fork,
}

/// A member's request to what is outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The ending of the names.
    List(Text),
    Read(Text),
    IsThere(Text, Text),
    Publish(Text, Text),
    Remove(Text),
    PutOver(Text, Text),
    MakeOwn(Text, Text),
    HasOwn,
    WriteOwn(Text),
    Removed,
    IsAlive(ProcessId),
}

/// The answer to a step.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Answer {
    Done,
    Is(bool),
    Text(Option<Text>),
    Names(Rc<[Text]>),
    Texts(Vec<(Text, Text)>),
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Step::List(ending) => write!(f, "lists {}", &**ending),
            Step::Read(name) => write!(f, "reads {}", short(name)),
            Step::IsThere(name, _) => write!(f, "is {} still there?", short(name)),
            Step::Publish(name, text) => write!(f, "publishes {}: {}", short(name), lines(text)),
            Step::Remove(name) => write!(f, "removes {}", short(name)),
            Step::MakeOwn(_, text) => write!(f, "makes its file: {}", lines(text)),
            Step::HasOwn => write!(f, "has its file?"),
            Step::WriteOwn(text) => write!(f, "writes: {}", lines(text)),
            Step::PutOver(name, other) => {
                write!(f, "renames {} to {}", short(name), short(other))
            }
            Step::Removed => write!(f, "looks for removed files"),
            Step::IsAlive(process) => write!(f, "is {} alive?", member(*process)),
        }
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Answer::Done => Ok(()),
            Answer::Is(is) => write!(f, "=> {is}"),
            Answer::Text(None) => write!(f, "=> nothing"),
            Answer::Text(Some(text)) => write!(f, "=> {}", lines(text)),
            Answer::Names(names) => {
                let names: Vec<&str> = names.iter().map(|name| short(name)).collect();
                write!(f, "=> {}", names.join(" "))
            }
            Answer::Texts(texts) => {
                let texts: Vec<String> = texts.iter().map(|(_, text)| lines(text)).collect();
                write!(f, "=> {}", texts.join("; "))
            }
        }
    }
}

/// A name without the zeros of numbers.
fn short(name: &str) -> &str {
    name.trim_start_matches('0')
}

/// A text in one line, without its frame and what is always the same.
fn lines(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.starts_with("check"));
    let lines = lines.filter(|line| !line.starts_with("hearth"));
    let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    let text = lines.join(" | ").replace(" min=1 max=1 back=0", "");
    text.replace("00000", "").replace(" name=", "")
}

/// A model's constants.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    pub(super) cores: u32,
    pub(super) limits: Limits,
    pub(super) fault: Option<Fault>,
}

/// A member's place in its program.
#[derive(Clone, Debug)]
pub(super) struct Place {
    /// Its next step; none at the end.
    pub(super) next: Option<Rc<Step>>,
    /// Cores that it believes to be its own, as bits.
    pub(super) owned: u32,
    /// Number of its program's parts that are done.
    pub(super) acts: usize,
    /// An operation that failed.
    pub(super) complaint: Option<String>,
    /// A number for all that decides what it does next, if it has forgotten its answers.
    pub(super) is_like: Option<u128>,
}

struct Run {
    process: Cell<ProcessId>,
    rules: Rules,
    answers: Vec<Answer>,
    at: Cell<usize>,
    randoms: Cell<u64>,
    next: RefCell<Option<Step>>,
    owned: Cell<u32>,
    acts: Cell<usize>,
    is_like: Cell<Option<u128>>,
}

/// Carries a member out of its program.
struct Asked;

/// A member's view of the modelled folder.
#[derive(Clone)]
pub(super) struct Modelled(Rc<Run>);

impl fmt::Debug for Modelled {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}", self.0.randoms.get())
    }
}

/// A member's process.
pub(super) fn process(member: usize) -> ProcessId {
    ProcessId {
        number: member as u32 + 1,
        began: 1,
    }
}

/// The member of a process.
pub(super) fn member(process: ProcessId) -> usize {
    process.number as usize - 1
}

/// Runs a member's program with the answers so far.
pub(super) fn place(member: usize, program: &[Act], rules: Rules, answers: Vec<Answer>) -> Place {
    let run = Rc::new(Run {
        process: Cell::new(process(member)),
        rules,
        answers,
        at: Cell::new(0),
        randoms: Cell::new(0),
        next: RefCell::new(None),
        owned: Cell::new(0),
        acts: Cell::new(0),
        is_like: Cell::new(None),
    });
    let result = panic::catch_unwind(AssertUnwindSafe(|| play(&run, program)));
    let complaint = match result {
        Ok(result) => result.err(),
        Err(payload) if payload.is::<Asked>() => None,
        Err(payload) => panic::resume_unwind(payload),
    };
    assert!(run.at.get() == run.answers.len(), "the program is another");
    let next = run.next.take().map(Rc::new);
    Place {
        next,
        owned: run.owned.get(),
        acts: run.acts.get(),
        complaint,
        is_like: run.is_like.get(),
    }
}

fn play(run: &Rc<Run>, program: &[Act]) -> Result<(), String> {
    let mut registry: Option<Registry<Modelled>> = None;
    for act in program {
        let own = |registry: &mut Registry<Modelled>| run.owned.set(bits(registry.cores()));
        match (act, &mut registry) {
            (Act::Join, joined) => {
                run.owned.set(0);
                let outside = Modelled(Rc::clone(run));
                *joined = Some(Registry::begin(outside, "").map_err(text)?);
            }
            (Act::Invade(count), Some(registry)) => {
                let all: Vec<Core> = (0..run.rules.cores).map(Core).collect();
                let mut plan = |state: &State, mut plan: Plan| {
                    plan.cores.extend(state.free(&all).iter().take(*count));
                    plan
                };
                registry.change(&mut plan).map_err(text)?;
                own(registry);
            }
            (Act::Retreat(left), Some(registry)) => {
                let kept: Vec<Core> = registry.cores().iter().take(*left).copied().collect();
                run.owned.set(bits(&kept));
                let mut plan = |_: &State, mut plan: Plan| {
                    plan.cores.retain(|core| kept.contains(core));
                    plan
                };
                registry.change(&mut plan).map_err(text)?;
            }
            (Act::Leave, Some(registry)) => {
                run.owned.set(0);
                registry.leave();
            }
            (Act::Fork, Some(registry)) => {
                let parent = run.process.get();
                run.process.set(ProcessId {
                    number: 99,
                    ..parent
                });
                let refused = registry.change(&mut |_, plan| plan);
                registry.leave();
                if !matches!(refused, Err(ClaimError::Forked)) {
                    return Err("a child has its parent's claim".to_owned());
                }
                run.process.set(parent);
            }
            (_, None) => unreachable!("a program begins by joining"),
        }
        run.acts.set(run.acts.get() + 1);
    }
    Ok(())
}

fn text(error: ClaimError) -> String {
    error.to_string()
}

fn bits(cores: &[Core]) -> u32 {
    cores.iter().fold(0, |bits, core| bits | 1 << core.0)
}

impl Modelled {
    fn ask(&self, step: Step) -> Answer {
        let run = &self.0;
        let at = run.at.get();
        let Some(answer) = run.answers.get(at) else {
            *run.next.borrow_mut() = Some(step);
            // No message is printed.
            panic::resume_unwind(Box::new(Asked));
        };
        run.at.set(at + 1);
        run.is_like.set(None);
        answer.clone()
    }

    fn is(&self, step: Step) -> bool {
        matches!(self.ask(step), Answer::Is(true))
    }
}

impl Outside for Modelled {
    fn folder(&self) -> &Path {
        Path::new("/modelled")
    }

    fn process(&self) -> u32 {
        self.0.process.get().number
    }

    fn own(&self) -> Option<ProcessId> {
        Some(self.0.process.get())
    }

    fn names(&self, ending: &str) -> io::Result<Vec<String>> {
        match self.ask(Step::List(ending.into())) {
            // It has begun; the second answer comes at its end.
            Answer::Done => match self.ask(Step::List(ending.into())) {
                Answer::Names(names) => Ok(names.iter().map(|name| (**name).to_owned()).collect()),
                other => unreachable!("{other:?}"),
            },
            other => unreachable!("{other:?}"),
        }
    }

    fn read(&self, name: &str) -> io::Result<Option<String>> {
        match self.ask(Step::Read(name.into())) {
            Answer::Text(text) => Ok(text.map(|text| (*text).to_owned())),
            other => unreachable!("{other:?}"),
        }
    }

    fn is_there(&self, name: &str, text: &str) -> io::Result<bool> {
        Ok(self.is(Step::IsThere(name.into(), text.into())))
    }

    fn publish(&self, name: &str, text: &str) -> io::Result<bool> {
        Ok(self.is(Step::Publish(name.into(), text.into())))
    }

    fn remove(&self, name: &str) {
        self.ask(Step::Remove(name.into()));
    }

    fn put_over(&self, name: &str, other: &str) {
        self.ask(Step::PutOver(name.into(), other.into()));
    }

    fn make_own(&mut self, name: &str, text: &str) -> io::Result<()> {
        self.ask(Step::MakeOwn(name.into(), text.into()));
        Ok(())
    }

    fn has_own(&self) -> bool {
        self.is(Step::HasOwn)
    }

    fn write_own(&self, text: &str) -> io::Result<()> {
        self.ask(Step::WriteOwn(text.into()));
        Ok(())
    }

    fn removed(&self) -> Vec<(String, String)> {
        match self.ask(Step::Removed) {
            Answer::Texts(texts) => {
                let texts = texts.iter();
                texts
                    .map(|(name, text)| ((**name).to_owned(), (**text).to_owned()))
                    .collect()
            }
            other => unreachable!("{other:?}"),
        }
    }

    fn is_alive(&mut self, process: ProcessId) -> bool {
        self.is(Step::IsAlive(process))
    }

    fn keep(&mut self, _: &dyn Fn(&ProcessId) -> bool) {}

    /// Different in every member, and in every state of one.
    fn random(&self) -> u64 {
        let run = &self.0;
        run.randoms.set(run.randoms.get() + 1);
        u64::from(run.process.get().number) << 40 | run.randoms.get()
    }

    fn pause(&self) {}

    fn limits(&self) -> Limits {
        self.0.rules.limits
    }

    fn begins_again(&self, from: fmt::Arguments) {
        let run = &self.0;
        let all = format!("{} {} {from}", run.acts.get(), run.owned.get());
        run.is_like.set(Some(number(all.as_str())));
    }

    fn has(&self, fault: Fault) -> bool {
        self.0.rules.fault == Some(fault)
    }
}

//! Futures: calls and rounds of loops that may run beside what comes after them.
//!
//! The analysis proves, from the text alone, that two pieces of a program share nothing: whatever
//! one writes the other neither reads nor writes, and nobody could see that they ran at the same
//! time. Everything that is not proved is refused, with the reason and the places in the text.
//!
//! 1. [`walk`] goes through each function of the core IR with differences between numbers
//!    ([`zone`]) and the objects that references may lead to ([`places`]). It yields the
//!    procedure's summary: places read and written, in terms of parameters, and deeds others see
//!    ([`effects`]). Summaries, and what callers tell callees, grow until nothing changes
//!    ([`world`]).
//! 2. [`sites`] looks at each call with enough work ([`weights`]), and [`rounds`] at each loop.
//!
//! See `docs/internals/futures.md`.

mod effects;
pub mod extract;
mod natives;
mod places;
mod rounds;
mod sites;
mod symbols;
mod walk;
mod weights;
mod world;
mod zone;

use crate::core::ir::{Module, Role};
use crate::core::passes::beside::Mark;
use crate::diagnostic::Label;
use crate::source::Span;
use crate::tree::Program;
use sites::Site;
use weights::Weights;
use world::World;

/// Rounds over the program after which ranges only lose bounds.
const EXACT_ROUNDS: usize = 4;
/// More rounds than any program has needed. Beyond them nothing is found, so nothing wrong either.
const ROUNDS_MAX: usize = 60;

/// A kind of independence.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum Pattern {
    /// A call, and another that follows before its result is needed.
    ConsecutiveCalls,
    /// A call, and statements without a call that follow before its result is needed.
    CallBesideStatements,
    /// Two calls of a recursive procedure that share no data.
    Recursion,
    /// Two calls of a recursive procedure that work on disjoint parts of one object.
    DisjointParts,
    /// A counted loop whose rounds share nothing.
    Rounds,
    /// A counted loop whose rounds share only what they add up to.
    Reduction,
    /// Statements of a block that could be a procedure, whose call may run beside others.
    Extracted,
}

impl Pattern {
    /// The name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Pattern::ConsecutiveCalls => "consecutive calls",
            Pattern::CallBesideStatements => "call beside statements",
            Pattern::Recursion => "independent recursion",
            Pattern::DisjointParts => "recursion over disjoint parts",
            Pattern::Rounds => "independent rounds",
            Pattern::Reduction => "independent rounds with a reduction",
            Pattern::Extracted => "extracted procedure",
        }
    }

    /// The name in JSON.
    pub fn id(self) -> &'static str {
        match self {
            Pattern::ConsecutiveCalls => "consecutive-calls",
            Pattern::CallBesideStatements => "call-beside-statements",
            Pattern::Recursion => "recursion",
            Pattern::DisjointParts => "disjoint-parts",
            Pattern::Rounds => "rounds",
            Pattern::Reduction => "reduction",
            Pattern::Extracted => "extracted-procedure",
        }
    }
}

/// The end of the time in which a call may run beside.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Beside {
    /// The result is used here first.
    UntilUse(Span),
    /// This touches what the call touches, or is seen by others.
    Until(Span),
    /// The end of the block, or of the loop.
    UntilEnd,
}

/// A call or a loop that may run beside.
#[derive(Clone, Debug)]
pub struct Finding {
    pub pattern: Pattern,
    /// The call, or the loop.
    pub span: Span,
    /// The procedure that is called; none for a loop.
    pub callee: Option<String>,
    /// The statements that may run meanwhile; for a loop itself.
    pub beside: Span,
    pub waits: Beside,
    /// Whole sentences.
    pub notes: Vec<String>,
    /// The text says `beside` before it.
    pub is_asked: bool,
    /// The same in terms of the IR; none of statements that are no procedure yet.
    pub mark: Option<Mark>,
}

/// The reason why something must not run beside.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum Reason {
    Prints,
    Waits,
    Acts,
    Creates,
    Connects,
    Stops,
    CallsValue,
    Exception,
    Endless,
    UsedAtOnce,
    NothingBeside,
    WritesWhatIsRead,
    ReadsWhatIsWritten,
    BothWrite,
    SharedCount,
    Carried,
    OrderOfReals,
    Counter,
    Bound,
    Leaves,
    TooEntangled,
}

impl Reason {
    /// The name in JSON.
    pub fn id(self) -> &'static str {
        match self {
            Reason::Prints => "prints",
            Reason::Waits => "waits",
            Reason::Acts => "acts",
            Reason::Creates => "creates",
            Reason::Connects => "connects",
            Reason::Stops => "stops",
            Reason::CallsValue => "calls-value",
            Reason::Exception => "exception",
            Reason::Endless => "endless",
            Reason::UsedAtOnce => "used-at-once",
            Reason::NothingBeside => "nothing-beside",
            Reason::WritesWhatIsRead => "writes-what-is-read",
            Reason::ReadsWhatIsWritten => "reads-what-is-written",
            Reason::BothWrite => "both-write",
            Reason::SharedCount => "shared-count",
            Reason::Carried => "carried",
            Reason::OrderOfReals => "order-of-reals",
            Reason::Counter => "counter",
            Reason::Bound => "bound",
            Reason::Leaves => "leaves",
            Reason::TooEntangled => "too-entangled",
        }
    }
}

/// A call or a loop that must not run beside, or for which that is not proved.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// The call, or the loop.
    pub span: Span,
    pub reason: Reason,
    /// One line, lower case, no full stop.
    pub title: String,
    /// The places that matter.
    pub labels: Vec<Label>,
    /// Whole sentences.
    pub notes: Vec<String>,
}

/// All candidates of a program, each list in the order of the text.
#[derive(Clone, Debug, Default)]
pub struct Futures {
    pub found: Vec<Finding>,
    pub refused: Vec<Refusal>,
}

impl Futures {
    /// Marks of all that was found, or of what the text asks for.
    pub fn marks(&self, all: bool) -> Vec<Mark> {
        let found = self.found.iter().filter(|found| all || found.is_asked);
        found.filter_map(|found| found.mark.clone()).collect()
    }
}

/// Finds the futures of a program whose loops are as its text has them
/// ([`core::lowered`](crate::core::lowered)).
pub fn of(program: &Program, module: &Module) -> Futures {
    let mut futures = Futures::default();
    let mut world = World::new(program, module);
    let Some(walks) = settle(&mut world) else {
        futures.refused = world.asked.iter().copied().map(too_entangled).collect();
        return futures;
    };
    let weights = Weights::new(program, module, &world.of_proc, &world.is_recursive);
    for (index, walked) in walks.iter().enumerate() {
        let function = &module.functions[index];
        let site = Site {
            world: &world,
            weights: &weights,
            function,
            index,
            walked,
            is_caught: match function.role {
                Role::Proc(proc) => world.is_caught[proc.index()],
                _ => false,
            },
        };
        site.calls(&mut futures);
        site.loops(&mut futures);
    }
    futures.found.sort_by_key(|found| found.span.start);
    futures.refused.sort_by_key(|refused| refused.span.start);
    futures
}

fn too_entangled(span: Span) -> Refusal {
    let title = "what calls what, and with what, is too entangled to be followed".into();
    *sites::refusal(span, Reason::TooEntangled, title, Vec::new())
}

/// Walks all functions until no walk finds anything new; the last walks of each. A function is
/// walked again only if what its walk goes by has changed.
fn settle<'a>(world: &mut World<'a>) -> Option<Vec<walk::Walked<'a>>> {
    let count = world.module.functions.len();
    let mut walks: Vec<Option<walk::Walked<'a>>> = (0..count).map(|_| None).collect();
    let mut is_due = vec![true; count];
    for round in 0..ROUNDS_MAX {
        let is_late = round >= EXACT_ROUNDS;
        for index in 0..count {
            if !std::mem::replace(&mut is_due[index], false) {
                continue;
            }
            let walked = walk::walk(world, index);
            let mut concerned = world.learn(index, &walked.summary, &walked.entries, is_late);
            let shared = world.shared.len();
            world.shared.extend(walked.shared.iter().copied());
            if world.shared.len() > shared || world.learn_members(index, &walked.ties) {
                concerned = (0..count).collect();
            }
            for index in concerned {
                is_due[index] = true;
            }
            walks[index] = Some(walked);
        }
        if !is_due.contains(&true) {
            return walks.into_iter().collect();
        }
    }
    None
}

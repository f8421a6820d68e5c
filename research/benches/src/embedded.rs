//! Components in Rust, for a process of their own: the shapes, and their times.

use std::time::Instant;

use hearth::place::Plan;
use hearth::{Builder, Carrier, Component, Hearth, In, Out, Placement, block_on, channel};

pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The talking components, and how they talk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    pub name: &'static str,
    pub question: &'static str,
    pub workers: usize,
    pub threads: bool,
    /// Pairs of components that send a number to and fro.
    pub pairs: usize,
    /// Computation of a component for each message, in steps of about a nanosecond.
    pub steps: u32,
    /// The two of a pair begin on different workers.
    pub begins_apart: bool,
    /// Round trips of each pair; some tenths of a second.
    pub rounds: u32,
}

pub const SHAPES: [Shape; 5] = [
    Shape {
        name: "rust-talk-pair",
        question: "What does Placement::Talk cost where one pair only talks, on one worker?",
        workers: 1,
        threads: false,
        pairs: 1,
        steps: 0,
        begins_apart: false,
        rounds: 6_000_000,
    },
    Shape {
        name: "rust-talk-pairs",
        question: "And where 500 pairs talk, on one worker?",
        workers: 1,
        threads: false,
        pairs: 500,
        steps: 0,
        begins_apart: false,
        rounds: 8_000,
    },
    Shape {
        name: "rust-talk-work",
        question: "And where components compute for microseconds between messages?",
        workers: 1,
        threads: false,
        pairs: 8,
        steps: 4_000,
        begins_apart: false,
        rounds: 8_000,
    },
    Shape {
        name: "rust-talk-threads",
        question: "And with a thread for each component?",
        workers: 2,
        threads: true,
        pairs: 1,
        steps: 0,
        begins_apart: false,
        rounds: 60_000,
    },
    Shape {
        name: "rust-talk-apart",
        question: "What does it gain where pairs begin on two workers each?",
        workers: 2,
        threads: false,
        pairs: 2,
        steps: 0,
        begins_apart: true,
        rounds: 500_000,
    },
];

/// Runs a shape: seconds from the first message to the last, and the sum of the values sent.
pub fn run(shape: &Shape, is_placed: bool, cores: &[usize]) -> Result<(f64, u64), Failure> {
    let hearth = settings(shape, is_placed, cores).start()?;
    let pairs = (0..shape.pairs).map(|index| pair(&hearth, shape, index));
    let (starters, all): (Vec<_>, Vec<_>) = pairs.unzip();
    let start = Instant::now();
    let _starts = hearth.component("Start").spawn(async move {
        for starter in starters {
            starter.send(true).await?;
        }
        Ok::<_, Failure>(())
    });
    let mut sum = 0;
    for asks in all {
        sum += block_on(asks)??;
    }
    Ok((start.elapsed().as_secs_f64(), sum))
}

fn settings(shape: &Shape, is_placed: bool, cores: &[usize]) -> Builder {
    let builder = match shape.threads {
        true => Hearth::builder().carrier(Carrier::Threads),
        false => Hearth::builder().workers(shape.workers),
    };
    let builder = match is_placed {
        true => builder.placement(Placement::Talk),
        false => builder,
    };
    let [first, second] = [cores[0], *cores.last().unwrap_or(&cores[0])].map(|core| core as u32);
    if !shape.begins_apart {
        return builder;
    }
    let plan = (0..shape.pairs).fold(Plan::new(), |plan, index| {
        let (asks, answers) = match index % 2 {
            0 => (first, second),
            _ => (second, first),
        };
        plan.put(&format!("Asks{index}"), asks)
            .put(&format!("Answers{index}"), answers)
    });
    builder.plan(plan)
}

type Asks = Component<Result<u64, Failure>>;

/// A pair: one component asks `rounds` times once the starter lets it, the other answers.
fn pair(hearth: &Hearth, shape: &Shape, index: usize) -> (Out<bool>, Asks) {
    let (starter, start) = channel::<bool>();
    let (ping, pinged) = channel::<u32>();
    let (pong, ponged) = channel::<u32>();
    let Shape { rounds, steps, .. } = *shape;
    let answers = hearth.component(&format!("Answers{index}"));
    let _answers = answers.spawn(async move {
        while let Ok(number) = pinged.recv().await {
            if pong.send(computed(number, steps)).await.is_err() {
                break;
            }
        }
    });
    let asks = hearth.component(&format!("Asks{index}"));
    let asks = asks.spawn(ask(start, ping, ponged, rounds, steps));
    (starter, asks)
}

async fn ask(
    start: In<bool>,
    ping: Out<u32>,
    ponged: In<u32>,
    rounds: u32,
    steps: u32,
) -> Result<u64, Failure> {
    start.recv().await?;
    let mut sum = 0;
    for number in 0..rounds {
        ping.send(computed(number, steps)).await?;
        sum += u64::from(ponged.recv().await?);
    }
    Ok(sum)
}

/// A number that follows from another after `steps` steps.
fn computed(number: u32, steps: u32) -> u32 {
    (0..steps).fold(number, |number, step| {
        std::hint::black_box(number.rotate_left(5) ^ step)
    })
}

//! Times of calls, of processors, and of collections.
//!
//! `cargo run --release -p hearth-regions --example processors -- 1000000` makes so many processors
//! in rings of ten, once with references from outside and once without; 100,000 if not given.

#![expect(clippy::print_stdout, reason = "a measurement prints its figures")]

use std::error::Error;
use std::time::Instant;

use hearth::{Hearth, block_on};
use hearth_regions::{Object, Regions, Separate, Tracer};

struct Node {
    calls: u64,
    next: Option<Separate<Node>>,
}

impl Object for Node {
    fn trace(&self, tracer: &mut Tracer) {
        self.next.trace(tracer);
    }
}

/// Runs something, and prints what it took each of `count` times.
fn timed<R>(what: &str, count: usize, run: impl FnOnce() -> R) -> R {
    let begin = Instant::now();
    let result = run();
    let ns = begin.elapsed().as_nanos() as f64 / count as f64;
    println!("{what:44} {ns:10.0} ns each");
    result
}

fn main() -> Result<(), Box<dyn Error>> {
    let asked = std::env::args().nth(1);
    let count: usize = asked.map_or(Ok(100_000), |count| count.parse())?;
    let hearth = Hearth::start()?;
    let regions = Regions::builder().automatic(false).start(&hearth);
    let make = || {
        regions.create(|_| Node {
            calls: 0,
            next: None,
        })
    };

    let node = make()?;
    const CALLS: usize = 1_000_000;
    timed("commands to one object, applied", CALLS, || {
        for _ in 0..CALLS {
            node.command(|node, _| node.calls += 1)?;
        }
        block_on(regions.rest());
        Ok::<(), Box<dyn Error>>(())
    })?;
    const QUERIES: usize = 20_000;
    timed("queries from a thread, one at a time", QUERIES, || {
        for _ in 0..QUERIES {
            node.query(|node, _| node.calls).wait()?;
        }
        Ok::<(), Box<dyn Error>>(())
    })?;
    let asked = node.query(|node, _| node.calls).wait()?;
    assert_eq!(asked, CALLS as u64);
    drop(node);
    block_on(regions.rest());
    regions.collect();

    let nodes = timed("processors made, with an object", count, || {
        let nodes: Result<Vec<_>, _> = (0..count).map(|_| make()).collect();
        block_on(regions.rest());
        nodes
    })?;
    for ring in nodes.chunks(10) {
        for (at, node) in ring.iter().enumerate() {
            let next = ring[(at + 1) % ring.len()].clone();
            node.command(move |node, _| node.next = Some(next))?;
        }
    }
    block_on(regions.rest());
    let none = timed("collection, all alive, a processor", count, || {
        regions.collect()
    });
    assert_eq!((none.processors, none.objects), (0, 0));
    drop(nodes);
    let all = timed("collection, all dead in rings, a processor", count, || {
        regions.collect()
    });
    assert_eq!((all.processors, regions.processors()), (count, 0));
    Ok(())
}

//! Many components: the graph of a program that makes 100,000 of them. How long that takes must
//! grow with their number and not faster; no test can say how long it may take.

use hearth_lang::compile::{self, CompileOptions};
use std::time::Instant;

/// Rows of servers with nine clients each, and a monitor to which all servers report.
fn program(groups: usize) -> String {
    format!(
        "type IClient is interface(out integer ask ; in integer answer)
type IServer is interface(in integer ask ; out integer answer, report)
type IMonitor is interface(in integer report)

component Client presents IClient {{
    number = 0
    constructor(integer n) {{ number := n }}
    behaviour {{
        send number on ask
        receive n from answer
        number := n
    }}
}}

component Server presents IServer {{
    seen = 0
    state = new integer[16] of 0
    constructor() {{ }}
    behaviour {{
        for i = 1 .. 9 do {{
            receive n from ask
            send n * n on answer
        }}
        for i = 0 .. state.length - 1 do {{ state[i] := state[i] + seen }}
        seen := seen + 9
        send seen on report
    }}
}}

component Monitor presents IMonitor {{
    total = 0
    constructor() {{ }}
    behaviour {{
        receive n from report
        total := total + n
    }}
}}

monitor = new Monitor()
for g = 1 .. {groups} do {{
    server = new Server()
    connect server.report to monitor.report
    for k = 1 .. 9 do {{
        client = new Client(g * 9 + k)
        connect client.ask to server.ask
        connect server.answer to client.answer
    }}
}}
"
    )
}

#[test]
fn a_hundred_thousand_components() {
    let time = |groups: usize| {
        let text = program(groups);
        let begin = Instant::now();
        let graph = compile::graph(&text, "program.isf", &CompileOptions::default());
        let elapsed = begin.elapsed();
        let graph = graph.expect("the program is correct");
        assert_eq!(graph.components.len(), groups * 10 + 2);
        assert_eq!(graph.connections.len(), groups * 19);
        assert_eq!(graph.unbalanced.len(), 0);
        assert_eq!(graph.unknowns.len(), 0);
        elapsed.as_secs_f64()
    };
    // Other work on the machine may hold up any one try.
    let tries: Vec<(f64, f64)> = (0..2).map(|_| (time(1000), time(10_000))).collect();
    let fewest =
        |each: fn(&(f64, f64)) -> f64| tries.iter().map(each).fold(f64::INFINITY, f64::min);
    let (small, large) = (fewest(|t| t.0), fewest(|t| t.1));
    assert!(large < 50.0 * small, "{large} s after {small} s");
}

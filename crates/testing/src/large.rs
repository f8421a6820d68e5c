//! Long programs without mistakes, for measuring the compiler: realistic code, repeated with other
//! names and numbers.
//!
//! Every unit has a few types, procedures and a component of one of several kinds; the main
//! sequence makes some of each and connects them. Comments, blank lines and line lengths are those
//! of hand-written programs.

use crate::random::Random;
use std::fmt::Write as _;

/// A program of at least `lines` lines.
pub fn program(lines: usize, seed: u64) -> String {
    let mut writer = Writer {
        random: Random::new(seed),
        out: String::new(),
        lines: 0,
        main: Vec::new(),
    };
    let mut number = 0;
    // Each unit leaves about four lines for the main sequence.
    while writer.lines + writer.main.len() + 1 < lines {
        number += 1;
        writer.unit(number);
    }
    let main = std::mem::take(&mut writer.main);
    writer.text("\n// The main sequence: instances and their connections.");
    for line in main {
        writer.text(&line);
    }
    writer.out
}

struct Writer {
    random: Random,
    out: String,
    lines: usize,
    /// Statements of the main sequence so far.
    main: Vec<String>,
}

const NOUNS: [&str; 24] = [
    "sensor", "filter", "buffer", "pump", "valve", "motor", "door", "lamp", "meter", "relay",
    "tank", "boiler", "fan", "gate", "clock", "store", "queue", "station", "probe", "alarm",
    "mixer", "belt", "crane", "panel",
];

const VERBS: [&str; 12] = [
    "measure", "adjust", "smooth", "scale", "limit", "count", "average", "combine", "compare",
    "prepare", "select", "weigh",
];

impl Writer {
    fn text(&mut self, text: &str) {
        self.lines += text.lines().count().max(1);
        self.out.push_str(text);
        self.out.push('\n');
    }

    fn small(&mut self) -> i64 {
        self.random.between(2, 99)
    }

    fn unit(&mut self, number: usize) {
        let noun = *self.random.pick(&NOUNS);
        let mut name = noun.to_string();
        name[..1].make_ascii_uppercase();
        let name = format!("{name}{number}");
        self.text(&format!("\n// ---- {noun} {number} ----\n"));
        match self.random.below(6) {
            0 => self.monitor(&name),
            1 => self.converter(&name),
            2 => self.controller(&name),
            3 => self.statistics(&name),
            4 => self.dispatcher(&name),
            _ => self.library(&name),
        }
    }

    /// Procedures over arrays and numbers.
    fn library(&mut self, name: &str) {
        for part in 0..3 + self.random.below(4) {
            let verb = *self.random.pick(&VERBS);
            let (a, b, c) = (self.small(), self.small(), self.small());
            let text = match self.random.below(3) {
                0 => format!(
                    "// Brings values into the range that the {verb} step expects.
proc {verb}{name}x{part}(integer[] values; integer low, high) : integer {{
    changed = 0
    for i = 0 .. values.length - 1 do {{
        if values[i] < low then {{
            values[i] := low
            changed := changed + 1
        }} else if values[i] > high then {{
            values[i] := high
            changed := changed + {a}
        }}
    }}
    return changed
}}
"
                ),
                1 => format!(
                    "proc {verb}{name}x{part}(real x, y; bool exact) : real {{
    distance = squareRoot(x * x + y * y)
    if exact and distance > {a}.5 then {{
        distance := distance - {b}.25 * (x + y) / (1.0 + distance)
    }}
    return if distance < 0.0 then 0.0 else distance
}}
"
                ),
                _ => format!(
                    "/* A checksum over the whole grid; the factors are small primes so that
   neighbouring cells do not cancel each other. */
proc {verb}{name}x{part}(integer[][] grid) : integer {{
    total = {a}
    for row = 0 .. grid.length - 1 do {{
        for column = 0 .. grid[row].length - 1 do {{
            total := (total * 31 + grid[row][column] * {b}) % 65521
            if total == {c} then {{ total := total + 1 }}
        }}
    }}
    return total
}}
"
                ),
            };
            self.text(&text);
        }
    }

    /// A component that watches a value and reports when it leaves its range.
    fn monitor(&mut self, name: &str) {
        let (low, high, rounds) = (self.small(), self.small() + 100, self.small());
        let text = format!(
            "type {name}Level is enum({name}Low, {name}Normal, {name}High)
type {name}Report is struct({name}Level level; integer value, at)
type I{name} is interface(
    in integer reading;
    out {name}Report report
)

// Reports the result of each reading.
component {name} presents I{name} {{
    seen = 0
    last = {name}Normal
    history = new integer[16] of 0

    proc classify(integer value) : {name}Level {{
        return if value < {low} then {name}Low else if value > {high} then {name}High else {name}Normal
    }}

    proc remember(integer value) {{
        history[seen % history.length] := value
        seen := seen + 1
    }}

    constructor() {{ }}

    constructor(integer first) {{
        seen := first
    }}

    behaviour {{
        receive value from reading
        level = classify(value)
        remember(value)
        if level != last then {{
            // Only changes are worth a message.
            send new {name}Report(level, value, seen) on report
            last := level
        }}
        if seen > {rounds} then {{ stop }}
    }}
}}
"
        );
        self.text(&text);
        let lower = name.to_lowercase();
        self.main.push(format!("{lower} = new {name}({low})"));
        self.main.push(format!("{lower}In = new out integer"));
        self.main
            .push(format!("connect {lower}In to {lower}.reading"));
    }

    /// A component that reads boxed values and turns them into reals.
    fn converter(&mut self, name: &str) {
        let (a, b, c) = (self.small(), self.small(), self.small());
        let text = format!(
            "type {name}Sample is struct(real value; unsigned source; bool valid)
type I{name} is interface(in any input; out {name}Sample output; out string complaint)

component {name} presents I{name} {{
    factor = {a}.5
    offset = -{b}.25
    rejected = 0

    proc scale(real raw) : real {{
        return raw * factor + offset
    }}

    constructor(real by) {{
        factor := by
    }}

    behaviour {{
        receive box from input
        project box as content onto
            integer : {{
                send new {name}Sample(scale(content), ${c}, true) on output
            }}
            real : {{
                send new {name}Sample(scale(content), ${b}, content > 0.0) on output
            }}
            string : {{
                rejected := rejected + 1
                if stringStartsWith(content, \"end\") then stop
                send content on complaint
            }}
            integer[] : {{
                sum = 0
                for i = 0 .. content.length - 1 do {{ sum := sum + content[i] }}
                send new {name}Sample(scale(sum), $0, false) on output
            }}
            default : {{
                rejected := rejected + 1
                send \"unknown kind of value\\n\" on complaint
            }}
    }}
}}
"
        );
        self.text(&text);
        let lower = name.to_lowercase();
        self.main.push(format!("{lower} = new {name}({a}.125)"));
        self.main.push(format!("{lower}Text = new in string"));
        self.main
            .push(format!("connect {lower}.complaint to {lower}Text"));
    }

    /// A state machine that serves several channels.
    fn controller(&mut self, name: &str) {
        let (a, b, c) = (self.small(), self.small(), self.small());
        let text = format!(
            "type {name}State is enum({name}Idle, {name}Filling, {name}Full, {name}Fault)
type I{name} is interface(in bool open, close; in integer amount; out {name}State state)

component {name} presents I{name} {{
    now = {name}Idle
    content = 0
    faults = 0

    proc next(integer more) : {name}State {{
        content := content + more
        return case now of
            {name}Idle : if content > 0 then {name}Filling else {name}Idle
            {name}Filling, {name}Full : {{
                limit = {a} * {b}
                if content >= limit then {name}Full else {name}Filling
            }}
            default : {name}Fault
    }}

    constructor() {{ }}

    behaviour {{
        select {{
            receive signal from open when now == {name}Idle : {{
                if signal then {{ now := {name}Filling }}
            }}
            acknowledge signal from close when now != {name}Fault after : {{
                now := {name}Idle
                content := 0
                if !signal then {{ faults := faults + 1 }}
            }}
            receive more from amount : {{
                try {{
                    now := next(more / ({c} - more))
                }} except DivisionByZeroException {{
                    now := {name}Fault
                    faults := faults + 1
                }}
            }}
        }}
        send now on state
        if faults > {b} then {{ printString(\"{name} gives up\\n\") ; stop }}
    }}
}}
"
        );
        self.text(&text);
        let lower = name.to_lowercase();
        self.main.push(format!("{lower} = new {name}()"));
        self.main.push(format!("{lower}State = new in {name}State"));
        self.main
            .push(format!("connect {lower}State to {lower}.state"));
    }

    /// A component that computes over its own arrays and sends only the result.
    fn statistics(&mut self, name: &str) {
        let (a, b, size) = (self.small(), self.small(), self.random.between(8, 64));
        let text = format!(
            "type I{name} is interface(out real mean, spread; out integer[] counts)

component {name} presents I{name} {{
    values = new real[{size}] of 0.0
    counted = new integer[10] of 0
    seed = {a}

    proc draw() : integer {{
        seed := (seed * 1103 + 12345) % 32768
        return if seed < 0 then -seed else seed
    }}

    proc meanOf(real[] list) : real {{
        sum = 0.0
        for i = 0 .. list.length - 1 do {{ sum := sum + list[i] }}
        return sum / list.length
    }}

    proc spreadOf(real[] list; real mean) : real {{
        sum = 0.0
        for i = 0 .. list.length - 1 do {{
            difference = list[i] - mean
            sum := sum + difference * difference
        }}
        return squareRoot(sum / list.length)
    }}

    constructor(integer start) {{ seed := start }}

    behaviour {{
        for i = 0 .. values.length - 1 do {{
            drawn = draw()
            values[i] := drawn
            counted[drawn % 10] := counted[drawn % 10] + 1
        }}
        mean = meanOf(values)
        send mean on mean{name}
        send spreadOf(values, mean) on spread
        send counted on counts
        if counted[0] > {b} and counted[9] > 0 or mean < {a}.5 then stop
    }}
}}
"
        )
        .replace(
            "out real mean, spread",
            &format!("out real mean{name}, spread"),
        );
        self.text(&text);
        let lower = name.to_lowercase();
        self.main.push(format!("{lower} = new {name}({a})"));
        self.main.push(format!("{lower}Mean = new in real"));
        self.main
            .push(format!("connect {lower}.mean{name} to {lower}Mean"));
    }

    /// A component that hands work to components it creates.
    fn dispatcher(&mut self, name: &str) {
        let (a, b, workers) = (self.small(), self.small(), self.random.between(2, 9));
        let text = format!(
            "type {name}Job is struct(integer number; byte[] data; string title)
type I{name}Worker is interface(in {name}Job jobs; out unsigned done)
type I{name} is interface(in {name}Job jobs; out unsigned total)

component {name}Worker presents I{name}Worker {{
    finished = $0

    constructor() {{ }}

    behaviour {{
        receive job from jobs
        sum = #0
        for i = 0 .. job.data.length - 1 do {{ sum := sum + job.data[i] ^ #{a} }}
        finished := finished + $1
        if job.title.length == 0 then {{
            stop
        }} else {{
            send finished * ${b} + sum on done
        }}
    }}
}}

component {name} presents I{name} {{
    toWorkers = new out {name}Job
    fromWorkers = new in unsigned
    total_ = $0

    constructor() {{
        for i = 1 .. {workers} do {{
            worker = new {name}Worker()
            connect toWorkers to worker.jobs
            connect worker.done to fromWorkers
        }}
    }}

    behaviour {{
        receive job from jobs
        send job on toWorkers
        receive one from fromWorkers
        total_ := total_ + one
        send total_ on total
        if job.number == {a} then {{
            // The last job of the day: an empty title tells the workers.
            for i = 1 .. {workers} do {{
                send new {name}Job(0, new byte[1] of #0, \"\") on toWorkers
            }}
            stop
        }}
    }}
}}
"
        );
        self.text(&text);
        let lower = name.to_lowercase();
        self.main.push(format!("{lower} = new {name}()"));
        self.main.push(format!("{lower}Jobs = new out {name}Job"));
        let mut line = String::new();
        let _ = write!(line, "connect {lower}Jobs to {lower}.jobs");
        self.main.push(line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_has_the_lines_asked_for() {
        let text = program(1000, 1);
        assert!((1000..1200).contains(&text.lines().count()));
        assert_eq!(text, program(1000, 1));
    }
}

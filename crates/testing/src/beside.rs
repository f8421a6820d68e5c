//! Random programs of one component with calls and loops that may run beside each other, or not:
//! procedures over numbers, arrays, reals, members and strings, recursion, aliases, exceptions.
//!
//! They are texts, as they come. Each ends by itself, prints what it computed, and takes a number
//! as its first argument. The result is whatever the sequential program prints: the order in which
//! independent parts run must not change it.

use crate::random::Random;
use std::fmt::Write as _;

/// Elements of arrays and rows of matrices.
const LENGTH: i64 = 200;
const ROWS: i64 = 20;
const WIDTH: i64 = 12;

/// A program of a seed.
pub fn program(seed: u64) -> String {
    let mut generator = Generator {
        random: Random::new(seed),
        text: String::new(),
        indent: 1,
        procs: Vec::new(),
        variables: 0,
        numbers: Vec::new(),
        arrays: vec!["a".into(), "b".into(), "c".into()],
        reals: vec!["r".into(), "q".into()],
    };
    generator.whole();
    generator.text
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// `(integer) : integer`
    Number,
    /// `(integer[] ; integer ; integer)`
    Fill,
    /// `(integer[] ; integer ; integer) : integer`
    Sum,
    /// `(real[] ; integer) : real`
    Real,
    /// `(integer)`
    Member,
    /// `(integer) : string`
    Word,
    /// `(integer) : integer[]`
    Make,
    /// `(integer[] ; integer[])`
    Both,
    /// `(integer[] ; integer[] ; integer ; integer)`: recursion by halves
    Halves,
    /// `(integer) : integer`, of numbers below 14: recursion
    Deep,
}

struct Generator {
    random: Random,
    text: String,
    indent: usize,
    procs: Vec<(String, Kind)>,
    variables: usize,
    /// Numbers in scope.
    numbers: Vec<String>,
    arrays: Vec<String>,
    reals: Vec<String>,
}

impl Generator {
    fn line(&mut self, line: impl AsRef<str>) {
        let indent = self.indent;
        let _ = writeln!(self.text, "{:1$}{2}", "", 4 * indent, line.as_ref());
    }

    fn open(&mut self, line: impl AsRef<str>) {
        self.line(line);
        self.indent += 1;
    }

    fn close(&mut self) {
        self.indent -= 1;
        self.line("}");
    }

    fn chance(&mut self, percent: u32) -> bool {
        self.random.chance(percent)
    }

    fn number(&mut self, low: i64, high: i64) -> i64 {
        self.random.between(low, high)
    }

    fn one_of(&mut self, names: &[String]) -> String {
        self.random.pick(names).clone()
    }

    fn array(&mut self) -> String {
        let names = self.arrays.clone();
        self.one_of(&names)
    }

    fn real(&mut self) -> String {
        let names = self.reals.clone();
        self.one_of(&names)
    }

    fn fresh(&mut self) -> String {
        self.variables += 1;
        format!("x{}", self.variables)
    }

    // ---- the whole --------------------------------------------------------------------------

    fn whole(&mut self) {
        self.indent = 0;
        self.line("type INothing is interface ()");
        let halves = self.chance(60);
        let deep = self.chance(50);
        if halves {
            self.line("type halves is proc(integer[] ; integer[] ; integer ; integer)");
        }
        if deep {
            self.line("type deep is proc(integer) : integer");
        }
        self.open("component C presents INothing {");
        self.line(format!("a = new integer[{LENGTH}] of 1"));
        self.line(format!("b = new integer[{LENGTH}] of 2"));
        self.line(format!("c = new integer[{LENGTH}] of 3"));
        self.line(format!("r = new real[{LENGTH}] of 0.1"));
        self.line(format!("q = new real[{LENGTH}] of 1.7"));
        self.line(format!("g = new integer[{ROWS}][{WIDTH}] of 4"));
        self.line(format!("f = new integer[{}] of 5", ROWS * WIDTH));
        self.line("m = 6");
        self.line("n = 7");
        self.open("proc place(integer k) : integer {");
        self.line(format!("return (k % {LENGTH} + {LENGTH}) % {LENGTH}"));
        self.close();
        for index in 0..5 + self.random.below(5) {
            self.any_proc(index);
        }
        if halves {
            self.halves();
        }
        if deep {
            self.deep();
        }
        self.line("constructor() { }");
        self.open("behaviour {");
        self.line("given = parseInt(argument(1))");
        self.numbers = vec!["given".into(), "m".into(), "n".into()];
        for _ in 0..3 + self.random.below(6) {
            let first = self.fresh();
            let value = self.small();
            self.line(format!("{first} = {value}"));
            self.numbers.push(first);
        }
        if self.chance(40) {
            let array = self.array();
            self.line(format!("d = {array}"));
            self.arrays.push("d".into());
        }
        if self.chance(40) {
            let number = self.small();
            self.line(format!("e = new integer[{LENGTH}] of {number}"));
            self.arrays.push("e".into());
        }
        for _ in 0..8 + self.random.below(14) {
            self.statement(0);
        }
        self.tell_all();
        self.line("stop");
        self.close();
        self.close();
        self.line("it = new C()");
    }

    fn tell_all(&mut self) {
        self.line("all = 0");
        for array in self.arrays.clone() {
            self.line(format!(
                "for k = 0 .. {} do {{ all := all * 31 + {array}[k] }}",
                LENGTH - 1
            ));
        }
        self.line(format!(
            "for k = 0 .. {} do {{ all := all * 31 + f[k] }}",
            ROWS * WIDTH - 1
        ));
        self.open(format!("for k = 0 .. {} do {{", ROWS - 1));
        self.line(format!(
            "for j = 0 .. {} do {{ all := all * 31 + g[k][j] }}",
            WIDTH - 1
        ));
        self.close();
        self.line("printInt(all)");
        self.line("printString(\"\\n\")");
        for array in self.reals.clone() {
            self.line(format!(
                "for k = 0 .. {} : 7 do {{ printReal({array}[k]) ; printString(\" \") }}",
                LENGTH - 1
            ));
        }
        for number in self.numbers.clone() {
            self.line(format!("printInt({number}) ; printString(\" \")"));
        }
        self.line("printString(\"end\\n\")");
    }

    // ---- numbers ----------------------------------------------------------------------------

    fn small(&mut self) -> String {
        if self.numbers.is_empty() || self.chance(40) {
            return self.number(0, 99).to_string();
        }
        let numbers = self.numbers.clone();
        self.one_of(&numbers)
    }

    /// An expression over numbers, and elements of arrays whose index cannot fail.
    fn value(&mut self) -> String {
        let (x, y) = (self.small(), self.small());
        match self.random.below(7) {
            0 => x,
            1 => format!("{x} + {y}"),
            2 => format!("({x} * 31 + {y}) % 1009"),
            3 => format!("{x} - {y}"),
            4 => format!("({x} ^ {y}) & 1023"),
            5 => {
                let (array, at) = (self.array(), self.number(0, LENGTH - 1));
                format!("{array}[{at}] + {x}")
            }
            _ => {
                let array = self.array();
                format!("{array}[place({x})] % 97")
            }
        }
    }

    /// Bounds of a part of an array, away from its ends.
    fn part(&mut self) -> (i64, i64) {
        match self.random.below(4) {
            0 => (0, LENGTH / 2 - 1),
            1 => (LENGTH / 2, LENGTH - 1),
            2 => (1, LENGTH - 2),
            _ => {
                let low = self.number(1, LENGTH / 2);
                (low, self.number(low, LENGTH - 2))
            }
        }
    }

    // ---- procedures ---------------------------------------------------------------------------

    /// Runs with a scope of a procedure's own.
    fn inside(
        &mut self,
        numbers: &[&str],
        arrays: &[&str],
        reals: &[&str],
        fill: impl FnOnce(&mut Self),
    ) {
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        let outer = (
            std::mem::replace(&mut self.numbers, names(numbers)),
            std::mem::replace(&mut self.arrays, names(arrays)),
            std::mem::replace(&mut self.reals, names(reals)),
        );
        fill(self);
        (self.numbers, self.arrays, self.reals) = outer;
    }

    fn any_proc(&mut self, index: usize) {
        use Kind::*;
        let kinds = [Number, Fill, Sum, Real, Member, Word, Make, Both];
        let kind = kinds[self.random.weighted(&[4, 4, 3, 2, 2, 1, 1, 2])];
        let name = format!("p{index}");
        match kind {
            Number => self.number_proc(&name),
            Fill => self.fill_proc(&name),
            Sum => self.sum_proc(&name),
            Real => self.real_proc(&name),
            Member => self.member_proc(&name),
            Word => self.word_proc(&name),
            Make => self.make_proc(&name),
            _ => self.both_proc(&name),
        }
        self.procs.push((name, kind));
    }

    fn number_proc(&mut self, name: &str) {
        self.open(format!("proc {name}(integer x) : integer {{"));
        let (rounds, by) = (self.number(20, 400), self.number(3, 60));
        self.line("s = x");
        self.line(format!(
            "for i = 1 .. {rounds} do {{ s := (s * {by} + i) % 1009 }}"
        ));
        if self.chance(12) {
            let rare = self.number(0, 200);
            self.line(format!(
                "if s == {rare} then {{ throw OperationFailedException }}"
            ));
        }
        if self.chance(12) {
            let by = self.number(-3, 3);
            self.line(format!("s := 1000 / (s + {by})"));
        }
        if self.chance(15) {
            self.line("s := s + m");
        }
        if self.chance(5) {
            self.line("printString(\".\")");
        }
        self.line("return s");
        self.close();
    }

    fn fill_proc(&mut self, name: &str) {
        self.open(format!("proc {name}(integer[] t ; integer lo, hi) {{"));
        let reads = *self
            .random
            .pick(&["i", "t[i] + 1", "t[i] * 3 + lo", "hi - i"]);
        let guarded = self.chance(20);
        let before = *self.random.pick(&["0", "0", "0", "0", "1"]);
        match guarded {
            true => {
                let line = format!(
                    "for i = lo + {before} .. hi do {{ if i + 1 < t.length then t[i] := t[i + 1] + 1 }}"
                );
                self.line(line);
            }
            false => self.line(format!(
                "for i = lo + {before} .. hi do {{ t[i] := {reads} }}"
            )),
        }
        if self.chance(10) {
            self.line("m := m + 1");
        }
        self.close();
    }

    fn sum_proc(&mut self, name: &str) {
        self.open(format!(
            "proc {name}(integer[] t ; integer lo, hi) : integer {{"
        ));
        self.line("s = 0");
        let step = *self.random.pick(&[
            "s := s + t[i]",
            "s := (s * 7 + t[i]) % 997",
            "if t[i] > s then s := t[i]",
        ]);
        self.line(format!("for i = lo .. hi do {{ {step} }}"));
        self.line("return s");
        self.close();
    }

    fn real_proc(&mut self, name: &str) {
        self.open(format!("proc {name}(real[] t ; integer x) : real {{"));
        self.line("s = 0.25");
        let change = *self.random.pick(&[
            "s := s * 0.75 + t[i]",
            "t[i] := t[i] * 0.5 + x ; s := s + t[i]",
            "s := s + t[i] / 3.0",
        ]);
        self.line(format!("for i = 0 .. {} do {{ {change} }}", LENGTH - 1));
        self.line("return s");
        self.close();
    }

    fn member_proc(&mut self, name: &str) {
        self.open(format!("proc {name}(integer x) {{"));
        let member = *self.random.pick(&["m", "n"]);
        self.line("s = x");
        self.line("for i = 1 .. 200 do { s := (s * 17 + i) % 1013 }");
        self.line(format!("{member} := {member} + s"));
        if self.chance(30) {
            let array = *self.random.pick(&["a", "b", "c"]);
            self.line(format!(
                "for i = 0 .. {} do {{ {array}[i] := {array}[i] + s }}",
                LENGTH - 1
            ));
        }
        self.close();
    }

    fn word_proc(&mut self, name: &str) {
        self.open(format!("proc {name}(integer x) : string {{"));
        self.line("s = x");
        self.line("for i = 1 .. 150 do { s := (s * 5 + i) % 101 }");
        self.line("if s < 50 then { return \"low\" }");
        self.line("return \"high\"");
        self.close();
    }

    fn make_proc(&mut self, name: &str) {
        self.open(format!("proc {name}(integer x) : integer[] {{"));
        self.line(format!("t = new integer[{LENGTH}] of x"));
        self.line(format!(
            "for i = 0 .. {} do {{ t[i] := t[i] * i % 331 }}",
            LENGTH - 1
        ));
        if self.chance(20) {
            self.line("if x % 3 == 0 then { return a }");
        }
        self.line("return t");
        self.close();
    }

    fn both_proc(&mut self, name: &str) {
        self.open(format!("proc {name}(integer[] t, u) {{"));
        self.inside(&[], &["t", "u"], &[], |this| {
            let others: Vec<String> = this
                .procs
                .iter()
                .filter(|(_, kind)| *kind == Kind::Fill)
                .map(|(name, _)| name.clone())
                .collect();
            if others.is_empty() || this.chance(40) {
                this.line(format!(
                    "for i = 0 .. {} do {{ t[i] := u[i] + i }}",
                    LENGTH - 1
                ));
                this.line(format!(
                    "for i = 0 .. {} do {{ u[i] := u[i] * 3 % 509 }}",
                    LENGTH - 1
                ));
            } else {
                for array in ["t", "u"] {
                    let other = this.one_of(&others);
                    let (low, high) = this.part();
                    this.line(format!("{other}({array}, {low}, {high})"));
                }
            }
        });
        self.close();
    }

    fn halves(&mut self) {
        self.open("proc halves(integer[] t, u ; integer lo, hi) {");
        let second =
            *self
                .random
                .pick(&["mid + 1, hi", "mid + 1, hi", "mid + 1, hi", "mid, hi - 1"]);
        let middle = *self
            .random
            .pick(&["(lo + hi) / 2", "(lo + hi) / 2", "lo + (hi - lo) / 2"]);
        self.open("if lo < hi then {");
        self.line(format!("mid = {middle}"));
        self.line("halves(t, u, lo, mid)");
        self.line(format!("halves(t, u, {second})"));
        let joined = *self.random.pick(&[
            "for k = lo .. hi do { u[k] := t[k] + k }",
            "for k = lo .. hi do { t[k] := t[k] + u[hi] }",
            "u[mid] := t[lo] + t[hi]",
        ]);
        self.line(joined);
        self.indent -= 1;
        self.open("} else {");
        let leaf = *self
            .random
            .pick(&["t[lo] := t[lo] + 1", "t[lo] := u[lo] * 2 + 1"]);
        self.line(leaf);
        self.close();
        self.close();
        self.procs.push(("halves".into(), Kind::Halves));
    }

    fn deep(&mut self) {
        self.open("proc deep(integer x) : integer {");
        let stop = *self.random.pick(&["x", "x + m", "1"]);
        self.line(format!("if x < 2 then {{ return {stop} }}"));
        let way = *self.random.pick(&[
            "return deep(x - 1) + deep(x - 2)",
            "s = deep(x - 1)\n        u = deep(x - 2)\n        return s * 3 - u",
        ]);
        self.line(way);
        self.close();
        self.procs.push(("deep".into(), Kind::Deep));
    }

    // ---- statements ---------------------------------------------------------------------------

    fn statement(&mut self, depth: u32) {
        let weights = match depth {
            0..2 => [9, 4, 6, 2, 2, 2, 1, 1],
            _ => [9, 3, 3, 1, 0, 0, 0, 1],
        };
        match self.random.weighted(&weights) {
            0 => self.call(),
            1 => {
                self.call();
                self.call();
            }
            2 => self.counted(),
            3 => {
                let value = self.value();
                self.line(format!("printInt({value}) ; printString(\"\\n\")"));
            }
            4 => {
                let (x, y) = (self.small(), self.small());
                self.open(format!("if {x} < {y} then {{"));
                self.block(depth);
                self.indent -= 1;
                self.open("} else {");
                self.block(depth);
                self.close();
            }
            5 => {
                self.open("try {");
                self.block(depth);
                self.indent -= 1;
                self.open("} except {");
                self.line("printString(\"caught \")");
                self.block(depth + 1);
                self.close();
            }
            6 => {
                let local: Vec<String> = self
                    .arrays
                    .iter()
                    .filter(|name| *name == "d")
                    .cloned()
                    .collect();
                if let (Some(name), true) = (local.first(), self.chance(50)) {
                    let array = self.array();
                    self.line(format!("{name} := {array}"));
                } else if self.chance(50) {
                    let array = self.array();
                    let member = *self.random.pick(&["a", "b", "c"]);
                    if member != array {
                        self.line(format!("{member} := {array}"));
                    }
                } else {
                    let number = self.small();
                    self.line(format!("c := new integer[{LENGTH}] of {number}"));
                }
            }
            _ => {
                let assignable: Vec<String> = self
                    .numbers
                    .iter()
                    .filter(|name| *name != "given")
                    .cloned()
                    .collect();
                if !assignable.is_empty() {
                    let (name, value) = (self.one_of(&assignable), self.value());
                    self.line(format!("{name} := {value}"));
                }
            }
        }
    }

    fn block(&mut self, depth: u32) {
        let (numbers, arrays) = (self.numbers.clone(), self.arrays.clone());
        for _ in 0..1 + self.random.below(4) {
            self.statement(depth + 1);
        }
        (self.numbers, self.arrays) = (numbers, arrays);
    }

    fn call(&mut self) {
        let Some((name, kind)) = ({
            let at = self.random.below(self.procs.len());
            self.procs.get(at).cloned()
        }) else {
            return;
        };
        let (low, high) = self.part();
        match kind {
            Kind::Number => {
                let value = self.value();
                self.take(&format!("{name}({value})"));
            }
            Kind::Deep => {
                let depth = self.number(3, 13);
                self.take(&format!("{name}({depth})"));
            }
            Kind::Sum => {
                let array = self.array();
                self.take(&format!("{name}({array}, {low}, {high})"));
            }
            Kind::Fill => {
                let array = self.array();
                self.line(format!("{name}({array}, {low}, {high})"));
            }
            Kind::Real => {
                let (array, value) = (self.real(), self.small());
                let result = self.fresh();
                self.line(format!("{result} = {name}({array}, {value})"));
                if self.chance(50) {
                    self.statement(2);
                }
                self.line(format!("{array}[{low}] := {result}"));
            }
            Kind::Member => {
                let value = self.value();
                self.line(format!("{name}({value})"));
            }
            Kind::Word => {
                let (result, value) = (self.fresh(), self.value());
                self.line(format!("{result} = {name}({value})"));
                if self.chance(60) {
                    self.statement(2);
                }
                self.line(format!("printString({result})"));
            }
            Kind::Make => {
                let (result, value) = (self.fresh(), self.small());
                self.line(format!("{result} = {name}({value})"));
                self.arrays.push(result);
            }
            Kind::Both => {
                let (first, second) = (self.array(), self.array());
                self.line(format!("{name}({first}, {second})"));
            }
            Kind::Halves => {
                let (first, second) = (self.array(), self.array());
                self.line(format!("{name}({first}, {second}, {low}, {high})"));
            }
        }
    }

    /// A variable that takes the value of a call, alone or with others.
    fn take(&mut self, call: &str) {
        let result = self.fresh();
        let plain: Vec<String> = self
            .procs
            .iter()
            .filter(|(_, kind)| *kind == Kind::Number)
            .map(|(name, _)| name.clone())
            .collect();
        let value = if self.chance(25) && !plain.is_empty() {
            let (other, value) = (self.one_of(&plain), self.value());
            format!("{call} + {other}({value})")
        } else {
            call.to_owned()
        };
        let assignable: Vec<String> = self
            .numbers
            .iter()
            .filter(|name| *name != "given")
            .cloned()
            .collect();
        if self.chance(25) && !assignable.is_empty() {
            let name = self.one_of(&assignable);
            return self.line(format!("{name} := {value}"));
        }
        self.line(format!("{result} = {value}"));
        self.numbers.push(result);
    }

    fn counted(&mut self) {
        let (low, high) = self.part();
        let (array, other) = (self.array(), self.array());
        let real = self.real();
        let step = if self.chance(15) { " : 2" } else { "" };
        let head = match self.chance(20) {
            true => format!("for i = {high} .. {low} : -1 do {{"),
            false => format!("for i = {low} .. {high}{step} do {{"),
        };
        let plain: Vec<String> = self
            .procs
            .iter()
            .filter(|(_, kind)| *kind == Kind::Number)
            .map(|(name, _)| name.clone())
            .collect();
        match self.random.below(13) {
            0 => self.line(format!("{head} {array}[i] := i * 3 }}")),
            1 => self.line(format!("{head} {array}[i] := {other}[i] + 1 }}")),
            2 if low > 0 => self.line(format!("{head} {array}[i] := {other}[i - 1] + 1 }}")),
            3 if !plain.is_empty() => {
                let name = self.one_of(&plain);
                self.line(format!("{head} {array}[i] := {name}({other}[i] + i) }}"));
            }
            4 => {
                let sum = self.fresh();
                self.line(format!("{sum} = 0"));
                let step = match self.random.below(7) {
                    0 => format!("{sum} := {sum} + {array}[i]"),
                    1 => format!("{sum} := {sum} ^ {array}[i]"),
                    2 => format!("{sum} := {sum} | {array}[i]"),
                    3 => format!("if {array}[i] > {sum} then {sum} := {array}[i]"),
                    4 => format!("if {array}[i] < {sum} then {sum} := {array}[i]"),
                    5 => format!("{sum} := {sum} - {array}[i]"),
                    _ => format!("{sum} := {sum} * 3 + {array}[i]"),
                };
                self.line(format!("{head} {step} }}"));
                self.numbers.push(sum);
            }
            5 => {
                let product = self.fresh();
                self.line(format!("{product} = 1"));
                self.line(format!(
                    "{head} {product} := {product} * ({array}[i] | 1) ; {other}[i] := i }}"
                ));
                self.numbers.push(product);
            }
            6 => self.line(format!("{head} {real}[i] := {real}[i] * 0.5 + i }}")),
            7 => {
                let at = *self
                    .random
                    .pick(&["g[i][j]", "g[i][j]", "g[j][0]", "g[0][j]"]);
                self.open(format!("for i = 0 .. {} do {{", WIDTH - 1));
                self.line(format!(
                    "for j = 0 .. {} do {{ {at} := i * j + {at} }}",
                    WIDTH - 1
                ));
                self.close();
            }
            8 => {
                let width = *self.random.pick(&[WIDTH, WIDTH, WIDTH, WIDTH - 1]);
                let last = *self.random.pick(&[WIDTH - 1, WIDTH - 1, WIDTH - 2]);
                self.open(format!("for i = 0 .. {} do {{", ROWS - 1));
                self.line(format!(
                    "for j = 0 .. {last} do {{ f[i * {width} + j] := i + j + f[i * {width} + j] }}"
                ));
                self.close();
            }
            9 => self.line(format!("{head} {array}[place({other}[i])] := i }}")),
            10 => self.line(format!("{head} m := m + {array}[i] }}")),
            11 if !plain.is_empty() => {
                let (name, best) = (self.one_of(&plain), self.fresh());
                self.line(format!("{best} = 0"));
                self.open(head);
                self.line(format!("t = {name}(i)"));
                self.line(format!("u = {name}(i + 1)"));
                self.line(format!("{array}[i] := t + u"));
                self.line(format!("if t > {best} then {best} := t"));
                self.close();
                self.numbers.push(best);
            }
            _ => self.line(format!(
                "{head} if {other}[i] > 50 then {{ {array}[i] := {other}[i] - 50 }} }}"
            )),
        }
    }
}

//! Texts for the tests with random programs.
#![allow(dead_code, reason = "each test file uses its part")]

/// Words, marks and literals, right and wrong.
pub(crate) const WORDS: &[&str] = &[
    "acknowledge",
    "after",
    "and",
    "any",
    "as",
    "behaviour",
    "bool",
    "byte",
    "case",
    "component",
    "connect",
    "constructor",
    "default",
    "disconnect",
    "do",
    "else",
    "enum",
    "except",
    "false",
    "for",
    "from",
    "if",
    "in",
    "integer",
    "interface",
    "is",
    "length",
    "new",
    "of",
    "on",
    "onto",
    "or",
    "out",
    "presents",
    "proc",
    "project",
    "publish",
    "real",
    "receive",
    "return",
    "select",
    "send",
    "stop",
    "string",
    "struct",
    "then",
    "throw",
    "to",
    "true",
    "try",
    "type",
    "unsigned",
    "when",
    "with",
    ":=",
    "=",
    "==",
    "!=",
    "<",
    "<=",
    ">",
    ">=",
    "+",
    "-",
    "*",
    "/",
    "%",
    "&",
    "|",
    "^",
    "~",
    "!",
    ".",
    "..",
    ",",
    ";",
    ":",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "a",
    "b",
    "C",
    "f",
    "while",
    "recieve",
    "1",
    "0",
    "$2",
    "#3",
    "4.5",
    "5e3",
    "\"s\"",
    "\"\\n\"",
    "\"open",
    "'c'",
    "é",
    "@",
    "// x\n",
    "/* y */",
    "\n",
    "\n",
    "\n",
    ";",
    "(",
    ")",
    "{",
    "}",
];

/// A program with every form of the language.
pub(crate) const PROGRAM: &str = r#"
type IOut is interface(out integer value; in bool go, halt)
type Pair is struct(integer a, b; string name)
type Colour is enum(red, green)
type Visit is proc(integer; Pair) : bool
proc area(integer w, h) : integer { return w * h }
component Worker presents IOut {
  n = 0
  grid = new integer[2][3] of 0
  proc bump(integer by) { n := n + by }
  constructor() { }
  constructor(integer start) { n := start }
  behaviour {
    select {
      receive go from go when n < 3 and !(n == 1): { send n on value ; bump(1) }
      acknowledge x from halt after: stop
      default: { }
    }
    for i = 0 .. 9 : -2 do { grid[0, 1] := i % 2 }
    try { throw OperationFailedException } except OperationFailedException { n := 0 } except { }
    case n of 1, 2: printInt(n) default: { }
  }
}
w = new Worker(1)
c = new in integer
connect c to w.value
receive v from c
project any(v) as x onto integer: { printInt(x + 1) } default: printString("no")
if v == 1 then printReal(1.5e-3) else if v != -1 then { } else w := new Worker()
publish c as "c" ; disconnect "a" on $4
"#;

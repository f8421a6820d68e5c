//! Words from other languages, and how Insense says the same. None of them is reserved, so a
//! program may use each as a name; a stage that finds one without meaning can say what to write.

use super::token::Kind;

/// Says what Insense has in place of another language's word.
pub fn help(word: &str) -> Option<&'static str> {
    Some(match word {
        "while" | "until" | "loop" | "repeat" | "foreach" | "forever" => {
            "the loop of Insense is `for i = 0 .. 9 do { … }`; \
             a behaviour repeats by itself until `stop`"
        }
        "break" | "continue" => {
            "a loop always runs to its end; \
             assigning the loop variable its bound makes this round the last"
        }
        "int" | "long" | "short" | "Integer" | "Int" => "the type is `integer`",
        "uint" | "Unsigned" => "the type is `unsigned`",
        "float" | "double" | "Real" => "the type is `real`",
        "boolean" | "Boolean" | "Bool" => "the type is `bool`",
        "char" => "a character is a `byte` or, as `charAt` gives it, an `unsigned`",
        "String" | "str" => "the type is `string`",
        "void" => "a procedure without result simply names no result type",
        "null" | "nil" | "None" | "NULL" | "undefined" => {
            "every variable has a value from the start; there is no null"
        }
        "True" | "TRUE" => "write `true`",
        "False" | "FALSE" => "write `false`",
        "not" => "write `!`",
        "xor" => "write `!=` for bools, `^` for bits",
        "function" | "func" | "fn" | "def" | "procedure" | "sub" => {
            "a procedure is written `proc name(integer a) : integer { … }`"
        }
        "class" | "actor" | "process" => {
            "a component is written `component Name presents Interface { … }`"
        }
        "switch" | "match" => "a choice of many is written `case e of 1: … default: …`",
        "elif" | "elsif" | "elseif" | "elsei" => "write `else if`",
        "endif" | "fi" | "done" | "end" => "blocks are enclosed in `{` and `}`",
        "begin" => "a block begins with `{`",
        "var" | "let" | "const" | "auto" | "val" => "a variable is declared by `name = value`",
        "this" | "self" => "members are named without a prefix",
        "catch" => "a handler is written `except SomeException { … }`",
        "raise" => "an exception is raised by `throw SomeException`",
        "finally" => "there is no `finally`; put the statements after the `try`",
        "import" | "include" | "using" => {
            "the standard environment is always there; a program is one file"
        }
        "print" | "println" | "printf" | "puts" | "echo" => {
            "print with `printString(\"…\")`, `printInt(1)` and their like"
        }
        "behavior" => "write `behaviour`",
        "chan" | "channel" => "a channel is created by `new in integer` or `new out integer`",
        "sleep" | "delay" | "wait" => "wait for a tick: `setTimer(channel, seconds, false)`",
        "len" | "size" => "write `a.length`",
        _ => return None,
    })
}

/// The reserved word that `word` most likely misspells.
pub fn similar_keyword(word: &str) -> Option<&'static str> {
    let allowed = match word.len() {
        0..=2 => return None,
        3..=4 => 1,
        _ => 2,
    };
    Kind::KEYWORDS
        .iter()
        .filter(|keyword| keyword.len() > 2)
        .map(|keyword| (distance(word, keyword), *keyword))
        .filter(|&(distance, _)| distance <= allowed)
        .min()
        .map(|(_, keyword)| keyword)
}

/// Insertions, deletions, replacements and swaps of neighbours that turn one word into another.
pub fn distance(from: &str, to: &str) -> usize {
    let (from, to) = (from.as_bytes(), to.as_bytes());
    let width = to.len() + 1;
    let mut table: Vec<usize> = vec![0; (from.len() + 1) * width];
    for row in 0..=from.len() {
        for column in 0..width {
            let at = |row: usize, column: usize| table[row * width + column];
            table[row * width + column] = if row == 0 || column == 0 {
                row + column
            } else {
                let same = from[row - 1] == to[column - 1];
                let mut best = at(row - 1, column - 1) + usize::from(!same);
                best = best
                    .min(at(row - 1, column) + 1)
                    .min(at(row, column - 1) + 1);
                let swapped = row > 1
                    && column > 1
                    && from[row - 1] == to[column - 2]
                    && from[row - 2] == to[column - 1];
                if swapped {
                    best = best.min(at(row - 2, column - 2) + 1);
                }
                best
            };
        }
    }
    table[from.len() * width + to.len()]
}

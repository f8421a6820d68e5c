//! Near names: what the author of a misspelt word probably meant.

/// The candidate nearest to `name`, if one is near enough to be worth naming.
pub(super) fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let limit = limit(name);
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        if candidate == name {
            continue;
        }
        let found = if candidate.eq_ignore_ascii_case(name) {
            0
        } else if candidate.len().abs_diff(name.len()) > limit {
            continue;
        } else {
            distance(name.as_bytes(), candidate.as_bytes())
        };
        if found <= limit && best.is_none_or(|(distance, _)| found < distance) {
            best = Some((found, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// One slip in a short name, one in three letters in a long one. Names of one or two letters are
/// near to everything, so only their case may differ.
fn limit(name: &str) -> usize {
    match name.len() {
        0..=2 => 0,
        3..=5 => 1,
        length => length / 3,
    }
}

/// Edit distance with exchange of neighbours (optimal string alignment).
fn distance(a: &[u8], b: &[u8]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let changed = usize::from(a[i - 1] != b[j - 1]);
            row[j] = (above[j] + 1)
                .min(row[j - 1] + 1)
                .min(above[j - 1] + changed);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut above, row);
    }
    above[b.len()]
}

/// Words people bring along from other languages, with what Insense says instead.
pub(super) fn habit(name: &str) -> Option<&'static str> {
    Some(match name {
        "int" | "long" | "short" | "Integer" | "int32_t" => "the type of whole numbers is `integer`",
        "uint" | "uint32_t" => "the type of whole numbers without a sign is `unsigned`",
        "float" | "double" | "Real" => "the type of numbers with a fraction is `real`",
        "boolean" | "Boolean" => "the type of truth values is `bool`",
        "char" | "uint8_t" => "there is no character type; `byte` holds 0 to 255",
        "String" | "str" => "the type of texts is `string`",
        "void" => "a procedure without a result has no `: type` at all",
        "null" | "nil" | "NULL" | "None" => {
            "there is no null: every variable is created with a value"
        }
        "this" | "self" => "members and channels of a component are named directly",
        "True" | "TRUE" => "the truth value is written `true`",
        "False" | "FALSE" => "the truth value is written `false`",
        "not" => "negation is written `!`",
        "xor" => "exclusive or of bits is written `^`",
        "print" | "println" | "printf" | "puts" | "echo" => {
            "use `printString`, `printInt`, `printReal` and their like; a line ends with \"\\n\""
        }
        "while" | "loop" | "repeat" => {
            "a behaviour repeats by itself, and `for i = 1 .. n do` counts; there is no `while`"
        }
        "break" | "continue" => "there is no `break`; in a procedure, `return` leaves a loop",
        "function" | "func" | "def" | "fn" => "procedures are declared with `proc name(...)`",
        "len" | "size" | "length" | "count" => "the length of an array or string is `.length`",
        "var" | "let" | "const" | "auto" => "a variable is declared by `name = value`",
        "exit" | "quit" | "halt" => "a component ends itself with `stop`",
        "switch" | "match" => "choices among values are written `case e of ... default: ...`",
        "catch" => "handlers are written `except Label { ... }`",
        "toString" | "str_" => "print values with the procedure for their type",
        "Math" | "math" => "`squareRoot`, `absInt`, `absReal` and their like are plain procedures",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_near_and_other_words_are_not() {
        let names = ["printInt", "printReal", "count", "x"];
        let near = |name| nearest(name, names.iter().copied());
        assert_eq!(near("prinInt"), Some("printInt"));
        assert_eq!(near("pritnReal"), Some("printReal"));
        assert_eq!(near("PRINTINT"), Some("printInt"));
        assert_eq!(near("coutn"), Some("count"));
        assert_eq!(near("X"), Some("x"));
        assert_eq!(near("y"), None);
        assert_eq!(near("banana"), None);
    }
}

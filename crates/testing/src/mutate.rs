//! Mutates texts: for the fuzzers, which look for panics and hangs, and for the compiler's messages
//! about nearly correct programs.

use crate::random::Random;

/// Words, marks and oddities to put in wrong places.
const DICTIONARY: [&str; 88] = [
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
    "<=",
    "..",
    ".",
    ",",
    ";",
    ":",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "#256",
    "$",
    "\"",
    "/*",
    "*/",
    "//",
    "2147483648",
    "99999999999999999999",
    "1.5e999",
    "5e",
    "0..9",
    "\\",
    "\u{feff}",
    "é",
    "\u{0}",
    "\r",
    "\u{c}",
    "OperationFailedException",
    "printInt",
    "_",
];

/// Pieces that nest when repeated.
const NESTS: [&str; 10] = [
    "(",
    "[",
    "{",
    "-",
    "if true then ",
    "any(",
    "try ",
    "for i = 0 .. 1 do ",
    "in ",
    "x.y[",
];

/// The text with one to eight changes. `other` lends pieces.
pub fn mutate(text: &str, other: &str, random: &mut Random) -> String {
    let mut pieces: Vec<String> = split(text).into_iter().map(String::from).collect();
    let lent = split(other);
    let changes = if random.chance(60) {
        1
    } else {
        1 + random.below(8)
    };
    for _ in 0..changes {
        change(&mut pieces, &lent, random);
    }
    let mut broken = pieces.concat();
    if random.chance(5) {
        cut(&mut broken, random);
    }
    broken
}

fn change(pieces: &mut Vec<String>, lent: &[&str], random: &mut Random) {
    if pieces.is_empty() {
        pieces.push(random.pick(&DICTIONARY).to_string());
        return;
    }
    let at = random.below(pieces.len());
    match random.below(12) {
        0 | 1 => {
            pieces.remove(at);
        }
        2 => {
            let end = (at + 1 + random.below(12)).min(pieces.len());
            pieces.drain(at..end);
        }
        3 => {
            let piece = pieces[at].clone();
            pieces.insert(at, piece);
        }
        4 => {
            let to = random.below(pieces.len());
            pieces.swap(at, to);
        }
        5 if at + 2 < pieces.len() => pieces.swap(at, at + 2),
        6 | 7 => {
            let word = random.pick(&DICTIONARY).to_string();
            pieces.insert(at, word);
        }
        8 => pieces[at] = random.pick(&DICTIONARY).to_string(),
        9 if !lent.is_empty() => {
            let from = random.below(lent.len());
            let to = (from + 1 + random.below(30)).min(lent.len());
            pieces.insert(at, lent[from..to].concat());
        }
        10 if random.chance(10) => {
            let count = 1 << random.below(13);
            pieces.insert(at, random.pick(&NESTS).repeat(count));
        }
        _ => {
            // One line break less or more.
            if pieces[at].contains('\n') {
                pieces[at] = " ".into();
            } else {
                pieces.insert(at, "\n".into());
            }
        }
    }
}

/// Cuts the text at a random place.
fn cut(text: &mut String, random: &mut Random) {
    let mut end = random.below(text.len() + 1);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
}

/// Words, numbers, blanks and single marks; concatenated they are the text.
fn split(text: &str) -> Vec<&str> {
    let class = |character: char| match character {
        c if c.is_alphanumeric() || c == '_' => 0,
        '\n' => 2,
        c if c.is_whitespace() => 1,
        _ => 3,
    };
    let mut pieces = Vec::new();
    let mut start = 0;
    let mut previous = None;
    for (at, character) in text.char_indices() {
        let now = class(character);
        // Marks and line breaks stand alone.
        if previous.is_some_and(|previous| previous != now || now >= 2) {
            pieces.push(&text[start..at]);
            start = at;
        }
        previous = Some(now);
    }
    if start < text.len() {
        pieces.push(&text[start..]);
    }
    pieces
}

/// The smallest text found for which `fails` still holds, by leaving out ever shorter runs of lines
/// and then of pieces.
pub fn shrink(text: &str, fails: impl Fn(&str) -> bool) -> String {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let fewer = reduce(lines, &fails).concat();
    reduce(split(&fewer), &fails).concat()
}

fn reduce<'a>(mut parts: Vec<&'a str>, fails: &impl Fn(&str) -> bool) -> Vec<&'a str> {
    let mut run = parts.len().div_ceil(2);
    while run > 0 {
        let mut at = 0;
        while at < parts.len() {
            let end = (at + run).min(parts.len());
            let mut without = parts.clone();
            without.drain(at..end);
            if fails(&without.concat()) {
                parts = without;
            } else {
                at = end;
            }
        }
        run /= 2;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_make_up_the_text() {
        let text = "x1 = y[2] // é\r\n  { }";
        assert_eq!(split(text).concat(), text);
    }

    #[test]
    fn the_same_seed_breaks_the_same_way() {
        let broken = |seed| mutate("a = 1\nb = 2", "c = 3", &mut Random::new(seed));
        assert_eq!(broken(5), broken(5));
    }

    #[test]
    fn shrinking_keeps_what_fails() {
        let text = "one\ntwo\nthree bad four\nfive\n";
        assert_eq!(shrink(text, |text| text.contains("bad")), "bad");
    }
}

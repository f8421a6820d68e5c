//! Strings and their escapes.

use super::{CLASSES, Class, Lexer};
use crate::codes::syntax as codes;
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::syntax::token::Kind;

impl Lexer<'_> {
    pub(super) fn string(&mut self) {
        let start = self.at;
        self.at += 1;
        loop {
            match self.bytes.get(self.at) {
                Some(b'"') => {
                    self.at += 1;
                    return self.push(Kind::String, start, 0);
                }
                Some(b'\\') => self.escape(),
                Some(&byte) if CLASSES[byte as usize] != Class::Break => self.at += 1,
                _ => return self.open_string(start),
            }
        }
    }

    /// Passes one escape and reports it if there is no such one.
    fn escape(&mut self) {
        let start = self.at;
        let rest = &self.text[start..];
        match read_escape(rest) {
            Escape::Is(_, length) => self.at += length,
            Escape::AtLineEnd => self.at += 1,
            Escape::Bad(length, help) => {
                self.at += length;
                let diagnostic = Diagnostic::error(
                    codes::BAD_ESCAPE,
                    format!("unknown escape `{}`", &rest[..length]),
                    self.span(start),
                    "not an escape of strings",
                );
                self.report(diagnostic.with_help(help));
            }
        }
    }

    fn open_string(&mut self, start: usize) {
        let opening = Span::new(self.source, start as u32, start as u32 + 1);
        let diagnostic = Diagnostic::error(
            codes::UNTERMINATED_STRING,
            "unterminated string",
            self.span(start),
            "no closing `\"` on this line",
        );
        let next_quote = self.text[self.at..].find('"').is_some();
        let help = if next_quote {
            "close it with `\"`; a line break inside a string is written `\\n`"
        } else {
            "close it with `\"`"
        };
        let diagnostic = if self.span(start).end > opening.end + 40 {
            diagnostic.with_label(opening, "the string begins here")
        } else {
            diagnostic
        };
        self.report(diagnostic.with_help(help));
        self.push(Kind::OpenString, start, 0);
    }
}

enum Escape {
    /// The character, and the length of the escape.
    Is(char, usize),
    Bad(usize, &'static str),
    /// A backslash, then the line or the file ends: the string is not closed anyway.
    AtLineEnd,
}

/// Reads an escape, which begins with a backslash.
fn read_escape(text: &str) -> Escape {
    let Some(character) = text[1..].chars().next() else {
        return Escape::AtLineEnd;
    };
    let simple = match character {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        'a' => '\x07',
        'b' => '\x08',
        'f' => '\x0c',
        'v' => '\x0b',
        '"' | '\\' | '\'' | '?' => character,
        '\n' | '\r' | '\x0c' => return Escape::AtLineEnd,
        '0'..='7' => return numbered(text, 1, 8, 3),
        'x' => return numbered(text, 2, 16, 2),
        _ => {
            return Escape::Bad(
                1 + character.len_utf8(),
                "there are `\\n`, `\\t`, `\\r`, `\\\"`, `\\\\`, `\\a`, `\\b`, `\\f`, `\\v`, \
                 `\\x41` and `\\101`; a backslash itself is `\\\\`",
            );
        }
    };
    Escape::Is(simple, 2)
}

/// `\101` and `\x41`: the digits begin at `from`.
fn numbered(text: &str, from: usize, radix: u32, most: usize) -> Escape {
    let digits = text[from..]
        .bytes()
        .take(most)
        .take_while(|&byte| (byte as char).is_digit(radix))
        .count();
    let length = from + digits;
    match u32::from_str_radix(&text[from..length], radix) {
        Ok(value) if value < 0x80 => Escape::Is(char::from(value as u8), length),
        Ok(_) => Escape::Bad(
            length,
            "a numbered escape is at most 127; write other characters as they are",
        ),
        Err(_) => Escape::Bad(length, "two hexadecimal digits follow `\\x`"),
    }
}

/// The text a string literal stands for. The literal comes with its quotes.
pub(crate) fn unescape(literal: &str) -> Box<str> {
    let inside = literal.strip_prefix('"').unwrap_or(literal);
    let mut inside = inside.strip_suffix('"').unwrap_or(inside);
    if !inside.contains('\\') {
        return inside.into();
    }
    let mut text = String::with_capacity(inside.len());
    while let Some(at) = inside.find('\\') {
        text.push_str(&inside[..at]);
        let length = match read_escape(&inside[at..]) {
            Escape::Is(character, length) => {
                text.push(character);
                length
            }
            Escape::Bad(length, _) => length,
            Escape::AtLineEnd => 1,
        };
        inside = &inside[at + length..];
    }
    text.push_str(inside);
    text.into_boxed_str()
}

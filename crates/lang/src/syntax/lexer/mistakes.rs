//! Characters that begin no token, and names that are none.

use super::{CLASSES, Class, Lexer};
use crate::codes::syntax as codes;
use crate::diagnostic::Diagnostic;
use crate::syntax::token::Kind;

impl Lexer<'_> {
    /// A name with a leading underscore or with letters beyond ASCII: taken as a name all the
    /// same, and reported once a spelling.
    pub(super) fn faulty_name(&mut self, start: usize) {
        self.at = start;
        let length = self.text[start..]
            .find(|c: char| !(c.is_alphanumeric() || c == '_'))
            .unwrap_or(self.text.len() - start);
        self.at += length;
        let name = &self.text[start..self.at];
        let symbol = self.names.intern(name);
        if !self.bad_names.contains(&symbol) {
            self.bad_names.push(symbol);
            let diagnostic = match name.chars().find(|c| !c.is_ascii()) {
                Some(character) => Diagnostic::error(
                    codes::BAD_NAME,
                    format!("`{name}` is not a name"),
                    self.span(start),
                    format!("`{character}` is {}", named(character)),
                )
                .with_help("a name has letters from a to z, digits and underscores"),
                None => {
                    let trimmed = name.trim_start_matches('_');
                    let diagnostic = Diagnostic::error(
                        codes::BAD_NAME,
                        format!("`{name}` begins with an underscore"),
                        self.span(start),
                        "a name begins with a letter",
                    );
                    if trimmed.starts_with(|c: char| c.is_ascii_alphabetic()) {
                        diagnostic.with_help(format!(
                            "call it `{trimmed}`; underscores may follow the first letter"
                        ))
                    } else {
                        diagnostic
                    }
                }
            };
            self.report(diagnostic);
        }
        self.push(Kind::Name, start, symbol.0);
    }

    /// A string between curly quotation marks.
    fn curly_string(&mut self) -> bool {
        let start = self.at;
        let rest = &self.text[start..];
        if !rest.starts_with(['\u{201c}', '\u{201d}', '\u{201e}']) {
            return false;
        }
        let inside = &rest[3..];
        let Some(length) = inside
            .find(['\u{201c}', '\u{201d}', '"', '\n', '\r', '\x0c'])
            .filter(|&length| !inside[length..].starts_with(['\n', '\r', '\x0c']))
        else {
            return false;
        };
        let closing = inside[length..].chars().next().map_or(0, char::len_utf8);
        self.at = start + 3 + length + closing;
        let diagnostic = Diagnostic::error(
            codes::UNKNOWN_CHARACTER,
            "a string between curly quotation marks",
            self.span(start),
            "these characters mean nothing here",
        );
        self.report(diagnostic.with_help("write plain double quotes: `\"text\"`"));
        self.push(Kind::BadLiteral, start, 0);
        true
    }

    /// Characters that begin nothing, adjacent ones together.
    pub(super) fn unknown(&mut self) {
        if self.curly_string() {
            return;
        }
        let start = self.at;
        let mut characters = self.text[start..].chars();
        while let Some(character) = characters.next() {
            let begins_something = character.is_ascii()
                && (CLASSES[character as usize] != Class::Other
                    || matches!(character, '#' | '$' | '_' | '\''));
            if begins_something || character.is_alphabetic() {
                break;
            }
            self.at = self.text.len() - characters.as_str().len();
        }
        let found = &self.text[start..self.at];
        let mut each = found.chars();
        let diagnostic = match (each.next(), each.next()) {
            (Some(character), None) => Diagnostic::error(
                codes::UNKNOWN_CHARACTER,
                format!("unknown character {}", quoted(character)),
                self.span(start),
                format!("{} means nothing here", named(character)),
            ),
            (Some(character), _) => Diagnostic::error(
                codes::UNKNOWN_CHARACTER,
                format!("unknown characters, the first {}", quoted(character)),
                self.span(start),
                format!("the first is {}", named(character)),
            ),
            _ => return,
        };
        let help = found.chars().find_map(meant);
        self.report(match help {
            Some(help) => diagnostic.with_help(help),
            None => diagnostic,
        });
        self.push(Kind::Unknown, start, 0);
    }

    /// `'a'`, `'\n'`, `'text'`: from other languages.
    pub(super) fn single_quotes(&mut self) {
        let start = self.at;
        let line = self.text[start + 1..]
            .find(['\n', '\r', '\x0c'])
            .map_or(self.text.len(), |length| start + 1 + length);
        let inside = &self.text[start + 1..line];
        let Some(length) = closing_quote(inside) else {
            // A lone apostrophe.
            self.at += 1;
            let diagnostic = Diagnostic::error(
                codes::UNKNOWN_CHARACTER,
                "unknown character `'`",
                self.span(start),
                "an apostrophe means nothing here",
            );
            self.report(diagnostic.with_help("strings are written in double quotes: `\"text\"`"));
            return self.push(Kind::Unknown, start, 0);
        };
        self.at = start + 1 + length + 1;
        let inside = &inside[..length];
        let one_character = inside.chars().count() == 1;
        let help = match inside.bytes().next() {
            Some(byte) if one_character && byte.is_ascii() => format!(
                "write the character's code, `#{byte}`, or a string, `\"{inside}\"`; \
                 `charAt` gives a code of a string"
            ),
            _ => "strings are written in double quotes: `\"text\"`".to_owned(),
        };
        let diagnostic = Diagnostic::error(
            codes::CHARACTER_LITERAL,
            "there are no character literals",
            self.span(start),
            "text between single quotes",
        );
        self.report(diagnostic.with_help(help));
        self.push(Kind::BadLiteral, start, 0);
    }
}

/// The offset at which the quote opened before `inside` closes, in bytes.
fn closing_quote(inside: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, character) in inside.char_indices() {
        match character {
            '\'' if !escaped => return Some(at),
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    None
}

fn quoted(character: char) -> String {
    if character.is_control() {
        format!("U+{:04X}", character as u32)
    } else {
        format!("`{character}`")
    }
}

/// The character by name where it has a well-known one, else by its number.
fn named(character: char) -> String {
    let name = match character {
        '\0' => "a zero byte",
        '@' => "an at sign",
        '?' => "a question mark",
        '\\' => "a backslash",
        '`' => "a backquote",
        '\u{a0}' => "a no-break space",
        '\u{feff}' => "a byte order mark",
        '\u{200b}' => "a zero-width space",
        '\u{2013}' => "an en dash",
        '\u{2014}' => "an em dash",
        '\u{2212}' => "a minus sign of mathematics",
        '\u{2018}' | '\u{2019}' => "a curly apostrophe",
        '\u{201c}' | '\u{201d}' => "a curly quotation mark",
        '\u{2026}' => "an ellipsis",
        _ if character.is_control() => "a control character",
        _ if character.is_ascii() => "this character",
        _ if character.is_alphabetic() => "a letter beyond ASCII",
        _ => "a character beyond ASCII",
    };
    format!("{name} (U+{:04X})", character as u32)
}

/// The replacement to suggest for a character, if there is one.
fn meant(character: char) -> Option<&'static str> {
    Some(match character {
        '\u{2212}' | '\u{2013}' | '\u{2014}' => "write a plain `-`",
        '\u{2018}' | '\u{2019}' | '\u{201c}' | '\u{201d}' => "write plain double quotes: `\"`",
        '\u{2026}' => "write two points: `..`",
        '\u{a0}' | '\u{200b}' => "write a plain blank",
        '\u{d7}' => "write `*`",
        '\u{f7}' => "write `/`",
        '\u{2260}' => "write `!=`",
        '\u{2264}' => "write `<=`",
        '\u{2265}' => "write `>=`",
        '?' => "a choice of two values is written `if c then a else b`",
        '\u{feff}' => "save the file without a byte order mark",
        _ => return None,
    })
}

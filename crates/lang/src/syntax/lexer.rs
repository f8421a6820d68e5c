//! Text to tokens: one pass over the bytes, no allocation a token.

use super::token::{Kind, Token};
use crate::codes::syntax as codes;
use crate::diagnostic::Diagnostic;
use crate::source::{SourceId, Span};
use crate::symbol::{Interner, Symbol};

mod mistakes;
mod number;
mod string;

pub(crate) use string::unescape;

/// A comment, for the formatter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Comment {
    pub(crate) start: u32,
    pub(crate) end: u32,
    /// Number of tokens before it.
    pub(crate) tokens_before: u32,
}

/// All a text holds. The last token is [`Kind::End`].
pub(crate) struct Lexed {
    pub(crate) tokens: Vec<Token>,
    pub(crate) comments: Vec<Comment>,
    pub(crate) diagnostics: Vec<Diagnostic>,
    /// A comment ran to the end of the file, so that what is missing there is not missed.
    pub(crate) open_comment: bool,
}

/// Turns a text into tokens. The text must be shorter than 4 GiB.
pub(crate) fn lex(
    text: &str,
    source: SourceId,
    names: &mut Interner,
    keep_comments: bool,
) -> Lexed {
    let mut lexer = Lexer {
        text,
        bytes: text.as_bytes(),
        source,
        at: 0,
        after_break: true,
        keep_comments,
        names,
        words: Words::new(),
        bad_names: Vec::new(),
        lexed: Lexed {
            // Insense programs have a token about every four bytes.
            tokens: Vec::with_capacity(text.len() / 7 * 2 + 16),
            comments: Vec::new(),
            diagnostics: Vec::new(),
            open_comment: false,
        },
    };
    lexer.run();
    lexer.lexed
}

struct Lexer<'a> {
    text: &'a str,
    bytes: &'a [u8],
    source: SourceId,
    at: usize,
    after_break: bool,
    keep_comments: bool,
    names: &'a mut Interner,
    words: Words,
    /// Faulty names already reported.
    bad_names: Vec<Symbol>,
    lexed: Lexed,
}

/// The kind of token that a byte may begin.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Blank,
    Break,
    Letter,
    Digit,
    Mark,
    Quote,
    Other,
}

const CLASSES: [Class; 256] = {
    let mut classes = [Class::Other; 256];
    let mut byte = 0;
    while byte < 128 {
        classes[byte] = match byte as u8 {
            b' ' | b'\t' => Class::Blank,
            b'\n' | b'\r' | b'\x0c' => Class::Break,
            b'a'..=b'z' | b'A'..=b'Z' => Class::Letter,
            b'0'..=b'9' => Class::Digit,
            b'"' => Class::Quote,
            b':' | b'=' | b'!' | b'<' | b'>' | b'+' | b'-' | b'*' | b'/' | b'%' | b'&' | b'|'
            | b'^' | b'~' | b'.' | b',' | b';' | b'(' | b')' | b'[' | b']' | b'{' | b'}' => {
                Class::Mark
            }
            _ => Class::Other,
        };
        byte += 1;
    }
    classes
};

fn continues_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

impl Lexer<'_> {
    fn run(&mut self) {
        while let Some(&byte) = self.bytes.get(self.at) {
            match CLASSES[byte as usize] {
                Class::Blank => self.at += 1,
                Class::Break => {
                    self.after_break = true;
                    self.at += 1;
                }
                Class::Letter => self.word(),
                Class::Digit => self.number(),
                Class::Mark => self.mark(byte),
                Class::Quote => self.string(),
                Class::Other => self.other(byte),
            }
        }
        let end = self.bytes.len();
        self.push(Kind::End, end, 0);
    }

    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn push(&mut self, kind: Kind, start: usize, payload: u32) {
        self.lexed.tokens.push(Token {
            start: start as u32,
            end: self.at as u32,
            payload,
            kind,
            after_break: self.after_break,
        });
        self.after_break = false;
    }

    fn span(&self, start: usize) -> Span {
        Span::new(self.source, start as u32, self.at as u32)
    }

    fn word(&mut self) {
        let start = self.at;
        let mut hash = 0u32;
        while let Some(&byte) = self.bytes.get(self.at) {
            if !continues_name(byte) {
                if byte >= 0x80 && self.non_ascii_letter() {
                    return self.faulty_name(start);
                }
                break;
            }
            hash = (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
            self.at += 1;
        }
        let (kind, payload) =
            self.words
                .look_up(self.text, start as u32, self.at as u32, hash, self.names);
        self.push(kind, start, payload);
    }

    fn mark(&mut self, byte: u8) {
        let start = self.at;
        let next = self.peek(1);
        let (kind, length) = match (byte, next) {
            (b'/', b'/') => return self.line_comment(),
            (b'/', b'*') => return self.block_comment(),
            (b':', b'=') => (Kind::Assign, 2),
            (b'=', b'=') => (Kind::EqualEqual, 2),
            (b'!', b'=') => (Kind::NotEqual, 2),
            (b'<', b'=') => (Kind::LessEqual, 2),
            (b'>', b'=') => (Kind::GreaterEqual, 2),
            (b'.', b'.') => (Kind::Dots, 2),
            (b':', _) => (Kind::Colon, 1),
            (b'=', _) => (Kind::Equals, 1),
            (b'!', _) => (Kind::Bang, 1),
            (b'<', _) => (Kind::Less, 1),
            (b'>', _) => (Kind::Greater, 1),
            (b'.', _) => (Kind::Dot, 1),
            (b'+', _) => (Kind::Plus, 1),
            (b'-', _) => (Kind::Minus, 1),
            (b'*', _) => (Kind::Star, 1),
            (b'/', _) => (Kind::Slash, 1),
            (b'%', _) => (Kind::Percent, 1),
            (b'&', _) => (Kind::Ampersand, 1),
            (b'|', _) => (Kind::Bar, 1),
            (b'^', _) => (Kind::Caret, 1),
            (b'~', _) => (Kind::Tilde, 1),
            (b',', _) => (Kind::Comma, 1),
            (b';', _) => (Kind::Semicolon, 1),
            (b'(', _) => (Kind::OpenParen, 1),
            (b')', _) => (Kind::CloseParen, 1),
            (b'[', _) => (Kind::OpenBracket, 1),
            (b']', _) => (Kind::CloseBracket, 1),
            (b'{', _) => (Kind::OpenBrace, 1),
            _ => (Kind::CloseBrace, 1),
        };
        self.at += length;
        self.push(kind, start, 0);
    }

    fn line_comment(&mut self) {
        let start = self.at;
        let rest = &self.bytes[start..];
        let length = rest
            .iter()
            .position(|&byte| CLASSES[byte as usize] == Class::Break)
            .unwrap_or(rest.len());
        self.at += length;
        self.keep(start);
    }

    /// Line breaks inside do not count as separators.
    fn block_comment(&mut self) {
        let start = self.at;
        match self.text[start + 2..].find("*/") {
            Some(length) => {
                self.at = start + 2 + length + 2;
                self.keep(start);
            }
            None => self.open_comment(start),
        }
    }

    fn keep(&mut self, start: usize) {
        if self.keep_comments {
            self.lexed.comments.push(Comment {
                start: start as u32,
                end: self.at as u32,
                tokens_before: self.lexed.tokens.len() as u32,
            });
        }
    }

    /// `#`, `$`, and everything that begins no token.
    fn other(&mut self, byte: u8) {
        match byte {
            b'#' | b'$' => self.marked_number(byte),
            b'_' => self.faulty_name(self.at),
            b'\'' => self.single_quotes(),
            _ if byte >= 0x80 && self.non_ascii_letter() => self.faulty_name(self.at),
            _ => self.unknown(),
        }
    }

    fn non_ascii_letter(&self) -> bool {
        self.text[self.at..]
            .chars()
            .next()
            .is_some_and(char::is_alphabetic)
    }

    fn report(&mut self, diagnostic: Diagnostic) {
        self.lexed.diagnostics.push(diagnostic);
    }

    fn open_comment(&mut self, start: usize) {
        let opening = Span::new(self.source, start as u32, start as u32 + 2);
        self.at = self.bytes.len();
        self.lexed.open_comment = true;
        self.report(
            Diagnostic::error(
                codes::UNTERMINATED_COMMENT,
                "unterminated comment",
                opening,
                "this comment is never closed",
            )
            .with_help("close it with `*/`; block comments do not nest"),
        );
    }
}

/// A direct-mapped cache from spellings to keywords and symbols, in front of the interner.
struct Words {
    slots: Vec<WordSlot>,
}

/// The last word whose hash fell here. An empty slot has length zero and matches no word.
#[derive(Clone, Copy)]
struct WordSlot {
    start: u32,
    length: u32,
    payload: u32,
    kind: Kind,
}

impl Words {
    const BITS: u32 = 11;

    fn new() -> Self {
        let empty = WordSlot {
            start: 0,
            length: 0,
            payload: 0,
            kind: Kind::Unknown,
        };
        Words {
            slots: vec![empty; 1 << Self::BITS],
        }
    }

    fn look_up(
        &mut self,
        text: &str,
        start: u32,
        end: u32,
        hash: u32,
        names: &mut Interner,
    ) -> (Kind, u32) {
        let bytes = text.as_bytes();
        let word = &bytes[start as usize..end as usize];
        let slot = &mut self.slots[(hash.wrapping_mul(0x9E37_79B1) >> (32 - Self::BITS)) as usize];
        let seen = slot.start as usize..(slot.start + slot.length) as usize;
        if slot.length == end - start && bytes[seen] == *word {
            return (slot.kind, slot.payload);
        }
        let spelling = &text[start as usize..end as usize];
        let (kind, payload) = match Kind::keyword(spelling) {
            Some(keyword) => (keyword, 0),
            None => (Kind::Name, names.intern(spelling).0),
        };
        *slot = WordSlot {
            start,
            length: end - start,
            payload,
            kind,
        };
        (kind, payload)
    }
}

//! Numbers: `42`, `$42`, `#42`, `1.5`, `2.8e-6`, `5e3`.

use super::{Lexer, continues_name};
use crate::codes::syntax as codes;
use crate::diagnostic::Diagnostic;
use crate::syntax::token::Kind;

impl Lexer<'_> {
    pub(super) fn number(&mut self) {
        let start = self.at;
        let value = self.digits();
        let mut real = false;
        // `0..9` is an integer and dots: a real has digits on both sides of its point.
        if self.peek(0) == b'.' && self.peek(1).is_ascii_digit() {
            real = true;
            self.at += 1;
            self.digits();
        }
        if matches!(self.peek(0), b'e' | b'E') {
            let sign = usize::from(matches!(self.peek(1), b'+' | b'-'));
            if self.peek(1 + sign).is_ascii_digit() {
                real = true;
                self.at += 1 + sign;
                self.digits();
            }
        }
        let half = !real && self.peek(0) == b'.' && self.peek(1) != b'.';
        if continues_name(self.peek(0)) || (half && !continues_name(self.peek(1))) {
            return self.malformed(start);
        }
        if real {
            return self.real(start);
        }
        let value = match value.and_then(|value| i32::try_from(value).ok()) {
            Some(value) => value as u32,
            None => self.too_large(start, "an integer is at most 2147483647"),
        };
        self.push(Kind::Integer, start, value);
    }

    fn real(&mut self, start: usize) {
        let finite = self.text[start..self.at]
            .parse::<f64>()
            .is_ok_and(f64::is_finite);
        if !finite {
            self.too_large(start, "a real number is at most about 1.79e308");
            return self.push(Kind::BadLiteral, start, 0);
        }
        self.push(Kind::Real, start, 0);
    }

    /// Lexes a marked number: `$42` or `#42`.
    pub(super) fn marked_number(&mut self, mark: u8) {
        let start = self.at;
        self.at += 1;
        if !self.peek(0).is_ascii_digit() {
            return self.lone_mark(start, mark);
        }
        let value = self.digits();
        if continues_name(self.peek(0)) || (self.peek(0) == b'.' && self.peek(1).is_ascii_digit()) {
            return self.malformed(start);
        }
        let kind = if mark == b'$' {
            Kind::Unsigned
        } else {
            Kind::Byte
        };
        let value = match (mark, value) {
            (b'$', Some(value)) => value,
            (b'$', None) => self.too_large(start, "an unsigned number is at most 4294967295"),
            (_, Some(value)) if value <= 255 => value,
            _ => self.byte_too_large(start),
        };
        self.push(kind, start, value);
    }

    /// Passes decimal digits; their value, or none beyond 32 bits.
    fn digits(&mut self) -> Option<u32> {
        let mut value = Some(0u32);
        while let Some(digit) = self.peek(0).checked_sub(b'0').filter(|&digit| digit < 10) {
            value = value
                .and_then(|value| value.checked_mul(10))
                .and_then(|value| value.checked_add(u32::from(digit)));
            self.at += 1;
        }
        value
    }

    /// Reports a number that does not fit; zero stands in for it.
    fn too_large(&mut self, start: usize, limit: &str) -> u32 {
        let number = &self.text[start..self.at];
        let title = format!("the number {} is too large", shortened(number));
        let mut diagnostic =
            Diagnostic::error(codes::NUMBER_TOO_LARGE, title, self.span(start), limit);
        if number == "2147483648" {
            diagnostic = diagnostic.with_help(
                "a sign is an operator and no part of the number: \
                 write the smallest integer as `-2147483647 - 1`",
            );
        }
        self.report(diagnostic);
        0
    }

    fn byte_too_large(&mut self, start: usize) -> u32 {
        let title = format!(
            "the byte {} is over 255",
            shortened(&self.text[start..self.at])
        );
        let diagnostic = Diagnostic::error(
            codes::BYTE_TOO_LARGE,
            title,
            self.span(start),
            "a byte is 0 to 255",
        );
        self.report(diagnostic.with_help("leave out the `#` to write an integer"));
        0
    }

    fn lone_mark(&mut self, start: usize, mark: u8) {
        let (mark, what) = if mark == b'$' {
            ('$', "an unsigned number")
        } else {
            ('#', "a byte")
        };
        while continues_name(self.peek(0)) {
            self.at += 1;
        }
        let diagnostic = Diagnostic::error(
            codes::MALFORMED_NUMBER,
            format!("`{mark}` without decimal digits"),
            self.span(start),
            format!("`{mark}` begins {what}"),
        );
        self.report(diagnostic.with_help(format!("write digits right after it: `{mark}42`")));
        self.push(Kind::BadLiteral, start, 0);
    }

    /// `12abc`, `0x1F`, `1e`, `1_000`, `5.`
    fn malformed(&mut self, start: usize) {
        while continues_name(self.peek(0)) || (self.peek(0) == b'.' && self.peek(1) != b'.') {
            self.at += 1;
        }
        let word = &self.text[start..self.at];
        let help = if word.starts_with("0x") || word.starts_with("0X") {
            match u32::from_str_radix(&word[2..], 16) {
                Ok(value) => format!("there are decimal numbers only: write `{value}`"),
                Err(_) => "there are decimal numbers only".to_owned(),
            }
        } else if word.contains('_') {
            "write the digits without underscores".to_owned()
        } else if word.starts_with(['$', '#']) {
            "only decimal digits may follow the mark".to_owned()
        } else if word.ends_with('.') {
            format!("write `{word}0`, with digits on both sides of the point")
        } else if word.ends_with(['e', 'E']) {
            "write the exponent's digits, as in `1.0e3`".to_owned()
        } else {
            "a name begins with a letter; put a space after a number".to_owned()
        };
        let diagnostic = Diagnostic::error(
            codes::MALFORMED_NUMBER,
            format!("`{}` is not a number", shortened(word)),
            self.span(start),
            "not written as numbers are",
        );
        self.report(diagnostic.with_help(help));
        self.push(Kind::BadLiteral, start, 0);
    }
}

/// A long number is shown by its first digits.
fn shortened(word: &str) -> String {
    const SHOWN: usize = 24;
    if word.len() <= SHOWN {
        word.to_owned()
    } else {
        format!("{}…", &word[..SHOWN])
    }
}

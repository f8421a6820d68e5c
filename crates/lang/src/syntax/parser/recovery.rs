//! Going on after a mistake: where the next statement, arm or declaration can begin.

use super::Parser;
use super::expressions::is_binary_operator;
use crate::syntax::token::{Kind, Token};

/// Number of tokens searched for a `default`, so that many faulty `case`s in one block do not cost
/// the square of their number.
const LOOK_AHEAD: usize = 2000;

impl Parser<'_> {
    /// Skips to the next separator at this depth of braces. `opened` parentheses are open; a
    /// line break counts inside them only before what surely is a statement.
    pub(super) fn recover(&mut self, opened: u32) {
        let mut braces = 0usize;
        let mut parens = opened;
        loop {
            let token = self.token();
            match token.kind {
                Kind::End => return,
                Kind::Semicolon | Kind::CloseBrace if braces == 0 => return,
                Kind::Component | Kind::Constructor | Kind::Behaviour if token.after_break => {
                    return;
                }
                _ if braces > 0 => {}
                _ if token.after_break && self.may_resume(token, parens) => return,
                Kind::OpenParen | Kind::OpenBracket => parens += 1,
                Kind::CloseParen | Kind::CloseBracket => parens = parens.saturating_sub(1),
                _ => {}
            }
            match token.kind {
                Kind::OpenBrace => braces += 1,
                Kind::CloseBrace => braces -= 1,
                _ => {}
            }
            self.bump();
        }
    }

    /// Skips past the `)` that closes the last of `opened` parentheses, or to where it is
    /// certainly missing. Unlike statements, what is in them may contain `;`.
    pub(super) fn recover_parens(&mut self, opened: u32) {
        let mut parens = opened;
        while parens > 0 {
            let token = self.token();
            match token.kind {
                Kind::End | Kind::OpenBrace | Kind::CloseBrace => return,
                _ if token.after_break && self.may_resume(token, parens) => return,
                Kind::OpenParen => parens += 1,
                Kind::CloseParen => parens -= 1,
                _ => {}
            }
            self.bump();
        }
    }

    /// Whether a line that begins with `token` begins a statement.
    fn may_resume(&self, token: Token, parens: u32) -> bool {
        if parens == 0 {
            return token.kind.begins_clause()
                || token.kind.begins_statement_surely()
                || token.kind.is_type_keyword()
                || self.names_reserved_word();
        }
        let assigns =
            token.kind == Kind::Name && matches!(self.kind_ahead(1), Kind::Equals | Kind::Assign);
        assigns || token.kind.begins_statement_surely()
    }

    /// Skips the rest of a faulty head, up to its body if that comes. `opened` parentheses are
    /// open.
    pub(super) fn recover_head(&mut self, opened: u32) {
        let mut parens = opened;
        loop {
            let token = self.token();
            match token.kind {
                Kind::OpenBrace | Kind::CloseBrace | Kind::End => return,
                Kind::Colon | Kind::Presents => {}
                kind if token.after_break && (parens == 0 || kind.begins_statement_surely()) => {
                    return;
                }
                Kind::OpenParen => parens += 1,
                Kind::CloseParen => parens = parens.saturating_sub(1),
                _ => {}
            }
            self.bump();
        }
    }

    /// Skips a declaration whose name could not be read, body and all.
    pub(super) fn recover_declaration(&mut self) {
        self.parens = 0;
        self.recover_head(0);
        self.recover(0);
    }

    /// Whether the declaration at the cursor is indented more than the line where `open`
    /// stands: then it is meant to be inside, else a `}` is missing before it.
    pub(super) fn stands_inside(&self, open: Token) -> bool {
        self.indentation(self.token()) > self.indentation(open)
    }

    /// The blanks at the beginning of a token's line.
    pub(super) fn indentation(&self, token: Token) -> usize {
        let before = &self.text.as_bytes()[..token.start as usize];
        let line = before
            .iter()
            .rposition(|byte| matches!(byte, b'\n' | b'\r' | b'\x0c'))
            .map_or(0, |at| at + 1);
        self.text.as_bytes()[line..]
            .iter()
            .take_while(|byte| matches!(byte, b' ' | b'\t'))
            .count()
    }

    /// Whether an arm's label and its colon stand at the cursor.
    pub(super) fn label_ahead(&self, of: Kind) -> bool {
        let token = self.token();
        let next = self.kind_ahead(1);
        if next == Kind::Colon || next == Kind::Comma {
            return true;
        }
        if of == Kind::Project {
            return token.kind != Kind::Name
                || (next == Kind::OpenBracket && self.kind_ahead(2) == Kind::CloseBracket);
        }
        self.colon_on_line()
    }

    /// Whether a colon comes before the end of the line, brackets and operators bridging it.
    fn colon_on_line(&self) -> bool {
        let mut depth = 0usize;
        let mut bridged = true;
        for &token in &self.tokens[self.at..] {
            let bridge = bridged || depth > 0 || token.kind == Kind::Colon;
            if token.after_break && !bridge {
                return false;
            }
            match token.kind {
                Kind::Colon | Kind::Comma if depth == 0 => return true,
                Kind::End => return false,
                Kind::Assign | Kind::Semicolon | Kind::For if depth == 0 => return false,
                Kind::OpenParen | Kind::OpenBracket | Kind::OpenBrace => depth += 1,
                Kind::CloseParen | Kind::CloseBracket | Kind::CloseBrace if depth == 0 => {
                    return false;
                }
                Kind::CloseParen | Kind::CloseBracket | Kind::CloseBrace => depth -= 1,
                _ => {}
            }
            bridged = is_binary_operator(token.kind);
        }
        false
    }

    /// Whether the `default` of the `case` or `project` being read comes later.
    pub(super) fn default_follows(&self) -> bool {
        self.find_default().is_some()
    }

    /// Skips to the `default` of the `case` or `project` being read, if it comes.
    pub(super) fn skip_to_default(&mut self) {
        if let Some(at) = self.find_default() {
            self.at = at;
        }
    }

    fn find_default(&self) -> Option<usize> {
        let mut braces = 0usize;
        let mut nested = 0usize;
        let ahead = self.tokens[self.at..].iter().take(LOOK_AHEAD);
        for (ahead, token) in ahead.enumerate() {
            match token.kind {
                Kind::End => return None,
                Kind::OpenBrace => braces += 1,
                Kind::CloseBrace if braces == 0 => return None,
                Kind::CloseBrace => braces -= 1,
                Kind::Case | Kind::Project if braces == 0 => nested += 1,
                Kind::Default if braces == 0 && nested == 0 => return Some(self.at + ahead),
                Kind::Default if braces == 0 => nested -= 1,
                _ => {}
            }
        }
        None
    }

    /// Skips to the next arm of a `select`, or to its closing brace.
    pub(super) fn skip_to_select_arm(&mut self, start: usize) {
        if self.at == start {
            self.bump();
        }
        let mut braces = 0usize;
        loop {
            let token = self.token();
            match token.kind {
                Kind::End => return,
                Kind::Component | Kind::Constructor | Kind::Behaviour if token.after_break => {
                    return;
                }
                Kind::OpenBrace => braces += 1,
                Kind::CloseBrace if braces == 0 => return,
                Kind::CloseBrace => braces -= 1,
                Kind::Receive | Kind::Acknowledge | Kind::Default if braces == 0 => return,
                _ => {}
            }
            self.bump();
        }
    }
}

//! The tokens of the text, one after the other, with the comments between them.

use super::items::Item;
use crate::syntax::Comment;
use crate::syntax::token::{Kind, Token};

/// Walks the tree and the tokens side by side, and collects what to print.
pub(super) struct Layout<'a> {
    text: &'a str,
    tokens: &'a [Token],
    comments: &'a [Comment],
    /// The next token.
    at: usize,
    /// The next comment.
    next_comment: usize,
    /// The end of the last token or comment.
    last_end: usize,
    /// The last thing printed opened a bracket: no blank line follows.
    opened: bool,
    items: Vec<Item<'a>>,
    /// Number of parentheses opened since the last brace. Inside, line breaks separate nothing.
    pub(super) parens: u32,
}

impl<'a> Layout<'a> {
    pub(super) fn new(text: &'a str, tokens: &'a [Token], comments: &'a [Comment]) -> Self {
        Layout {
            text,
            tokens,
            comments,
            at: 0,
            next_comment: 0,
            last_end: 0,
            opened: true,
            items: Vec::with_capacity(tokens.len() * 2),
            parens: 0,
        }
    }

    /// Comments that remain at the end of the file.
    pub(super) fn finish(mut self) -> Vec<Item<'a>> {
        self.leading_comments();
        debug_assert_eq!(self.kind(), Kind::End);
        self.items
    }

    pub(super) fn kind(&self) -> Kind {
        self.tokens[self.at].kind
    }

    fn kind_before(&self, back: usize) -> Kind {
        self.at
            .checked_sub(back)
            .map_or(Kind::End, |at| self.tokens[at].kind)
    }

    pub(super) fn after_brace(&self) -> bool {
        self.kind_before(1) == Kind::CloseBrace
    }

    /// Whether the author put the next token on a line of its own.
    pub(super) fn on_new_line(&self) -> bool {
        self.tokens[self.at].after_break
    }

    /// Whether a line break stands before any of the next tokens that begin before `end`, or
    /// a `;` among them.
    pub(super) fn spread_until(&self, end: u32) -> bool {
        self.tokens[self.at..]
            .iter()
            .take_while(|token| token.start < end)
            .any(|token| token.after_break || token.kind == Kind::Semicolon)
    }

    /// Whether a line break stands before any token up to the bracket that closes the one just
    /// printed.
    pub(super) fn spread_in_brackets(&self) -> bool {
        let mut depth = 0usize;
        for token in &self.tokens[self.at..] {
            if token.after_break {
                return true;
            }
            match token.kind {
                Kind::OpenParen | Kind::OpenBracket | Kind::OpenBrace => depth += 1,
                Kind::CloseParen | Kind::CloseBracket | Kind::CloseBrace if depth == 0 => break,
                Kind::CloseParen | Kind::CloseBracket | Kind::CloseBrace => depth -= 1,
                _ => {}
            }
        }
        false
    }

    // Tokens.

    /// Prints the next token, with the comments before it and those after it on its line.
    pub(super) fn token(&mut self) {
        self.leading_comments();
        let token = self.tokens[self.at];
        self.items.push(Item::Text(
            &self.text[token.start as usize..token.end as usize],
        ));
        self.opened = matches!(token.kind, Kind::OpenBrace | Kind::OpenParen);
        self.pass();
    }

    /// Prints the next token, which is known.
    pub(super) fn word(&mut self, kind: Kind) {
        debug_assert_eq!(self.kind(), kind, "at {}", self.tokens[self.at].start);
        self.token();
    }

    /// Prints the tokens that begin before `end` with nothing between them.
    pub(super) fn tokens_until(&mut self, end: u32) {
        while self.tokens[self.at].start < end && self.kind() != Kind::End {
            self.token();
        }
    }

    fn pass(&mut self) {
        self.last_end = self.tokens[self.at].end as usize;
        self.at += 1;
        self.trailing_comments();
    }

    /// Leaves out the semicolons here, which the layout makes needless.
    pub(super) fn drop_semicolons(&mut self) {
        while self.kind() == Kind::Semicolon {
            self.leading_comments();
            self.pass();
        }
    }

    /// Leaves out the semicolons after a statement, but for one without which the next line
    /// would be read as part of it.
    pub(super) fn end_statement(&mut self) {
        let open_ended = self.kind_before(1) == Kind::Return
            || (self.kind_before(1) == Kind::Name && self.kind_before(2) == Kind::Except);
        if open_ended && self.kind() == Kind::Semicolon && self.more_follows() {
            self.token();
        }
        self.drop_semicolons();
    }

    /// Whether something else than semicolons comes before the end of the block.
    fn more_follows(&self) -> bool {
        let next = self.tokens[self.at..]
            .iter()
            .find(|token| token.kind != Kind::Semicolon);
        next.is_some_and(|token| !matches!(token.kind, Kind::CloseBrace | Kind::End))
    }

    // Comments.

    /// Whether a comment stands before the next token.
    pub(super) fn comment_follows(&self) -> bool {
        self.comment_before_next_token().is_some()
    }

    /// Comments on the line of the token just passed.
    fn trailing_comments(&mut self) {
        while let Some(&comment) = self.comment_before_next_token() {
            let between = &self.text[self.last_end..comment.start as usize];
            if line_breaks(between) > 0 {
                return;
            }
            if !between.is_empty() || self.is_line_comment(comment) {
                self.items.push(Item::Space);
            }
            self.comment(comment);
        }
    }

    /// Comments before the next token, on lines of their own.
    pub(super) fn leading_comments(&mut self) {
        while let Some(&comment) = self.comment_before_next_token() {
            self.newline();
            self.comment(comment);
            self.opened = false;
            let after = self.next_start();
            if line_breaks(&self.text[self.last_end..after]) > 0 {
                self.newline();
            }
        }
    }

    fn comment_before_next_token(&self) -> Option<&'a Comment> {
        self.comments
            .get(self.next_comment)
            .filter(|comment| comment.tokens_before as usize <= self.at)
    }

    fn is_line_comment(&self, comment: Comment) -> bool {
        self.text[comment.start as usize..].starts_with("//")
    }

    fn comment(&mut self, comment: Comment) {
        let text = &self.text[comment.start as usize..comment.end as usize];
        self.last_end = comment.end as usize;
        self.next_comment += 1;
        if self.is_line_comment(comment) {
            self.items.push(Item::LineComment(text.trim_end()));
            self.items.push(Item::Break);
        } else {
            self.items.push(Item::Text(text));
            let after = &self.text[self.last_end..];
            if after.starts_with([' ', '\t']) {
                self.items.push(Item::Space);
            }
        }
    }

    /// The start of the next token or comment.
    fn next_start(&self) -> usize {
        let token = self.tokens[self.at].start;
        self.comment_before_next_token()
            .map_or(token, |comment| comment.start) as usize
    }

    // Blanks.

    /// A line break, with the blank line that the author left.
    pub(super) fn newline(&mut self) {
        let between = &self.text[self.last_end..self.next_start()];
        self.items
            .push(if line_breaks(between) > 1 && !self.opened {
                Item::Blank
            } else {
                Item::Break
            });
    }

    pub(super) fn push(&mut self, item: Item<'a>) {
        self.items.push(item);
    }

    pub(super) fn space(&mut self) {
        self.items.push(Item::Space);
    }

    /// Space, and the next token, and space: around a word.
    pub(super) fn spaced(&mut self, kind: Kind) {
        self.space();
        self.word(kind);
        self.space();
    }
}

/// Number of line ends in a text; CR LF counts once.
fn line_breaks(text: &str) -> usize {
    let bytes = text.as_bytes();
    bytes
        .iter()
        .enumerate()
        .filter(|&(at, &byte)| match byte {
            b'\n' | b'\x0c' => true,
            b'\r' => bytes.get(at + 1) != Some(&b'\n'),
            _ => false,
        })
        .count()
}

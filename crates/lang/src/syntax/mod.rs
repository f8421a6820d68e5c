//! Text to syntax tree.
//!
//! [`parse`] reads a whole text in one go: the lexer makes an array of small tokens, and a
//! parser by recursive descent reads it. It never stops at a mistake: each is reported once,
//! an `Error` node replaces unreadable text, and reading continues at the next
//! statement, arm or declaration.

pub mod ast;
pub mod habits;
mod lexer;
mod parser;
pub mod print;
pub(crate) mod token;

use crate::codes::syntax as codes;
use crate::diagnostic::Diagnostic;
use crate::source::{SourceId, Span};
use crate::symbol::Interner;

pub(crate) use lexer::{Comment, Lexed, lex};
pub(crate) use token::Token;

/// Deepest nesting of clauses, operators and types. The parser and every later stage walk the tree
/// by recursion, and this bound is what keeps their stacks small. A chain of operators is not
/// nesting, however long it is.
pub const DEPTH_LIMIT: u32 = 200;

/// The language that a text is written in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Dialect {
    /// A user's program.
    #[default]
    Program,
    /// The standard environment: procedures may be `native SYMBOL [blocks] [raises]`.
    Prelude,
}

/// A parsed text.
#[derive(Debug)]
pub struct Parsed {
    /// The tree; complete when no diagnostic is an error.
    pub unit: ast::Unit,
    /// In the order of the text.
    pub diagnostics: Vec<Diagnostic>,
}

impl Parsed {
    /// Whether any diagnostic is an error, not only a warning.
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(Diagnostic::is_error)
    }
}

/// Reads a text. Names are entered into `names`, spans point into `source`.
///
/// A declaration whose head could not be read still declares its name, so that later stages do
/// not miss it: unreadable types are [`ast::TypeKind::Error`], unreadable values
/// [`ast::ExprKind::Error`], and a parameter list that broke off ends in a group without names
/// whose type is `Error`.
pub fn parse(text: &str, source: SourceId, names: &mut Interner, dialect: Dialect) -> Parsed {
    if let Some(diagnostic) = too_large(text.len(), source) {
        return Parsed {
            unit: ast::Unit::default(),
            diagnostics: vec![diagnostic],
        };
    }
    parse_lexed(text, source, lex(text, source, names, false), dialect).0
}

/// Parses what was lexed already, and gives the tokens and comments back.
pub(crate) fn parse_lexed(
    text: &str,
    source: SourceId,
    lexed: Lexed,
    dialect: Dialect,
) -> (Parsed, Vec<Token>, Vec<Comment>) {
    let mut parser = parser::Parser::new(text, source, &lexed.tokens, dialect, lexed.open_comment);
    let unit = parser.unit();
    let mut diagnostics = lexed.diagnostics;
    diagnostics.append(&mut parser.diagnostics);
    diagnostics.sort_by_key(|diagnostic| diagnostic.primary.span.start);
    let parsed = Parsed { unit, diagnostics };
    (parsed, lexed.tokens, lexed.comments)
}

/// Spans count bytes in 32 bits.
pub(crate) fn too_large(length: usize, source: SourceId) -> Option<Diagnostic> {
    (length >= u32::MAX as usize).then(|| {
        Diagnostic::error(
            codes::TEXT_TOO_LARGE,
            "the text is too large",
            Span::new(source, 0, 0),
            format!("this text has {length} bytes"),
        )
        .with_note("A text must be shorter than 4 GiB.")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_bound_the_text() {
        assert!(too_large(u32::MAX as usize - 1, SourceId::USER).is_none());
        let refused = too_large(u32::MAX as usize, SourceId::USER);
        assert_eq!(refused.map(|diagnostic| diagnostic.code.0), Some("E0110"));
    }
}

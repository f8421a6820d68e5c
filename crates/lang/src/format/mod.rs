//! One layout for every program: what `hearth fmt` does.
//!
//! The tree says where lines may and must break; the tokens are copied from the text, so that
//! literals stay as they were written, and every comment comes along in the gap between tokens
//! where it stood. Statements stand one a line, blocks are indented by four blanks, lines are
//! broken at 100 characters where the separator rules of the language allow it: after a binary
//! operator and inside parentheses. Of the author's layout remain: single blank lines, bodies
//! put on a line of their own, lists put on several lines, and blocks of one statement put on
//! one.

use crate::diagnostic::Diagnostic;
use crate::source::SourceId;
use crate::symbol::Interner;
use crate::syntax::{self, Dialect, print};

mod expressions;
mod items;
mod layout;
mod render;
mod statements;

/// Most times that a text is laid out. What the author put on several lines is kept so, and a break
/// for want of room can therefore bring another about the next time; twice is the rule.
const ROUNDS: usize = 5;

/// The program in the house layout, or its syntax errors.
///
/// Formatting twice changes nothing more, and the tree stays the same.
///
/// # Panics
///
/// If the result does not mean what the text means, which is a bug of the formatter: better
/// no result than a wrong one.
pub fn format(text: &str) -> Result<String, Vec<Diagnostic>> {
    let mut names = Interner::default();
    let (mut formatted, tree) = lay_out(text, &mut names)?;
    for round in 1..ROUNDS {
        let (again, same_tree) = lay_out(&formatted, &mut names).unwrap_or_else(|diagnostics| {
            panic!("formatting broke the program: {diagnostics:?}\n{formatted}")
        });
        assert!(
            same_tree == tree,
            "formatting changed the meaning of the program\nfrom\n{tree}\nto\n{same_tree}"
        );
        if again == formatted || round + 1 == ROUNDS {
            break;
        }
        formatted = again;
    }
    Ok(formatted)
}

/// One round: the layout of a text, and its tree.
fn lay_out(text: &str, names: &mut Interner) -> Result<(String, String), Vec<Diagnostic>> {
    if let Some(diagnostic) = syntax::too_large(text.len(), SourceId::USER) {
        return Err(vec![diagnostic]);
    }
    let lexed = syntax::lex(text, SourceId::USER, names, true);
    let (parsed, tokens, comments) =
        syntax::parse_lexed(text, SourceId::USER, lexed, Dialect::Program);
    if parsed.has_errors() {
        return Err(parsed.diagnostics);
    }
    let mut layout = layout::Layout::new(text, &tokens, &comments);
    layout.unit(&parsed.unit);
    let formatted = render::render(&layout.finish());
    Ok((formatted, print::unit(&parsed.unit, names)))
}

//! Folded stacks: a line for each stack of calls, with the nanoseconds spent in its innermost call
//! itself.

use std::io::Write;

use super::Unwritten;
use crate::recorded::Recorded;
use crate::tree::Tree;

/// Writes folded stacks.
///
/// # Errors
/// Reading or writing fails.
pub fn folded(recorded: &Recorded, tree: &Tree, to: &mut dyn Write) -> Result<(), Unwritten> {
    let mut names: Vec<String> = Vec::new();
    let mut result = Ok(());
    tree.walk(|node, depth| {
        names.truncate(depth);
        let name = node.name.map_or("?", |name| recorded.name(name));
        // A semicolon separates frames.
        names.push(name.replace([';', '\n'], ":"));
        if node.own > 0 && result.is_ok() {
            result = writeln!(to, "{} {}", names.join(";"), node.own);
        }
    });
    Ok(result?)
}

//! `hearth explain`: the story of each code.

use hearth_lang::codes;
use hearth_terminal::{Failure, output};
use hearth_text::near;
use hearth_text::prose::wrapped;

use crate::arguments::Explain;

/// Longer lines are hard to read.
const WIDTH: usize = 80;

pub(crate) fn explain(arguments: &Explain) -> Result<(), Failure> {
    let Some(code) = &arguments.code else {
        let list: String = codes::all()
            .map(|entry| format!("{}  {}\n", entry.code.0, entry.title))
            .collect();
        return output::write(list);
    };
    let Some(entry) = codes::lookup(code) else {
        let known = codes::all().map(|entry| entry.code.0);
        let advice = near::nearest(code, known)
            .map(|near| format!("did you mean {near}? "))
            .unwrap_or_default();
        return Err(Failure::input(format!(
            "there is no code {code:?}; {advice}`hearth explain` lists all codes"
        )));
    };
    output::write(format!(
        "{}: {}\n\n{}",
        entry.code.0,
        entry.title,
        for_terminal(entry.story)
    ))
}

/// Markdown as plain text: paragraphs in lines of a readable width, programs indented.
fn for_terminal(story: &str) -> String {
    let mut text = String::new();
    let mut in_program = false;
    for line in story.trim().lines() {
        if line.starts_with("```") {
            in_program = !in_program;
        } else if in_program {
            text.push_str(format!("    {line}").trim_end());
            text.push('\n');
        } else {
            let next = if line.starts_with("- ") { "  " } else { "" };
            text.push_str(&wrapped(line, WIDTH, "", next));
        }
    }
    text
}

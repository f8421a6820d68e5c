//! `hearth explain`: the stories behind the codes.

use hearth_lang::codes;

use crate::arguments::Explain;
use crate::failure::Failure;
use crate::{near, output};

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
            "there is no code {code:?}; {advice}`hearth explain` lists them all"
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
            wrap(line, &mut text);
        }
    }
    text
}

fn wrap(paragraph: &str, text: &mut String) {
    let indent = if paragraph.starts_with("- ") {
        "  "
    } else {
        ""
    };
    let mut width = 0;
    for word in paragraph.split_whitespace() {
        let letters = word.chars().count();
        if width > 0 && width + 1 + letters > WIDTH {
            text.push('\n');
            text.push_str(indent);
            width = 0;
        }
        if width > 0 {
            text.push(' ');
            width += 1;
        }
        text.push_str(word);
        width += letters;
    }
    text.push('\n');
}

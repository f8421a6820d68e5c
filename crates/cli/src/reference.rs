//! The reference page of the command, from the definition of its arguments.
//!
//! Only a test needs it: the one that holds `docs/reference/cli.md` to what the command says of
//! itself, or writes it when `HEARTH_BLESS=1`.

use std::fmt::Write as _;
use std::path::Path;

use clap::builder::StyledStr;
use clap::{Arg, Command, CommandFactory};

use crate::arguments::Arguments;

fn page() -> String {
    let mut root = Arguments::command();
    root.build();
    let mut text = String::from(
        "# The command\n\n\
         <!-- Made from the command's own definition: `./x bless` writes it anew. -->\n\n",
    );
    add_about(&mut text, &root);
    text.push_str("| command | |\n|---|---|\n");
    for command in root.get_subcommands() {
        let name = command.get_name();
        let about = plain(command.get_about());
        let _ = writeln!(text, "| [`hearth {name}`](#hearth-{name}) | {about} |");
    }
    text.push('\n');
    add_after(&mut text, &root);
    for command in root.get_subcommands() {
        add_command(&mut text, command, "hearth", "##");
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

/// A command and, one level of headings below, those inside it.
fn add_command(text: &mut String, command: &Command, above: &str, marks: &str) {
    let name = format!("{above} {}", command.get_name());
    let _ = writeln!(text, "{marks} `{name}`\n");
    add_about(text, command);
    let usage = plain(Some(&command.clone().render_usage()));
    let usage = usage.trim_start_matches("Usage: ");
    let _ = writeln!(text, "```text\n{usage}\n```\n");
    add_arguments(text, command);
    add_after(text, command);
    for inner in command.get_subcommands() {
        add_command(text, inner, &name, &format!("{marks}#"));
    }
}

fn plain(text: Option<&StyledStr>) -> String {
    text.map(ToString::to_string).unwrap_or_default()
}

fn add_about(text: &mut String, command: &Command) {
    let about = plain(command.get_long_about().or(command.get_about()));
    let _ = writeln!(text, "{}\n", with_full_stop(about.trim()));
}

fn with_full_stop(text: &str) -> String {
    if text.ends_with('.') {
        text.to_owned()
    } else {
        format!("{text}.")
    }
}

fn add_after(text: &mut String, command: &Command) {
    let after = plain(command.get_after_long_help().or(command.get_after_help()));
    if !after.is_empty() {
        let _ = writeln!(text, "```text\n{}\n```\n", after.trim_end());
    }
}

fn add_arguments(text: &mut String, command: &Command) {
    let arguments = command
        .get_arguments()
        .filter(|argument| argument.get_id() != "help" && !argument.is_hide_set());
    let mut table = String::new();
    for argument in arguments {
        let help = plain(argument.get_long_help().or(argument.get_help()));
        let help = help.replace('|', "\\|").replace('\n', " ");
        let _ = writeln!(table, "| {} | {help}{} |", name(argument), values(argument));
    }
    if !table.is_empty() {
        let _ = writeln!(text, "| argument | |\n|---|---|\n{table}");
    }
}

fn name(argument: &Arg) -> String {
    let value = argument
        .get_value_names()
        .filter(|_| argument.get_action().takes_values())
        .map(|names| {
            names
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(" ")
        })
        .unwrap_or_default();
    let short = argument.get_short().map(|short| format!("-{short}"));
    let long = argument.get_long().map(|long| format!("--{long}"));
    let names: Vec<_> = short.into_iter().chain(long).collect();
    let shown = match (names.is_empty(), value.is_empty()) {
        (true, _) => value,
        (false, true) => names.join(", "),
        (false, false) => format!("{} {value}", names.join(", ")),
    };
    format!("`{shown}`")
}

/// The values an argument can have, with what each means, and which one it has by itself.
fn values(argument: &Arg) -> String {
    if !argument.get_action().takes_values() {
        return String::new();
    }
    let default = argument.get_default_values().first();
    let values: Vec<_> = argument
        .get_possible_values()
        .iter()
        .map(|value| {
            let is_default = default.is_some_and(|default| *default == *value.get_name());
            let mark = if is_default { " (default)" } else { "" };
            match value.get_help() {
                Some(help) => format!("`{}`{mark}: {help}", value.get_name()),
                None => format!("`{}`{mark}", value.get_name()),
            }
        })
        .collect();
    match values.len() {
        0 => String::new(),
        _ => format!(". {}", values.join("; ")),
    }
}

#[test]
fn the_reference_page_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/cli.md");
    let page = page();
    if std::env::var_os("HEARTH_BLESS").is_some_and(|value| value == "1") {
        std::fs::create_dir_all(path.parent().expect("a file is in a folder"))
            .expect("the folder of the reference can be made");
        std::fs::write(&path, page).expect("the reference can be written");
        return;
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == page,
        "docs/reference/cli.md is not what the command says; run `./x bless`"
    );
}

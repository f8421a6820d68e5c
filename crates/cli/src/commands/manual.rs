//! `hearth completions` and `hearth man`, derived from the definition of the arguments.

use std::fs;
use std::path::Path;

use clap::CommandFactory;
use hearth_terminal::{Failure, output};

use crate::arguments::{Arguments, Completions, Man};

pub(crate) fn completions(arguments: &Completions) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(
        arguments.shell,
        &mut Arguments::command(),
        "hearth",
        &mut script,
    );
    output::write(script)
}

pub(crate) fn man(arguments: &Man) -> Result<(), Failure> {
    let mut command = Arguments::command();
    command.build();
    let Some(folder) = &arguments.folder else {
        return output::write(page(&command)?);
    };
    fs::create_dir_all(folder).map_err(|error| output::cannot_write(folder, &error))?;
    output::replace(&folder.join("hearth.1"), &page(&command)?)?;
    write_pages(folder, &command, "hearth")
}

/// One page for each command inside another, however deep.
fn write_pages(folder: &Path, command: &clap::Command, above: &str) -> Result<(), Failure> {
    for subcommand in command.get_subcommands() {
        let name = format!("{above}-{}", subcommand.get_name());
        let named = subcommand.clone().display_name(&name);
        output::replace(&folder.join(format!("{name}.1")), &page(&named)?)?;
        write_pages(folder, subcommand, &name)?;
    }
    Ok(())
}

fn page(command: &clap::Command) -> Result<Vec<u8>, Failure> {
    let mut text = Vec::new();
    clap_mangen::Man::new(command.clone())
        .render(&mut text)
        .map_err(|error| Failure::environment(format!("cannot write a page: {error}")))?;
    Ok(text)
}

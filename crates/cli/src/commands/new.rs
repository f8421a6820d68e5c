//! `hearth new`: a project that runs at once.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use hearth_terminal::{Failure, output};
use hearth_text::cause;

use crate::arguments::New;

const FILES: &[(&str, &str)] = &[
    ("main.isf", include_str!("../../templates/new/main.isf")),
    ("README.md", include_str!("../../templates/new/README.md")),
];

pub(crate) fn new(arguments: &New) -> Result<(), Failure> {
    let folder = arguments.folder.as_path();
    refuse_occupied(folder)?;
    fs::create_dir_all(folder).map_err(|error| cannot_make(folder, &error))?;
    for (name, text) in FILES {
        let path = folder.join(name);
        fs::write(&path, text).map_err(|error| cannot_make(&path, &error))?;
    }
    let program = folder.join("main.isf");
    output::write(format!(
        "Made {}. Try:\n\n  hearth run {}\n",
        folder.display(),
        program.display()
    ))
}

fn refuse_occupied(folder: &Path) -> Result<(), Failure> {
    let occupied = match fs::read_dir(folder) {
        Ok(mut entries) => entries.next().is_some(),
        Err(error) => match error.kind() {
            ErrorKind::NotFound => return Ok(()),
            ErrorKind::NotADirectory => true,
            _ => return Err(cannot_make(folder, &error)),
        },
    };
    if occupied {
        return Err(Failure::input(format!(
            "{} is there already and not an empty directory; choose another name",
            folder.display()
        )));
    }
    Ok(())
}

fn cannot_make(path: &Path, error: &std::io::Error) -> Failure {
    Failure::environment(format!("cannot make {}: {}", path.display(), cause(error)))
}

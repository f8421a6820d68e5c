//! Receives what programs record over TCP.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use hearth_terminal::{Failure, output};
use hearth_text::{cause, counted};
use hearth_watch::stream::{Head, Received, Receiver};

use crate::arguments::watch::Watch;

pub(super) fn listen(address: &str, arguments: &Watch) -> Result<(), Failure> {
    let receiver = Receiver::at(address).map_err(|error| {
        Failure::input(format!(
            "cannot listen at {address}: {}; name an address of this machine and a free port, \
             such as localhost:4000",
            cause(&error)
        ))
    })?;
    output::tell(format!("listening at {}", receiver.address()));
    let taken = Mutex::new(BTreeSet::new());
    let name = |head: &Head| {
        let wanted = wanted(head, arguments.into.as_deref());
        let mut taken = taken.lock().unwrap_or_else(PoisonError::into_inner);
        let free = free(&wanted, &taken);
        taken.insert(free.clone());
        free
    };
    let mut ended = 0;
    receiver.run(&name, |news| {
        match news {
            Received::Begins(head, path) => output::tell(format!(
                "{}, process {}: records go to {}",
                head.program,
                head.process,
                path.display()
            )),
            Received::Ends(path, bytes) => {
                ended += 1;
                let bytes = counted(bytes as usize, "byte");
                output::tell(format!("{}: complete, {bytes}", path.display()));
            }
            Received::Breaks(Some(path), why) => output::tell(format!(
                "{}: the connection broke ({why}); the program may come back",
                path.display()
            )),
            Received::Breaks(None, why) => output::tell(format!("a connection ended: {why}")),
        }
        arguments.count == Some(ended)
    });
    Ok(())
}

/// The file for a program.
fn wanted(head: &Head, into: Option<&Path>) -> PathBuf {
    match into {
        Some(into) => {
            let name = into.to_string_lossy();
            name.replace("%p", &head.process.to_string()).into()
        }
        None => {
            let program = Path::new(&head.program).file_name();
            let program = program.map_or("program".into(), |name| name.to_string_lossy());
            format!("{program}-{}.calls", head.process).into()
        }
    }
}

/// The same name, or one with a number, that no other program has.
fn free(wanted: &Path, taken: &BTreeSet<PathBuf>) -> PathBuf {
    let numbered = (2..).map(|nth| {
        let mut name = wanted.as_os_str().to_owned();
        name.push(format!(".{nth}"));
        PathBuf::from(name)
    });
    let mut names = std::iter::once(wanted.to_owned()).chain(numbered);
    names
        .find(|name| !taken.contains(name))
        .unwrap_or_else(|| wanted.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_program_has_a_file() {
        let head = Head {
            process: 12,
            program: "/usr/bin/shop".into(),
            ..Head::default()
        };
        assert_eq!(wanted(&head, None), Path::new("shop-12.calls"));
        let into = wanted(&head, Some(Path::new("at/%p.calls")));
        assert_eq!(into, Path::new("at/12.calls"));
        // The name comes from another machine.
        let bad = Head {
            program: "/..".into(),
            ..head
        };
        assert_eq!(wanted(&bad, None), Path::new("program-12.calls"));
        let mut taken = BTreeSet::new();
        for expected in ["a", "a.2", "a.3"] {
            let name = free(Path::new("a"), &taken);
            assert_eq!(name, Path::new(expected));
            taken.insert(name);
        }
    }
}

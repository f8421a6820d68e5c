//! Command lines for a POSIX shell.

use super::cpus::{CpuSet, Placed};
use super::error::BindError;

/// Memory policy of a program that `numactl` starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MemoryPolicy {
    /// On the nodes of the placement and nowhere else: allocation fails when they are full.
    /// [`Local`](Self::Local) where they are not known.
    Bind,
    /// On the node that the allocating thread runs on, or on the next one if that is full.
    #[default]
    Local,
}

/// A word as the shell reads it back, whatever it holds.
///
/// # Errors
/// If the word holds the character 0, which no argument can.
///
/// ```
/// use hearth_place::forms::quote;
///
/// assert_eq!(quote("./maker")?, "./maker");
/// assert_eq!(quote("it's")?, r"'it'\''s'");
/// # Ok::<(), hearth_place::forms::BindError>(())
/// ```
pub fn quote(word: &str) -> Result<String, BindError> {
    if word.contains('\0') {
        let word = word.replace('\0', "\\0");
        return Err(BindError::Nul { word });
    }
    // `=` and `~` have a meaning in some places, `%` in others: everything that is not surely plain
    // is quoted.
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"_-./:@,+".contains(&b);
    if !word.is_empty() && word.bytes().all(is_plain) {
        return Ok(word.to_owned());
    }
    Ok(format!("'{}'", word.replace('\'', r"'\''")))
}

/// A program and its arguments as the end of a line.
pub(super) fn quote_all<W: AsRef<str>>(program: &[W]) -> Result<String, BindError> {
    if program.first().is_none_or(|name| name.as_ref().is_empty()) {
        return Err(BindError::NoProgram);
    }
    let words: Result<Vec<String>, BindError> =
        program.iter().map(|word| quote(word.as_ref())).collect();
    Ok(words?.join(" "))
}

/// Runs a whole program on the hardware threads that its placement uses.
///
/// # Errors
/// If there is no program, or a word cannot be written.
///
/// ```
/// use hearth_machine::topology::OsThread;
/// use hearth_place::forms::{CpuSet, Placed, taskset};
///
/// let set = CpuSet::of(&[3, 0, 1].map(|cpu| Placed::new("c", OsThread(cpu))))?;
/// assert_eq!(taskset(&set, &["./my program"])?, "taskset --cpu-list 0-1,3 './my program'");
/// # Ok::<(), hearth_place::forms::BindError>(())
/// ```
pub fn taskset<W: AsRef<str>>(set: &CpuSet, program: &[W]) -> Result<String, BindError> {
    let program = quote_all(program)?;
    Ok(format!("taskset --cpu-list {} {program}", set.cpu_list()))
}

/// Runs a program for each component on its hardware thread, a line each, in order. In the
/// program's words `{name}` becomes the component's name and `{number}` its number, from 0.
///
/// # Errors
/// If there are no components or no program, or if a word cannot be written.
pub fn taskset_each<W: AsRef<str>>(
    placed: &[Placed],
    program: &[W],
) -> Result<Vec<String>, BindError> {
    each(placed, program, taskset)
}

/// Binds running threads by their system numbers: a line each, for the components in order.
///
/// # Errors
/// If the numbers of threads and components differ, or are 0.
pub fn taskset_threads(placed: &[Placed], threads: &[u32]) -> Result<Vec<String>, BindError> {
    if placed.is_empty() {
        return Err(BindError::Nothing);
    }
    if placed.len() != threads.len() {
        return Err(BindError::Threads {
            threads: threads.len(),
            components: placed.len(),
        });
    }
    let both = placed.iter().zip(threads);
    let line = |(placed, thread): (&Placed, &u32)| {
        format!("taskset --cpu-list --pid {} {thread}", placed.cpu.0)
    };
    Ok(both.map(line).collect())
}

/// Command that runs a whole program on the hardware threads, and with the memory, of its
/// placement.
///
/// # Errors
/// If there is no program, or a word cannot be written.
pub fn numactl<W: AsRef<str>>(
    set: &CpuSet,
    memory: MemoryPolicy,
    program: &[W],
) -> Result<String, BindError> {
    let quoted = quote_all(program)?;
    let memory = match (memory, set.node_list()) {
        (MemoryPolicy::Bind, Some(nodes)) => format!("--membind={nodes}"),
        _ => "--localalloc".to_owned(),
    };
    // Options end at the first word that is not one.
    let end = match program.first() {
        Some(name) if name.as_ref().starts_with('-') => "-- ",
        _ => "",
    };
    let cpus = set.cpu_list();
    Ok(format!(
        "numactl --physcpubind={cpus} {memory} {end}{quoted}"
    ))
}

/// Runs a program for each component on its hardware thread and with its node's memory, a line
/// each, in order. In the program's words `{name}` becomes the component's name and `{number}` its
/// number, from 0.
///
/// # Errors
/// If there are no components or no program, or if a word cannot be written.
pub fn numactl_each<W: AsRef<str>>(
    placed: &[Placed],
    memory: MemoryPolicy,
    program: &[W],
) -> Result<Vec<String>, BindError> {
    each(placed, program, |set, program| {
        numactl(set, memory, program)
    })
}

fn each<W: AsRef<str>>(
    placed: &[Placed],
    program: &[W],
    line: impl Fn(&CpuSet, &[String]) -> Result<String, BindError>,
) -> Result<Vec<String>, BindError> {
    if placed.is_empty() {
        return Err(BindError::Nothing);
    }
    let mut lines = Vec::with_capacity(placed.len());
    for (number, one) in placed.iter().enumerate() {
        let set = CpuSet::of(std::slice::from_ref(one))?;
        let words: Vec<String> = program
            .iter()
            .map(|word| fill(word.as_ref(), &one.name, number))
            .collect();
        lines.push(line(&set, &words)?);
    }
    Ok(lines)
}

/// Replaces from left to right, so that a name that looks like a placeholder stays as it is.
fn fill(word: &str, name: &str, number: usize) -> String {
    let mut filled = String::new();
    let mut rest = word;
    while let Some(at) = rest.find('{') {
        filled.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some(after) = rest.strip_prefix("{name}") {
            filled.push_str(name);
            rest = after;
        } else if let Some(after) = rest.strip_prefix("{number}") {
            filled.push_str(&number.to_string());
            rest = after;
        } else {
            filled.push('{');
            rest = &rest[1..];
        }
    }
    filled.push_str(rest);
    filled
}

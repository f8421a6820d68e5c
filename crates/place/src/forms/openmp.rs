//! Environment variables that make OpenMP runtimes bind threads.

use super::cpus::{CpuSet, Placed, runs};
use super::error::BindError;
use super::shell::{quote, quote_all};

/// Longest variable, with its name, `=` and the final zero: Linux starts no program with a longer
/// one (`MAX_ARG_STRLEN`, 32 pages of 4 KiB).
pub const VARIABLE_BYTES_MAX: usize = 32 * 4096;

/// Variables and their values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variables(Vec<(&'static str, String)>);

impl Variables {
    fn new(variables: Vec<(&'static str, String)>) -> Result<Self, BindError> {
        for (variable, value) in &variables {
            let bytes = variable.len() + 1 + value.len() + 1;
            if bytes > VARIABLE_BYTES_MAX {
                return Err(BindError::TooLong {
                    variable,
                    bytes,
                    max: VARIABLE_BYTES_MAX,
                });
            }
        }
        Ok(Self(variables))
    }

    /// Variables with their unquoted values.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.0.iter().map(|(name, value)| (*name, value.as_str()))
    }

    /// Shell lines that set them for all later commands.
    #[must_use]
    pub fn exports(&self) -> String {
        let line = |(name, value): (&str, &str)| format!("export {name}={}\n", written(value));
        self.iter().map(line).collect()
    }

    /// A shell line that runs a program with them.
    ///
    /// # Errors
    /// If there is no program, or a word cannot be written.
    pub fn command<W: AsRef<str>>(&self, program: &[W]) -> Result<String, BindError> {
        let program = quote_all(program)?;
        let set = |(name, value): (&str, &str)| format!("{name}={} ", written(value));
        let variables: String = self.iter().map(set).collect();
        Ok(variables + &program)
    }
}

/// Values consist of digits and signs, so they can always be quoted.
fn written(value: &str) -> String {
    quote(value).expect("a value of ours holds no character 0")
}

/// Variables for a program with a thread for each component, in order: thread k of its teams runs
/// on the hardware thread of component k; several may share one.
///
/// # Errors
/// If there are no components, or too many for a variable.
///
/// ```
/// use hearth_machine::topology::OsThread;
/// use hearth_place::forms::{Placed, openmp};
///
/// let placed = [4, 0, 1, 2].map(|cpu| Placed::new("c", OsThread(cpu)));
/// assert_eq!(
///     openmp(&placed)?.command(&["./program"])?,
///     "OMP_NUM_THREADS=4 OMP_PLACES='{4},{0}:3' OMP_PROC_BIND=close ./program"
/// );
/// # Ok::<(), hearth_place::forms::BindError>(())
/// ```
pub fn openmp(placed: &[Placed]) -> Result<Variables, BindError> {
    if placed.is_empty() {
        return Err(BindError::Nothing);
    }
    // `close` gives thread k the k-th place after the first thread's, which has the first one;
    // `true` would leave the order to the runtime.
    let places = places(&runs(placed.iter().map(|placed| placed.cpu)));
    Variables::new(vec![
        ("OMP_NUM_THREADS", placed.len().to_string()),
        ("OMP_PLACES", places),
        ("OMP_PROC_BIND", "close".into()),
    ])
}

/// Variables for any OpenMP program: its threads run on the hardware threads of the placement, one
/// after the other.
///
/// # Errors
/// If a variable becomes too long.
pub fn openmp_program(set: &CpuSet) -> Result<Variables, BindError> {
    let places = places(&runs(set.cpus().iter().copied()));
    Variables::new(vec![
        ("OMP_PLACES", places),
        ("OMP_PROC_BIND", "close".into()),
    ])
}

/// [`openmp`] by the older variable of GNU's runtime. It counts only where `OMP_PLACES` and
/// `OMP_PROC_BIND` are not set.
///
/// # Errors
/// If there are no components, or too many for a variable.
pub fn gomp(placed: &[Placed]) -> Result<Variables, BindError> {
    if placed.is_empty() {
        return Err(BindError::Nothing);
    }
    let parts = runs(placed.iter().map(|placed| placed.cpu));
    let parts = parts.iter().map(|&(first, length)| match length {
        1 => first.to_string(),
        _ => format!("{first}-{}", first + (length - 1)),
    });
    let list: Vec<String> = parts.collect();
    Variables::new(vec![
        ("OMP_NUM_THREADS", placed.len().to_string()),
        ("GOMP_CPU_AFFINITY", list.join(" ")),
    ])
}

fn places(runs: &[(u32, u32)]) -> String {
    let places = runs.iter().map(|&(first, length)| match length {
        1 => format!("{{{first}}}"),
        _ => format!("{{{first}}}:{length}"),
    });
    places.collect::<Vec<_>>().join(",")
}

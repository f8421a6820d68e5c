//! Compares the runtime with itself less one mechanism: a grade of channels, a kind of waiting, an
//! option.
//!
//! A [`Grade`] says what is taken away and how, and which loads show it. [`rows`] is the table;
//! [`session`] builds the programs and measures. Nothing here is about other runtimes.

pub mod rows;
pub mod session;

/// A mechanism, and the loads that show its worth.
#[derive(Clone, Copy, Debug)]
pub struct Grade {
    pub name: &'static str,
    /// The difference between the sides, as "with; without".
    pub difference: &'static str,
    pub off: Off,
    pub loads: &'static [Load],
}

/// The way in which the second side does without the mechanism.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Off {
    /// None: the sides are the same, and differ by chance alone.
    Same,
    /// The build that can do without mechanisms, of which none is off: both sides have all.
    Build,
    /// `HEARTH_WITHOUT` has this; both sides are of the build that obeys it.
    Without(&'static str),
    /// Each operation on a channel is a call: `hearth.h`'s inlined ways are not used.
    Calls,
    /// A variable has another value, or is unset.
    Variable {
        name: &'static str,
        with: Option<&'static str>,
        without: &'static str,
    },
}

/// A program and how it is run.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Stem of the program below `research/benches`.
    pub program: &'static str,
    /// Number of workers.
    pub workers: usize,
    /// Number of cores, of which there may be more than workers.
    pub cores: usize,
    /// `HEARTH_PLACE`, unless the grade is about that.
    pub place: &'static str,
    pub input: Input,
    /// Rounds of a small run.
    pub small: u32,
}

/// Text on the program's standard input.
#[derive(Clone, Copy, Debug)]
pub enum Input {
    /// Rounds, then the first and the last core.
    Rounds,
    /// Components, then rounds.
    Allocators(u32),
    /// Input of `servers/section`: rounds, two clients on the last core, integers of the server and
    /// of a client.
    Section(u32),
}

impl Input {
    fn text(self, rounds: u32, cores: &[usize]) -> String {
        let first = cores.first().copied().unwrap_or(0);
        let last = cores.last().copied().unwrap_or(0);
        match self {
            Input::Rounds => format!("{rounds}\n{first}\n{last}\n"),
            Input::Allocators(components) => format!("{components}\n{rounds}\n"),
            Input::Section(integers) => {
                format!("{rounds}\n2\n{integers}\n256\n{last}\n{last}\n")
            }
        }
    }
}

impl Load {
    /// The program and the workers, in words.
    pub fn label(&self) -> String {
        let name = self.program.rsplit('/').next().unwrap_or_default();
        let from = match self.program.split('/').next() {
            Some("savina") => "savina ",
            _ => "",
        };
        let more = match self.input {
            Input::Rounds => String::new(),
            Input::Allocators(1) => ", 1 component".to_owned(),
            Input::Allocators(components) => format!(", {components} components"),
            Input::Section(integers) => format!(" of {} bytes", integers * 4),
        };
        let s = if self.workers == 1 { "" } else { "s" };
        format!("{from}{name}{more}, {} worker{s}", self.workers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_told_their_cores() {
        assert_eq!(Input::Rounds.text(7, &[2, 5]), "7\n2\n5\n");
        assert_eq!(Input::Rounds.text(7, &[2]), "7\n2\n2\n");
        assert_eq!(Input::Allocators(4).text(7, &[2]), "4\n7\n");
        assert_eq!(Input::Section(16).text(7, &[2, 5]), "7\n2\n16\n256\n5\n5\n");
    }
}

//! Recorded calls: how often, for how long, by whom, and what is missing.

mod page;
mod sequence;
mod text;
mod trace;

use std::path::Path;

use hearth_calls::{Recorded, Tree, Unreadable};
use hearth_draw::scale::Unit;
use hearth_text::counted;

pub use page::page;
pub use sequence::{mermaid, owners_mermaid};
pub use text::{document, text};
use trace::Longest;
pub use trace::{Span, Trace};

/// Recorded calls, added up.
pub struct Calls {
    /// The file.
    pub recorded: Recorded,
    /// All calls.
    pub tree: Tree,
    /// The longest outermost call that is whole.
    pub longest: Option<Trace>,
}

/// A probe's figures, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// The probe's name.
    pub name: String,
    /// Number of calls.
    pub calls: u64,
    /// Number of those whose length is not known.
    pub unknown: u64,
    /// Length of the others together.
    pub total: u64,
    /// The same without the calls directly within them.
    pub own: u64,
    /// Quantiles of the lengths: half, 90, 99 and 99.9 of a hundred, and the longest.
    pub quantiles: [u64; 5],
}

impl Calls {
    /// Reads a file of recorded calls.
    ///
    /// # Errors
    /// It cannot be read, or is something else.
    pub fn of(path: &Path) -> Result<Calls, Unreadable> {
        let recorded = Recorded::open(path)?;
        let (mut tree, mut longest) = (Tree::default(), Longest::default());
        recorded.visit(|step| {
            longest.add(step);
            tree.add(step);
        })?;
        tree.add_tallies(&recorded);
        Ok(Calls {
            recorded,
            tree,
            longest: longest.found(),
        })
    }

    /// Figures of each probe, those with the most time of their own first.
    #[must_use]
    pub fn rows(&self) -> Vec<Row> {
        let mut rows: Vec<(u32, Row)> = Vec::new();
        for node in &self.tree.nodes {
            let Some(name) = node.name else { continue };
            let at = rows.iter().position(|(number, _)| *number == name);
            let at = at.unwrap_or_else(|| {
                let row = Row {
                    name: self.recorded.name(name).to_owned(),
                    ..Row::default()
                };
                rows.push((name, row));
                rows.len() - 1
            });
            let row = &mut rows[at].1;
            row.calls += node.calls;
            row.unknown += node.unknown;
            row.total += node.total;
            row.own += node.own;
        }
        for (name, row) in &mut rows {
            if let Some(lengths) = self.tree.lengths(*name) {
                row.quantiles =
                    [0.5, 0.9, 0.99, 0.999, 1.0].map(|part| lengths.value_at_quantile(part));
            }
        }
        rows.sort_by(|(_, one), (_, other)| {
            other.own.cmp(&one.own).then(one.name.cmp(&other.name))
        });
        rows.into_iter().map(|(_, row)| row).collect()
    }

    /// Records emitted, stored and lost, over all threads.
    #[must_use]
    pub fn account(&self) -> (u64, u64, u64) {
        let accounts = self.recorded.accounts();
        let homeless = self.recorded.homeless();
        (
            accounts.iter().map(|one| one.emitted).sum::<u64>() + homeless,
            accounts.iter().map(|one| one.stored).sum(),
            accounts.iter().map(|one| one.lost()).sum::<u64>() + homeless,
        )
    }

    /// Whether calls were added up while the program ran, so that no single ones are known.
    #[must_use]
    pub fn are_added_up(&self) -> bool {
        !self.recorded.tallies().is_empty()
    }

    /// The program, and its account in a sentence.
    fn headline(&self) -> (String, String) {
        let (emitted, stored, lost) = self.account();
        let program = format!(
            "{}, process {}",
            self.recorded.program(),
            self.recorded.process()
        );
        let threads = counted(self.recorded.accounts().len(), "thread");
        let components = match self.recorded.is_of_components() {
            true => format!(
                "{} on ",
                counted(self.recorded.callers().len(), "component")
            ),
            false => String::new(),
        };
        let account = format!(
            "{components}{threads} emitted {} records: {} {}, {} lost",
            grouped(emitted),
            grouped(stored),
            match self.are_added_up() {
                true => "counted",
                false => "stored",
            },
            grouped(lost),
        );
        (program, account)
    }

    /// Sentences on what a reader must know before the figures.
    #[must_use]
    pub fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        if !self.recorded.has_ended() {
            remarks.push(
                "The monitor did not end in order: the program runs, or was killed. What it had \
                 not stored was read from its journal, if that is still there."
                    .to_owned(),
            );
        }
        let (emitted, _, lost) = self.account();
        if lost > 0 {
            let (gaps, _) = self.tree.gaps;
            remarks.push(format!(
                "{} of {} records are lost, by the law {}; there are {} gaps. Calls of which an \
                 end is lost are counted, and have no length.",
                grouped(lost),
                grouped(emitted),
                self.recorded.law(),
                grouped(gaps),
            ));
        }
        if self.are_added_up() {
            remarks.push(self.remark_on_sums());
        }
        if !self.recorded.writer().is_empty() {
            remarks.push(format!("The writer ran on {}.", self.recorded.writer()));
        }
        for damage in self.recorded.damages() {
            remarks.push(format!("In the file, {damage}."));
        }
        for (at, step) in self.recorded.clock_steps() {
            remarks.push(format!(
                "The wall's clock was set by {} after {}; times here do not depend on it.",
                signed(step),
                ns(at)
            ));
        }
        remarks
    }

    fn remark_on_sums(&self) -> String {
        let tallies = self.recorded.tallies().values();
        let open = match tallies.map(|tally| tally.unknown).sum::<u64>() {
            0 => String::new(),
            1 => " 1 call had not ended; it is counted, and has no length.".to_owned(),
            more => format!(
                " {} calls had not ended; they are counted, and have no length.",
                grouped(more)
            ),
        };
        format!(
            "Calls were added up while the program ran: there are no single ones. Lengths are \
             right to 1 %.{open}"
        )
    }
}

fn ns(value: u64) -> String {
    Unit::Nanoseconds.show(value as f64)
}

fn signed(step: i64) -> String {
    let sign = if step < 0 { "-" } else { "+" };
    format!("{sign}{}", ns(step.unsigned_abs()))
}

/// A number with a blank between thousands.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (nth, digit) in digits.chars().enumerate() {
        if nth > 0 && (digits.len() - nth).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// The owner of a probe, `Server` of `Server.handle` and of `Server::handle`, and the rest.
fn owner_of(name: &str) -> (&str, &str) {
    let cut = [
        name.rfind("::").map(|at| (at, 2)),
        name.rfind('.').map(|at| (at, 1)),
    ];
    match cut.into_iter().flatten().max() {
        Some((at, length)) if at > 0 => (&name[..at], &name[at + length..]),
        _ => ("program", name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers() {
        assert_eq!(owner_of("Server.handle"), ("Server", "handle"));
        assert_eq!(owner_of("shop::Server::handle"), ("shop::Server", "handle"));
        assert_eq!(owner_of("main"), ("program", "main"));
        assert_eq!(grouped(1_234_567), "1 234 567");
        assert_eq!(grouped(12), "12");
    }
}

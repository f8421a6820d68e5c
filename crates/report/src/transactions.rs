//! Traces of transactions: what took effect, who stood in whose way, and what is missing.

use std::path::Path;

use hearth_draw::page::{Page, Section};
use hearth_stm::analysis::{End, History, parts, perfetto, report};
use hearth_watch::stream::{Head, Log, Total, Unread};
use hearth_watch::trace::append_packet;
use serde_json::{Value, json};

/// A file of traced transactions.
pub struct Transactions {
    head: Head,
    history: History,
    /// Records emitted, stored and lost, over all threads.
    account: [u64; 3],
    has_ended: bool,
    writer: String,
    damages: Vec<String>,
}

impl Transactions {
    /// Whether a file holds traces of transactions. One that cannot be read does not.
    #[must_use]
    pub fn are_in(path: &Path) -> bool {
        Log::open(path).is_ok_and(History::is_in)
    }

    /// Reads a file of traced transactions.
    ///
    /// # Errors
    /// It cannot be read, or is something else.
    pub fn of(path: &Path) -> Result<Transactions, Unread> {
        let (history, log) = History::with_accounts(Log::open(path)?);
        let accounts = log.accounts();
        let homeless = log.homeless;
        let sum = |of: fn(&(Total, u64)) -> u64| accounts.iter().map(of).sum::<u64>();
        Ok(Transactions {
            head: log.head().clone(),
            history,
            account: [
                sum(|(total, _)| total.emitted) + homeless,
                sum(|(_, stored)| *stored),
                sum(|(total, _)| total.lost()) + homeless,
            ],
            has_ended: log.has_ended,
            writer: log.writer,
            damages: log.damages,
        })
    }

    fn headline(&self) -> String {
        let [emitted, stored, lost] = self.account;
        let name = match self.head.program.as_str() {
            "" => "a program",
            name => name,
        };
        format!(
            "{name}, process {}: {emitted} records, {stored} stored, {lost} lost",
            self.head.process
        )
    }

    /// Notes on what is missing, in sentences.
    fn notes(&self) -> Vec<String> {
        let mut notes = self.damages.clone();
        if !self.writer.is_empty() {
            notes.push(format!("The writer ran on {}.", self.writer));
        }
        if !self.has_ended {
            notes.push("The program did not end in order, or still runs.".to_owned());
        }
        if !self.history.has_accesses {
            notes.push(
                "The trace has no reads and writes: killers that hold no lock are unknown."
                    .to_owned(),
            );
        }
        notes
    }

    /// The report as text.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = format!("{}\n", self.headline());
        for note in self.notes() {
            text += &format!("note: {note}\n");
        }
        text + "\n" + &report(&self.history)
    }

    /// The report as a page.
    #[must_use]
    pub fn page(&self) -> String {
        let mut page = Page::new("Transactions");
        page.lead(&self.headline());
        for note in self.notes() {
            page.lead(&note);
        }
        for part in parts(&self.history) {
            page.add(Section::new(&part.title).printed(&part.text));
        }
        page.html()
    }

    /// A trace for Perfetto: a slice an attempt, an arrow from killer to victim.
    #[must_use]
    pub fn perfetto(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for packet in &perfetto(&self.history).packet {
            append_packet(packet, &mut bytes);
        }
        bytes
    }

    /// The counts as a document.
    #[must_use]
    pub fn document(&self) -> Value {
        let [emitted, stored, lost] = self.account;
        let threads = self.history.threads.iter().map(|thread| {
            let commits = thread.attempts.iter().filter(|it| it.end == End::Commit);
            let commits = commits.count();
            json!({
                "name": thread.name,
                "commits": commits,
                "aborts": thread.attempts.len() - commits,
                "lost": thread.lost,
            })
        });
        json!({
            "program": self.head.program,
            "process": self.head.process,
            "emitted": emitted,
            "stored": stored,
            "lost": lost,
            "has_ended": self.has_ended,
            "threads": threads.collect::<Vec<_>>(),
            "origins": self.history.origins,
        })
    }
}

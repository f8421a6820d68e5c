//! The servers that are compared, by name, and the options that make them so.

use std::path::Path;

use cachet_load::server::Program;

/// The real one's name.
pub const MEMCACHED: &str = "memcached";
/// cachet with its section under a lock: what the source calls unmodified.
pub const LOCK: &str = "lock";
/// Version by message with the source's three optimisations: what it calls modified.
pub const MESSAGE: &str = "message";
/// Version by message without any optimisation.
pub const PLAIN: &str = "plain";

/// One of the source's optimisations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Optimisation {
    /// Its name in figures.
    pub id: &'static str,
    /// Its description.
    pub title: &'static str,
    /// The option with it and without.
    options: [[&'static str; 2]; 2],
}

/// The source's three, in its order.
pub const OPTIMISATIONS: [Optimisation; 3] = [
    Optimisation {
        id: "zero",
        title: "zero-copy queue: a pointer to the request goes through the ring, not the request",
        options: [
            ["--allocation-queue", "zero-copy"],
            ["--allocation-queue", "single-copy"],
        ],
    },
    Optimisation {
        id: "spin",
        title: "clients spin for a while before they block",
        options: [["--allocation-wait", "auto"], ["--allocation-wait", "park"]],
    },
    Optimisation {
        id: "drain",
        title: "the server takes all requests there are at once",
        options: [["--allocation-drain", "all"], ["--allocation-drain", "one"]],
    },
];

/// A server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Its name.
    pub id: &'static str,
    /// Its description.
    pub title: &'static str,
    how: How,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    Memcached,
    /// A mode, by the option that names it.
    Mode(&'static str),
    /// Version by message, with some of the source's optimisations, a bit each.
    Message(u8),
    /// Version by message, with our own queue, whose requests lie in lines of their senders.
    Lines,
}

const fn kind(id: &'static str, title: &'static str, how: How) -> Kind {
    Kind { id, title, how }
}

/// All servers.
pub const KINDS: [Kind; 13] = [
    kind(MEMCACHED, "today's memcached, as installed", How::Memcached),
    kind(LOCK, "cachet, the section under a lock", How::Mode("lock")),
    kind(
        "auto",
        "cachet, the way it measures to be better",
        How::Mode("auto"),
    ),
    kind(
        "combine",
        "cachet, who has the lock runs others' sections, too",
        How::Mode("combine"),
    ),
    kind(
        PLAIN,
        "cachet, by message: single-copy ring, blocking, one request at a time",
        How::Message(0),
    ),
    kind("zero", "plain with the zero-copy queue", How::Message(1)),
    kind("spin", "plain with clients that spin", How::Message(2)),
    kind(
        "drain",
        "plain with a server that takes all",
        How::Message(4),
    ),
    kind("zero+spin", "plain with both", How::Message(3)),
    kind("zero+drain", "plain with both", How::Message(5)),
    kind("spin+drain", "plain with both", How::Message(6)),
    kind(MESSAGE, "by message with all three", How::Message(7)),
    kind(
        "lines",
        "by message with Hearth's own queue, spinning, taking all",
        How::Lines,
    ),
];

/// The kinds by message that differ in one optimisation only: without it and with it.
#[must_use]
pub fn pairs(optimisation: usize) -> Vec<(&'static str, &'static str)> {
    let bit = 1u8 << optimisation;
    let named = |wanted: u8| {
        KINDS
            .iter()
            .find(|kind| kind.how == How::Message(wanted))
            .map(|kind| kind.id)
    };
    (0..8)
        .filter(|bits| bits & bit == 0)
        .filter_map(|bits| Some((named(bits)?, named(bits | bit)?)))
        .collect()
}

impl Kind {
    /// The kind of that name.
    #[must_use]
    pub fn named(id: &str) -> Option<&'static Kind> {
        KINDS.iter().find(|kind| kind.id == id)
    }

    /// True if it is the real memcached.
    #[must_use]
    pub fn is_memcached(&self) -> bool {
        self.how == How::Memcached
    }

    /// True if its section runs on a thread of its own.
    #[must_use]
    pub fn is_asynchronous(&self) -> bool {
        matches!(self.how, How::Message(_) | How::Lines)
    }

    /// Its program. The section's own thread stays on `core`, as the source's did.
    #[must_use]
    pub fn program(&self, cachet: &Path, core: usize) -> Program {
        let path = match self.how {
            How::Memcached => Path::new(MEMCACHED),
            _ => cachet,
        };
        let mut program = Program::new(self.id, path);
        let mut words: Vec<&str> = Vec::new();
        match self.how {
            How::Memcached => return program,
            How::Mode(mode) => words.extend(["--allocation", mode]),
            How::Lines => words.extend(["--allocation", "message", "--allocation-queue", "lines"]),
            How::Message(bits) => {
                words.extend(["--allocation", "message"]);
                for (at, optimisation) in OPTIMISATIONS.iter().enumerate() {
                    let [with, without] = optimisation.options;
                    words.extend(if bits >> at & 1 == 1 { with } else { without });
                }
            }
        }
        program.options = words.into_iter().map(str::to_owned).collect();
        if self.is_asynchronous() {
            program
                .options
                .extend(["--allocation-core".to_owned(), core.to_string()]);
        }
        program
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_optimisation_is_seen_with_and_without_in_four_pairs() {
        for (at, optimisation) in OPTIMISATIONS.iter().enumerate() {
            let pairs = pairs(at);
            assert_eq!(pairs.len(), 4);
            assert_eq!(pairs[0], (PLAIN, optimisation.id));
            assert!(pairs.iter().any(|(_, with)| *with == MESSAGE));
        }
    }

    #[test]
    fn options_say_what_names_say() {
        let of = |id| {
            let program = Kind::named(id).unwrap().program(Path::new("cachet"), 1);
            program.options.join(" ")
        };
        assert_eq!(of(MEMCACHED), "");
        assert_eq!(of(LOCK), "--allocation lock");
        assert_eq!(
            of("zero+drain"),
            "--allocation message --allocation-queue zero-copy --allocation-wait park --allocation-drain all \
             --allocation-core 1"
        );
    }
}

//! The names that a text of C mentions, found in one pass over it.

use std::collections::HashSet;

/// The identifiers of a function's body. Fields, behind `->` or `.`, are none.
pub(super) struct Mentions<'t> {
    /// Names mentioned in other ways than as the left side of a store.
    read: HashSet<&'t str>,
    stored: HashSet<&'t str>,
}

impl<'t> Mentions<'t> {
    pub(super) fn of(text: &'t str) -> Mentions<'t> {
        let mut mentions = Mentions {
            read: HashSet::new(),
            stored: HashSet::new(),
        };
        for line in text.lines() {
            let (stored, rest) = store(line.trim_start());
            mentions.stored.extend(stored);
            mentions.read.extend(words(rest));
        }
        mentions
    }

    pub(super) fn any_of(&self, name: &str) -> bool {
        self.is_read(name) || self.stored.contains(name)
    }

    /// False if every mention of the variable is a store into it.
    pub(super) fn is_read(&self, name: &str) -> bool {
        self.read.contains(name)
    }
}

/// The variable that a line stores into, if it does nothing else with it first; and what else is
/// on the line.
fn store(line: &str) -> (Option<&str>, &str) {
    let end = line.bytes().position(|b| !is_of_word(b));
    match end.map(|end| line.split_at(end)) {
        Some((name, rest)) if !name.is_empty() && rest.starts_with(" = ") => (Some(name), rest),
        _ => (None, line),
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    let bytes = text.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            while at < bytes.len() && !is_of_word(bytes[at]) {
                at += 1;
            }
            let start = at;
            while at < bytes.len() && is_of_word(bytes[at]) {
                at += 1;
            }
            if start == at {
                return None;
            }
            let before = &bytes[..start];
            if !before.ends_with(b"->") && !before.ends_with(b".") {
                return Some(&text[start..at]);
            }
        }
    })
}

fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

#[cfg(test)]
mod tests {
    use super::Mentions;

    #[test]
    fn stores_are_no_reads_and_fields_no_mentions() {
        let text = "    a = b->c + d.e;\n    b = f(a_2);\n    g = g + 1;\n    h += 1;\n";
        let mentions = Mentions::of(text);
        for read in ["b", "d", "f", "a_2", "g", "h"] {
            assert!(mentions.is_read(read) && mentions.any_of(read), "{read}");
        }
        assert!(mentions.any_of("a") && !mentions.is_read("a"));
        for none in ["c", "e", "a_", "i"] {
            assert!(!mentions.any_of(none), "{none}");
        }
    }
}

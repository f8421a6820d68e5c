//! Patterns that switch probes.

use std::fmt;

use wildmatch::WildMatch;

/// A pattern of probes' names, and whether it switches them on.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    is_on: bool,
    pattern: WildMatch,
}

impl Rule {
    /// Switches on the probes whose names match: `*` stands for any text, `?` for any character.
    #[must_use]
    pub fn on(pattern: &str) -> Rule {
        Rule {
            is_on: true,
            pattern: WildMatch::new(pattern),
        }
    }

    /// Switches off the probes whose names match.
    #[must_use]
    pub fn off(pattern: &str) -> Rule {
        Rule {
            is_on: false,
            ..Rule::on(pattern)
        }
    }

    /// Reads a rule: a pattern, with `-` before it to switch off.
    #[must_use]
    pub fn of(text: &str) -> Rule {
        match text.strip_prefix('-') {
            Some(pattern) => Rule::off(pattern),
            None => Rule::on(text.strip_prefix('+').unwrap_or(text)),
        }
    }

    /// Whether it is about the probe of a name.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        self.pattern.matches(name)
    }

    pub(crate) fn is_on(&self) -> bool {
        self.is_on
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.is_on { '+' } else { '-' };
        write!(f, "{sign}{}", self.pattern)
    }
}

/// Whether a probe is on: as the last rule that matches says, and off without one.
pub(crate) fn is_on(rules: &[Rule], name: &str) -> bool {
    let last = rules.iter().rev().find(|rule| rule.matches(name));
    last.is_some_and(Rule::is_on)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_rule_that_matches_decides() {
        let rules: Vec<Rule> = ["Server.*", "-Server.h?p*", "+Server.help"]
            .into_iter()
            .map(Rule::of)
            .collect();
        for (name, expected) in [
            ("Server.handle", true),
            ("Server.hop", false),
            ("Server.help", true),
            ("Server", false),
            ("Client.handle", false),
        ] {
            assert_eq!(is_on(&rules, name), expected, "{name}");
        }
        assert_eq!(rules[1].to_string(), "-Server.h?p*");
    }
}

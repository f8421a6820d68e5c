//! What is said about the programs of one command: their diagnostics and the last line.

use std::io::{IsTerminal, Write};

use hearth_lang::compile::Sources;
use hearth_lang::diagnostic::Diagnostic;

use crate::failure::Failure;
use crate::render::Renderer;

/// Shows diagnostics as they come and counts them.
pub(crate) struct Report {
    renderer: Renderer,
    errors: usize,
    warnings: usize,
}

impl Report {
    /// On standard error, in colours if that is a terminal and nobody objects.
    pub(crate) fn for_terminal() -> Self {
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
            || std::env::var_os("TERM").is_some_and(|value| value == "dumb");
        Report {
            renderer: Renderer::new(!plain && std::io::stderr().is_terminal()),
            errors: 0,
            warnings: 0,
        }
    }

    pub(crate) fn add(&mut self, sources: Sources<'_>, diagnostics: &[Diagnostic]) {
        let text = self.renderer.render(sources, diagnostics);
        // Whoever closed standard error does not want to know.
        let _ = std::io::stderr().write_all(text.as_bytes());
        self.count(diagnostics);
    }

    /// Counts what is shown in another way.
    pub(crate) fn count(&mut self, diagnostics: &[Diagnostic]) {
        let errors = diagnostics.iter().filter(|found| found.is_error()).count();
        self.errors += errors;
        self.warnings += diagnostics.len() - errors;
    }

    /// Says how many there were. Fails if there were errors.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        if let Some(line) = summary(self.errors, self.warnings) {
            eprintln!("{line}");
        }
        self.verdict()
    }

    /// Fails if there were errors.
    pub(crate) fn verdict(&self) -> Result<(), Failure> {
        if self.errors > 0 {
            return Err(Failure::Negative);
        }
        Ok(())
    }
}

fn summary(errors: usize, warnings: usize) -> Option<String> {
    let count = |number: usize, what: &str| match number {
        0 => None,
        1 => Some(format!("1 {what}")),
        _ => Some(format!("{number} {what}s")),
    };
    let parts: Vec<_> = [count(errors, "error"), count(warnings, "warning")]
        .into_iter()
        .flatten()
        .collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::summary;

    #[test]
    fn summaries() {
        assert_eq!(summary(0, 0), None);
        assert_eq!(summary(1, 0).unwrap(), "1 error");
        assert_eq!(summary(2, 1).unwrap(), "2 errors, 1 warning");
        assert_eq!(summary(0, 3).unwrap(), "3 warnings");
    }
}

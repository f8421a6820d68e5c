//! Diagnostics of the programs of one command, and the line that counts them.

use std::io::Write;

use hearth_lang::diagnostic::Diagnostic;
use hearth_lang::source::Sources;
use hearth_text::counted;

use crate::Failure;
use crate::render::Renderer;

/// Shows diagnostics as they come and counts them.
pub struct DiagnosticPrinter {
    renderer: Renderer,
    errors: usize,
    warnings: usize,
}

impl DiagnosticPrinter {
    /// A printer on standard error, in colours if that is a terminal and the environment allows it.
    pub fn for_terminal() -> Self {
        DiagnosticPrinter {
            renderer: Renderer::for_stream(&std::io::stderr()),
            errors: 0,
            warnings: 0,
        }
    }

    pub fn add(&mut self, sources: Sources<'_>, diagnostics: &[Diagnostic]) {
        let text = self.renderer.render(sources, diagnostics);
        // A closed standard error is the user's choice.
        let _ = std::io::stderr().write_all(text.as_bytes());
        self.count(diagnostics);
    }

    /// Counts diagnostics that are shown in another form.
    pub fn count(&mut self, diagnostics: &[Diagnostic]) {
        let errors = diagnostics.iter().filter(|found| found.is_error()).count();
        self.errors += errors;
        self.warnings += diagnostics.len() - errors;
    }

    /// Prints the counts. Fails if there were errors.
    pub fn finish(self) -> Result<(), Failure> {
        if let Some(line) = summary(self.errors, self.warnings) {
            eprintln!("{line}");
        }
        self.verdict()
    }

    /// Fails if there were errors.
    pub fn verdict(&self) -> Result<(), Failure> {
        if self.errors > 0 {
            return Err(Failure::Negative);
        }
        Ok(())
    }
}

fn summary(errors: usize, warnings: usize) -> Option<String> {
    let count = |number: usize, what: &str| (number > 0).then(|| counted(number, what));
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

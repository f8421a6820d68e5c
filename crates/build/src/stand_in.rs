use hearth_lang::compile::Sources;
use hearth_lang::diagnostic::Diagnostic;

pub(crate) const HEADER: &str = include_str!("../../runtime/include/hearth.h");
pub(crate) const FLAGS: &[&str] = &["-std=c11", "-O3", "-fwrapv", "-falign-loops=32"];

pub(crate) struct Renderer;

impl Renderer {
    pub(crate) fn new(_: bool) -> Renderer {
        Renderer
    }

    pub(crate) fn render(&self, sources: Sources<'_>, all: &[Diagnostic]) -> String {
        let mut text = String::new();
        for one in all {
            let span = one.primary.span;
            let lines = sources.lines(span.source);
            let (line, column) = lines.line_column(span.start);
            text += &format!(
                "error[{}]: {}\n --> {}:{line}:{column}\n  | {}\n  | ^^^^^^ {}\n",
                one.code.0,
                one.title,
                sources.name,
                sources.slice(span),
                one.primary.text
            );
        }
        text
    }
}

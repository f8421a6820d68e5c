//! Names: fresh ones, names with a meaning in C or in the prelude, and names that hide others.

use super::Generator;

/// Ordinary names in Insense; most are words of C or of its library.
const AWKWARD: [&str; 44] = [
    "end", "class", "while", "not", "xor", "start", "break", "int", "null", "this", "double",
    "boolean", "static", "char", "auto", "self", "errno", "printf", "NULL", "stdin", "main",
    "float", "void", "restrict", "inline", "signed", "register", "goto", "sizeof", "union",
    "volatile", "continue", "long", "short", "typedef", "extern", "const", "radio", "sensors",
    "linux", "unix", "frame", "result", "value",
];

const PLAIN: [&str; 16] = [
    "count", "total", "x", "y", "level", "best", "sum", "row", "item", "state", "n", "last",
    "size_of", "delta", "left", "right",
];

impl Generator {
    /// A unique name.
    pub(super) fn unique(&mut self, stem: &str) -> String {
        self.names += 1;
        format!("{stem}{}", self.names)
    }

    /// A name for a new variable of the innermost scope.
    pub(super) fn variable_name(&mut self) -> String {
        match self.random.below(20) {
            0..=3 => {
                let name = *self.random.pick(&AWKWARD);
                if !self.is_taken(name) {
                    return name.to_string();
                }
            }
            4..=5 => {
                if let Some(name) = self.hideable() {
                    return name;
                }
            }
            _ => {}
        }
        let stem = *self.random.pick(&PLAIN);
        self.unique(stem)
    }

    pub(super) fn field_name(&mut self) -> String {
        if self.random.chance(15) {
            let name = *self.random.pick(&AWKWARD);
            self.names += 1;
            return format!("{name}_{}", self.names);
        }
        self.unique("f")
    }

    fn is_taken(&self, name: &str) -> bool {
        let scope = &self.scope;
        scope.visible.iter().any(|variable| variable.name == name)
    }

    /// The name of a variable at least two scopes out, so that the innermost scope is certainly
    /// another one, and that no nearer variable has.
    fn hideable(&mut self) -> Option<String> {
        let level = self.scope.level();
        let outer: Vec<String> = self
            .scope
            .visible
            .iter()
            .filter(|variable| variable.level + 2 <= level)
            .map(|variable| variable.name.clone())
            .filter(|name| {
                let mut same = self.scope.visible.iter();
                same.all(|other| other.name != *name || other.level + 2 <= level)
            })
            .collect();
        if outer.is_empty() {
            return None;
        }
        Some(self.random.pick(&outer).clone())
    }
}

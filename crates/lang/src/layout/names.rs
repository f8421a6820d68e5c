//! C names, derived from the source's and made unique.
//!
//! Everything at file level has an underscore inside its name, and no local variable has one
//! (a source name with an underscore gets another at its end), so the two never meet.

use crate::core::ir::Role;
use crate::symbol::Symbol;
use crate::tree::{ComponentId, GlobalId, ProcCode, ProcId, Program};
use crate::types::{Type, TypeId};
use std::collections::{HashMap, HashSet};

const RESERVED: &[&str] = &[
    "auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else",
    "enum", "extern", "float", "for", "goto", "if", "inline", "int", "long", "register",
    "restrict", "return", "short", "signed", "sizeof", "static", "struct", "switch", "typedef",
    "union", "unsigned", "void", "volatile", "while", "asm", "typeof", "bool", "true", "false",
    "NULL", "main", "self", "base", "frame", "step", "result", "made", "old", "arms", "leave",
    "unix", "linux", "i386", "errno", "state", "callee", "inner", "object", "near", "far", "stdin",
    "stdout",
];

/// First words of the names that the emitter makes.
const TAKEN: &[&str] = &[
    "main",
    "program",
    "proc",
    "global",
    "type",
    "text",
    "site",
    "value",
    "hearth",
    "anonymous",
    "probe",
    "probed",
];

/// Names of the parts of a component, which follow its own.
const COMPONENT_PARTS: &[&str] = &[
    "component",
    "type",
    "ports",
    "resume",
    "destroy",
    "members",
    "behaviour",
    "struct",
];

/// The C names of a program.
pub(crate) struct Names {
    procs: Vec<String>,
    components: Vec<String>,
    globals: Vec<String>,
    structs: HashMap<TypeId, String>,
    descriptors: HashMap<TypeId, String>,
    codes: Vec<String>,
}

impl Names {
    pub(crate) fn new(program: &Program) -> Names {
        let mut used: HashSet<String> = HashSet::new();
        let mut unique = |wanted: String| {
            let mut name = wanted.clone();
            let mut n = 2;
            while !used.insert(name.clone()) {
                name = format!("{wanted}_{n}");
                n += 1;
            }
            name
        };
        let text = |symbol: Symbol| program.names.name(symbol);
        for taken in TAKEN {
            unique((*taken).to_owned());
        }
        let components: Vec<String> = program
            .components
            .iter()
            .map(|c| {
                let name = unique(text(c.name).to_owned());
                for part in COMPONENT_PARTS {
                    unique(format!("{name}_{part}"));
                }
                name
            })
            .collect();
        let procs = program
            .procs
            .iter()
            .map(|proc| match (&proc.code, proc.owner) {
                (ProcCode::Native { symbol, .. }, _) => text(*symbol).to_owned(),
                (_, Some(owner)) => {
                    unique(format!("{}_{}", components[owner.index()], text(proc.name)))
                }
                (_, None) => unique(format!("proc_{}", text(proc.name))),
            })
            .collect();
        let globals = program
            .globals
            .iter()
            .map(|g| unique(format!("global_{}", text(g.name))))
            .collect();
        let mut structs = HashMap::new();
        for &(ty, name) in &program.type_names {
            if matches!(program.types.get(ty), Type::Struct(_)) && !structs.contains_key(&ty) {
                structs.insert(ty, unique(format!("{}_struct", text(name))));
            }
        }
        for (ty, kind) in program.types.iter() {
            if matches!(kind, Type::Struct(_)) && !structs.contains_key(&ty) {
                structs.insert(ty, unique(format!("anonymous_{}_struct", ty.0)));
            }
        }
        let codes = type_codes(program);
        let mut descriptors = HashMap::new();
        for (ty, _) in program.types.iter() {
            let code = &codes[ty.index()];
            let short =
                code.len() <= 24 && code.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
            let name = match structs.get(&ty) {
                Some(name) => format!("type_{name}"),
                None if short => format!("type_{code}"),
                None => format!("type_{}", ty.0),
            };
            descriptors.insert(ty, unique(name));
        }
        Names {
            procs,
            components,
            globals,
            structs,
            descriptors,
            codes,
        }
    }

    /// The name of a function.
    pub(crate) fn function(&self, role: Role) -> String {
        match role {
            Role::Proc(proc) => self.proc(proc).to_owned(),
            Role::Constructor(component, k) => {
                format!("{}_constructor_{k}", self.component(component))
            }
            Role::Members(component) => format!("{}_members", self.component(component)),
            Role::Behaviour(component) => format!("{}_behaviour", self.component(component)),
            Role::Main => "main_sequence".to_owned(),
        }
    }

    pub(crate) fn proc(&self, proc: ProcId) -> &str {
        &self.procs[proc.index()]
    }
    pub(crate) fn component(&self, component: ComponentId) -> &str {
        &self.components[component.index()]
    }
    pub(crate) fn global(&self, global: GlobalId) -> &str {
        &self.globals[global.index()]
    }
    pub(crate) fn structure(&self, ty: TypeId) -> &str {
        &self.structs[&ty]
    }
    pub(crate) fn descriptor(&self, ty: TypeId) -> &str {
        &self.descriptors[&ty]
    }
    /// The type code of the language reference.
    pub(crate) fn code(&self, ty: TypeId) -> &str {
        &self.codes[ty.index()]
    }
}

/// Gives the names of one C scope (a function's locals, a struct's fields) without repetition.
pub(crate) struct LocalNames {
    used: HashSet<String>,
    /// By name: the number that its next bearer tries first.
    numbers: HashMap<String, u32>,
    temporaries: u32,
}

impl LocalNames {
    pub(crate) fn new() -> LocalNames {
        LocalNames {
            used: RESERVED.iter().map(|s| (*s).to_owned()).collect(),
            numbers: HashMap::new(),
            temporaries: 0,
        }
    }

    pub(crate) fn named(&mut self, source: &str) -> String {
        let plain = if source.contains('_') {
            format!("{source}_")
        } else {
            source.to_owned()
        };
        if self.used.insert(plain.clone()) {
            return plain;
        }
        let gap = if plain.ends_with('_') { "" } else { "_" };
        let number = self.numbers.entry(plain.clone()).or_insert(2);
        loop {
            let name = format!("{plain}{gap}{number}");
            *number += 1;
            if self.used.insert(name.clone()) {
                return name;
            }
        }
    }

    pub(crate) fn temporary(&mut self) -> String {
        loop {
            self.temporaries += 1;
            let name = format!("t_{}", self.temporaries);
            if self.used.insert(name.clone()) {
                return name;
            }
        }
    }
}

/// Type codes of all types, in order; parts come before wholes in the table.
fn type_codes(program: &Program) -> Vec<String> {
    let mut codes: Vec<String> = Vec::new();
    for (_, ty) in program.types.iter() {
        // `_` ends a name in a code.
        let name = |s: &Symbol| program.names.name(*s).replace('_', "$");
        let code = match ty {
            Type::Error => "?".to_owned(),
            Type::Void => "v".to_owned(),
            Type::Never => "n".to_owned(),
            Type::Integer => "i".to_owned(),
            Type::Unsigned => "u".to_owned(),
            Type::Real => "r".to_owned(),
            Type::Bool => "b".to_owned(),
            Type::Byte => "8".to_owned(),
            Type::String => "s".to_owned(),
            Type::Any => "a".to_owned(),
            Type::Array(e) => format!("A{}", codes[e.index()]),
            Type::Channel(d, p) => {
                let direction = match d {
                    crate::tree::Direction::In => 'I',
                    crate::tree::Direction::Out => 'O',
                };
                format!("{direction}{}", codes[p.index()])
            }
            Type::Struct(fields) => {
                let fields: String = fields
                    .iter()
                    .map(|(n, t)| format!("{}{}_", codes[t.index()], name(n)))
                    .collect();
                format!("S{fields}_")
            }
            Type::Enum(labels) => {
                let labels: String = labels.iter().map(|l| format!("{}_", name(l))).collect();
                format!("e{labels}_")
            }
            // Ours: the original had no codes for these.
            Type::Component(ports) => {
                let ports: String = ports
                    .iter()
                    .map(|p| {
                        let direction = match p.direction {
                            crate::tree::Direction::In => 'I',
                            crate::tree::Direction::Out => 'O',
                        };
                        format!("{direction}{}{}_", codes[p.payload.index()], name(&p.name))
                    })
                    .collect();
                format!("C{ports}_")
            }
            Type::Proc { params, result } => {
                let params: String = params.iter().map(|p| codes[p.index()].as_str()).collect();
                format!("P{params}_{}", codes[result.index()])
            }
        };
        codes.push(code);
    }
    codes
}

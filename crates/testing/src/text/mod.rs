//! A tree as Insense text, in many layouts: separators, spare brackets, bare branches and comments
//! vary with the seed, the meaning does not.

mod expression;
mod statement;

use crate::random::Random;
use crate::tree::*;

/// The text of a program. The same tree and seed give the same text.
pub fn print(program: &Program, seed: u64) -> String {
    let mut printer = Printer {
        program,
        random: Random::new(seed),
        out: String::new(),
        indent: 0,
        scope: Scope::default(),
        brackets: 0,
        aliases: 0,
    };
    printer.unit();
    printer.out
}

/// Program, procedure or component whose names are printed.
#[derive(Default, Clone, Copy)]
struct Scope<'p> {
    locals: &'p [Variable],
    component: Option<&'p Component>,
}

struct Printer<'p> {
    program: &'p Program,
    random: Random,
    out: String,
    indent: usize,
    scope: Scope<'p>,
    /// Depth of round and square brackets since the last brace; line breaks are free inside.
    brackets: usize,
    /// Number of second names declared so far.
    aliases: usize,
}

impl<'p> Printer<'p> {
    fn push(&mut self, text: &str) {
        self.out.push_str(text);
    }

    fn line(&mut self) {
        self.out.push('\n');
        for _ in 0..self.indent {
            self.out.push_str("    ");
        }
    }

    fn unit(&mut self) {
        for item in &self.program.order {
            match *item {
                Item::Enum(index) => self.enum_type(index),
                Item::Struct(index) => self.struct_type(index),
                Item::Alias(index) => self.alias(index),
                Item::Proc(index) => self.proc(index, None),
                Item::Component(index) => self.component(index),
            }
            self.line();
        }
        let main = &self.program.main;
        self.scope = Scope {
            locals: &main.locals,
            component: None,
        };
        self.statements(&main.statements);
        self.push("\n");
    }

    fn enum_type(&mut self, index: usize) {
        let ty = &self.program.enums[index];
        let text = format!("type {} is enum({})", ty.name, ty.labels.join(", "));
        self.push(&text);
    }

    fn struct_type(&mut self, index: usize) {
        let ty = &self.program.structs[index];
        self.push(&format!("type {} is struct(", ty.name));
        self.fields(&ty.fields);
        self.push(")");
    }

    fn alias(&mut self, index: usize) {
        let (name, ty) = &self.program.aliases[index];
        self.push(&format!("type {name} is "));
        self.ty(ty);
        self.aliases = index + 1;
    }

    /// Groups of equal types: `integer a, b; real c`.
    fn fields(&mut self, fields: &[(String, Type)]) {
        let mut previous: Option<&Type> = None;
        for (name, ty) in fields {
            let joins = previous == Some(ty) && self.random.chance(70);
            if joins {
                self.push(", ");
            } else {
                if previous.is_some() {
                    self.push("; ");
                }
                self.ty(ty);
                self.push(" ");
            }
            self.push(name);
            previous = Some(ty);
        }
    }

    fn params(&mut self, body: &Body) {
        let params: Vec<(String, Type)> = body.locals[..body.params]
            .iter()
            .map(|local| (local.name.clone(), local.ty.clone()))
            .collect();
        self.push("(");
        self.fields(&params);
        self.push(")");
    }

    fn body(&mut self, body: &'p Body, component: Option<&'p Component>) {
        let outer = self.scope;
        self.scope = Scope {
            locals: &body.locals,
            component,
        };
        self.braces(&body.statements);
        self.scope = outer;
    }

    fn proc(&mut self, index: usize, component: Option<&'p Component>) {
        let proc = &self.program.procs[index];
        self.push(&format!("proc {}", proc.name));
        self.params(&proc.body);
        if proc.result != Type::Void {
            self.push(" : ");
            self.ty(&proc.result);
        }
        self.push(" ");
        self.body(&proc.body, component);
    }

    fn component(&mut self, index: usize) {
        let component = &self.program.components[index];
        let (first, second) = component.ports.split_at(component.split);
        self.interface(&format!("I{}", component.name), first);
        let mut presents = format!("I{}", component.name);
        if !second.is_empty() {
            self.interface(&format!("J{}", component.name), second);
            presents.push_str(&format!(", J{}", component.name));
        }
        self.push(&format!(
            "component {} presents {presents} {{",
            component.name
        ));
        self.indent += 1;
        for member in &component.members {
            self.line();
            self.member(member, component);
        }
        for constructor in &component.constructors {
            self.line();
            self.push("constructor");
            self.params(constructor);
            self.push(" ");
            self.body(constructor, Some(component));
        }
        self.line();
        self.push("behaviour ");
        self.body(&component.behaviour, Some(component));
        self.indent -= 1;
        self.line();
        self.push("}");
    }

    fn interface(&mut self, name: &str, ports: &[Port]) {
        self.push(&format!("type {name} is interface("));
        for (index, port) in ports.iter().enumerate() {
            if index > 0 {
                self.push("; ");
            }
            self.push(if port.outgoing { "out " } else { "in " });
            self.ty(&port.payload);
            self.push(&format!(" {}", port.name));
        }
        self.push(")");
        self.line();
    }

    fn member(&mut self, member: &'p Member, component: &'p Component) {
        match member {
            Member::Proc(index) => self.proc(*index, Some(component)),
            Member::Variable {
                variable,
                init,
                locals,
            } => {
                self.scope = Scope {
                    locals,
                    component: Some(component),
                };
                self.push(&format!("{} = ", variable.name));
                self.clause(init);
                self.scope = Scope::default();
            }
        }
    }

    fn ty(&mut self, ty: &Type) {
        let needs_alias = matches!(ty, Type::Array(element)
            if matches!(**element, Type::In(_) | Type::Out(_) | Type::Procedure(_)));
        let aliases = &self.program.aliases[..self.aliases];
        let alias = aliases.iter().find(|(_, target)| target == ty);
        if let Some((name, _)) = alias
            && self.random.chance(60)
        {
            return self.push(name);
        }
        match ty {
            Type::Void => unreachable!("void is not writable"),
            Type::Integer => self.push("integer"),
            Type::Unsigned => self.push("unsigned"),
            Type::Real => self.push("real"),
            Type::Bool => self.push("bool"),
            Type::Byte => self.push("byte"),
            Type::Text => self.push("string"),
            Type::Any => self.push("any"),
            Type::Enum(index) => self.push(&self.program.enums[*index].name),
            Type::Struct(index) => self.push(&self.program.structs[*index].name),
            Type::Component(index) => {
                let name = format!("I{}", self.program.components[*index].name);
                self.push(&name);
            }
            Type::Array(element) if needs_alias => {
                let name = aliases.iter().find(|(_, target)| target == &**element);
                self.push(&name.expect("elements of this kind have a name").0);
                self.push("[]");
            }
            Type::Array(element) => {
                self.ty(element);
                self.push("[]");
            }
            Type::In(payload) => {
                self.push("in ");
                self.ty(payload);
            }
            Type::Out(payload) => {
                self.push("out ");
                self.ty(payload);
            }
            Type::Procedure(signature) => {
                self.push("proc(");
                for (index, param) in signature.params.iter().enumerate() {
                    if index > 0 {
                        self.push("; ");
                    }
                    self.ty(param);
                }
                self.push(")");
                if signature.result != Type::Void {
                    self.push(" : ");
                    self.ty(&signature.result);
                }
            }
        }
    }
}

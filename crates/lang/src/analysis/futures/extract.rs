//! Statements of a block that compute one value, or fill something of their own, as a procedure.
//!
//! This proposes: a loop with the declarations that belong to it, taken out of its block as text.
//! Whether the call of the new procedure may run beside what follows is found by the analysis of
//! the changed text, as of any other.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::ops::Range;

use crate::core::effects::walk;
use crate::source::SourceId;
use crate::tree::{Body, Expr, ExprKind, LocalId, ProcCode, Program};
use crate::types::{Type, TypeId, Types};

/// Proposals of a program that are looked at.
const PROPOSALS_MAX: usize = 16;
/// Declarations in front of a loop that may go with it.
const DECLARATIONS_MAX: usize = 4;

/// A change of a text: these bytes become that text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Edit {
    pub range: Range<usize>,
    pub text: String,
}

/// Statements that might be a procedure.
#[derive(Clone, Debug)]
pub struct Proposal {
    /// The name of the procedure; nothing in the text is called so.
    pub name: String,
    /// The statements.
    pub range: Range<usize>,
    /// In the order of the text.
    pub edits: [Edit; 2],
}

/// The text with changes that do not overlap.
pub fn edited(text: &str, edits: &[Edit]) -> String {
    let mut edits: Vec<&Edit> = edits.iter().collect();
    // What is inserted comes before what is replaced at the same place.
    edits.sort_by_key(|edit| (edit.range.start, edit.range.end));
    let mut edited = String::with_capacity(text.len());
    let mut at = 0;
    for edit in edits {
        edited.push_str(&text[at..edit.range.start]);
        edited.push_str(&edit.text);
        at = edit.range.end;
    }
    edited.push_str(&text[at..]);
    edited
}

/// Statements of a program that might be procedures.
pub fn proposals(program: &Program, text: &str) -> Vec<Proposal> {
    let mut search = Search {
        program,
        text,
        found: Vec::new(),
    };
    for proc in program.procs.iter().filter(|proc| proc.used) {
        if let ProcCode::Body(body) = &proc.code {
            search.body(body, body.block.span.start);
        }
    }
    for component in program.components.iter().filter(|c| c.used) {
        if let Some(first) = component.constructors.first() {
            search.body(&component.behaviour, first.block.span.start);
        }
    }
    if let ExprKind::Block(items) = &program.main.block.kind
        && let Some(first) = items.first()
    {
        search.body(&program.main, first.span.start);
    }
    search.found
}

struct Search<'p> {
    program: &'p Program,
    text: &'p str,
    found: Vec<Proposal>,
}

impl<'p> Search<'p> {
    /// Looks at the blocks of a body. A procedure would stand before the line with `head`.
    fn body(&mut self, body: &'p Body, head: u32) {
        if body.block.span.source != SourceId::USER {
            return;
        }
        let head = self.text[..head as usize]
            .rfind('\n')
            .map_or(0, |at| at + 1);
        let mut blocks = Vec::new();
        walk(&body.block, &mut |expr| {
            if let ExprKind::Block(items) = &expr.kind {
                blocks.push(items);
            }
        });
        for items in blocks {
            for end in 1..items.len() {
                if matches!(items[end - 1].kind, ExprKind::For { .. }) {
                    self.loop_of(body, items, end, head);
                }
            }
        }
    }

    /// Proposes the loop that ends a part of a block, with the declarations in front of it.
    fn loop_of(&mut self, body: &'p Body, items: &'p [Expr], end: usize, head: usize) {
        let used = mentioned(&items[end - 1..end]);
        let after = mentioned(&items[end..]);
        let set = assigned(&items[end - 1]);
        // What the loop computes, and what is there for it alone.
        let belongs = |local: &LocalId| {
            used.contains(local) && (set.contains(local) || !after.contains(local))
        };
        let mut start = end - 1;
        while start > 0
            && end - start <= DECLARATIONS_MAX
            && let ExprKind::Let(local, init) = &items[start - 1].kind
            && belongs(local)
            && is_cheap(init)
        {
            start -= 1;
        }
        if self.found.len() < PROPOSALS_MAX
            && has_work(&items[end..])
            && let Some(proposal) = self.part(body, items, start..end, head)
        {
            self.found.push(proposal);
        }
    }

    fn part(
        &self,
        body: &'p Body,
        items: &'p [Expr],
        part: Range<usize>,
        head: usize,
    ) -> Option<Proposal> {
        let (inside, after) = (&items[part.clone()], &items[part.end..]);
        let mut declared = BTreeSet::new();
        let set: BTreeSet<LocalId> = inside.iter().flat_map(assigned).collect();
        let mut read: Vec<LocalId> = Vec::new();
        let mut is_plain = true;
        for item in inside {
            walk(item, &mut |expr| match &expr.kind {
                ExprKind::Let(local, _) => {
                    declared.insert(*local);
                }
                ExprKind::For { variable, .. } => {
                    declared.insert(*variable);
                }
                ExprKind::Local(local) => {
                    if !read.contains(local) {
                        read.push(*local);
                    }
                }
                kind => is_plain &= may_move(kind),
            });
        }
        read.retain(|local| !declared.contains(local));
        let results: Vec<LocalId> = mentioned(after).intersection(&declared).copied().collect();
        let result = match results.as_slice() {
            [] => None,
            [result] => Some(*result),
            _ => return None,
        };
        let is_own = result.is_none_or(|result| {
            let mut lets = inside.iter();
            lets.any(|item| matches!(item.kind, ExprKind::Let(local, _) if local == result))
        });
        if !is_plain || !is_own || !set.is_subset(&declared) {
            return None;
        }
        let lines = self.whole_lines(inside)?;
        let (params, arguments) = self.parameters(body, &read)?;
        let result = match result {
            Some(result) => {
                let local = &body.locals[result.index()];
                let ty = written(&self.program.types, local.ty)?;
                Some((self.program.names.name(local.name), ty))
            }
            None => None,
        };
        let name = self.new_name(result.as_ref().map_or("fill", |(name, _)| name));
        let indent = indent_of(&self.text[head..]);
        let inner = format!("{indent}    ");
        let old = indent_of(&self.text[lines.start..]);
        let mut procedure = format!("{indent}proc {name}({params})");
        if let Some((_, ty)) = &result {
            let _ = write!(procedure, " : {ty}");
        }
        procedure.push_str(" {\n");
        for line in self.text[lines.clone()].lines() {
            let line = line.strip_prefix(old).unwrap_or(line.trim_start());
            let _ = writeln!(procedure, "{}", format!("{inner}{line}").trim_end());
        }
        let call = match &result {
            Some((value, _)) => {
                let _ = writeln!(procedure, "{inner}return {value}");
                format!("{old}{value} = {name}({arguments})\n")
            }
            None => format!("{old}{name}({arguments})\n"),
        };
        let _ = writeln!(procedure, "{indent}}}");
        if indent.is_empty() {
            procedure.push('\n');
        }
        let range = inside[0].span.start as usize..inside[inside.len() - 1].span.end as usize;
        Some(Proposal {
            name,
            range,
            edits: [
                Edit {
                    range: head..head,
                    text: procedure,
                },
                Edit {
                    range: lines,
                    text: call,
                },
            ],
        })
    }

    /// The lines of statements that share them with nothing but comments.
    fn whole_lines(&self, items: &[Expr]) -> Option<Range<usize>> {
        let first = items.first()?.span.start as usize;
        let last = items.last()?.span.end as usize;
        let start = self.text[..first].rfind('\n').map_or(0, |at| at + 1);
        let end = last + self.text[last..].find('\n')? + 1;
        let rest = self.text[last..end].trim();
        let is_alone = self.text[start..first].trim().is_empty();
        // The end of a line may hide what it shares: `\r` and tabs stay out of this.
        let is_simple = !self.text[start..end].contains(['\r', '\t', '"']);
        (is_alone && is_simple && (rest.is_empty() || rest.starts_with("//"))).then_some(start..end)
    }

    /// Parameters with their types, and the arguments for them.
    fn parameters(&self, body: &Body, locals: &[LocalId]) -> Option<(String, String)> {
        let (mut params, mut arguments) = (String::new(), String::new());
        let mut last: Option<TypeId> = None;
        for local in locals {
            let local = &body.locals[local.index()];
            let name = self.program.names.name(local.name);
            let ty = written(&self.program.types, local.ty)?;
            let _ = match last {
                None => write!(params, "{ty} {name}"),
                Some(last) if last == local.ty => write!(params, ", {name}"),
                Some(_) => write!(params, " ; {ty} {name}"),
            };
            last = Some(local.ty);
            let _ = match arguments.is_empty() {
                true => write!(arguments, "{name}"),
                false => write!(arguments, ", {name}"),
            };
        }
        Some((params, arguments))
    }

    /// A name that stands nowhere in the text.
    fn new_name(&self, value: &str) -> String {
        let base = match value {
            "fill" => "fill_part".to_owned(),
            value => format!("compute_{value}"),
        };
        let is_new = |name: &str| {
            let taken = self.found.iter().any(|proposal| proposal.name == name);
            !taken && !self.text.contains(name)
        };
        if is_new(&base) {
            return base;
        }
        let mut numbered = (2..).map(|number| format!("{base}_{number}"));
        numbered
            .find(|name| is_new(name))
            .expect("a text has an end")
    }
}

fn indent_of(text: &str) -> &str {
    let line = text.lines().next().unwrap_or_default();
    &line[..line.len() - line.trim_start().len()]
}

/// The locals that statements name.
fn mentioned(items: &[Expr]) -> BTreeSet<LocalId> {
    let mut found = BTreeSet::new();
    for item in items {
        walk(item, &mut |expr| {
            if let ExprKind::Local(local) = expr.kind {
                found.insert(local);
            }
        });
    }
    found
}

/// The locals that a statement assigns to.
fn assigned(item: &Expr) -> BTreeSet<LocalId> {
    let mut found = BTreeSet::new();
    walk(item, &mut |expr| {
        if let ExprKind::Assign(place, _) = &expr.kind
            && let ExprKind::Local(local) = place.kind
        {
            found.insert(local);
        }
    });
    found
}

/// True if there may be work that a call could run beside.
fn has_work(items: &[Expr]) -> bool {
    let mut has_work = false;
    for item in items {
        walk(item, &mut |expr| {
            has_work |= matches!(expr.kind, ExprKind::For { .. } | ExprKind::Call(..));
        });
    }
    has_work
}

/// True for a value that needs no call: what begins a sum, or a new array.
fn is_cheap(init: &Expr) -> bool {
    let mut is_cheap = true;
    walk(init, &mut |expr| {
        is_cheap &= !matches!(expr.kind, ExprKind::Call(..))
    });
    is_cheap
}

/// True for forms that mean the same in a procedure.
fn may_move(kind: &ExprKind) -> bool {
    !matches!(
        kind,
        ExprKind::Port(_)
            | ExprKind::PortOf(..)
            | ExprKind::NewChannel
            | ExprKind::NewComponent { .. }
            | ExprKind::Select { .. }
            | ExprKind::Connect(..)
            | ExprKind::Disconnect(_)
            | ExprKind::Publish { .. }
            | ExprKind::Send { .. }
            | ExprKind::Receive { .. }
            | ExprKind::Acknowledge { .. }
            | ExprKind::Project { .. }
            | ExprKind::Stop(_)
            | ExprKind::Return(_)
            | ExprKind::Throw(_)
            | ExprKind::Try { .. }
            | ExprKind::Nothing
            | ExprKind::Error
    )
}

/// A type as a heading writes it; none for those with names.
fn written(types: &Types, ty: TypeId) -> Option<String> {
    let word = match types.get(ty) {
        Type::Integer => "integer",
        Type::Unsigned => "unsigned",
        Type::Real => "real",
        Type::Bool => "bool",
        Type::Byte => "byte",
        Type::String => "string",
        Type::Array(element) => return Some(format!("{}[]", written(types, *element)?)),
        _ => return None,
    };
    Some(word.to_owned())
}

//! From rules with names to rules with numbers, for one graph.
//!
//! Here it is decided, too, which vertices of a match a rule needs for itself. Two matches of a
//! round *overlap* if one writes a vertex that is in the other. A vertex is written if it is
//! deleted, gets a new attribute, or is the source of an edge that is deleted or gets a new
//! attribute. Creating an edge writes an end only if some `unless` pattern might see the edge from
//! there; so, without such patterns, many matches of a round can hang edges onto one vertex.

use hearth_text::near::nearest;

use crate::code::{Code, ELEMENTS_MAX};
use crate::graph::Graph;
use crate::rule::{Binary, Expression, Name, Pattern, Rule, RuleError, Unary};
use crate::schema::{Kind, Sort, Type, TypeNumber, TypeRange, Value};

/// A vertex of a pattern.
#[derive(Clone, Debug)]
pub(crate) struct VertexSpec {
    pub(crate) name: String,
    pub(crate) range: TypeRange,
}

/// An edge of a pattern, between vertices by their place in the rule.
#[derive(Clone, Debug)]
pub(crate) struct EdgeSpec {
    pub(crate) range: TypeRange,
    pub(crate) source: u8,
    pub(crate) target: u8,
}

/// A condition, with the elements that it reads as bits.
#[derive(Clone, Debug)]
pub(crate) struct Condition {
    pub(crate) code: Code,
    pub(crate) vertices: u32,
    pub(crate) edges: u32,
}

/// The rule's pattern or one of its `unless` patterns: places of its own elements in the rule.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) vertices: std::ops::Range<usize>,
    pub(crate) edges: std::ops::Range<usize>,
    pub(crate) conditions: Vec<Condition>,
    /// Depends on vertices that no match locks: looked at again before the match is applied.
    pub(crate) deep: bool,
}

/// An end of a created edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Found(u8),
    Created(u8),
}

/// Owner of an attribute that is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    Vertex(u8),
    Edge(u8),
    NewVertex(u8),
    NewEdge(u8),
}

#[derive(Clone, Debug)]
pub(crate) struct Setting {
    pub(crate) owner: Owner,
    pub(crate) slot: u16,
    pub(crate) code: Code,
}

/// A rule for one graph.
#[derive(Clone, Debug)]
pub(crate) struct Compiled {
    pub(crate) name: String,
    /// The pattern's first, then those of each `unless` pattern.
    pub(crate) vertices: Vec<VertexSpec>,
    pub(crate) edges: Vec<EdgeSpec>,
    pub(crate) main: Part,
    pub(crate) unless: Vec<Part>,
    /// Whether a vertex of the pattern is written.
    pub(crate) writes: Vec<bool>,
    pub(crate) delete_vertices: Vec<u8>,
    pub(crate) delete_edges: Vec<u8>,
    pub(crate) create_vertices: Vec<TypeNumber>,
    pub(crate) create_edges: Vec<(TypeNumber, End, End)>,
    pub(crate) set: Vec<Setting>,
    /// Vertices that may have only these many ends of edges.
    pub(crate) strict: Vec<(u8, u32)>,
}

impl Compiled {
    /// Numbers that a match is stored as: its vertices, then its edges.
    pub(crate) fn stride(&self) -> usize {
        self.main.vertices.len() + self.main.edges.len()
    }

    /// Whether some `unless` pattern must be looked at again before a match is applied.
    pub(crate) fn is_deep(&self) -> bool {
        self.unless.iter().any(|part| part.deep)
    }
}

/// Compiles rules for a graph, which learns their texts.
pub(crate) fn compile(rules: &[Rule], graph: &mut Graph) -> Result<Vec<Compiled>, RuleError> {
    let mut compiled = Vec::with_capacity(rules.len());
    for rule in rules {
        let mut compiler = Compiler {
            graph: &mut *graph,
            rule: &rule.name,
            vertices: Vec::new(),
            edges: Vec::new(),
        };
        compiled.push(compiler.rule(rule)?);
    }
    // Which edges are seen by `unless` patterns, and whether from their source or their target.
    let mut seen: Vec<(TypeRange, bool)> = Vec::new();
    for rule in &compiled {
        let main = rule.main.vertices.len();
        for edge in rule
            .unless
            .iter()
            .flat_map(|part| &rule.edges[part.edges.clone()])
        {
            if usize::from(edge.source) < main {
                seen.push((edge.range, true));
            } else if usize::from(edge.target) < main {
                seen.push((edge.range, false));
            }
        }
    }
    for rule in &mut compiled {
        for (number, source, target) in &rule.create_edges {
            for (_, is_source) in seen.iter().filter(|(range, _)| range.has(*number)) {
                let end = if *is_source { source } else { target };
                if let End::Found(vertex) = end {
                    rule.writes[usize::from(*vertex)] = true;
                }
            }
        }
    }
    Ok(compiled)
}

struct VertexName<'a> {
    name: &'a Name,
    range: TypeRange,
}

struct EdgeName<'a> {
    name: Option<&'a Name>,
    spec: EdgeSpec,
}

struct Compiler<'a> {
    graph: &'a mut Graph,
    rule: &'a Name,
    vertices: Vec<VertexName<'a>>,
    edges: Vec<EdgeName<'a>>,
}

/// Elements that a name may mean: those of the pattern, and those of one `unless` pattern.
#[derive(Clone)]
struct Scope {
    vertices: Vec<std::ops::Range<usize>>,
    edges: Vec<std::ops::Range<usize>>,
}

impl<'a> Compiler<'a> {
    fn error(&self, at: &Name, message: impl std::fmt::Display) -> RuleError {
        RuleError::new(at.at, format!("in rule `{}`, {message}", self.rule.text))
    }

    fn type_of(&self, sort: Sort, name: &Name) -> Result<&Type, RuleError> {
        let (types, what) = match sort {
            Sort::Vertex => (&self.graph.schema().vertices, "vertices"),
            Sort::Edge => (&self.graph.schema().edges, "edges"),
        };
        types.named(&name.text).ok_or_else(|| {
            let advice = match nearest(&name.text, types.names()) {
                Some(near) => format!("do you mean `{near}`?"),
                None => "declare it, or look at the names in the graph".to_owned(),
            };
            let wanted = &name.text;
            self.error(
                name,
                format!("no type of {what} is called `{wanted}`: {advice}"),
            )
        })
    }

    fn vertex(&self, scope: &Scope, name: &Name) -> Option<u8> {
        let mut places = scope.vertices.iter().flat_map(Clone::clone);
        places
            .find(|place| self.vertices[*place].name.text == name.text)
            .map(|place| place as u8)
    }

    fn edge(&self, scope: &Scope, name: &Name) -> Option<u8> {
        let is = |place: &usize| {
            let there = self.edges[*place].name;
            there.is_some_and(|there| there.text == name.text)
        };
        let mut places = scope.edges.iter().flat_map(Clone::clone);
        places.find(is).map(|place| place as u8)
    }

    fn unknown(&self, name: &Name) -> RuleError {
        let names = self.vertices.iter().map(|one| one.name.text.as_str());
        let advice = match nearest(&name.text, names) {
            Some(near) => format!("do you mean `{near}`?"),
            None => "give it a type, as in `name: Type`".to_owned(),
        };
        self.error(name, format!("nothing is called `{}`: {advice}", name.text))
    }

    fn fresh(&self, scope: &Scope, name: &Name) -> Result<(), RuleError> {
        if self.vertex(scope, name).is_some() || self.edge(scope, name).is_some() {
            let text = &name.text;
            return Err(self.error(
                name,
                format!("two elements are called `{text}`: rename one"),
            ));
        }
        Ok(())
    }

    /// Adds the elements of a pattern and looks up its conditions. `outer` is visible in it.
    fn part(&mut self, pattern: &'a Pattern, outer: &Scope) -> Result<(Part, Scope), RuleError> {
        let (first_vertex, first_edge) = (self.vertices.len(), self.edges.len());
        let mut scope = outer.clone();
        scope.vertices.push(first_vertex..first_vertex);
        scope.edges.push(first_edge..first_edge);
        for vertex in &pattern.vertices {
            self.fresh(&scope, &vertex.name)?;
            let range = self.type_of(Sort::Vertex, &vertex.of)?.range;
            let name = &vertex.name;
            self.vertices.push(VertexName { name, range });
            *scope.vertices.last_mut().expect("just added") = first_vertex..self.vertices.len();
        }
        for edge in &pattern.edges {
            if let Some(name) = &edge.name {
                self.fresh(&scope, name)?;
            }
            let range = self.type_of(Sort::Edge, &edge.of)?.range;
            let end = |name| self.vertex(&scope, name).ok_or_else(|| self.unknown(name));
            let spec = EdgeSpec {
                range,
                source: end(&edge.source)?,
                target: end(&edge.target)?,
            };
            let name = edge.name.as_ref();
            self.edges.push(EdgeName { name, spec });
            *scope.edges.last_mut().expect("just added") = first_edge..self.edges.len();
        }
        if self.vertices.len() > ELEMENTS_MAX || self.edges.len() > ELEMENTS_MAX {
            let message = format!(
                "there are more than {ELEMENTS_MAX} vertices or edges in its patterns: take it \
                 apart"
            );
            return Err(self.error(self.rule, message));
        }
        let mut conditions = Vec::new();
        for condition in &pattern.conditions {
            self.condition(condition, &scope, &mut conditions)?;
        }
        let part = Part {
            vertices: first_vertex..self.vertices.len(),
            edges: first_edge..self.edges.len(),
            conditions,
            deep: false,
        };
        Ok((part, scope))
    }

    /// The terms of an `and` are conditions of their own: each is looked at as early as can be.
    fn condition(
        &mut self,
        condition: &Expression,
        scope: &Scope,
        into: &mut Vec<Condition>,
    ) -> Result<(), RuleError> {
        if let Expression::Binary(Binary::And, left, right, _) = condition {
            self.condition(left, scope, into)?;
            return self.condition(right, scope, into);
        }
        let (code, kind) = self.code(condition, scope)?;
        if kind != Kind::Bool {
            let rule = &self.rule.text;
            let word = kind.word();
            let message = format!(
                "in rule `{rule}`, a condition is of kind {word}: compare it with something"
            );
            return Err(RuleError::new(condition.at(), message));
        }
        let (vertices, edges) = code.reads();
        into.push(Condition {
            code,
            vertices,
            edges,
        });
        Ok(())
    }

    fn rule(&mut self, rule: &'a Rule) -> Result<Compiled, RuleError> {
        let nothing = Scope {
            vertices: Vec::new(),
            edges: Vec::new(),
        };
        let (main, scope) = self.part(&rule.pattern, &nothing)?;
        if main.vertices.is_empty() {
            let message = "nothing is looked for: write a `match` with a vertex";
            return Err(self.error(self.rule, message));
        }
        let mut unless = Vec::new();
        for pattern in &rule.unless {
            let (mut part, _) = self.part(pattern, &scope)?;
            if part.vertices.is_empty() && part.edges.is_empty() {
                let message = "an `unless` names neither vertex nor edge: write `if not` instead";
                return Err(self.error(self.rule, message));
            }
            part.deep = self.is_deep(&main, &part);
            unless.push(part);
        }
        let mut compiled = Compiled {
            name: rule.name.text.clone(),
            vertices: Vec::new(),
            edges: self.edges.iter().map(|edge| edge.spec.clone()).collect(),
            writes: vec![false; main.vertices.len()],
            main,
            unless,
            delete_vertices: Vec::new(),
            delete_edges: Vec::new(),
            create_vertices: Vec::new(),
            create_edges: Vec::new(),
            set: Vec::new(),
            strict: Vec::new(),
        };
        for vertex in &self.vertices {
            compiled.vertices.push(VertexSpec {
                name: vertex.name.text.clone(),
                range: vertex.range,
            });
        }
        self.deletions(rule, &scope, &mut compiled)?;
        let created = self.creations(rule, &scope, &mut compiled)?;
        self.settings(rule, &scope, &created, &mut compiled)?;
        Ok(compiled)
    }

    /// Whether an `unless` pattern depends on more than the vertices of the match and the edges
    /// at them. Whoever adds such an edge writes the vertex, so a match that reads it is safe.
    fn is_deep(&self, main: &Part, part: &Part) -> bool {
        let is_found = |vertex: u8| usize::from(vertex) < main.vertices.len();
        let specs = self.edges[part.edges.clone()].iter().map(|edge| &edge.spec);
        let all_anchored = specs
            .clone()
            .all(|edge| is_found(edge.source) || is_found(edge.target));
        let is_touched = |vertex: usize| {
            let ends = |edge: &EdgeSpec| [edge.source, edge.target];
            specs
                .clone()
                .any(|edge| ends(edge).contains(&(vertex as u8)))
        };
        let own_vertices = part
            .vertices
            .clone()
            .fold(0u32, |bits, place| bits | 1 << place);
        let own_edges = part
            .edges
            .clone()
            .fold(0u32, |bits, place| bits | 1 << place);
        let reads_own = part.conditions.iter().any(|condition| {
            condition.vertices & own_vertices != 0 || condition.edges & own_edges != 0
        });
        !all_anchored || reads_own || !part.vertices.clone().all(is_touched)
    }

    fn deletions(
        &self,
        rule: &Rule,
        scope: &Scope,
        compiled: &mut Compiled,
    ) -> Result<(), RuleError> {
        for name in &rule.delete {
            if let Some(vertex) = self.vertex(scope, name) {
                if compiled.delete_vertices.contains(&vertex) {
                    return Err(self.error(name, format!("`{}` is deleted twice", name.text)));
                }
                compiled.delete_vertices.push(vertex);
                compiled.writes[usize::from(vertex)] = true;
                if rule.strict {
                    let specs = &compiled.edges[compiled.main.edges.clone()];
                    let ends = specs.iter().flat_map(|edge| [edge.source, edge.target]);
                    let own = ends.filter(|end| *end == vertex).count();
                    compiled.strict.push((vertex, own as u32));
                }
            } else if let Some(edge) = self.edge(scope, name) {
                if compiled.delete_edges.contains(&edge) {
                    return Err(self.error(name, format!("`{}` is deleted twice", name.text)));
                }
                compiled.delete_edges.push(edge);
                let source = compiled.edges[usize::from(edge)].source;
                compiled.writes[usize::from(source)] = true;
            } else {
                return Err(self.unknown(name));
            }
        }
        Ok(())
    }

    /// Looks up what is created. Returns names with their owners and types' numbers.
    fn creations(
        &self,
        rule: &'a Rule,
        scope: &Scope,
        compiled: &mut Compiled,
    ) -> Result<Vec<(&'a Name, Owner, TypeNumber)>, RuleError> {
        let mut created: Vec<(&Name, Owner, TypeNumber)> = Vec::new();
        let is_there = |created: &[(&Name, Owner, TypeNumber)], name: &Name| {
            created.iter().any(|(there, ..)| there.text == name.text)
        };
        let twice = |name: &Name| {
            self.error(
                name,
                format!("two elements are called `{}`: rename one", name.text),
            )
        };
        for vertex in &rule.create.vertices {
            self.fresh(scope, &vertex.name)?;
            if is_there(&created, &vertex.name) {
                return Err(twice(&vertex.name));
            }
            let number = self.type_of(Sort::Vertex, &vertex.of)?.range.first;
            let owner = Owner::NewVertex(compiled.create_vertices.len() as u8);
            created.push((&vertex.name, owner, number));
            compiled.create_vertices.push(number);
        }
        for edge in &rule.create.edges {
            let end = |name: &Name| {
                if let Some(vertex) = self.vertex(scope, name) {
                    if compiled.delete_vertices.contains(&vertex) {
                        let text = &name.text;
                        let message = format!("`{text}` gets an edge and is deleted: do one of it");
                        return Err(self.error(name, message));
                    }
                    return Ok(End::Found(vertex));
                }
                match created.iter().find(|(there, ..)| there.text == name.text) {
                    Some((_, Owner::NewVertex(place), _)) => Ok(End::Created(*place)),
                    _ => Err(self.unknown(name)),
                }
            };
            let ends = (end(&edge.source)?, end(&edge.target)?);
            let number = self.type_of(Sort::Edge, &edge.of)?.range.first;
            let owner = Owner::NewEdge(compiled.create_edges.len() as u8);
            if let Some(name) = &edge.name {
                self.fresh(scope, name)?;
                if is_there(&created, name) {
                    return Err(twice(name));
                }
                created.push((name, owner, number));
            }
            compiled.create_edges.push((number, ends.0, ends.1));
        }
        if compiled.create_vertices.len() > ELEMENTS_MAX
            || compiled.create_edges.len() > ELEMENTS_MAX
        {
            let message = format!("more than {ELEMENTS_MAX} vertices or edges are created");
            return Err(self.error(self.rule, message));
        }
        Ok(created)
    }

    fn settings(
        &mut self,
        rule: &Rule,
        scope: &Scope,
        created: &[(&Name, Owner, TypeNumber)],
        compiled: &mut Compiled,
    ) -> Result<(), RuleError> {
        for assignment in &rule.set {
            let name = &assignment.owner;
            let new = created.iter().find(|(there, ..)| there.text == name.text);
            let (owner, sort, number) = if let Some((_, owner, number)) = new {
                let sort = match owner {
                    Owner::NewVertex(_) => Sort::Vertex,
                    _ => Sort::Edge,
                };
                (*owner, sort, *number)
            } else if let Some(vertex) = self.vertex(scope, name) {
                if compiled.delete_vertices.contains(&vertex) {
                    let message = format!("`{}` is deleted and set: do one of it", name.text);
                    return Err(self.error(name, message));
                }
                compiled.writes[usize::from(vertex)] = true;
                let range = self.vertices[usize::from(vertex)].range;
                (Owner::Vertex(vertex), Sort::Vertex, range.first)
            } else if let Some(edge) = self.edge(scope, name) {
                if compiled.delete_edges.contains(&edge) {
                    let message = format!("`{}` is deleted and set: do one of it", name.text);
                    return Err(self.error(name, message));
                }
                let spec = &self.edges[usize::from(edge)].spec;
                compiled.writes[usize::from(spec.source)] = true;
                (Owner::Edge(edge), Sort::Edge, spec.range.first)
            } else {
                return Err(self.unknown(name));
            };
            let (slot, wanted) = self.slot(sort, number, &assignment.attribute)?;
            let (mut code, kind) = self.code(&assignment.value, scope)?;
            if (wanted, kind) == (Kind::Float, Kind::Int) {
                code = Code::ToFloat(Box::new(code));
            } else if wanted != kind {
                let attribute = &assignment.attribute;
                let (wanted, kind) = (wanted.word(), kind.word());
                let message = format!("`{}` is of kind {wanted}, not {kind}", attribute.text);
                return Err(self.error(attribute, message));
            }
            let is_same = |one: &Setting| one.owner == owner && one.slot == slot;
            if compiled.set.iter().any(is_same) {
                let text = &assignment.attribute.text;
                return Err(self.error(name, format!("`{}.{text}` is set twice", name.text)));
            }
            compiled.set.push(Setting { owner, slot, code });
        }
        Ok(())
    }

    fn slot(&self, sort: Sort, number: TypeNumber, name: &Name) -> Result<(u16, Kind), RuleError> {
        let schema = self.graph.schema();
        let of = match sort {
            Sort::Vertex => schema.vertices.of(number),
            Sort::Edge => schema.edges.of(number),
        };
        match of.slot(&name.text) {
            Some((slot, kind)) => Ok((slot as u16, kind)),
            None => {
                let names = of.attributes.iter().map(|one| one.name.as_str());
                let advice = match nearest(&name.text, names) {
                    Some(near) => format!("do you mean `{near}`?"),
                    None => "declare it with the type".to_owned(),
                };
                let (of, text) = (&of.name, &name.text);
                Err(self.error(name, format!("`{of}` has no attribute `{text}`: {advice}")))
            }
        }
    }

    fn code(&mut self, expression: &Expression, scope: &Scope) -> Result<(Code, Kind), RuleError> {
        match expression {
            Expression::Literal(value, _) => Ok((self.constant(value), value.kind())),
            Expression::Attribute(owner, attribute) => {
                if let Some(index) = self.vertex(scope, owner) {
                    let number = self.vertices[usize::from(index)].range.first;
                    let (slot, kind) = self.slot(Sort::Vertex, number, attribute)?;
                    Ok((Code::Vertex { index, slot }, kind))
                } else if let Some(index) = self.edge(scope, owner) {
                    let number = self.edges[usize::from(index)].spec.range.first;
                    let (slot, kind) = self.slot(Sort::Edge, number, attribute)?;
                    Ok((Code::Edge { index, slot }, kind))
                } else {
                    Err(self.unknown(owner))
                }
            }
            Expression::Unary(operation, inner, at) => {
                let (code, kind) = self.code(inner, scope)?;
                let code = Box::new(code);
                match (operation, kind) {
                    (Unary::Not, Kind::Bool) => Ok((Code::Not(code), kind)),
                    (Unary::Minus, Kind::Int) => Ok((Code::MinusInt(code), kind)),
                    (Unary::Minus, Kind::Float) => Ok((Code::MinusFloat(code), kind)),
                    (Unary::Not, _) => Err(self.kinds("not", &[kind], *at)),
                    (Unary::Minus, _) => Err(self.kinds("-", &[kind], *at)),
                }
            }
            Expression::Binary(operation, left, right, at) => {
                let left = self.code(left, scope)?;
                let right = self.code(right, scope)?;
                let kinds = [left.1, right.1];
                let sign = operation.sign();
                binary(*operation, left, right).ok_or_else(|| self.kinds(sign, &kinds, *at))
            }
        }
    }

    fn kinds(&self, sign: &str, kinds: &[Kind], at: crate::rule::Place) -> RuleError {
        let kinds: Vec<_> = kinds.iter().map(|kind| kind.word()).collect();
        let (kinds, rule) = (kinds.join(" and "), &self.rule.text);
        let message = format!("in rule `{rule}`, `{sign}` does not go with {kinds}");
        RuleError::new(at, message)
    }

    fn constant(&mut self, value: &Value) -> Code {
        Code::Constant(self.graph.encode(value))
    }
}

/// The code of an operation, if it goes with the kinds. Whole numbers beside floats become floats.
fn binary(operation: Binary, left: (Code, Kind), right: (Code, Kind)) -> Option<(Code, Kind)> {
    let is_arithmetic = matches!(
        operation,
        Binary::Add | Binary::Subtract | Binary::Multiply | Binary::Divide | Binary::Remainder
    );
    let as_float = |(code, kind): (Code, Kind)| match kind {
        Kind::Int => Box::new(Code::ToFloat(Box::new(code))),
        _ => Box::new(code),
    };
    let result = |kind| if is_arithmetic { kind } else { Kind::Bool };
    match (operation, left.1, right.1) {
        (Binary::And, Kind::Bool, Kind::Bool) => {
            Some((Code::And(Box::new(left.0), Box::new(right.0)), Kind::Bool))
        }
        (Binary::Or, Kind::Bool, Kind::Bool) => {
            Some((Code::Or(Box::new(left.0), Box::new(right.0)), Kind::Bool))
        }
        (Binary::And | Binary::Or, ..) => None,
        (_, Kind::Int, Kind::Int) => {
            let code = Code::Int(operation, Box::new(left.0), Box::new(right.0));
            Some((code, result(Kind::Int)))
        }
        (_, Kind::Int | Kind::Float, Kind::Int | Kind::Float) => {
            let code = Code::Float(operation, as_float(left), as_float(right));
            Some((code, result(Kind::Float)))
        }
        (Binary::Equal | Binary::Unequal, left_kind, right_kind) if left_kind == right_kind => {
            let code = Code::Word(operation, Box::new(left.0), Box::new(right.0));
            Some((code, Kind::Bool))
        }
        (_, Kind::Text, Kind::Text) if !is_arithmetic => {
            let code = Code::Text(operation, Box::new(left.0), Box::new(right.0));
            Some((code, Kind::Bool))
        }
        _ => None,
    }
}

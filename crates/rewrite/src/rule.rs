//! Rules as their authors write them, in a text or in code: names, not yet looked up.
//!
//! ```
//! use hearth_rewrite::rule::{Expression, Rule};
//!
//! let rule = Rule::new("popular")
//!     .vertex("v", "Video")
//!     .vertex("w", "Video")
//!     .edge("e", "v", "related", "w")
//!     .condition(Expression::parse("v.views > 1000 and not w.seen")?)
//!     .delete("e")
//!     .set("w", "seen", Expression::parse("true")?);
//! # Ok::<(), hearth_rewrite::rule::RuleError>(())
//! ```

use std::fmt;

use thiserror::Error;

use crate::schema::Value;

/// A place in a text of rules; 0 in what code made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// From 1.
    pub line: u32,
    /// From 1, in characters.
    pub column: u32,
}

/// A name with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// The name.
    pub text: String,
    /// Its place.
    pub at: Place,
}

impl From<&str> for Name {
    fn from(text: &str) -> Name {
        Name {
            text: text.to_owned(),
            at: Place::default(),
        }
    }
}

/// A mistake in a rule or in a text of rules.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub struct RuleError {
    /// The place, if the rule is from a text.
    pub at: Place,
    /// The mistake and how to mend it, on one line.
    pub message: String,
}

impl RuleError {
    pub(crate) fn new(at: Place, message: impl Into<String>) -> RuleError {
        RuleError {
            at,
            message: message.into(),
        }
    }
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.at.line > 0 {
            write!(f, "line {}, column {}: ", self.at.line, self.at.column)?;
        }
        f.write_str(&self.message)
    }
}

/// An operation on one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unary {
    /// `not`, of booleans.
    Not,
    /// `-`, of numbers.
    Minus,
}

/// An operation on two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binary {
    /// `or`
    Or,
    /// `and`
    And,
    /// `==`
    Equal,
    /// `!=`
    Unequal,
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `>`
    More,
    /// `>=`
    AtLeast,
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `%`
    Remainder,
}

impl Binary {
    /// The sign of rules' texts.
    pub fn sign(self) -> &'static str {
        match self {
            Binary::Or => "or",
            Binary::And => "and",
            Binary::Equal => "==",
            Binary::Unequal => "!=",
            Binary::Less => "<",
            Binary::AtMost => "<=",
            Binary::More => ">",
            Binary::AtLeast => ">=",
            Binary::Add => "+",
            Binary::Subtract => "-",
            Binary::Multiply => "*",
            Binary::Divide => "/",
            Binary::Remainder => "%",
        }
    }
}

/// An expression over attributes of what a pattern has found.
#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    /// A value.
    Literal(Value, Place),
    /// An attribute of a vertex or edge of the pattern.
    Attribute(Name, Name),
    /// An operation on one value.
    Unary(Unary, Box<Expression>, Place),
    /// An operation on two values, with the place of its sign.
    Binary(Binary, Box<Expression>, Box<Expression>, Place),
}

impl Expression {
    /// Reads an expression as in a text of rules.
    pub fn parse(text: &str) -> Result<Expression, RuleError> {
        crate::text::expression(text)
    }

    /// The value as an expression.
    pub fn value(value: Value) -> Expression {
        Expression::Literal(value, Place::default())
    }

    /// The place where it begins.
    pub fn at(&self) -> Place {
        match self {
            Expression::Literal(_, at) | Expression::Unary(_, _, at) => *at,
            Expression::Attribute(owner, _) => owner.at,
            Expression::Binary(_, left, _, _) => left.at(),
        }
    }
}

/// A vertex of a pattern, or one to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternVertex {
    /// Its name in the rule.
    pub name: Name,
    /// Its type; those that extend it match, too.
    pub of: Name,
}

/// An edge of a pattern, or one to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternEdge {
    /// Its name in the rule, if it has one.
    pub name: Option<Name>,
    /// Its type; those that extend it match, too.
    pub of: Name,
    /// The vertex it comes from.
    pub source: Name,
    /// The vertex it leads to.
    pub target: Name,
}

/// Vertices and edges that are looked for, with conditions on their attributes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pattern {
    /// Vertices.
    pub vertices: Vec<PatternVertex>,
    /// Edges between them, and between them and those of the rule's pattern.
    pub edges: Vec<PatternEdge>,
    /// Conditions that must all be true.
    pub conditions: Vec<Expression>,
}

impl Pattern {
    /// Nothing yet.
    pub fn new() -> Pattern {
        Pattern::default()
    }

    /// With a vertex.
    #[must_use]
    pub fn vertex(mut self, name: &str, of: &str) -> Self {
        self.vertices.push(PatternVertex {
            name: name.into(),
            of: of.into(),
        });
        self
    }

    /// With an edge; an empty name is none.
    #[must_use]
    pub fn edge(mut self, name: &str, source: &str, of: &str, target: &str) -> Self {
        self.edges.push(PatternEdge {
            name: (!name.is_empty()).then(|| name.into()),
            of: of.into(),
            source: source.into(),
            target: target.into(),
        });
        self
    }

    /// With a condition.
    #[must_use]
    pub fn condition(mut self, condition: Expression) -> Self {
        self.conditions.push(condition);
        self
    }
}

/// A new value for an attribute, computed from the graph as it was when the match was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Assignment {
    /// A vertex or edge of the pattern, or one that is created.
    pub owner: Name,
    /// The attribute.
    pub attribute: Name,
    /// Its value.
    pub value: Expression,
}

/// A pattern and what to make of it. Vertices and edges that are neither deleted nor created are
/// kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// Its name.
    pub name: Name,
    /// Pattern that must be there.
    pub pattern: Pattern,
    /// Patterns that must not be there beside it: negative application conditions.
    pub unless: Vec<Pattern>,
    /// Vertices and edges of the pattern to delete.
    pub delete: Vec<Name>,
    /// Vertices and edges to create; it has no conditions.
    pub create: Pattern,
    /// Attributes to set.
    pub set: Vec<Assignment>,
    /// A vertex with edges outside of the pattern is not deleted: there is no match then.
    /// Otherwise these edges are deleted with it.
    pub strict: bool,
}

impl Rule {
    /// A rule without a pattern.
    pub fn new(name: &str) -> Rule {
        Rule {
            name: name.into(),
            pattern: Pattern::new(),
            unless: Vec::new(),
            delete: Vec::new(),
            create: Pattern::new(),
            set: Vec::new(),
            strict: false,
        }
    }

    /// With a vertex to look for.
    #[must_use]
    pub fn vertex(mut self, name: &str, of: &str) -> Self {
        self.pattern = self.pattern.vertex(name, of);
        self
    }

    /// With an edge to look for; an empty name is none.
    #[must_use]
    pub fn edge(mut self, name: &str, source: &str, of: &str, target: &str) -> Self {
        self.pattern = self.pattern.edge(name, source, of, target);
        self
    }

    /// With a condition.
    #[must_use]
    pub fn condition(mut self, condition: Expression) -> Self {
        self.pattern = self.pattern.condition(condition);
        self
    }

    /// With a pattern that must not be there. It names vertices of the rule's pattern without
    /// declaring them.
    #[must_use]
    pub fn unless(mut self, pattern: Pattern) -> Self {
        self.unless.push(pattern);
        self
    }

    /// With a vertex or edge to delete.
    #[must_use]
    pub fn delete(mut self, name: &str) -> Self {
        self.delete.push(name.into());
        self
    }

    /// With a vertex to create.
    #[must_use]
    pub fn create_vertex(mut self, name: &str, of: &str) -> Self {
        self.create = self.create.vertex(name, of);
        self
    }

    /// With an edge to create; an empty name is none.
    #[must_use]
    pub fn create_edge(mut self, name: &str, source: &str, of: &str, target: &str) -> Self {
        self.create = self.create.edge(name, source, of, target);
        self
    }

    /// With an attribute to set.
    #[must_use]
    pub fn set(mut self, owner: &str, attribute: &str, value: Expression) -> Self {
        self.set.push(Assignment {
            owner: owner.into(),
            attribute: attribute.into(),
            value,
        });
        self
    }

    /// Deletes no vertex with edges outside of the pattern.
    #[must_use]
    pub fn strict(mut self) -> Self {
        self.strict = true;
        self
    }
}

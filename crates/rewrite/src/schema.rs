//! Types of vertices and edges, and their attributes.
//!
//! A type may extend one other. Types are numbered in the preorder of that forest, so a type and
//! all that extend it are one range of numbers, and a test of type is one comparison. A type's
//! attributes begin with those of the type that it extends, so an attribute has the same slot in
//! all of them.

use std::collections::HashMap;
use std::fmt;

use thiserror::Error;

/// Kind of an attribute's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Whole numbers of 64 bits.
    Int,
    /// Floating-point numbers of 64 bits.
    Float,
    /// True or false.
    Bool,
    /// Text.
    Text,
}

impl Kind {
    /// The word of rules and of GraphML for this kind.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Int => "int",
            Kind::Float => "float",
            Kind::Bool => "bool",
            Kind::Text => "string",
        }
    }

    /// The kind that a word names: those of [`Kind::word`], and GraphML's further ones.
    pub fn from_word(word: &str) -> Option<Kind> {
        Some(match word {
            "int" | "long" | "integer" => Kind::Int,
            "float" | "double" | "real" => Kind::Float,
            "bool" | "boolean" => Kind::Bool,
            "string" | "text" => Kind::Text,
            _ => return None,
        })
    }

    /// The value that a word of a file stands for.
    pub fn parse(self, word: &str) -> Option<Value> {
        Some(match self {
            Kind::Int => Value::Int(word.trim().parse().ok()?),
            Kind::Float => Value::Float(word.trim().parse().ok()?),
            Kind::Bool => Value::Bool(match word.trim() {
                "true" | "True" | "1" => true,
                "false" | "False" | "0" => false,
                _ => return None,
            }),
            Kind::Text => Value::Text(word.to_owned()),
        })
    }

    /// The value of an attribute that was given none.
    pub fn zero(self) -> Value {
        match self {
            Kind::Int => Value::Int(0),
            Kind::Float => Value::Float(0.0),
            Kind::Bool => Value::Bool(false),
            Kind::Text => Value::Text(String::new()),
        }
    }
}

/// A value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Value of [`Kind::Int`].
    Int(i64),
    /// Value of [`Kind::Float`].
    Float(f64),
    /// Value of [`Kind::Bool`].
    Bool(bool),
    /// Value of [`Kind::Text`].
    Text(String),
}

impl Value {
    /// The kind of the value.
    pub fn kind(&self) -> Kind {
        match self {
            Value::Int(_) => Kind::Int,
            Value::Float(_) => Kind::Float,
            Value::Bool(_) => Kind::Bool,
            Value::Text(_) => Kind::Text,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Int(value) => write!(f, "{value}"),
            // With a point, so that it reads as a float again.
            Value::Float(value) => write!(f, "{value:?}"),
            Value::Bool(value) => write!(f, "{value}"),
            Value::Text(value) => f.write_str(value),
        }
    }
}

/// Number of a type in preorder, among vertices' types or among edges'.
pub type TypeNumber = u16;

/// A type with all types that extend it: numbers from `first` to `last`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypeRange {
    /// The type itself.
    pub first: TypeNumber,
    /// The last of those that extend it.
    pub last: TypeNumber,
}

impl TypeRange {
    /// Whether the type is in the range.
    #[inline(always)]
    pub fn has(self, number: TypeNumber) -> bool {
        number.wrapping_sub(self.first) <= self.last - self.first
    }

    /// Whether some type is in both ranges.
    pub fn meets(self, other: TypeRange) -> bool {
        self.first <= other.last && other.first <= self.last
    }
}

/// An attribute of a type.
#[derive(Clone, Debug, PartialEq)]
pub struct Attribute {
    /// Its name.
    pub name: String,
    /// Its values' kind.
    pub kind: Kind,
}

/// A type of vertices or of edges.
#[derive(Clone, Debug, PartialEq)]
pub struct Type {
    /// Its name.
    pub name: String,
    /// The type that it extends.
    pub parent: Option<TypeNumber>,
    /// The type with those that extend it.
    pub range: TypeRange,
    /// Attributes by slot, inherited ones first.
    pub attributes: Vec<Attribute>,
}

impl Type {
    /// Slot and kind of an attribute.
    pub fn slot(&self, name: &str) -> Option<(usize, Kind)> {
        let slot = self.attributes.iter().position(|one| one.name == name)?;
        Some((slot, self.attributes[slot].kind))
    }
}

/// The types of vertices, or those of edges.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Types {
    types: Vec<Type>,
    numbers: HashMap<String, TypeNumber>,
}

impl Types {
    /// The type of a name.
    pub fn named(&self, name: &str) -> Option<&Type> {
        self.numbers.get(name).map(|number| self.of(*number))
    }

    /// The type of a number.
    ///
    /// # Panics
    /// Where there is no such type.
    pub fn of(&self, number: TypeNumber) -> &Type {
        &self.types[usize::from(number)]
    }

    /// All types in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = &Type> {
        self.types.iter()
    }

    /// Number of types.
    pub fn len(&self) -> usize {
        self.types.len()
    }

    /// Whether there is no type.
    pub fn is_empty(&self) -> bool {
        self.types.is_empty()
    }

    /// All names, for messages.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.types.iter().map(|one| one.name.as_str())
    }
}

/// All types of a graph. Made by a [`SchemaBuilder`], and fixed then.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Schema {
    /// Types of vertices.
    pub vertices: Types,
    /// Types of edges.
    pub edges: Types,
}

/// Reason why types do not make a schema.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SchemaError {
    /// Two types of one name.
    #[error("the type `{0}` is declared twice: give one of them another name")]
    Twice(String),
    /// A type extends one that is not there.
    #[error("`{name}` extends `{parent}`, which is not declared: declare it, too")]
    Parent {
        /// The type.
        name: String,
        /// The missing one.
        parent: String,
    },
    /// A type extends itself, perhaps by way of others.
    #[error("`{0}` extends itself, by way of the types that it extends: break the circle")]
    Circle(String),
    /// An attribute of two kinds in one type.
    #[error(
        "`{attribute}` of `{name}` is of kind {first} and of kind {second}: declare it once, or use two names"
    )]
    Kinds {
        /// The type.
        name: String,
        /// The attribute.
        attribute: String,
        /// The kind met first.
        first: &'static str,
        /// The other one.
        second: &'static str,
    },
    /// More types than there are numbers.
    #[error("there are more than {TYPES_MAX} types: use attributes for what differs between them")]
    TooMany,
}

/// Most types of vertices, and of edges.
pub const TYPES_MAX: usize = 60_000;

/// Vertices or edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sort {
    /// Vertices.
    Vertex,
    /// Edges.
    Edge,
}

#[derive(Clone, Debug)]
struct Draft {
    name: String,
    parent: Option<String>,
    attributes: Vec<Attribute>,
}

/// Collects types, from rules, files and code, until [`SchemaBuilder::build`].
#[derive(Clone, Debug, Default)]
pub struct SchemaBuilder {
    vertices: Vec<Draft>,
    edges: Vec<Draft>,
    /// Places in the two lists: files name a type once for each vertex.
    places: HashMap<(Sort, String), usize>,
}

impl SchemaBuilder {
    /// No types.
    pub fn new() -> Self {
        SchemaBuilder::default()
    }

    fn drafts(&mut self, sort: Sort) -> &mut Vec<Draft> {
        match sort {
            Sort::Vertex => &mut self.vertices,
            Sort::Edge => &mut self.edges,
        }
    }

    /// Adds a type.
    pub fn declare(
        &mut self,
        sort: Sort,
        name: &str,
        parent: Option<&str>,
        attributes: &[(&str, Kind)],
    ) -> Result<(), SchemaError> {
        if self.has(sort, name) {
            return Err(SchemaError::Twice(name.to_owned()));
        }
        self.add(sort, name, parent);
        for (attribute, kind) in attributes {
            self.attribute(sort, name, attribute, *kind)?;
        }
        Ok(())
    }

    fn add(&mut self, sort: Sort, name: &str, parent: Option<&str>) {
        let drafts = self.drafts(sort);
        drafts.push(Draft {
            name: name.to_owned(),
            parent: parent.map(str::to_owned),
            attributes: Vec::new(),
        });
        let place = drafts.len() - 1;
        self.places.insert((sort, name.to_owned()), place);
    }

    /// Whether a type of this name was declared or met.
    pub fn has(&self, sort: Sort, name: &str) -> bool {
        self.places.contains_key(&(sort, name.to_owned()))
    }

    /// Adds a type of this name, which extends none, unless it is there.
    pub fn meet(&mut self, sort: Sort, name: &str) {
        if !self.has(sort, name) {
            self.add(sort, name, None);
        }
    }

    /// The declared kind of an attribute of a type, inherited ones included.
    pub fn kind(&self, sort: Sort, name: &str, attribute: &str) -> Option<Kind> {
        let drafts = match sort {
            Sort::Vertex => &self.vertices,
            Sort::Edge => &self.edges,
        };
        let mut name = name.to_owned();
        // A circle of types is found when the schema is built; here it must only end.
        for _ in 0..=drafts.len() {
            let draft = &drafts[*self.places.get(&(sort, name))?];
            if let Some(found) = draft.attributes.iter().find(|one| one.name == attribute) {
                return Some(found.kind);
            }
            name = draft.parent.clone()?;
        }
        None
    }

    /// The name of the only declared type, if there is exactly one.
    pub fn only(&self, sort: Sort) -> Option<String> {
        let drafts = match sort {
            Sort::Vertex => &self.vertices,
            Sort::Edge => &self.edges,
        };
        match drafts.as_slice() {
            [one] => Some(one.name.clone()),
            _ => None,
        }
    }

    /// Adds an attribute to a type, unless the type has it already; adds the type if need be.
    pub fn attribute(
        &mut self,
        sort: Sort,
        name: &str,
        attribute: &str,
        kind: Kind,
    ) -> Result<(), SchemaError> {
        self.meet(sort, name);
        match self.kind(sort, name, attribute) {
            Some(there) if there == kind => return Ok(()),
            Some(there) => {
                return Err(SchemaError::Kinds {
                    name: name.to_owned(),
                    attribute: attribute.to_owned(),
                    first: there.word(),
                    second: kind.word(),
                });
            }
            None => {}
        }
        let place = self.places[&(sort, name.to_owned())];
        self.drafts(sort)[place].attributes.push(Attribute {
            name: attribute.to_owned(),
            kind,
        });
        Ok(())
    }

    /// The schema of all types.
    pub fn build(&self) -> Result<Schema, SchemaError> {
        Ok(Schema {
            vertices: number(&self.vertices)?,
            edges: number(&self.edges)?,
        })
    }
}

/// Numbers types in preorder, siblings in the order in which they were declared.
fn number(drafts: &[Draft]) -> Result<Types, SchemaError> {
    if drafts.len() > TYPES_MAX {
        return Err(SchemaError::TooMany);
    }
    let by_name: HashMap<&str, usize> = (0..)
        .zip(drafts)
        .map(|(place, draft)| (draft.name.as_str(), place))
        .collect();
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); drafts.len()];
    let mut roots = Vec::new();
    for (place, draft) in drafts.iter().enumerate() {
        match &draft.parent {
            None => roots.push(place),
            Some(parent) => match by_name.get(parent.as_str()) {
                Some(parent) => children[*parent].push(place),
                None => {
                    return Err(SchemaError::Parent {
                        name: draft.name.clone(),
                        parent: parent.clone(),
                    });
                }
            },
        }
    }
    let mut types: Types = Types::default();
    // (place, number of the parent), the next one last.
    let mut ahead: Vec<(usize, Option<TypeNumber>)> =
        roots.into_iter().rev().map(|root| (root, None)).collect();
    let mut reached = vec![false; drafts.len()];
    while let Some((place, parent)) = ahead.pop() {
        reached[place] = true;
        let draft = &drafts[place];
        let number = types.types.len() as TypeNumber;
        let mut attributes = match parent {
            Some(parent) => types.of(parent).attributes.clone(),
            None => Vec::new(),
        };
        for own in &draft.attributes {
            match attributes.iter().find(|one| one.name == own.name) {
                None => attributes.push(own.clone()),
                Some(there) if there.kind == own.kind => {}
                Some(there) => {
                    return Err(SchemaError::Kinds {
                        name: draft.name.clone(),
                        attribute: own.name.clone(),
                        first: there.kind.word(),
                        second: own.kind.word(),
                    });
                }
            }
        }
        types.numbers.insert(draft.name.clone(), number);
        types.types.push(Type {
            name: draft.name.clone(),
            parent,
            range: TypeRange {
                first: number,
                last: number,
            },
            attributes,
        });
        let below = children[place].iter().rev();
        ahead.extend(below.map(|child| (*child, Some(number))));
    }
    if let Some(place) = reached.iter().position(|reached| !reached) {
        return Err(SchemaError::Circle(drafts[place].name.clone()));
    }
    // From the last to the first: a type's range ends where its last child's does.
    for number in (0..types.types.len()).rev() {
        let last = types.types[number].range.last;
        if let Some(parent) = types.types[number].parent {
            let range = &mut types.types[usize::from(parent)].range;
            range.last = range.last.max(last);
        }
    }
    Ok(types)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_and_those_that_extend_them_are_ranges() {
        let mut builder = SchemaBuilder::new();
        let vertex = Sort::Vertex;
        builder
            .declare(vertex, "C", Some("A"), &[("c", Kind::Bool)])
            .unwrap();
        builder
            .declare(vertex, "A", None, &[("a", Kind::Int)])
            .unwrap();
        builder.declare(vertex, "Other", None, &[]).unwrap();
        builder
            .declare(vertex, "D", Some("C"), &[("d", Kind::Float)])
            .unwrap();
        builder.declare(vertex, "E", Some("A"), &[]).unwrap();
        let types = builder.build().unwrap().vertices;
        let range = |name: &str| types.named(name).unwrap().range;
        for (lower, upper, is) in [
            ("D", "A", true),
            ("D", "C", true),
            ("E", "A", true),
            ("E", "C", false),
            ("A", "C", false),
            ("Other", "A", false),
        ] {
            assert_eq!(
                range(upper).has(range(lower).first),
                is,
                "{lower} is {upper}"
            );
        }
        let d = types.named("D").unwrap();
        assert_eq!(d.slot("a"), Some((0, Kind::Int)));
        assert_eq!(d.slot("d"), Some((2, Kind::Float)));
    }

    #[test]
    fn what_makes_no_schema() {
        let mut builder = SchemaBuilder::new();
        builder.declare(Sort::Edge, "a", Some("b"), &[]).unwrap();
        assert!(matches!(builder.build(), Err(SchemaError::Parent { .. })));
        builder.declare(Sort::Edge, "b", Some("a"), &[]).unwrap();
        assert!(matches!(builder.build(), Err(SchemaError::Circle(_))));
        assert!(builder.declare(Sort::Edge, "a", None, &[]).is_err());
        builder
            .declare(Sort::Vertex, "V", None, &[("x", Kind::Int)])
            .unwrap();
        assert!(
            builder
                .attribute(Sort::Vertex, "V", "x", Kind::Bool)
                .is_err()
        );
    }
}

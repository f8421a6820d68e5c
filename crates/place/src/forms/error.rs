//! Errors in a text of another tool's form, and in a graph or placement that should become one.

use std::fmt;

use hearth_machine::topology::OsThread;

use crate::graph::GraphError;

/// Reason why a text cannot be read.
#[derive(Clone, Debug, PartialEq)]
pub enum ReadError {
    /// A place in the text is wrong.
    Text {
        /// The expected form.
        form: &'static str,
        /// From 1.
        line: usize,
        /// From 1, in characters.
        column: usize,
        /// The fault at that place.
        fault: Fault,
    },
    /// The given names do not fit the components.
    Names {
        /// Components in the text.
        components: usize,
        /// Names given.
        names: usize,
    },
    /// The payload of a message, or its envelope, is not a number above 0.
    Payload,
    /// The resulting graph is not valid.
    Graph(GraphError),
}

/// A fault at a place of a text.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// Only blanks and comments.
    Empty,
    /// A word that is not a finite number of at least 0.
    Number {
        /// The word.
        word: String,
    },
    /// A word that is not a whole number in the range.
    Whole {
        /// The word.
        word: String,
        /// Meaning of the number.
        what: &'static str,
        /// The smallest allowed.
        min: u32,
        /// The largest allowed.
        max: u32,
    },
    /// A row of a matrix whose length differs from the first's.
    Row {
        /// The row, from 1.
        row: usize,
        /// Numbers in the row.
        found: usize,
        /// Numbers expected.
        wanted: usize,
    },
    /// A matrix that is not square.
    Rows {
        /// Rows.
        found: usize,
        /// Columns.
        wanted: usize,
    },
    /// A matrix that should be symmetric is not.
    Unequal {
        /// From 1.
        row: usize,
        /// From 1.
        column: usize,
        /// The value at this place.
        here: f64,
        /// The value on the other side of the diagonal.
        there: f64,
    },
    /// A METIS heading with fewer than two or more than four numbers.
    Heading {
        /// Numbers in the heading.
        found: usize,
    },
    /// A METIS format that is not up to three digits 0 and 1.
    Format {
        /// The word.
        word: String,
    },
    /// A number of weights although the format has none.
    Unweighted,
    /// A line that ends before all numbers of its vertex.
    Short {
        /// The missing part.
        what: &'static str,
    },
    /// A number of vertex lines that differs from the heading's.
    Vertices {
        /// Number in the text.
        found: usize,
        /// Number in the heading.
        wanted: usize,
    },
    /// A number of edges that differs from the heading's.
    Edges {
        /// Number in the text.
        found: usize,
        /// Number in the heading.
        wanted: usize,
    },
    /// An edge from a vertex to itself.
    Loop {
        /// From 1.
        vertex: u32,
    },
    /// An edge that its vertex names twice.
    Twice {
        /// The vertex of the line, from 1.
        vertex: u32,
        /// The neighbour, from 1.
        other: u32,
    },
    /// An edge that only one of its ends names, or with different weights.
    OneSided {
        /// The vertex of the line, from 1.
        vertex: u32,
        /// The neighbour, from 1.
        other: u32,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("there is nothing in it: name a file that has components"),
            Self::Number { word } => {
                write!(
                    f,
                    "`{word}` is no number from 0 on: write one, such as `0` or `1.5`"
                )
            }
            Self::Whole {
                word,
                what,
                min,
                max,
            } => write!(
                f,
                "`{word}` is no {what}: write a whole number from {min} to {max}"
            ),
            Self::Row { row, found, wanted } => write!(
                f,
                "row {row} has {found} and the first row {wanted} numbers: give each row one \
                 number for each component"
            ),
            Self::Rows { found, wanted } => write!(
                f,
                "the matrix has {found} rows of {wanted} numbers: write as many rows as columns"
            ),
            Self::Unequal {
                row,
                column,
                here,
                there,
            } => write!(
                f,
                "row {row}, column {column} holds {here}, and row {column}, column {row} {there}: \
                 write the same number, or read the matrix as one in which rows send to columns"
            ),
            Self::Heading { found } => write!(
                f,
                "a heading has two to four numbers and this one {found}: write vertices, edges, \
                 and if there are weights the format and how many a vertex has"
            ),
            Self::Format { word } => write!(
                f,
                "`{word}` is no format: write up to three digits 0 or 1, for sizes and weights of \
                 vertices and weights of edges"
            ),
            Self::Unweighted => f.write_str(
                "a number of weights is given, and the format says that vertices have none: write \
                 a format such as `011`, or leave the number out",
            ),
            Self::Short { what } => {
                write!(
                    f,
                    "the line ends without {what}: add it, or mend the heading"
                )
            }
            Self::Vertices { found, wanted } => write!(
                f,
                "the heading says {wanted} vertices, and {found} have a line: write a line for \
                 each, an empty one for a vertex without edges and weights"
            ),
            Self::Edges { found, wanted } => write!(
                f,
                "the heading says {wanted} edges, and there are {found}: mend the heading; an edge \
                 counts once, though both ends name it"
            ),
            Self::Loop { vertex } => write!(
                f,
                "vertex {vertex} has an edge to itself, which the form does not allow: leave it out"
            ),
            Self::Twice { vertex, other } => write!(
                f,
                "vertex {vertex} names {other} twice: write one edge with the sum of the weights"
            ),
            Self::OneSided { vertex, other } => write!(
                f,
                "vertex {vertex} names {other}, and {other} does not name {vertex} with the same \
                 weight: write each edge at both ends"
            ),
        }
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text {
                form,
                line,
                column,
                fault,
            } => write!(
                f,
                "the {form} cannot be read at line {line}, column {column}: {fault}"
            ),
            Self::Names { components, names } => write!(
                f,
                "names are given for {names} components, and the text has {components}: give a name \
                 for each, in the order of the text"
            ),
            Self::Payload => f.write_str(
                "the size of a message and what each message adds make no number of bytes above \
                 0: give the size of a message, such as 64",
            ),
            Self::Graph(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ReadError {}

/// Reason why a graph cannot be written in a form.
#[derive(Clone, Debug, PartialEq)]
pub enum WriteError {
    /// Too many components for a form with a number for each pair.
    TooMany {
        /// Components in the graph.
        components: usize,
        /// Most components of the form.
        max: usize,
    },
    /// Communication, work or memory whose sum is not finite.
    Overflow {
        /// The component or pair.
        whose: String,
    },
    /// No communication, in a form for graphs with edges.
    NoEdges,
    /// The envelope of a message is not a number of bytes of at least 0.
    Envelope,
    /// The graph is not valid.
    Graph(GraphError),
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooMany { components, max } => write!(
                f,
                "a matrix has a number for each two components, and {components} are more than \
                 the {max} that go into one: write the graph as METIS's, which has only the edges"
            ),
            Self::Overflow { whose } => write!(
                f,
                "the numbers of {whose} are too large to be added: give smaller ones, in a larger \
                 unit"
            ),
            Self::NoEdges => f.write_str(
                "no component talks to another, and METIS takes no graph without edges: there is \
                 nothing to keep together, so deal the components out evenly",
            ),
            Self::Envelope => f.write_str(
                "what each message adds is no number of bytes from 0 on: give one, such as 64",
            ),
            Self::Graph(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for WriteError {}

/// Reason why a placement cannot be written for another tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BindError {
    /// No component is placed.
    Nothing,
    /// No program is named.
    NoProgram,
    /// A word holds a character that a program's arguments cannot.
    Nul {
        /// The word, with the character as `\0`.
        word: String,
    },
    /// A host name that would be read as something else.
    Host {
        /// The name.
        host: String,
    },
    /// A hardware thread that the machine lacks, or that is offline.
    NoSuchCpu {
        /// The component placed there.
        component: String,
        /// The hardware thread.
        cpu: OsThread,
    },
    /// A number of threads that differs from the number of components.
    Threads {
        /// Threads.
        threads: usize,
        /// Components.
        components: usize,
    },
    /// A variable too long to start a program with.
    TooLong {
        /// The variable.
        variable: &'static str,
        /// Its length in bytes.
        bytes: usize,
        /// The longest allowed, in bytes.
        max: usize,
    },
}

impl fmt::Display for BindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str(
                "no component is placed, so there is nothing to bind: place a program that has \
                 components",
            ),
            Self::NoProgram => {
                f.write_str("there is no program to run: name one, with its arguments")
            }
            Self::Nul { word } => write!(
                f,
                "`{word}` holds the character 0, which no argument can: leave it out"
            ),
            Self::Host { host } => write!(
                f,
                "`{host}` is no name of a host: write one such as `localhost`, without blanks and \
                 signs other than `.`, `-`, `_`, `:` and a leading `+`"
            ),
            Self::NoSuchCpu { component, cpu } => write!(
                f,
                "`{component}` is placed on {cpu}, which this machine does not have online: place \
                 it for this machine, or take the system's own numbers"
            ),
            Self::Threads {
                threads,
                components,
            } => write!(
                f,
                "{threads} threads are named for {components} components: name one for each, in \
                 the same order"
            ),
            Self::TooLong {
                variable,
                bytes,
                max,
            } => write!(
                f,
                "{variable} would have {bytes} bytes, and Linux starts programs with at most {max} \
                 a variable: bind the whole program instead of each component"
            ),
        }
    }
}

impl std::error::Error for BindError {}

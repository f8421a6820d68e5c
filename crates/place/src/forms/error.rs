//! Errors in a text of another tool's form, and in a graph or placement that should become one.

use hearth_machine::topology::OsThread;
use thiserror::Error;

use crate::graph::GraphError;

/// Reason why a text cannot be read.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum ReadError {
    /// A place in the text is wrong.
    #[error("the {form} cannot be read at line {line}, column {column}: {fault}")]
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
    #[error(
        "names are given for {names} components, and the text has {components}: give a name for each, in the order of the text"
    )]
    Names {
        /// Components in the text.
        components: usize,
        /// Names given.
        names: usize,
    },
    /// The payload of a message, or its envelope, is not a number above 0.
    #[error(
        "the size of a message and its envelope do not make a number of bytes above 0: give the size of a message, such as 64"
    )]
    Payload,
    /// The resulting graph is not valid.
    #[error(transparent)]
    Graph(GraphError),
}

/// A fault at a place of a text.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum Fault {
    /// Only blanks and comments.
    #[error("there is nothing in it: name a file that has components")]
    Empty,
    /// A word that is not a finite number of at least 0.
    #[error("`{word}` is not a number of at least 0: write one, such as `0` or `1.5`")]
    Number {
        /// The word.
        word: String,
    },
    /// A word that is not a whole number in the range.
    #[error("`{word}` is not a valid {what}: write a whole number from {min} to {max}")]
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
    #[error(
        "row {row} has {found} and the first row {wanted} numbers: give each row one number for each component"
    )]
    Row {
        /// The row, from 1.
        row: usize,
        /// Numbers in the row.
        found: usize,
        /// Numbers expected.
        wanted: usize,
    },
    /// A matrix that is not square.
    #[error("the matrix has {found} rows of {wanted} numbers: write as many rows as columns")]
    Rows {
        /// Rows.
        found: usize,
        /// Columns.
        wanted: usize,
    },
    /// A matrix that should be symmetric is not.
    #[error(
        "row {row}, column {column} holds {here}, and row {column}, column {row} {there}: write the same number, or read the matrix as one in which rows send to columns"
    )]
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
    #[error(
        "a heading has two to four numbers and this one {found}: write vertices, edges, and if there are weights the format and how many a vertex has"
    )]
    Heading {
        /// Numbers in the heading.
        found: usize,
    },
    /// A METIS format that is not up to three digits 0 and 1.
    #[error(
        "`{word}` is not a format: write up to three digits 0 or 1, for sizes and weights of vertices and weights of edges"
    )]
    Format {
        /// The word.
        word: String,
    },
    /// A number of weights although the format has none.
    #[error(
        "a number of weights is given, and the format says that vertices have none: write a format such as `011`, or leave the number out"
    )]
    Unweighted,
    /// A line that ends before all numbers of its vertex.
    #[error("the line ends without {what}: add it, or mend the heading")]
    Short {
        /// The missing part.
        what: &'static str,
    },
    /// A number of vertex lines that differs from the heading's.
    #[error(
        "the heading says {wanted} vertices, and {found} have a line: write a line for each, an empty one for a vertex without edges and weights"
    )]
    Vertices {
        /// Number in the text.
        found: usize,
        /// Number in the heading.
        wanted: usize,
    },
    /// A number of edges that differs from the heading's.
    #[error(
        "the heading says {wanted} edges, and there are {found}: mend the heading; an edge counts once, though both ends name it"
    )]
    Edges {
        /// Number in the text.
        found: usize,
        /// Number in the heading.
        wanted: usize,
    },
    /// An edge from a vertex to itself.
    #[error("vertex {vertex} has an edge to itself, which the form does not allow: leave it out")]
    Loop {
        /// From 1.
        vertex: u32,
    },
    /// An edge that its vertex names twice.
    #[error("vertex {vertex} names {other} twice: write one edge with the sum of the weights")]
    Twice {
        /// The vertex of the line, from 1.
        vertex: u32,
        /// The neighbour, from 1.
        other: u32,
    },
    /// An edge that only one of its ends names, or with different weights.
    #[error(
        "vertex {vertex} names {other}, and {other} does not name {vertex} with the same weight: write each edge at both ends"
    )]
    OneSided {
        /// The vertex of the line, from 1.
        vertex: u32,
        /// The neighbour, from 1.
        other: u32,
    },
}

/// Reason why a graph cannot be written in a form.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum WriteError {
    /// Too many components for a form with a number for each pair.
    #[error(
        "a matrix has a number for each two components, and {components} are more than the {max} that go into one: write the graph as METIS's, which has only the edges"
    )]
    TooMany {
        /// Components in the graph.
        components: usize,
        /// Most components of the form.
        max: usize,
    },
    /// Communication, work or memory whose sum is not finite.
    #[error(
        "the numbers of {whose} are too large to be added: give smaller ones, in a larger unit"
    )]
    Overflow {
        /// The component or pair.
        whose: String,
    },
    /// No communication, in a form for graphs with edges.
    #[error(
        "no component talks to another, and METIS takes no graph without edges: there is nothing to keep together, so deal the components out evenly"
    )]
    NoEdges,
    /// The envelope of a message is not a number of bytes of at least 0.
    #[error(
        "the envelope of a message is not a number of bytes of at least 0: give one, such as 64"
    )]
    Envelope,
    /// The graph is not valid.
    #[error(transparent)]
    Graph(GraphError),
}

/// Reason why a placement cannot be written for another tool.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BindError {
    /// No component is placed.
    #[error(
        "no component is placed, so there is nothing to bind: place a program that has components"
    )]
    Nothing,
    /// No program is named.
    #[error("there is no program to run: name one, with its arguments")]
    NoProgram,
    /// A word holds a character that a program's arguments cannot.
    #[error("`{word}` holds the character 0, which no argument can: leave it out")]
    Nul {
        /// The word, with the character as `\0`.
        word: String,
    },
    /// A host name that would be read as something else.
    #[error(
        "`{host}` is not a host's name: write one such as `localhost`, without blanks and signs other than `.`, `-`, `_`, `:` and a leading `+`"
    )]
    Host {
        /// The name.
        host: String,
    },
    /// A hardware thread that the machine lacks, or that is offline.
    #[error(
        "`{component}` is placed on {cpu}, which this machine does not have online: place it for this machine, or take the system's own numbers"
    )]
    NoSuchCpu {
        /// The component placed there.
        component: String,
        /// The hardware thread.
        cpu: OsThread,
    },
    /// A number of threads that differs from the number of components.
    #[error(
        "{threads} threads are named for {components} components: name one for each, in the same order"
    )]
    Threads {
        /// Threads.
        threads: usize,
        /// Components.
        components: usize,
    },
    /// A variable too long to start a program with.
    #[error(
        "{variable} would have {bytes} bytes, and Linux starts programs with at most {max} a variable: bind the whole program instead of each component"
    )]
    TooLong {
        /// The variable.
        variable: &'static str,
        /// Its length in bytes.
        bytes: usize,
        /// The longest allowed, in bytes.
        max: usize,
    },
}

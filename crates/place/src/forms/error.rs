//! What can be wrong with a text in another tool's form, or with what should become one.

use std::fmt;

use hearth_machine::topology::OsThread;

use crate::graph::GraphError;

/// Why a text cannot be read.
#[derive(Clone, Debug, PartialEq)]
pub enum ReadError {
    /// A place in the text is wrong.
    Text {
        /// What the text should be.
        form: &'static str,
        /// From 1.
        line: usize,
        /// From 1, in characters.
        column: usize,
        /// What is wrong there.
        fault: Fault,
    },
    /// The components cannot have the given names.
    Names {
        /// How many components the text has.
        components: usize,
        /// How many names were given.
        names: usize,
    },
    /// The payload of a message, or what a message adds, is no number above 0.
    Payload,
    /// The graph that comes out is not sound.
    Graph(GraphError),
}

/// What is wrong at a place of a text.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// Nothing but blanks and comments.
    Empty,
    /// A word that is no finite number from 0 on.
    Number {
        /// The word.
        word: String,
    },
    /// A word that is no whole number of the range.
    Whole {
        /// The word.
        word: String,
        /// What it should be.
        what: &'static str,
        /// The least.
        min: u32,
        /// The greatest.
        max: u32,
    },
    /// A row of a matrix with fewer or more numbers than the first.
    Row {
        /// The row, from 1.
        row: usize,
        /// What it has.
        found: usize,
        /// What it should have.
        wanted: usize,
    },
    /// Fewer or more rows than columns.
    Rows {
        /// The rows.
        found: usize,
        /// The columns.
        wanted: usize,
    },
    /// A matrix that should be symmetric is not.
    Unequal {
        /// From 1.
        row: usize,
        /// From 1.
        column: usize,
        /// What stands there.
        here: f64,
        /// What stands on the other side of the diagonal.
        there: f64,
    },
    /// A heading of METIS with fewer than two or more than four numbers.
    Heading {
        /// How many it has.
        found: usize,
    },
    /// A format of METIS that is not of up to three digits 0 and 1.
    Format {
        /// The word.
        word: String,
    },
    /// A number of weights though the format says there are none.
    Unweighted,
    /// A line that ends before what its vertex must have.
    Short {
        /// What is missing.
        what: &'static str,
    },
    /// Fewer or more lines of vertices than the heading says.
    Vertices {
        /// What the text has.
        found: usize,
        /// What the heading says.
        wanted: usize,
    },
    /// Fewer or more edges than the heading says.
    Edges {
        /// What the text has.
        found: usize,
        /// What the heading says.
        wanted: usize,
    },
    /// An edge from a vertex to itself.
    Loop {
        /// From 1.
        vertex: u32,
    },
    /// An edge that its vertex names twice.
    Twice {
        /// Whose line it is, from 1.
        vertex: u32,
        /// Whom it names, from 1.
        other: u32,
    },
    /// An edge that only one of its ends names, or with another weight than the other end.
    OneSided {
        /// Whose line it is, from 1.
        vertex: u32,
        /// Whom it names, from 1.
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

/// Why a graph cannot be written in a form.
#[derive(Clone, Debug, PartialEq)]
pub enum WriteError {
    /// Too many components for a form that has a number for each two.
    TooMany {
        /// How many there are.
        components: usize,
        /// How many there may be.
        max: usize,
    },
    /// Communication, work or memory whose sum is no finite number.
    Overflow {
        /// Whose.
        whose: String,
    },
    /// A form for graphs that have edges, and nobody talks.
    NoEdges,
    /// What each message adds is no number of bytes from 0 on.
    Envelope,
    /// The graph is not sound.
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

/// Why a placement cannot be written for another tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BindError {
    /// No component is placed.
    Nothing,
    /// No program is named.
    NoProgram,
    /// A word holds a character that no argument of a program can.
    Nul {
        /// The word, with the character as `\0`.
        word: String,
    },
    /// A name of a host that would be read as something else.
    Host {
        /// The name.
        host: String,
    },
    /// A hardware thread that the machine does not have, or that is offline.
    NoSuchCpu {
        /// Who is placed there.
        component: String,
        /// The hardware thread.
        cpu: OsThread,
    },
    /// Fewer or more threads than components.
    Threads {
        /// The threads.
        threads: usize,
        /// The components.
        components: usize,
    },
    /// A variable that no program can be started with.
    TooLong {
        /// The variable.
        variable: &'static str,
        /// How long it is, in bytes.
        bytes: usize,
        /// How long it may be.
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

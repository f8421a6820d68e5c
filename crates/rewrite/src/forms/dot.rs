//! DOT, the form of Graphviz.
//!
//! An attribute called `type` names the type of a vertex or edge. Undirected edges become one edge
//! in each direction. Defaults (`node [...]`, `edge [...]`) hold as in Graphviz, and what is in a
//! subgraph is read as if it stood outside. Edges to whole subgraphs are refused; ports and
//! attributes of graphs are ignored.

use std::collections::HashSet;

use super::{FormError, Loose, LooseEdge, LooseValue, LooseValues, Places, TYPE};

const FORM: &str = "DOT";
/// Subgraphs inside each other.
const DEPTH_MAX: usize = 200;

/// Reads a graph.
///
/// # Errors
/// Text that is not DOT of the kinds above.
pub fn read(text: &str) -> Result<Loose, FormError> {
    let mut reader = DotReader {
        tokens: tokens(text)?,
        next: 0,
        loose: Loose::default(),
        places: Places::default(),
        set: HashSet::new(),
        is_directed: true,
    };
    reader.graph()?;
    Ok(reader.loose)
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    /// A name, a number, or a text in quotes.
    Id(String, bool),
    Sign(&'static str),
    End,
}

fn fault(line: usize, message: impl Into<String>) -> FormError {
    FormError::Text {
        form: FORM,
        line,
        message: message.into(),
    }
}

fn tokens(text: &str) -> Result<Vec<(usize, Token)>, FormError> {
    const SIGNS: [&str; 11] = ["->", "--", "{", "}", "[", "]", ";", ",", "=", ":", "+"];
    let mut tokens = Vec::new();
    let mut rest = text;
    let mut is_line_start = true;
    let mut line = 1;
    while let Some(first) = rest.chars().next() {
        let mut len = first.len_utf8();
        if first == '\n' {
            is_line_start = true;
        } else if first.is_whitespace() || first == '\u{feff}' {
        } else if rest.starts_with("//") || (first == '#' && is_line_start) {
            len = rest.find('\n').unwrap_or(rest.len());
        } else if rest.starts_with("/*") {
            let end = rest.find("*/");
            len = end.ok_or_else(|| fault(line, "a comment does not end: close it by `*/`"))? + 2;
        } else if first == '"' {
            let (id, end) = quoted(rest).ok_or_else(|| fault(line, "a text does not end"))?;
            tokens.push((line, Token::Id(id, true)));
            len = end;
        } else if first == '<' {
            let (id, end) = html(rest).ok_or_else(|| fault(line, "`<` is not closed by `>`"))?;
            tokens.push((line, Token::Id(id, true)));
            len = end;
        } else if let Some(end) = numeral(rest) {
            tokens.push((line, Token::Id(rest[..end].to_owned(), true)));
            len = end;
        } else if first.is_alphabetic() || first == '_' {
            let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_'));
            len = end.unwrap_or(rest.len());
            tokens.push((line, Token::Id(rest[..len].to_owned(), false)));
        } else if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
            tokens.push((line, Token::Sign(sign)));
            len = sign.len();
        } else {
            return Err(fault(
                line,
                format!("`{first}` is no part of DOT: take it out"),
            ));
        }
        is_line_start = first == '\n' || (is_line_start && first.is_whitespace());
        line += rest[..len].matches('\n').count();
        rest = &rest[len..];
    }
    tokens.push((line, Token::End));
    Ok(tokens)
}

/// Bytes of the number at the beginning: `-3`, `.5`, `2.`.
fn numeral(rest: &str) -> Option<usize> {
    let bytes = rest.as_bytes();
    let sign = usize::from(bytes.first() == Some(&b'-'));
    let digits = |from: usize| {
        bytes[from.min(bytes.len())..]
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count()
    };
    let whole = digits(sign);
    let mut end = sign + whole;
    let mut part = 0;
    if bytes.get(end) == Some(&b'.') {
        part = digits(end + 1);
        end += 1 + part;
    }
    (whole + part > 0).then_some(end)
}

fn quoted(rest: &str) -> Option<(String, usize)> {
    let mut text = String::new();
    let mut chars = rest.char_indices().skip(1);
    while let Some((place, c)) = chars.next() {
        match c {
            '"' => return Some((text, place + 1)),
            '\\' => match chars.next()?.1 {
                '"' => text.push('"'),
                '\n' => {}
                // Graphviz keeps other sequences for labels.
                other => text.extend(['\\', other]),
            },
            c => text.push(c),
        }
    }
    None
}

fn html(rest: &str) -> Option<(String, usize)> {
    let mut depth = 0;
    for (place, c) in rest.char_indices() {
        match c {
            '<' => depth += 1,
            '>' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some((rest[1..place].to_owned(), place + 1));
        }
    }
    None
}

/// Attributes that new vertices and edges have.
#[derive(Clone, Default)]
struct Defaults {
    vertices: Vec<(String, String)>,
    edges: Vec<(String, String)>,
}

struct DotReader {
    tokens: Vec<(usize, Token)>,
    next: usize,
    loose: Loose,
    places: Places,
    /// Vertices that have got their defaults.
    set: HashSet<usize>,
    is_directed: bool,
}

impl DotReader {
    fn line(&self) -> usize {
        self.tokens[self.next].0
    }

    fn peek(&self) -> &Token {
        &self.tokens[self.next].1
    }

    fn take(&mut self) -> Token {
        let token = self.peek().clone();
        self.next = (self.next + 1).min(self.tokens.len() - 1);
        token
    }

    fn takes(&mut self, sign: &str) -> bool {
        let is = matches!(self.peek(), Token::Sign(there) if *there == sign);
        if is {
            self.take();
        }
        is
    }

    fn takes_word(&mut self, word: &str) -> bool {
        let is = matches!(self.peek(), Token::Id(id, false) if id.eq_ignore_ascii_case(word));
        if is {
            self.take();
        }
        is
    }

    fn unexpected(&self, wanted: &str) -> FormError {
        let found = match self.peek() {
            Token::Id(id, _) => format!("`{id}`"),
            Token::Sign(sign) => format!("`{sign}`"),
            Token::End => "the end".to_owned(),
        };
        fault(
            self.line(),
            format!("{found} stands where {wanted} belongs"),
        )
    }

    fn id(&mut self, wanted: &str) -> Result<String, FormError> {
        let Token::Id(mut id, _) = self.peek().clone() else {
            return Err(self.unexpected(wanted));
        };
        self.take();
        while self.takes("+") {
            match self.take() {
                Token::Id(more, true) => id += &more,
                _ => return Err(fault(self.line(), "`+` joins texts in quotes only")),
            }
        }
        Ok(id)
    }

    fn graph(&mut self) -> Result<(), FormError> {
        self.takes_word("strict");
        if self.takes_word("graph") {
            self.is_directed = false;
        } else if !self.takes_word("digraph") {
            return Err(self.unexpected("`digraph` or `graph`"));
        }
        if matches!(self.peek(), Token::Id(..)) {
            self.id("a name")?;
        }
        if !self.takes("{") {
            return Err(self.unexpected("`{`"));
        }
        self.statements(&Defaults::default(), 0)?;
        match self.peek() {
            Token::End => Ok(()),
            _ => Err(fault(
                self.line(),
                "a second graph begins: give each a file of its own",
            )),
        }
    }

    fn statements(&mut self, outer: &Defaults, depth: usize) -> Result<(), FormError> {
        if depth > DEPTH_MAX {
            return Err(fault(
                self.line(),
                "subgraphs are nested too deeply: flatten them",
            ));
        }
        let mut defaults = outer.clone();
        while !self.takes("}") {
            if self.takes(";") {
                continue;
            }
            let is_named = self.takes_word("subgraph");
            if is_named && matches!(self.peek(), Token::Id(..)) {
                self.id("a name")?;
            }
            if is_named || matches!(self.peek(), Token::Sign("{")) {
                if !self.takes("{") {
                    return Err(self.unexpected("`{`"));
                }
                self.statements(&defaults, depth + 1)?;
                if matches!(self.peek(), Token::Sign("->" | "--")) {
                    let message = "an edge joins a subgraph: write edges between its vertices";
                    return Err(fault(self.line(), message));
                }
            } else if self.takes_word("graph") {
                self.attributes()?;
            } else if self.takes_word("node") {
                let new = self.attributes()?;
                override_with(&mut defaults.vertices, new);
            } else if self.takes_word("edge") {
                let new = self.attributes()?;
                override_with(&mut defaults.edges, new);
            } else {
                self.statement(&defaults)?;
            }
        }
        Ok(())
    }

    /// A vertex, a chain of edges, or an attribute of the graph.
    fn statement(&mut self, defaults: &Defaults) -> Result<(), FormError> {
        let first = self.id("a vertex, an edge or `}`")?;
        if self.takes("=") {
            self.id("a value")?;
            return Ok(());
        }
        self.port()?;
        let mut chain = vec![self.vertex(&first, defaults)];
        while matches!(self.peek(), Token::Sign("->" | "--")) {
            self.take();
            if matches!(self.peek(), Token::Sign("{")) || self.takes_word("subgraph") {
                let message = "an edge joins a subgraph: write edges between its vertices";
                return Err(fault(self.line(), message));
            }
            let next = self.id("a vertex")?;
            self.port()?;
            chain.push(self.vertex(&next, defaults));
        }
        let own = match self.peek() {
            Token::Sign("[") => self.attributes()?,
            _ => Vec::new(),
        };
        if chain.len() == 1 {
            let vertex = &mut self.loose.vertices[chain[0]];
            let mut pairs = words(&mut vertex.of, &mut vertex.values);
            override_with(&mut pairs, own);
            (vertex.of, vertex.values) = loose(pairs);
            return Ok(());
        }
        let mut pairs = defaults.edges.clone();
        override_with(&mut pairs, own);
        let (of, values) = loose(pairs);
        for pair in chain.windows(2) {
            let edge = LooseEdge {
                of: of.clone(),
                source: pair[0],
                target: pair[1],
                values: values.clone(),
            };
            if !self.is_directed {
                self.loose.edges.push(LooseEdge {
                    source: pair[1],
                    target: pair[0],
                    ..edge.clone()
                });
            }
            self.loose.edges.push(edge);
        }
        Ok(())
    }

    fn port(&mut self) -> Result<(), FormError> {
        while self.takes(":") {
            self.id("a port")?;
        }
        Ok(())
    }

    fn vertex(&mut self, name: &str, defaults: &Defaults) -> usize {
        let place = self.places.of(&mut self.loose, name);
        if self.set.insert(place) {
            let vertex = &mut self.loose.vertices[place];
            (vertex.of, vertex.values) = loose(defaults.vertices.clone());
        }
        place
    }

    /// `[a=b, c=d]`, any number of times.
    fn attributes(&mut self) -> Result<Vec<(String, String)>, FormError> {
        let mut pairs = Vec::new();
        while self.takes("[") {
            while !self.takes("]") {
                let name = self.id("an attribute or `]`")?;
                let value = match self.takes("=") {
                    true => self.id("a value")?,
                    false => "true".to_owned(),
                };
                override_with(&mut pairs, vec![(name, value)]);
                let _ = self.takes(",") || self.takes(";");
            }
        }
        Ok(pairs)
    }
}

fn override_with(pairs: &mut Vec<(String, String)>, new: Vec<(String, String)>) {
    for (name, value) in new {
        match pairs.iter_mut().find(|(other, _)| *other == name) {
            Some((_, there)) => *there = value,
            None => pairs.push((name, value)),
        }
    }
}

/// The type among the attributes, and the rest.
fn loose(pairs: Vec<(String, String)>) -> (Option<String>, LooseValues) {
    let mut of = None;
    let mut values = LooseValues::new();
    for (name, word) in pairs {
        if name == TYPE {
            of = Some(word);
        } else {
            values.push((name, LooseValue::word(word)));
        }
    }
    (of, values)
}

/// The inverse of [`loose`].
fn words(of: &mut Option<String>, values: &mut LooseValues) -> Vec<(String, String)> {
    let of = of.take().map(|of| (TYPE.to_owned(), of));
    let values = values.drain(..).map(|(name, value)| (name, value.word));
    of.into_iter().chain(values).collect()
}

//! Module direction: inside a crate, too, code depends one way.
//!
//! Reads the sources of every crate, follows each path (`crate::a::X`, `super::b`, `use`, names a
//! module re-exports) to the module that owns the item, and looks for circles in the graph:
//!
//! - a circle may hold at most [`MODULES_MAX`] modules;
//! - none may pass through a room, that is a module at the top of a crate with modules of its own,
//!   and leave it again.
//!
//! A parent assembles its children, so what it takes from them is no edge. Tests and loom models
//! are left out. A failure names the edges whose removal would open the circle.

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr as _;

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use support::root;
use support::workspace::crates;

/// Modules that a circle may hold: a type and the few files that its code is spread over.
const MODULES_MAX: usize = 4;

/// A module, with what its names stand for.
#[derive(Default)]
struct Module {
    /// `a::b`; empty for the root of the crate.
    path: String,
    parent: usize,
    children: BTreeMap<String, usize>,
    items: BTreeSet<String>,
    imports: BTreeMap<String, Vec<String>>,
    globs: Vec<Vec<String>>,
    /// Paths in its code with their places, `file:line`.
    paths: Vec<(Vec<String>, String)>,
}

struct Reader {
    modules: Vec<Module>,
    file: String,
}

/// The graph of a crate: for each edge the places of its uses.
type Edges = BTreeMap<(usize, usize), Vec<String>>;

impl Reader {
    fn read_crate(source: &Path) -> Option<Vec<Module>> {
        let entry = ["lib.rs", "main.rs"]
            .iter()
            .map(|name| source.join(name))
            .find(|path| path.exists())?;
        let mut reader = Reader {
            modules: vec![Module::default()],
            file: String::new(),
        };
        reader.read_file(&entry, source, 0);
        Some(reader.modules)
    }

    /// Reads a file; its modules' files are in `folder`.
    fn read_file(&mut self, path: &Path, folder: &Path, module: usize) {
        let text =
            fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let name = path.strip_prefix(root()).unwrap_or(path);
        let outer = std::mem::replace(&mut self.file, name.display().to_string());
        let tokens = TokenStream::from_str(&text)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        self.read(tokens, folder, module);
        self.file = outer;
    }

    fn read(&mut self, tokens: TokenStream, folder: &Path, module: usize) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        let mut file_named = None;
        while at < tokens.len() {
            if let Some(attribute) = attribute(&tokens[at..]) {
                at += 2;
                if !may_hold(&attribute) {
                    at = end_of_item(&tokens, at);
                } else if attribute.first().is_some_and(|word| is(word, "path")) {
                    file_named = attribute
                        .last()
                        .map(|path| path.to_string().trim_matches('"').to_owned());
                }
                continue;
            }
            match word(&tokens[at]).as_str() {
                "mod" if at + 2 < tokens.len() => {
                    let name = word(&tokens[at + 1]);
                    self.read_module(&name, &tokens[at + 2], folder, module, file_named.take());
                    at += 3;
                    continue;
                }
                "use" => {
                    let end = end_of_item(&tokens, at);
                    let line = self.place(&tokens[at]);
                    self.read_use(&tokens[at + 1..end], &[], module, &line);
                    at = end;
                    continue;
                }
                "struct" | "enum" | "union" | "trait" | "type" | "fn" | "const" | "static"
                    if at + 1 < tokens.len() =>
                {
                    self.modules[module].items.insert(word(&tokens[at + 1]));
                }
                _ => {}
            }
            if let TokenTree::Group(group) = &tokens[at] {
                self.read(group.stream(), folder, module);
                at += 1;
                continue;
            }
            let path = path_at(&tokens[at..]);
            if path.len() > 1 {
                let place = self.place(&tokens[at]);
                at += 3 * path.len() - 2;
                self.modules[module].paths.push((path, place));
            } else {
                at += 1;
            }
        }
    }

    fn place(&self, token: &TokenTree) -> String {
        format!("{}:{}", self.file, token.span().start().line)
    }

    fn read_module(
        &mut self,
        name: &str,
        body: &TokenTree,
        folder: &Path,
        parent: usize,
        file: Option<String>,
    ) {
        let path = match self.modules[parent].path.as_str() {
            "" => name.to_owned(),
            outer => format!("{outer}::{name}"),
        };
        let module = self.modules.len();
        self.modules.push(Module {
            path,
            parent,
            ..Module::default()
        });
        self.modules[parent]
            .children
            .insert(name.to_owned(), module);
        let inside = folder.join(name);
        match body {
            TokenTree::Group(group) => self.read(group.stream(), &inside, module),
            _ => {
                let candidates: Vec<PathBuf> = match file {
                    Some(file) => vec![folder.join(file)],
                    None => vec![folder.join(format!("{name}.rs")), inside.join("mod.rs")],
                };
                let found = candidates.iter().find(|path| path.exists());
                if let Some(found) = found {
                    self.read_file(found, &inside, module);
                }
            }
        }
    }

    /// Reads a tree of imports, `a::{b, c as d, e::*}`, below a prefix.
    fn read_use(&mut self, tokens: &[TokenTree], prefix: &[String], module: usize, place: &str) {
        for part in tokens.split(|token| is(token, ",")) {
            let mut path = prefix.to_vec();
            let mut name = None;
            let mut is_whole = true;
            let mut words = part.iter();
            while let Some(token) = words.next() {
                match token {
                    TokenTree::Ident(_) if is(token, "as") => name = words.next().map(word),
                    TokenTree::Ident(_) => path.push(word(token)),
                    TokenTree::Group(group) => {
                        let inner: Vec<_> = group.stream().into_iter().collect();
                        self.read_use(&inner, &path, module, place);
                        is_whole = false;
                    }
                    _ if is(token, "*") => {
                        self.modules[module].globs.push(path.clone());
                        is_whole = false;
                    }
                    _ => {}
                }
            }
            if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
                path.pop();
            }
            let Some(last) = path.last().filter(|_| is_whole) else {
                continue;
            };
            let name = name.unwrap_or_else(|| last.clone());
            let module = &mut self.modules[module];
            module.imports.insert(name, path.clone());
            module.paths.push((path, place.to_owned()));
        }
    }
}

fn word(token: &TokenTree) -> String {
    match token {
        TokenTree::Ident(ident) => ident.to_string(),
        _ => String::new(),
    }
}

fn is(token: &TokenTree, text: &str) -> bool {
    match token {
        TokenTree::Ident(ident) => ident == text,
        TokenTree::Punct(punct) => text.chars().eq([punct.as_char()]),
        _ => false,
    }
}

/// The words in the brackets of an attribute that begins here.
fn attribute(tokens: &[TokenTree]) -> Option<Vec<TokenTree>> {
    match tokens {
        [sign, TokenTree::Group(group), ..]
            if is(sign, "#") && group.delimiter() == Delimiter::Bracket =>
        {
            Some(group.stream().into_iter().collect())
        }
        _ => None,
    }
}

/// Whether code under an attribute may exist in a build that is neither a test nor under loom.
fn may_hold(predicate: &[TokenTree]) -> bool {
    match predicate {
        [name] => !is(name, "test") && !is(name, "loom"),
        [name, TokenTree::Group(group)] => {
            let inner: Vec<TokenTree> = group.stream().into_iter().collect();
            let mut parts = inner
                .split(|token| is(token, ","))
                .filter(|part| !part.is_empty());
            match word(name).as_str() {
                "cfg" | "all" => parts.all(may_hold),
                "any" => parts.any(may_hold),
                _ => true,
            }
        }
        _ => true,
    }
}

/// The end of the item, field or statement that begins here.
fn end_of_item(tokens: &[TokenTree], mut at: usize) -> usize {
    while attribute(&tokens[at..]).is_some() {
        at += 2;
    }
    let start = tokens[at..]
        .iter()
        .find(|token| !is(token, "pub") && !matches!(token, TokenTree::Group(_)));
    let start = start.map(word).unwrap_or_default();
    let is_item = [
        "async",
        "const",
        "enum",
        "extern",
        "fn",
        "impl",
        "let",
        "macro_rules",
        "mod",
        "static",
        "struct",
        "trait",
        "type",
        "union",
        "unsafe",
        "use",
    ]
    .contains(&start.as_str());
    for (i, token) in tokens.iter().enumerate().skip(at) {
        let is_end = is(token, ";") || !is_item && is(token, ",");
        let is_body = start != "use"
            && matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace);
        if is_end || is_body {
            return i + 1;
        }
    }
    tokens.len()
}

/// The path of two or more words that begins here, `a::b::c`.
fn path_at(tokens: &[TokenTree]) -> Vec<String> {
    let mut path = vec![word(&tokens[0])];
    let mut rest = &tokens[1..];
    while let [first, second, name @ TokenTree::Ident(_), after @ ..] = rest
        && is(first, ":")
        && is(second, ":")
        && !path[0].is_empty()
    {
        path.push(word(name));
        rest = after;
    }
    path
}

/// The target of a path.
#[derive(Clone, Copy)]
enum Found {
    Module(usize),
    /// Something in that module.
    Item(usize),
}

/// Names being looked up, each in its module: a chain of imports must not lead back to itself.
type Chain = BTreeSet<(usize, String)>;

fn look_up(modules: &[Module], inside: usize, name: &str, chain: &mut Chain) -> Option<Found> {
    let module = &modules[inside];
    if !chain.insert((inside, name.to_owned())) {
        return None;
    }
    if let Some(child) = module.children.get(name) {
        return Some(Found::Module(*child));
    }
    if module.items.contains(name) {
        return Some(Found::Item(inside));
    }
    if let Some(path) = module.imports.get(name) {
        return follow_in(modules, inside, path, chain);
    }
    module
        .globs
        .iter()
        .find_map(|path| match follow_in(modules, inside, path, chain)? {
            Found::Module(other) => look_up(modules, other, name, chain),
            Found::Item(_) => None,
        })
}

fn follow_in(modules: &[Module], from: usize, path: &[String], chain: &mut Chain) -> Option<Found> {
    let mut found = match path[0].as_str() {
        "crate" => Found::Module(0),
        "self" => Found::Module(from),
        "super" => Found::Module(modules[from].parent),
        name => look_up(modules, from, name, chain)?,
    };
    for name in &path[1..] {
        let Found::Module(inside) = found else { break };
        found = match name.as_str() {
            "super" => Found::Module(modules[inside].parent),
            name => look_up(modules, inside, name, chain).unwrap_or(Found::Item(inside)),
        };
    }
    Some(found)
}

fn follow(modules: &[Module], from: usize, path: &[String]) -> Option<Found> {
    follow_in(modules, from, path, &mut Chain::new())
}

fn edges_of(modules: &[Module]) -> Edges {
    let mut edges = Edges::new();
    for (user, module) in modules.iter().enumerate() {
        for (path, place) in &module.paths {
            let names_place = ["crate", "self", "super"].contains(&path[0].as_str());
            let is_import = module.imports.values().any(|import| import == path);
            let goes_through_module = names_place
                || is_import
                || matches!(follow(modules, user, &path[..1]), Some(Found::Module(_)));
            let Some(Found::Item(used)) = follow(modules, user, path) else {
                continue;
            };
            let is_child = modules[used]
                .path
                .starts_with(&format!("{}::", module.path));
            if goes_through_module && used != user && user != 0 && !is_child {
                edges.entry((user, used)).or_default().push(place.clone());
            }
        }
    }
    edges
}

/// The edges between the modules at the top of the crate.
fn edges_at_top(modules: &[Module], edges: &Edges) -> Edges {
    let mut lifted = Edges::new();
    for (&(user, used), places) in edges {
        let pair = (top_of(modules, user), top_of(modules, used));
        if pair.0 != pair.1 {
            lifted
                .entry(pair)
                .or_default()
                .extend(places.iter().cloned());
        }
    }
    lifted
}

fn top_of(modules: &[Module], mut module: usize) -> usize {
    while modules[module].parent != 0 {
        module = modules[module].parent;
    }
    module
}

/// Sets of modules of which each leads to each.
fn circles(edges: &Edges) -> Vec<Vec<usize>> {
    let nodes: BTreeSet<usize> = edges
        .keys()
        .flat_map(|&(user, used)| [user, used])
        .collect();
    let reached: BTreeMap<usize, BTreeSet<usize>> = nodes
        .iter()
        .map(|&node| (node, reach(edges, node)))
        .collect();
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for &node in &nodes {
        let circle: Vec<usize> = reached[&node]
            .iter()
            .copied()
            .filter(|other| reached[other].contains(&node))
            .collect();
        if circle.len() > 1 && seen.insert(circle.clone()) {
            found.push(circle);
        }
    }
    found
}

fn reach(edges: &Edges, from: usize) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    let mut open = vec![from];
    while let Some(node) = open.pop() {
        for &(_, used) in edges.range((node, 0)..(node + 1, 0)).map(|(edge, _)| edge) {
            if found.insert(used) {
                open.push(used);
            }
        }
    }
    found
}

/// The fewest uses whose removal leaves the circle's modules in one order, as far as moving one
/// module at a time finds them.
fn to_cut(circle: &[usize], edges: &Edges) -> Vec<(usize, usize)> {
    let weight = |user: usize, used: usize| edges.get(&(user, used)).map_or(0, Vec::len) as isize;
    let mut order = circle.to_vec();
    let mut improves = true;
    while improves {
        improves = false;
        for from in 0..order.len() {
            // What it would cost to put the module at each place, against where it is.
            let node = order[from];
            let (mut gain, mut best) = (0, (0, from));
            for to in (0..from).rev() {
                gain += weight(order[to], node) - weight(node, order[to]);
                best = best.max((gain, to));
            }
            gain = 0;
            for (to, &other) in order.iter().enumerate().skip(from + 1) {
                gain += weight(node, other) - weight(other, node);
                best = best.max((gain, to));
            }
            if best.0 > 0 {
                order.remove(from);
                order.insert(best.1, node);
                improves = true;
            }
        }
    }
    let mut cut = Vec::new();
    for (i, &used) in order.iter().enumerate() {
        let users = order[..i].iter().map(|&user| (user, used));
        cut.extend(users.filter(|pair| edges.contains_key(pair)));
    }
    cut
}

/// Tells one circle: its modules, and what to cut.
fn describe(title: &str, circle: &[usize], modules: &[Module], edges: &Edges) -> String {
    let names: Vec<&str> = circle
        .iter()
        .map(|&node| modules[node].path.as_str())
        .collect();
    let cut = to_cut(circle, edges);
    let uses: usize = cut.iter().map(|pair| edges[pair].len()).sum();
    let mut text = format!("  {title}: {}\n", names.join(", "));
    let _ = writeln!(text, "  to cut, {} edges with {uses} uses:", cut.len());
    for (user, used) in cut {
        let places = &edges[&(user, used)];
        let shown = places
            .iter()
            .take(3)
            .map(String::as_str)
            .collect::<Vec<_>>()
            .join(", ");
        let more = places.len().saturating_sub(3);
        let more = if more == 0 {
            String::new()
        } else {
            format!(" and {more} more")
        };
        let _ = writeln!(
            text,
            "    {} uses {}: {shown}{more}",
            modules[user].path, modules[used].path
        );
    }
    text
}

/// The circles of a crate that are too large, or leave a room.
fn complaints(modules: &[Module]) -> String {
    let mut text = String::new();
    let edges = edges_of(modules);
    for circle in circles(&edges) {
        if circle.len() > MODULES_MAX {
            let title = format!("{} modules in a circle", circle.len());
            text += &describe(&title, &circle, modules, &edges);
        }
    }
    let edges = edges_at_top(modules, &edges);
    for circle in circles(&edges) {
        let is_room = |&node: &usize| !modules[node].children.is_empty();
        if circle.iter().any(is_room) {
            text += &describe("a circle through rooms", &circle, modules, &edges);
        }
    }
    text
}

#[test]
fn modules_depend_one_way() {
    let mut wrong = String::new();
    for room in crates() {
        let Some(modules) = Reader::read_crate(&root().join(&room.folder).join("src")) else {
            continue;
        };
        let found = complaints(&modules);
        if !found.is_empty() {
            let _ = write!(wrong, "{}:\n{found}", room.name);
        }
    }
    assert!(
        wrong.is_empty(),
        "modules that use one another in circles:\n{wrong}"
    );
}

//! XMI, as the Eclipse Modeling Framework writes models: a subset, without their metamodel.
//!
//! - Each element is a vertex. Its type is its `xsi:type` or `xmi:type`, else the feature that
//!   holds it (its tag), without prefixes. Its name is its `xmi:id`, `id` or `xmi:uuid`, else its
//!   path, such as `//@tasks.2`.
//! - An element inside another is the target of an edge of the feature's type.
//! - An attribute is an attribute, unless it is made of references: `//@tasks.2`,
//!   `#//@tasks.2`, `/0/@tasks.2`, or names that elements have, with blanks between. Then each is
//!   an edge of the attribute's type.
//! - An element without attributes that holds only text is an attribute; of several of one name
//!   the texts are joined by line breaks.
//!
//! References to other files (`href`) are left out, and a note says so.

use std::collections::HashMap;

use super::xml::{Item, Items, local, value};
use super::{FormError, Loose, LooseEdge, LooseValue, LooseVertex};

const FORM: &str = "XMI";

/// Reads a model.
///
/// # Errors
/// Text that is not XML.
pub fn read(text: &str) -> Result<Loose, FormError> {
    let mut items = Items::new(FORM, text);
    let mut reader = XmiReader::default();
    let mut has_any = false;
    while let Some(item) = items.next()? {
        match item {
            Item::Open(name, attributes) => {
                has_any = true;
                reader.open(&name, &attributes);
            }
            Item::Close => reader.close(),
            Item::Text(text) => {
                if let Some(open) = reader.stack.last_mut() {
                    open.text += &text;
                }
            }
        }
    }
    if !has_any {
        return Err(items.fault("there is no element in it"));
    }
    Ok(reader.finish())
}

#[derive(Default)]
struct Open {
    /// None for the root that only holds others.
    place: Option<usize>,
    tag: String,
    path: String,
    text: String,
    /// Elements inside so far, by feature.
    inside: HashMap<String, usize>,
    is_bare: bool,
    /// Number of vertices before, to take this one back.
    before: (usize, usize),
}

#[derive(Default)]
struct XmiReader {
    loose: Loose,
    stack: Vec<Open>,
    /// Vertices by name and by path.
    places: HashMap<String, usize>,
    /// Attributes that may be references: owner, name, value.
    pending: Vec<(usize, String, String)>,
    roots: usize,
    elsewhere: usize,
}

impl XmiReader {
    fn open(&mut self, name: &str, attributes: &[(String, String)]) {
        let tag = local(name).to_owned();
        if self.stack.is_empty() && tag == "XMI" {
            self.stack.push(Open {
                tag,
                ..Open::default()
            });
            return;
        }
        let get = |names: &[&str]| names.iter().find_map(|name| value(attributes, name));
        let of = get(&["xsi:type", "xmi:type"])
            .map_or(tag.as_str(), local)
            .to_owned();
        let parent = self.stack.last_mut().filter(|open| open.place.is_some());
        let (path, holder) = match parent {
            Some(open) => {
                let count = open.inside.entry(tag.clone()).or_insert(0);
                let path = format!("{}/@{tag}.{count}", open.path);
                *count += 1;
                (path, open.place)
            }
            None => {
                self.roots += 1;
                (format!("/{}", self.roots - 1), None)
            }
        };
        let before = (self.loose.edges.len(), self.pending.len());
        let place = self.loose.vertices.len();
        let own = get(&["xmi:id", "id", "xmi:uuid"]).map(str::to_owned);
        self.loose.vertices.push(LooseVertex {
            name: own.clone().unwrap_or_else(|| path.clone()),
            of: Some(of),
            values: Vec::new(),
        });
        if let Some(own) = own {
            self.places.insert(own, place);
        }
        self.places.insert(path.clone(), place);
        if let Some(holder) = holder {
            self.edge(&tag, holder, place);
        }
        let mut is_bare = true;
        for (name, value) in attributes {
            let is_about_form = name.starts_with("xmlns")
                || ["xmi:", "xsi:"]
                    .iter()
                    .any(|prefix| name.starts_with(prefix));
            if name == "href" {
                self.elsewhere += 1;
            } else if !is_about_form {
                self.pending
                    .push((place, local(name).to_owned(), value.clone()));
            }
            is_bare &= name.starts_with("xmlns");
        }
        self.stack.push(Open {
            place: Some(place),
            tag,
            path,
            is_bare,
            before,
            ..Open::default()
        });
    }

    fn edge(&mut self, of: &str, source: usize, target: usize) {
        self.loose.edges.push(LooseEdge {
            of: Some(of.to_owned()),
            source,
            target,
            values: Vec::new(),
        });
    }

    fn close(&mut self) {
        let Some(open) = self.stack.pop() else { return };
        let (Some(place), Some(parent)) = (open.place, self.stack.last()) else {
            return;
        };
        let text = open.text.trim();
        let is_text = open.is_bare && open.inside.is_empty() && !text.is_empty();
        if let (true, Some(owner)) = (is_text, parent.place) {
            // An attribute that was written as an element: it is the last vertex.
            self.loose.vertices.truncate(place);
            self.loose.edges.truncate(open.before.0);
            self.places.remove(&open.path);
            let text = text.to_owned();
            let same = |(other, name, _): &&mut (usize, String, String)| {
                (*other, name.as_str()) == (owner, open.tag.as_str())
            };
            match self.pending.iter_mut().find(same) {
                Some((.., there)) => *there = format!("{there}\n{text}"),
                None => self.pending.push((owner, open.tag, text)),
            }
        }
    }

    /// The vertex that a reference names.
    fn referred(&self, word: &str) -> Option<usize> {
        let word = word.strip_prefix('#').unwrap_or(word);
        if let Some(place) = self.places.get(word) {
            return Some(*place);
        }
        // `//@a.0` begins at the only root, `/` itself; a feature that holds one has no number.
        let rest = word.strip_prefix('/')?;
        let mut steps = rest.split('/');
        let root = steps.next().filter(|root| !root.is_empty()).unwrap_or("0");
        let mut path = format!("/{root}");
        for step in steps {
            path += "/";
            path += step;
            if !step.contains('.') {
                path += ".0";
            }
        }
        self.places.get(&path).copied()
    }

    fn finish(mut self) -> Loose {
        for (owner, name, text) in std::mem::take(&mut self.pending) {
            let words: Vec<&str> = text.split_whitespace().collect();
            let targets: Option<Vec<usize>> = match name.as_str() {
                // A name of its own is no reference to itself.
                "id" | "name" => None,
                _ => words.iter().map(|word| self.referred(word)).collect(),
            };
            match targets {
                Some(targets) if !targets.is_empty() => {
                    for target in targets {
                        self.edge(&name, owner, target);
                    }
                }
                _ => {
                    let value = LooseValue::word(text);
                    self.loose.vertices[owner].values.push((name, value));
                }
            }
        }
        if self.elsewhere > 0 {
            let count = hearth_text::counted(self.elsewhere, "reference");
            self.loose
                .notes
                .push(format!("{count} to other files left out"));
        }
        self.loose
    }
}

//! XML with the place of everything in the text, so that a change touches nothing else.

use std::ops::Range;

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use crate::file::{Fault, FileError};

/// An attribute.
#[derive(Clone, Debug)]
pub(super) struct Attribute {
    pub(super) name: String,
    pub(super) value: String,
    /// Bytes of the value in the text, without quotes.
    pub(super) at: Range<usize>,
}

/// An element.
#[derive(Clone, Debug)]
pub(super) struct Element {
    pub(super) name: String,
    pub(super) attributes: Vec<Attribute>,
    pub(super) children: Vec<usize>,
    pub(super) parent: Option<usize>,
    /// Bytes of the start tag, `<` and `>` included.
    pub(super) tag: Range<usize>,
    /// First byte of the end tag; none for an empty element.
    pub(super) end: Option<usize>,
}

/// A document; element 0 is the root.
pub(super) struct Document {
    pub(super) elements: Vec<Element>,
}

impl Element {
    pub(super) fn attribute(&self, name: &str) -> Option<&str> {
        let mut attributes = self.attributes.iter();
        attributes
            .find(|one| one.name == name)
            .map(|one| one.value.as_str())
    }

    /// The type in `xsi:type`, without its prefix.
    pub(super) fn kind(&self) -> &str {
        let kind = self.attribute("xsi:type").unwrap_or_default();
        kind.rsplit(':').next().unwrap_or_default()
    }
}

impl Document {
    pub(super) fn read(text: &str, file: &str) -> Result<Self, FileError> {
        let fault = |at: usize, message: String| {
            let before = text.get(..at).unwrap_or(text);
            FileError {
                file: file.to_owned(),
                line: before.matches('\n').count() + 1,
                field: "the document".to_owned(),
                fault: Fault::Xml { message },
            }
        };
        let mut reader = Reader::from_str(text);
        let mut elements: Vec<Element> = Vec::new();
        let mut open: Vec<usize> = Vec::new();
        loop {
            let from = reader.buffer_position() as usize;
            let event = reader.read_event().map_err(|error| {
                let at = reader.error_position() as usize;
                fault(at, format!("{error}: mend the XML"))
            })?;
            let to = reader.buffer_position() as usize;
            match event {
                Event::Start(tag) | Event::Empty(tag) => {
                    let is_empty = text[from..to].ends_with("/>");
                    let number = elements.len();
                    let parent = open.last().copied();
                    if parent.is_none() && number > 0 {
                        let message = "there are two outermost elements: leave one out";
                        return Err(fault(from, message.to_owned()));
                    }
                    let attributes = attributes(text, &tag)
                        .map_err(|error| fault(from, format!("{error}: mend the attribute")))?;
                    elements.push(Element {
                        name: tag.local_name().as_ref().to_owned(),
                        attributes,
                        children: Vec::new(),
                        parent,
                        tag: from..to,
                        end: None,
                    });
                    if let Some(parent) = parent {
                        elements[parent].children.push(number);
                    }
                    if !is_empty {
                        open.push(number);
                    }
                }
                Event::End(_) => {
                    if let Some(closed) = open.pop() {
                        elements[closed].end = Some(from);
                    }
                }
                Event::Eof => break,
                _ => {}
            }
        }
        match (elements.is_empty(), open.is_empty()) {
            (false, true) => Ok(Self { elements }),
            (true, _) => Err(fault(
                0,
                "there is no element: name an AMALTHEA model".to_owned(),
            )),
            (false, false) => {
                let message = "the text ends inside an element: close it";
                Err(fault(text.len(), message.to_owned()))
            }
        }
    }

    /// All elements below one, in the order of the text.
    pub(super) fn below(&self, from: usize) -> impl Iterator<Item = usize> + '_ {
        // Children come after their parents; the last one below is before the next outside.
        let inside = move |mut at: usize| {
            while let Some(parent) = self.elements[at].parent {
                if parent == from {
                    return true;
                }
                at = parent;
            }
            false
        };
        (from + 1..self.elements.len()).take_while(move |at| inside(*at))
    }

    /// Children of an element with a name.
    pub(super) fn children<'d>(
        &'d self,
        of: usize,
        name: &'d str,
    ) -> impl Iterator<Item = usize> + 'd {
        let children = self.elements[of].children.iter().copied();
        children.filter(move |at| self.elements[*at].name == name)
    }
}

/// The attributes of a tag. quick-xml gives slices of the text, whose places follow.
fn attributes(text: &str, tag: &BytesStart) -> Result<Vec<Attribute>, String> {
    let base = text.as_ptr() as usize;
    let mut found = Vec::new();
    for attribute in tag.attributes() {
        let attribute = attribute.map_err(|error| error.to_string())?;
        let raw = attribute.value.as_ref();
        let start = (raw.as_ptr() as usize).wrapping_sub(base);
        if text.get(start..start.saturating_add(raw.len())) != Some(raw) {
            return Err("an attribute is not where it should be".to_owned());
        }
        let value = quick_xml::escape::unescape(raw).map_err(|error| error.to_string())?;
        found.push(Attribute {
            name: attribute.key.as_ref().to_owned(),
            value: value.into_owned(),
            at: start..start + raw.len(),
        });
    }
    Ok(found)
}

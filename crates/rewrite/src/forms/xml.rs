//! Elements of an XML text, for the forms that are XML.

use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion};

use super::FormError;

/// Next thing in a text.
pub(super) enum Item {
    /// An element begins: its name and attributes, prefixes included.
    Open(String, Vec<(String, String)>),
    /// The element that was opened last ends.
    Close,
    /// Text between.
    Text(String),
}

/// Reads a text item by item.
pub(super) struct Items<'a> {
    form: &'static str,
    text: &'a str,
    reader: Reader<&'a [u8]>,
    depth: usize,
    /// An element without content was opened, and closes next.
    closes: bool,
}

impl<'a> Items<'a> {
    pub(super) fn new(form: &'static str, text: &'a str) -> Items<'a> {
        Items {
            form,
            text,
            reader: Reader::from_str(text),
            depth: 0,
            closes: false,
        }
    }

    /// A fault at the place that was read last.
    pub(super) fn fault(&self, message: impl Into<String>) -> FormError {
        let end = (self.reader.buffer_position() as usize).min(self.text.len());
        let before = &self.text.as_bytes()[..end];
        FormError::Text {
            form: self.form,
            line: before.iter().filter(|byte| **byte == b'\n').count() + 1,
            message: message.into(),
        }
    }

    fn open(&mut self, element: &BytesStart<'_>) -> Result<Item, FormError> {
        let name = element.name().into_inner().to_owned();
        let mut attributes = Vec::new();
        for attribute in element.attributes() {
            let attribute = attribute.map_err(|error| self.fault(error.to_string()))?;
            let value = attribute.normalized_value(XmlVersion::Implicit1_0);
            let value = value.map_err(|error| self.fault(error.to_string()))?;
            attributes.push((attribute.key.into_inner().to_owned(), value.into_owned()));
        }
        Ok(Item::Open(name, attributes))
    }

    /// The next item; none at the end.
    pub(super) fn next(&mut self) -> Result<Option<Item>, FormError> {
        if std::mem::take(&mut self.closes) {
            self.depth -= 1;
            return Ok(Some(Item::Close));
        }
        loop {
            match self.reader.read_event() {
                Ok(Event::Start(element)) => {
                    self.depth += 1;
                    return self.open(&element).map(Some);
                }
                Ok(Event::Empty(element)) => {
                    self.depth += 1;
                    self.closes = true;
                    return self.open(&element).map(Some);
                }
                Ok(Event::End(_)) => {
                    self.depth = self.depth.saturating_sub(1);
                    return Ok(Some(Item::Close));
                }
                Ok(Event::Text(text)) => {
                    return Ok(Some(Item::Text(text.xml10_content().into_owned())));
                }
                Ok(Event::CData(text)) => {
                    return Ok(Some(Item::Text(text.xml10_content().into_owned())));
                }
                Ok(Event::GeneralRef(entity)) => {
                    let name = entity.xml10_content().into_owned();
                    let text = match name.as_str() {
                        "lt" => Some('<'),
                        "gt" => Some('>'),
                        "amp" => Some('&'),
                        "apos" => Some('\''),
                        "quot" => Some('"'),
                        _ => character(&name),
                    };
                    return match text {
                        Some(text) => Ok(Some(Item::Text(text.to_string()))),
                        None => Err(self.fault(format!("`&{name};` is not known: write it out"))),
                    };
                }
                Ok(Event::Eof) if self.depth > 0 => {
                    return Err(self.fault("the text ends too early: is the file whole?"));
                }
                Ok(Event::Eof) => return Ok(None),
                Ok(_) => {}
                Err(error) => return Err(self.fault(error.to_string())),
            }
        }
    }
}

/// The character of a reference such as `#65` or `#x41`.
fn character(name: &str) -> Option<char> {
    let number = name.strip_prefix('#')?;
    let code = match number.strip_prefix(['x', 'X']) {
        Some(digits) => u32::from_str_radix(digits, 16).ok()?,
        None => number.parse().ok()?,
    };
    char::from_u32(code)
}

/// An attribute's value.
pub(super) fn value<'a>(attributes: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let found = attributes.iter().find(|(other, _)| other == name);
    found.map(|(_, value)| value.as_str())
}

/// A name without its prefix.
pub(super) fn local(name: &str) -> &str {
    name.rsplit(':').next().unwrap_or(name)
}

/// A text between tags or quotes.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '&' => out += "&amp;",
            '"' => out += "&quot;",
            // Readers would turn these into blanks or drop them.
            '\t' | '\n' | '\r' => out += &format!("&#{};", c as u32),
            // No other control character can be in XML.
            c if c < ' ' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

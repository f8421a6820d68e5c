//! JSON whose objects keep their order and repeated names, as `rt-app` reads it.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

/// A value of JSON.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Ordered {
    Null,
    Flag(bool),
    Number(f64),
    Text(String),
    List(Vec<Ordered>),
    Object(Vec<(String, Ordered)>),
}

impl Ordered {
    /// A member of an object.
    pub(super) fn get(&self, name: &str) -> Option<&Ordered> {
        match self {
            Ordered::Object(members) => members.iter().find(|one| one.0 == name).map(|one| &one.1),
            _ => None,
        }
    }

    /// A whole number from 0 on.
    pub(super) fn whole(&self) -> Option<u64> {
        match self {
            Ordered::Number(number) if number.fract() == 0.0 && (0.0..1e15).contains(number) => {
                Some(*number as u64)
            }
            _ => None,
        }
    }

    /// A text.
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Ordered::Text(text) => Some(text),
            _ => None,
        }
    }
}

impl<'de> Deserialize<'de> for Ordered {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        source.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Ordered;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Ordered, E> {
        Ok(Ordered::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Ordered, E> {
        Ok(Ordered::Flag(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Ordered, E> {
        Ok(Ordered::Number(value as f64))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Ordered, E> {
        Ok(Ordered::Number(value as f64))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Ordered, E> {
        Ok(Ordered::Number(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Ordered, E> {
        Ok(Ordered::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Ordered, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Ordered::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut items: A) -> Result<Ordered, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = items.next_entry()? {
            members.push(member);
        }
        Ok(Ordered::Object(members))
    }
}

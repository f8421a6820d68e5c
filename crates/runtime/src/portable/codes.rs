//! Turns type codes back into types: the type of a box from another node.
//!
//! A code tells a type's whole structure (language reference, section 3), so a descriptor can be
//! made from it: equal codes are equal types, and the compiler lays structs out as C does, as this
//! module does again. Descriptors stay for good once made, one a code.
//!
//! In codes, `_` ends a name. An underscore inside a name is written `$`.

use std::collections::HashMap;
use std::ffi::CString;
use std::sync::Mutex;

use crate::abi::{Field, Kind, Object, Type, literal};
use crate::ground::sync::lock_std as lock;

/// Deepest nesting of types.
const DEEPEST: usize = 64;
/// Most types that a program accepts from outside, and the bytes they may take together:
/// descriptors are never freed. Compiled programs' own types are not counted.
const MOST: usize = 4096;
const MOST_BYTES: usize = 4 << 20;
/// The longest code accepted.
const LONGEST: usize = 64 << 10;

/// The types made so far.
#[derive(Default)]
struct Known {
    by_code: HashMap<String, &'static Type>,
    /// Bytes that they take.
    bytes: usize,
}

static KNOWN: Mutex<Option<Known>> = Mutex::new(None);

/// Returns the type of a code. None for an invalid code, and for codes of components and
/// procedures, which stay on their node.
pub(crate) fn type_of_code(code: &str) -> Option<&'static Type> {
    lock(&KNOWN).get_or_insert_default().type_of(code)
}

impl Known {
    fn type_of(&mut self, code: &str) -> Option<&'static Type> {
        if let Some(of) = self.by_code.get(code) {
            return Some(of);
        }
        if code.len() > LONGEST {
            return None;
        }
        let mut reader = Codes {
            rest: code,
            known: self,
        };
        let of = reader.one(0)?;
        reader.rest.is_empty().then_some(of)
    }

    fn make(&mut self, code: &str, plan: TypeShape) -> Option<&'static Type> {
        let bytes = self.bytes + plan.bytes(code);
        if self.by_code.len() >= MOST || bytes > MOST_BYTES {
            return None;
        }
        let of = plan.make(code)?;
        self.by_code.insert(code.to_owned(), of);
        self.bytes = bytes;
        Some(of)
    }
}

/// Tells whether some value of this type must stay on its node. A box may hold anything: its
/// content is checked when it is sent.
pub(crate) fn leave_no_node(of: &Type) -> bool {
    match of.kind {
        Kind::In | Kind::Out | Kind::Component | Kind::Procedure | Kind::Foreign => true,
        // SAFETY: descriptors are static.
        Kind::Array => leave_no_node(unsafe { &*of.element }),
        Kind::Struct => {
            // SAFETY: descriptors are static.
            unsafe {
                crate::abi::fields(of)
                    .iter()
                    .any(|field| leave_no_node(&*field.r#type))
            }
        }
        _ => false,
    }
}

/// Counts an enum's labels: each ends in `_`, and so does the list.
pub(super) fn label_count(of: &Type) -> u32 {
    // SAFETY: codes are literals.
    let code = unsafe { literal(of.code) };
    code.matches('_').count().saturating_sub(1) as u32
}

struct Codes<'a> {
    rest: &'a str,
    known: &'a mut Known,
}

impl Codes<'_> {
    fn one(&mut self, depth: usize) -> Option<&'static Type> {
        if depth > DEEPEST {
            return None;
        }
        let start = self.rest;
        let plan = self.plan(depth)?;
        let code = &start[..start.len() - self.rest.len()];
        if let Some(known) = self.known.by_code.get(code) {
            return Some(known);
        }
        self.known.make(code, plan)
    }

    fn plan(&mut self, depth: usize) -> Option<TypeShape> {
        let mut letters = self.rest.chars();
        let letter = letters.next()?;
        self.rest = letters.as_str();
        Some(match letter {
            'i' => TypeShape::scalar(Kind::Integer, 4),
            'u' => TypeShape::scalar(Kind::Unsigned, 4),
            'r' => TypeShape::scalar(Kind::Real, 4),
            'b' => TypeShape::scalar(Kind::Bool, 1),
            '8' => TypeShape::scalar(Kind::Byte, 1),
            's' => TypeShape::scalar(Kind::String, 8),
            'a' => TypeShape::scalar(Kind::Any, 8),
            'A' => TypeShape {
                element: Some(self.one(depth + 1)?),
                ..TypeShape::scalar(Kind::Array, 8)
            },
            'I' => TypeShape {
                element: Some(self.one(depth + 1)?),
                ..TypeShape::scalar(Kind::In, 8)
            },
            'O' => TypeShape {
                element: Some(self.one(depth + 1)?),
                ..TypeShape::scalar(Kind::Out, 8)
            },
            'S' => TypeShape {
                fields: self.fields(depth)?,
                ..TypeShape::scalar(Kind::Struct, 8)
            },
            'e' => {
                while !self.skip_end() {
                    self.name()?;
                }
                TypeShape::scalar(Kind::Enum, 4)
            }
            _ => return None,
        })
    }

    fn fields(&mut self, depth: usize) -> Option<Vec<(String, &'static Type)>> {
        let mut fields = Vec::new();
        while !self.skip_end() {
            let of = self.one(depth + 1)?;
            fields.push((self.name()?, of));
        }
        (!fields.is_empty()).then_some(fields)
    }

    fn skip_end(&mut self) -> bool {
        match self.rest.strip_prefix('_') {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn name(&mut self) -> Option<String> {
        let (name, rest) = self.rest.split_once('_')?;
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '$');
        self.rest = rest;
        is_name.then(|| name.replace('$', "_"))
    }
}

/// A descriptor yet to be made.
struct TypeShape {
    kind: Kind,
    size: u32,
    element: Option<&'static Type>,
    fields: Vec<(String, &'static Type)>,
}

impl TypeShape {
    fn scalar(kind: Kind, size: u32) -> TypeShape {
        TypeShape {
            kind,
            size,
            element: None,
            fields: Vec::new(),
        }
    }

    /// Returns the bytes of its descriptor, with its entry among the known types.
    fn bytes(&self, code: &str) -> usize {
        let fields = self.fields.iter();
        let of_field = |(name, _): &(String, _)| name.len() + size_of::<Field>();
        2 * code.len() + 2 * size_of::<Type>() + fields.map(of_field).sum::<usize>()
    }

    /// Fields as C lays them out, behind the header: each at a multiple of its size.
    fn make(self, code: &str) -> Option<&'static Type> {
        let mut end = size_of::<Object>();
        let mut alignment = align_of::<Object>();
        let mut fields = Vec::new();
        for (name, of) in &self.fields {
            let size = of.size as usize;
            let offset = end.next_multiple_of(size);
            end = offset + size;
            alignment = alignment.max(size);
            let name = CString::new(name.as_str()).ok()?;
            fields.push(Field {
                name: name.into_raw(),
                r#type: *of,
                offset,
            });
        }
        let is_flat = match self.kind {
            Kind::Array => self
                .element
                .is_some_and(|of| !crate::exchange::values::object::is_reference(of)),
            Kind::Struct => self
                .fields
                .iter()
                .all(|(_, of)| !crate::exchange::values::object::is_reference(of)),
            _ => false,
        };
        let fields: &'static [Field] = Vec::leak(fields);
        let object_size = if self.kind == Kind::Struct {
            end.next_multiple_of(alignment)
        } else {
            0
        };
        Some(Box::leak(Box::new(Type {
            code: CString::new(code).ok()?.into_raw(),
            kind: self.kind,
            size: self.size,
            flat: is_flat,
            element: self.element.map_or(std::ptr::null(), std::ptr::from_ref),
            field_count: fields.len() as u32,
            fields: fields.as_ptr(),
            object_size,
        })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The code of a struct with a field of that name.
    fn code(name: &str) -> String {
        format!("Si{name}__")
    }

    #[test]
    fn types_from_outside_are_limited_in_number_and_size() {
        let mut known = Known::default();
        let first = known.type_of(&code("first")).unwrap();
        let many = (0..2 * MOST).filter(|nth| known.type_of(&code(&format!("f{nth}"))).is_some());
        assert!(many.count() < MOST);
        assert!(std::ptr::eq(known.type_of(&code("first")).unwrap(), first));

        let mut known = Known::default();
        let large = |nth: usize| code(&format!("f{nth}x{}", "x".repeat(LONGEST - 100)));
        let count = (0..MOST_BYTES / LONGEST).filter(|&nth| known.type_of(&large(nth)).is_some());
        let count = count.count();
        assert!(count > 0 && count < MOST_BYTES / LONGEST, "{count}");
        assert!(known.bytes <= MOST_BYTES);
        assert!(
            Known::default()
                .type_of(&code(&"x".repeat(LONGEST)))
                .is_none()
        );
    }
}

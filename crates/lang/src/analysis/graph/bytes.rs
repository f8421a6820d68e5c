//! Size of a copied value in bytes, as C stores it, objects with their headers.

use super::known::Known;
use super::walk::Walk;
use super::world::{Fill, Object, ObjectId, World};
use crate::tree::Program;
use crate::types::{Type, TypeId};

/// The assumed size of a text, an array or the content of a box of which nothing is known.
pub(super) const TEXT_ASSUMED: f64 = 32.0;
pub(super) const LENGTH_ASSUMED: f64 = 64.0;
pub(super) const BOX_ASSUMED: f64 = 16.0;
/// `sizeof` an object's header, and what arrays and boxes have before their content.
const OBJECT: f64 = 8.0;
pub(super) const ARRAY: f64 = 16.0;
const BOX: f64 = 24.0;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Size {
    pub(super) bytes: f64,
    pub(super) is_exact: bool,
}

impl Size {
    fn exactly(bytes: f64) -> Size {
        Size {
            bytes,
            is_exact: true,
        }
    }

    fn plus(self, other: Size) -> Size {
        Size {
            bytes: self.bytes + other.bytes,
            is_exact: self.is_exact && other.is_exact,
        }
    }
}

/// The bytes of a variable, field or element: references are pointers.
pub(super) fn of_slot(program: &Program, ty: TypeId) -> f64 {
    match program.types.get(ty) {
        Type::Integer | Type::Enum(_) | Type::Unsigned | Type::Real => 4.0,
        Type::Bool | Type::Byte => 1.0,
        Type::Void | Type::Never | Type::Error => 0.0,
        _ => 8.0,
    }
}

/// The bytes of a message: what is copied, or handed over, when the value is sent.
pub(super) fn of(walk: &Walk<'_>, value: Known, ty: TypeId) -> Size {
    let sizes = Sizes {
        program: walk.program,
        world: &walk.world,
        strings: &walk.module.strings,
    };
    sizes.of(value, ty)
}

struct Sizes<'a> {
    program: &'a Program,
    world: &'a World,
    strings: &'a [Box<str>],
}

impl Sizes<'_> {
    fn of(&self, value: Known, ty: TypeId) -> Size {
        match self.program.types.get(ty) {
            Type::String => match value {
                Known::Text(number) => Size::exactly(self.strings[number as usize].len() as f64),
                _ => Size {
                    bytes: TEXT_ASSUMED,
                    is_exact: false,
                },
            },
            Type::Struct(fields) => {
                let known = match value {
                    Known::Object(id) => Some(self.world.get(id)),
                    _ => None,
                };
                let mut size = Size::exactly(OBJECT);
                for (i, (_, field)) in fields.iter().enumerate() {
                    let content = match known {
                        Some(Object::Struct { fields }) => fields.get(i).copied(),
                        _ => None,
                    };
                    size.bytes += of_slot(self.program, *field);
                    size = size.plus(self.behind(content.unwrap_or(Known::Unknown), *field));
                }
                size
            }
            Type::Array(element) => self.array(value, *element),
            Type::Any => match value {
                Known::Object(id) => match self.world.get(id) {
                    Object::Box { ty, content } => {
                        Size::exactly(BOX).plus(self.behind(*content, *ty))
                    }
                    _ => Size::exactly(BOX),
                },
                _ => Size {
                    bytes: BOX + BOX_ASSUMED,
                    is_exact: false,
                },
            },
            _ => Size::exactly(of_slot(self.program, ty)),
        }
    }

    /// The bytes reached through a field or element, besides its own.
    fn behind(&self, value: Known, ty: TypeId) -> Size {
        match self.program.types.get(ty) {
            Type::String | Type::Struct(_) | Type::Array(_) | Type::Any => self.of(value, ty),
            _ => Size::exactly(0.0),
        }
    }

    fn array(&self, value: Known, element: TypeId) -> Size {
        let slot = of_slot(self.program, element);
        let Known::Object(id) = value else {
            let one = self.behind(Known::Unknown, element);
            return Size {
                bytes: ARRAY + LENGTH_ASSUMED * (slot + one.bytes),
                is_exact: false,
            };
        };
        self.known_array(id, element, slot)
    }

    fn known_array(&self, id: ObjectId, element: TypeId, slot: f64) -> Size {
        let Object::Array {
            length,
            fill,
            stored,
            ..
        } = self.world.get(id)
        else {
            return Size::exactly(ARRAY);
        };
        let count = length.map_or(LENGTH_ASSUMED, f64::from);
        let other = match fill {
            Fill::Value(known) => *known,
            Fill::CopyOf(template) => Known::Object(*template),
        };
        let one = self.behind(other, element);
        let mut size = Size {
            bytes: ARRAY + count * slot + (count - stored.len() as f64).max(0.0) * one.bytes,
            is_exact: length.is_some() && one.is_exact,
        };
        for value in stored.values() {
            size = size.plus(self.behind(*value, element));
        }
        size
    }
}

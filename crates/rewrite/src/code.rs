//! Expressions after their names are looked up: trees over words, without kinds to check.
//!
//! Every expression has a value, so that no match can fail halfway: whole numbers wrap around at
//! 64 bits, and a whole number divided by 0, or the remainder, is 0.

use crate::graph::Graph;
use crate::rule::Binary;

/// Most vertices of a rule, those of its `unless` patterns included; and most edges.
pub const ELEMENTS_MAX: usize = 32;

/// Vertices and edges that a pattern's elements are bound to while a search goes on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bindings {
    pub(crate) vertices: [u32; ELEMENTS_MAX],
    pub(crate) edges: [u32; ELEMENTS_MAX],
}

impl Bindings {
    pub(crate) fn new() -> Bindings {
        Bindings {
            vertices: [u32::MAX; ELEMENTS_MAX],
            edges: [u32::MAX; ELEMENTS_MAX],
        }
    }
}

/// An expression to evaluate. Booleans are the words 0 and 1.
#[derive(Clone, Debug)]
pub(crate) enum Code {
    Constant(u64),
    Vertex {
        index: u8,
        slot: u16,
    },
    Edge {
        index: u8,
        slot: u16,
    },
    ToFloat(Box<Code>),
    Not(Box<Code>),
    MinusInt(Box<Code>),
    MinusFloat(Box<Code>),
    And(Box<Code>, Box<Code>),
    Or(Box<Code>, Box<Code>),
    Int(Binary, Box<Code>, Box<Code>),
    Float(Binary, Box<Code>, Box<Code>),
    /// Booleans, and texts, which are equal if their numbers are.
    Word(Binary, Box<Code>, Box<Code>),
    Text(Binary, Box<Code>, Box<Code>),
}

impl Code {
    pub(crate) fn evaluate(&self, graph: &Graph, bound: &Bindings) -> u64 {
        let of = |code: &Code| code.evaluate(graph, bound);
        match self {
            Code::Constant(word) => *word,
            Code::Vertex { index, slot } => {
                graph.word(bound.vertices[usize::from(*index)], usize::from(*slot))
            }
            Code::Edge { index, slot } => {
                graph.edge_word(bound.edges[usize::from(*index)], usize::from(*slot))
            }
            Code::ToFloat(inner) => (of(inner) as i64 as f64).to_bits(),
            Code::Not(inner) => of(inner) ^ 1,
            Code::MinusInt(inner) => (of(inner) as i64).wrapping_neg() as u64,
            Code::MinusFloat(inner) => (-f64::from_bits(of(inner))).to_bits(),
            Code::And(left, right) => u64::from(of(left) != 0 && of(right) != 0),
            Code::Or(left, right) => u64::from(of(left) != 0 || of(right) != 0),
            Code::Int(operation, left, right) => int(*operation, of(left) as i64, of(right) as i64),
            Code::Float(operation, left, right) => float(
                *operation,
                f64::from_bits(of(left)),
                f64::from_bits(of(right)),
            ),
            Code::Word(operation, left, right) => compare(*operation, &of(left), &of(right)),
            Code::Text(operation, left, right) => {
                compare(*operation, graph.text(of(left)), graph.text(of(right)))
            }
        }
    }

    pub(crate) fn is_true(&self, graph: &Graph, bound: &Bindings) -> bool {
        self.evaluate(graph, bound) != 0
    }

    /// Vertices and edges whose attributes it reads, as bits.
    pub(crate) fn reads(&self) -> (u32, u32) {
        let mut seen = (0, 0);
        self.visit(&mut |code| match code {
            Code::Vertex { index, .. } => seen.0 |= 1 << index,
            Code::Edge { index, .. } => seen.1 |= 1 << index,
            _ => {}
        });
        seen
    }

    fn visit(&self, look: &mut impl FnMut(&Code)) {
        look(self);
        match self {
            Code::Constant(_) | Code::Vertex { .. } | Code::Edge { .. } => {}
            Code::ToFloat(inner)
            | Code::Not(inner)
            | Code::MinusInt(inner)
            | Code::MinusFloat(inner) => inner.visit(look),
            Code::And(left, right)
            | Code::Or(left, right)
            | Code::Int(_, left, right)
            | Code::Float(_, left, right)
            | Code::Word(_, left, right)
            | Code::Text(_, left, right) => {
                left.visit(look);
                right.visit(look);
            }
        }
    }
}

fn int(operation: Binary, left: i64, right: i64) -> u64 {
    let value = match operation {
        Binary::Add => left.wrapping_add(right),
        Binary::Subtract => left.wrapping_sub(right),
        Binary::Multiply => left.wrapping_mul(right),
        Binary::Divide if right == 0 => 0,
        Binary::Divide => left.wrapping_div(right),
        Binary::Remainder if right == 0 => 0,
        Binary::Remainder => left.wrapping_rem(right),
        _ => return compare(operation, &left, &right),
    };
    value as u64
}

fn float(operation: Binary, left: f64, right: f64) -> u64 {
    let value = match operation {
        Binary::Add => left + right,
        Binary::Subtract => left - right,
        Binary::Multiply => left * right,
        Binary::Divide => left / right,
        Binary::Remainder => left % right,
        _ => return compare(operation, &left, &right),
    };
    value.to_bits()
}

fn compare<T: PartialOrd + ?Sized>(operation: Binary, left: &T, right: &T) -> u64 {
    u64::from(match operation {
        Binary::Equal => left == right,
        Binary::Unequal => left != right,
        Binary::Less => left < right,
        Binary::AtMost => left <= right,
        Binary::More => left > right,
        Binary::AtLeast => left >= right,
        _ => unreachable!("{} compares nothing", operation.sign()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_has_a_value() {
        assert_eq!(int(Binary::Divide, 7, 0), 0);
        assert_eq!(int(Binary::Remainder, 7, 0), 0);
        assert_eq!(int(Binary::Divide, i64::MIN, -1) as i64, i64::MIN);
        assert_eq!(int(Binary::Add, i64::MAX, 1) as i64, i64::MIN);
        assert_eq!(int(Binary::AtLeast, -1, 0), 0);
        assert_eq!(float(Binary::Equal, 0.0, -0.0), 1);
        assert_eq!(float(Binary::Equal, f64::NAN, f64::NAN), 0);
    }
}

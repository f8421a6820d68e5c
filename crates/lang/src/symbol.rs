//! Interned names: a [`Symbol`] is a small number, so that comparing names costs nothing.

use std::collections::HashMap;

/// A name, interned. Equal symbols of one [`Interner`] are equal names.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct Symbol(pub u32);

impl Symbol {
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Gives every distinct name a number, and the name back.
#[derive(Default, Debug, Clone)]
pub struct Interner {
    numbers: HashMap<Box<str>, Symbol>,
    names: Vec<Box<str>>,
}

impl Interner {
    pub fn intern(&mut self, name: &str) -> Symbol {
        if let Some(&symbol) = self.numbers.get(name) {
            return symbol;
        }
        let symbol = Symbol(self.names.len() as u32);
        self.names.push(name.into());
        self.numbers.insert(name.into(), symbol);
        symbol
    }

    pub fn name(&self, symbol: Symbol) -> &str {
        &self.names[symbol.index()]
    }

    pub fn len(&self) -> usize {
        self.names.len()
    }

    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}

//! Texts that are told apart by a number, since states are compared by the million.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Deref;
use std::rc::Rc;

/// A text with a number that another one hardly has.
#[derive(Clone, Debug)]
pub(super) struct Text {
    number: u128,
    text: Rc<str>,
}

impl From<&str> for Text {
    fn from(text: &str) -> Text {
        Text {
            number: number(text),
            text: text.into(),
        }
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Text) -> bool {
        self.number == other.number
    }
}

impl Eq for Text {}

impl Hash for Text {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        hasher.write_u128(self.number);
    }
}

/// A number for something, which hardly anything else has.
pub(super) fn number(of: &(impl Hash + ?Sized)) -> u128 {
    let half = |salt: u64| {
        let mut hasher = DefaultHasher::new();
        salt.hash(&mut hasher);
        of.hash(&mut hasher);
        u128::from(hasher.finish())
    };
    half(1) << 64 | half(2)
}

//! A heap of objects on processors, in words of 32 bits.
//!
//! ```text
//! word      0                         1          2 …
//! object    mark (bit 31), fields     handler    a reference each; 0 for none
//! ```
//!
//! The source keeps the handler in two bytes of an object's header that had no use, so its objects
//! do not grow. Here the word is there in every way to collect, used or not; 32 bits, as 16 are too
//! few for a million processors.

/// No object.
pub const NULL: u32 = 0;
/// Set in the first word of an object that is marked.
pub const MARK: u32 = 1 << 31;
/// Words of an object before its fields.
pub const HEAD: usize = 2;

/// Objects.
#[derive(Clone, Debug)]
pub struct Heap {
    /// The words. The first belongs to no object, so that none is [`NULL`].
    pub words: Vec<u32>,
    /// Number of objects.
    pub objects: usize,
}

impl Heap {
    /// Makes an empty heap with room for so many words.
    #[must_use]
    pub fn with_room(words: usize) -> Heap {
        let mut all = Vec::with_capacity(words + 1);
        all.push(0);
        Heap {
            words: all,
            objects: 0,
        }
    }

    /// Adds an object of a processor, with fields that refer to nothing.
    ///
    /// # Panics
    /// Panics if the heap has more words than references can tell apart, 16 GiB.
    pub fn add(&mut self, handler: u32, fields: usize) -> u32 {
        let object = u32::try_from(self.words.len()).expect("a heap has less than 2^32 words");
        self.words.extend([fields as u32, handler]);
        self.words.resize(self.words.len() + fields, NULL);
        self.objects += 1;
        object
    }

    /// Lets a field refer to an object.
    pub fn set(&mut self, object: u32, field: usize, to: u32) {
        self.words[object as usize + HEAD + field] = to;
    }
}

/// A processor, as the collector sees it when all have stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Processor {
    /// It has a logged call, or applies one.
    pub is_basic: bool,
    /// Its roots are `World::roots_of[first..last]`.
    pub first: usize,
    /// The end of its roots.
    pub last: usize,
    /// The object that stands for it; [`NULL`] if none does.
    pub object: u32,
}

/// A program that has stopped: objects, processors, roots.
#[derive(Clone, Debug)]
pub struct World {
    /// All objects.
    pub heap: Heap,
    /// Roots of no processor, BR.
    pub roots: Vec<u32>,
    /// The processors by number.
    pub processors: Vec<Processor>,
    /// Roots of all processors, r.
    pub roots_of: Vec<u32>,
}

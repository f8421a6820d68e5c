//! Hash table of items, with chains.

use std::ptr::NonNull;
use std::sync::atomic::Ordering;

use super::{
    ACTIVE, FETCHED, Fresh, Header, ItemId, Link, Marks, Out, header, id, key, value_parts,
};

/// The items of one stripe of the store, found by their keys. The table grows by itself: when there
/// are more items than chains, the number of chains doubles.
#[derive(Debug)]
pub struct Chains {
    /// A power of two.
    heads: Box<[Link]>,
    items: usize,
}

// SAFETY: it owns the cells of its items that are not the queues'; the rest is atomic.
unsafe impl Send for Chains {}

/// Initial number of chains, a cache line of them.
const HEADS_MIN: usize = 8;

impl Chains {
    /// An empty table.
    #[must_use]
    pub fn new(heads: usize) -> Chains {
        let heads = heads.next_power_of_two().max(HEADS_MIN);
        Chains {
            heads: vec![None; heads].into(),
            items: 0,
        }
    }

    /// Number of items.
    #[must_use]
    pub fn len(&self) -> usize {
        self.items
    }

    /// True without items.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items == 0
    }

    /// Number of chains.
    #[must_use]
    pub fn count(&self) -> usize {
        self.heads.len()
    }

    /// Size of the table itself, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.heads.len() * size_of::<Link>()
    }

    #[inline]
    fn head(&self, hash: u64) -> usize {
        hash as usize & (self.heads.len() - 1)
    }

    #[inline]
    fn position(&self, hash: u64, wanted: &[u8]) -> Link {
        let mut next = self.heads[self.head(hash)];
        while let Some(item) = next {
            // SAFETY: items in a chain are alive.
            let known = unsafe { header(item) };
            // SAFETY: as above.
            if known.hash == hash && unsafe { key(item) } == wanted {
                return Some(item);
            }
            next = known.chain.get();
        }
        None
    }

    /// Finds the item with this key.
    #[inline]
    #[must_use]
    pub fn find(&self, hash: u64, key: &[u8]) -> Option<Entry<'_>> {
        self.position(hash, key).map(|item| Entry {
            item,
            _chains: self,
        })
    }

    /// Finds the item with this key, to change it.
    #[inline]
    #[must_use]
    pub fn find_mut(&mut self, hash: u64, key: &[u8]) -> Option<EntryMut<'_>> {
        self.position(hash, key).map(|item| EntryMut {
            item,
            _chains: self,
        })
    }

    /// Adds an item whose value is complete. Returns another with the same key.
    pub fn put(&mut self, fresh: Fresh) -> Option<Out> {
        assert_eq!(fresh.missing(), 0, "the value is not written");
        let item = fresh.item;
        let out = self.take(fresh.hash(), fresh.key());
        if self.items >= self.heads.len() {
            self.grow();
        }
        let head = self.head(fresh.hash());
        fresh.header().chain.set(self.heads[head]);
        self.heads[head] = Some(item);
        self.items += 1;
        out
    }

    /// Removes the item with this key.
    pub fn take(&mut self, hash: u64, wanted: &[u8]) -> Option<Out> {
        let item = self.position(hash, wanted)?;
        self.take_one(hash, id(item))
    }

    /// Finds one item, if it is here.
    #[must_use]
    pub fn find_one(&self, hash: u64, wanted: ItemId) -> Option<Entry<'_>> {
        let mut next = self.heads[self.head(hash)];
        while let Some(item) = next {
            if id(item) == wanted {
                return Some(Entry {
                    item,
                    _chains: self,
                });
            }
            // SAFETY: items in a chain are alive.
            next = unsafe { header(item) }.chain.get();
        }
        None
    }

    /// Removes one item, if it is here.
    pub fn take_one(&mut self, hash: u64, wanted: ItemId) -> Option<Out> {
        let head = self.head(hash);
        let mut before: Link = None;
        let mut next = self.heads[head];
        while let Some(item) = next {
            // SAFETY: items in a chain are alive.
            let after = unsafe { header(item) }.chain.get();
            if id(item) == wanted {
                match before {
                    // SAFETY: as above.
                    Some(before) => unsafe { header(before) }.chain.set(after),
                    None => self.heads[head] = after,
                }
                self.items -= 1;
                return Some(Out(item));
            }
            before = next;
            next = after;
        }
        None
    }

    /// Removes the items that satisfy a predicate, from a place on, among about `most` items.
    /// Returns the number looked at, and the place to continue at; None at the end.
    pub fn take_some(
        &mut self,
        from: WalkPosition,
        most: usize,
        is_wanted: impl Fn(Entry<'_>) -> bool,
        out: &mut Vec<Out>,
    ) -> (usize, Option<WalkPosition>) {
        let mut steps = self.steps(from, most);
        while let Some(head) = steps.next() {
            let mut next = self.heads[head];
            while let Some(item) = next {
                // SAFETY: items in a chain are alive.
                let known = unsafe { header(item) };
                next = known.chain.get();
                steps.looked += 1;
                if is_wanted(Entry {
                    item,
                    _chains: self,
                }) {
                    out.extend(self.take_one(known.hash, id(item)));
                }
            }
        }
        (steps.looked, steps.place())
    }

    /// Looks at about `most` items from a place on. Returns the number looked at, and the place to
    /// continue at; None at the end.
    pub fn look_at_some(
        &self,
        from: WalkPosition,
        most: usize,
        mut look: impl FnMut(Entry<'_>),
    ) -> (usize, Option<WalkPosition>) {
        let mut steps = self.steps(from, most);
        while let Some(head) = steps.next() {
            let mut next = self.heads[head];
            while let Some(item) = next {
                steps.looked += 1;
                look(Entry {
                    item,
                    _chains: self,
                });
                // SAFETY: items in a chain are alive.
                next = unsafe { header(item) }.chain.get();
            }
        }
        (steps.looked, steps.place())
    }

    fn steps(&self, from: WalkPosition, most: usize) -> Steps {
        let heads = self.heads.len();
        let begun = if from.heads == 0 { heads } else { from.heads };
        Steps {
            heads,
            begun,
            next: from.next,
            chain: from.next,
            looked: 0,
            most,
            passed: 0,
        }
    }

    #[cold]
    fn grow(&mut self) {
        let more = vec![None; self.heads.len() * 2].into();
        let old = std::mem::replace(&mut self.heads, more);
        for mut next in old {
            while let Some(item) = next {
                // SAFETY: items in a chain are alive.
                let known = unsafe { header(item) };
                next = known.chain.get();
                let head = self.head(known.hash);
                known.chain.set(self.heads[head]);
                self.heads[head] = Some(item);
            }
        }
    }
}

/// A place in a walk over all items. The default is the beginning.
///
/// A table that has doubled since has the items of chain `i` in the chains whose numbers are `i`
/// modulo the number of chains at the beginning. The walk passes these together, so nothing is seen
/// twice and nothing is left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WalkPosition {
    next: usize,
    /// Number of chains at the beginning; 0 before it.
    heads: usize,
}

/// Chains to pass now.
struct Steps {
    heads: usize,
    begun: usize,
    /// The first of the chains passed together, and the next of them.
    next: usize,
    chain: usize,
    looked: usize,
    most: usize,
    passed: usize,
}

/// Chains passed for each item that may be looked at: empty ones take time, too.
const CHAINS_PER_ITEM: usize = 8;

impl Steps {
    fn next(&mut self) -> Option<usize> {
        if self.chain >= self.heads {
            self.next += 1;
            self.chain = self.next;
        }
        let is_whole = self.chain == self.next;
        let is_enough = self.looked >= self.most || self.passed >= self.most * CHAINS_PER_ITEM;
        if self.next >= self.begun || (is_whole && is_enough && self.passed > 0) {
            return None;
        }
        self.passed += 1;
        let chain = self.chain;
        self.chain += self.begun;
        Some(chain)
    }

    fn place(&self) -> Option<WalkPosition> {
        (self.next < self.begun).then_some(WalkPosition {
            next: self.next,
            heads: self.begun,
        })
    }
}

/// A found item.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    item: NonNull<Header>,
    _chains: &'a Chains,
}

impl<'a> Entry<'a> {
    #[inline]
    fn header(&self) -> &'a Header {
        // SAFETY: while the chains are borrowed no thread takes the item out.
        unsafe { header(self.item) }
    }

    /// Its identity.
    #[must_use]
    pub fn id(&self) -> ItemId {
        id(self.item)
    }

    /// Its key.
    #[must_use]
    pub fn key(&self) -> &'a [u8] {
        // SAFETY: as in `header`.
        unsafe { key(self.item) }
    }

    /// Its value and `\r\n`.
    #[inline]
    #[must_use]
    pub fn value_and_end(&self) -> &'a [u8] {
        // SAFETY: as in `header`.
        let (start, bytes) = unsafe { value_parts(self.item) };
        // SAFETY: the bytes were written when the item was made, and change only while the chains
        // are borrowed exclusively.
        unsafe { std::slice::from_raw_parts(start, bytes) }
    }

    /// Its value.
    #[must_use]
    pub fn value(&self) -> &'a [u8] {
        let bytes = self.value_and_end();
        &bytes[..bytes.len() - 2]
    }

    /// Length of its value.
    #[must_use]
    pub fn value_bytes(&self) -> usize {
        self.header().value_bytes as usize
    }

    /// Number that changes with every change of the value.
    #[must_use]
    pub fn cas(&self) -> u64 {
        self.header().cas.get()
    }

    /// The client's own number.
    #[must_use]
    pub fn client_flags(&self) -> u32 {
        self.header().client_flags.get()
    }

    /// Expiry; 0 is never.
    #[must_use]
    pub fn expires(&self) -> u32 {
        self.header().expires.load(Ordering::Relaxed)
    }

    /// Time of its last use.
    #[must_use]
    pub fn used(&self) -> u32 {
        self.header().used.load(Ordering::Relaxed)
    }

    /// True if it was fetched since it was stored.
    #[must_use]
    pub fn is_fetched(&self) -> bool {
        self.header().bits.load(Ordering::Relaxed) & FETCHED != 0
    }

    /// The marks.
    #[must_use]
    pub fn marks(&self) -> Marks {
        Marks(self.header().marks.get())
    }

    /// Records a use. Writes nothing if that is recorded already, so that what many read stays in
    /// all caches.
    #[inline]
    pub fn bump(&self, now: u32) {
        let header = self.header();
        let bits = header.bits.load(Ordering::Relaxed);
        let more = if bits & FETCHED == 0 {
            FETCHED
        } else {
            FETCHED | ACTIVE
        };
        if bits | more != bits {
            // Relaxed: a hint. If the pool clears a bit meanwhile and is not heard, the item misses
            // being active once.
            header.bits.store(bits | more, Ordering::Relaxed);
        }
        self.set_used(now);
    }

    /// Records a change: the item is worth keeping, but was not fetched.
    pub fn renew(&self, now: u32) {
        self.header().bits.fetch_or(ACTIVE, Ordering::Relaxed);
        self.set_used(now);
    }

    fn set_used(&self, now: u32) {
        let used = &self.header().used;
        if used.load(Ordering::Relaxed) != now {
            used.store(now, Ordering::Relaxed);
        }
    }
}

/// A found item that may be changed.
#[derive(Debug)]
pub struct EntryMut<'a> {
    item: NonNull<Header>,
    _chains: &'a mut Chains,
}

impl EntryMut<'_> {
    /// The item for reading.
    #[must_use]
    pub fn entry(&self) -> Entry<'_> {
        Entry {
            item: self.item,
            _chains: self._chains,
        }
    }

    #[inline]
    fn header(&self) -> &Header {
        // SAFETY: while the chains are borrowed no thread takes the item out.
        unsafe { header(self.item) }
    }

    /// Sets the number that changes with every change of the value.
    pub fn set_cas(&mut self, cas: u64) {
        self.header().cas.set(cas);
    }

    /// Sets the expiry; 0 is never.
    pub fn set_expires(&mut self, expires: u32) {
        self.header().expires.store(expires, Ordering::Relaxed);
    }

    /// Sets the marks.
    pub fn set_marks(&mut self, marks: Marks) {
        self.header().marks.set(marks.0);
    }

    /// Its value, to be overwritten.
    pub fn value_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `header`.
        let (start, bytes) = unsafe { value_parts(self.item) };
        // SAFETY: the bytes were written when the item was made; with the chains borrowed
        // exclusively nothing else refers to them.
        unsafe { std::slice::from_raw_parts_mut(start, bytes - 2) }
    }
}

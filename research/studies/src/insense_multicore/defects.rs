//! The source's defects and contradictions, and how each was avoided.

/// A defect of the source's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Defect {
    /// `D1` to `D13`.
    pub id: &'static str,
    /// The defect.
    pub what: &'static str,
    /// The way it is avoided here.
    pub here: &'static str,
}

const fn of(id: &'static str, what: &'static str, here: &'static str) -> Defect {
    Defect { id, what, here }
}

/// All of them.
pub const DEFECTS: [Defect; 13] = [
    of(
        "D1",
        "a component's thread holds the lock for creating threads for its whole life, as listed",
        "no lock is held while a component runs",
    ),
    of(
        "D2",
        "connecting what is connected already leaves both channels locked",
        "every way out of connecting lets go of what it took; the protocol is model-checked",
    ),
    of(
        "D3",
        "free looks in the calling thread's heap, and damages it if the block is another's",
        "a block's heap is found from its address, and blocks of others go home through a queue; so, too, in the \
         source's private heaps as they are rebuilt here",
    ),
    of(
        "D4",
        "reference counts are not atomic, though others release copies",
        "an object has one owner at a time; what several hold, channels and components, has atomic counts",
    ),
    of(
        "D5",
        "components in private heaps have no header, and are counted all the same",
        "every counted object has its count in its own struct",
    ),
    of(
        "D6",
        "the main thread's allocations have their header's size added twice",
        "sizes are computed in one place",
    ),
    of(
        "D7",
        "a heap begins 8 bytes into its mapping and ends 8 bytes behind it",
        "the rebuilt heaps have as many whole words as fit",
    ),
    of(
        "D8",
        "free does not merge with the block behind where the one before is not free; one-word blocks cannot be \
         linked",
        "merged on both sides; every block has room for its two words",
    ),
    of(
        "D9",
        "each allocation appends a node to one list under a mutex",
        "measured: with the list, without it, and with a search at each free (experiment list)",
    ),
    of(
        "D10",
        "2.4 times in the abstract is of no section, and contradicts one",
        "measured as a claim of its own",
    ),
    of(
        "D11",
        "three clients and workers a group in the text and four in the listings; 300 jobs for workers that want 400",
        "four, and 400 jobs, so that every component ends",
    ),
    of(
        "D12",
        "a program presents an interface that is not declared; a caption has the bytes of another array",
        "declared; arrays of 250 and 850 rows, as the listing and the counts have them",
    ),
    of(
        "D13",
        "send begins by setting a lock where it must wait for it",
        "the runtime's own protocol, model-checked",
    ),
];

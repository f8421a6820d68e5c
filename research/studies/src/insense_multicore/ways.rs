//! Ways to keep the data of components: where it lies, and under what guard. Hearth's heaps, and
//! the source's rebuilt.
//!
//! The source's are preloaded in place of the C library's allocator, so that the same executable
//! runs with each of them.

/// A way to keep the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// Its name in tables.
    pub id: &'static str,
    /// Its description.
    pub title: &'static str,
    /// `HEARTH_HEAPS`.
    pub heaps: &'static str,
    /// The preloaded library: the text's name and the flags that it is built with.
    pub preload: Option<(&'static str, &'static [&'static str])>,
    /// `GLIBC_TUNABLES`.
    pub tunables: Option<&'static str>,
}

const fn of(id: &'static str, title: &'static str, heaps: &'static str) -> Way {
    Way {
        id,
        title,
        heaps,
        preload: None,
        tunables: None,
    }
}

/// The two heaps of the matrix.
pub const HEAPS: [&str; 2] = ["private", "shared"];

/// The source's shared heap: its texts.
pub const SHARED_HEAP: &str = "source-heap";
/// Its private heaps.
pub const PRIVATE_HEAPS: &str = "source-private";

/// All ways.
pub const WAYS: [Way; 8] = [
    of("private", "a heap of each component's own", "private"),
    of("shared", "one heap for all, under a lock", "shared"),
    of("malloc", "the C library's malloc of today", "system"),
    Way {
        tunables: Some("glibc.malloc.tcache_count=0"),
        ..of(
            "malloc-2013",
            "the same without its lists by thread, which are of 2017",
            "system",
        )
    },
    Way {
        preload: Some((SHARED_HEAP, &[])),
        ..of("locked", "malloc under one pthread mutex", "system")
    },
    Way {
        preload: Some((SHARED_HEAP, &["-DSOURCE_LIST"])),
        ..of(
            "listed",
            "the same, and each block appended to a list: the source's shared heap",
            "system",
        )
    },
    Way {
        preload: Some((SHARED_HEAP, &["-DSOURCE_LIST", "-DSOURCE_SEARCH"])),
        ..of(
            "searched",
            "the same, and each free takes the block off by a search",
            "system",
        )
    },
    Way {
        preload: Some((PRIVATE_HEAPS, &[])),
        ..of(
            "source-private",
            "a heap for each thread, first fit: the source's private heaps",
            "system",
        )
    },
];

impl Way {
    /// The way of that name.
    #[must_use]
    pub fn named(id: &str) -> Option<&'static Way> {
        WAYS.iter().find(|way| way.id == id)
    }

    /// True if it makes sense in C, where there are no heaps of components.
    #[must_use]
    pub fn is_in_c(&self) -> bool {
        self.heaps == "system"
    }
}

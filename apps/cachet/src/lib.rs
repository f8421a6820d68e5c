//! A key-value server that speaks the memcached protocols, with its items on Hearth's heaps.

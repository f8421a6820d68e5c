//! nMART as a shared object to be preloaded in place of `malloc`.

use hearth_allocators::preload::threads::PerThread;

static HEAPS: PerThread = PerThread::new();

hearth_allocators::preload!(HEAPS);

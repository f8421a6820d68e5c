//! FirstFit as a shared object to be preloaded in place of `malloc`.

use hearth_allocators::preload::one_heap::OneHeap;
use hearth_allocators::sequential::FirstFit;
use hearth_allocators::system::DataSegment;

static HEAP: OneHeap<FirstFit<DataSegment>> =
    OneHeap::new(FirstFit::<DataSegment>::new(DataSegment));

hearth_allocators::preload!(HEAP);

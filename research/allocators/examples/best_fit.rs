//! BestFit as a shared object to be preloaded in place of `malloc`.

use hearth_allocators::preload::one_heap::OneHeap;
use hearth_allocators::sequential::BestFit;
use hearth_allocators::system::DataSegment;

static HEAP: OneHeap<BestFit<DataSegment>> = OneHeap::new(BestFit::<DataSegment>::new(DataSegment));

hearth_allocators::preload!(HEAP);

//! HalfFit as a shared object to be preloaded in place of `malloc`.

use hearth_allocators::half_fit::HalfFit;
use hearth_allocators::preload::one_heap::OneHeap;
use hearth_allocators::system::DataSegment;

static HEAP: OneHeap<HalfFit<DataSegment>> = OneHeap::new(HalfFit::<DataSegment>::new(DataSegment));

hearth_allocators::preload!(HEAP);

//! Tlsf as a shared object to be preloaded in place of `malloc`.

use hearth_allocators::preload::one_heap::OneHeap;
use hearth_allocators::system::DataSegment;
use hearth_allocators::tlsf::Tlsf;

static HEAP: OneHeap<Tlsf<DataSegment>> = OneHeap::new(Tlsf::<DataSegment>::new(DataSegment));

hearth_allocators::preload!(HEAP);

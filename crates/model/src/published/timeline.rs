//! Tables 7.1 to 7.3 of the cache-impact source: when each of eight reads completes, ns.

/// Table 7.1, data prefetch. The sixth figure is a misprint of 14.5.
pub const PREFETCH_NS: [f64; 8] = [7.0, 8.5, 10.0, 11.5, 13.0, 14.0, 16.0, 17.5];
/// Table 7.2, one line at a time.
pub const SINGLE_NS: [f64; 8] = [7.0, 8.5, 10.0, 11.5, 18.5, 20.0, 21.5, 23.0];
/// Table 7.3, Advanced Smart Cache. Printed with table 7.2's times.
pub const SMART_CACHE_NS: [f64; 8] = SINGLE_NS;

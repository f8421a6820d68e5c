//! Tests of the items.

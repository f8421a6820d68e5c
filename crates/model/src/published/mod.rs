//! What the sources published, as data, so that a study can put it beside ours.

pub mod cache_impact;
pub mod node_distance;
pub mod replay;
pub mod timeline;

use super::Entry;

pub static ENTRIES: &[Entry] = &[];

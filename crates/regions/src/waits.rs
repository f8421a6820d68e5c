//! Calls that wait for answers: who waits for whom, and whether they go round in a circle.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use crate::common::lock;

/// A call of a processor waits for an answer.
struct Wait {
    supplier: u32,
    /// Set before the answer can be seen, so that a wait that is over counts no more.
    is_answered: Arc<AtomicBool>,
}

/// All waits of calls, by the processor that waits.
#[derive(Default)]
pub(crate) struct Waits(Mutex<HashMap<u32, Vec<Wait>>>);

impl Waits {
    /// Adds a wait, unless it closes a circle; then gives the number of processors in it.
    ///
    /// A call waits only for calls that its suppliers have not applied, and a supplier applies none
    /// while its own call waits. So whoever adds the last wait of a circle finds the others.
    pub(crate) fn add(
        &self,
        client: u32,
        supplier: u32,
        is_answered: &Arc<AtomicBool>,
    ) -> Result<(), usize> {
        let mut waits = lock(&self.0);
        // Breadth first: the circle that is named is the shortest.
        let mut seen = vec![supplier];
        let mut ring = vec![supplier];
        let mut length = 1;
        while !ring.is_empty() {
            if ring.contains(&client) {
                return Err(length);
            }
            let mut next = Vec::new();
            for processor in ring {
                for wait in waits.get(&processor).into_iter().flatten() {
                    // Acquire pairs with the Release of the answer.
                    let is_over = wait.is_answered.load(Ordering::Acquire);
                    if !is_over && !seen.contains(&wait.supplier) {
                        seen.push(wait.supplier);
                        next.push(wait.supplier);
                    }
                }
            }
            ring = next;
            length += 1;
        }
        waits.entry(client).or_default().push(Wait {
            supplier,
            is_answered: Arc::clone(is_answered),
        });
        Ok(())
    }

    /// Removes a wait that is over or was given up.
    pub(crate) fn remove(&self, client: u32, is_answered: &Arc<AtomicBool>) {
        let mut waits = lock(&self.0);
        if let Some(all) = waits.get_mut(&client) {
            all.retain(|wait| !Arc::ptr_eq(&wait.is_answered, is_answered));
            if all.is_empty() {
                waits.remove(&client);
            }
        }
    }

    /// Removes all waits of a call that is over.
    pub(crate) fn clear(&self, client: u32) {
        lock(&self.0).remove(&client);
    }
}

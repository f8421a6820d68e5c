//! The order of locks.

use crate::model::{Model, ResourceId, Step};

/// Whether there is an order of all resources in which every task of the mode takes them: jobs then
/// never wait for each other's resources in a circle. Waits for queues are not looked at.
pub fn locks_in_order(model: &Model, mode: usize) -> bool {
    let count = model.resources.len();
    // Whether a task takes one resource while it has another.
    let mut before = vec![vec![false; count]; count];
    for (_, task) in model.tasks_in(mode) {
        let mut held: Vec<ResourceId> = Vec::new();
        for step in &task.steps {
            match step {
                Step::Lock(id) => {
                    for one in &held {
                        before[one.0][id.0] = true;
                    }
                    held.push(*id);
                }
                Step::Unlock(id) => held.retain(|one| one != id),
                _ => {}
            }
        }
    }
    // Take away resources that none is before, as long as there are any.
    let mut left: Vec<usize> = (0..count).collect();
    while let Some(place) = (left.iter()).position(|to| left.iter().all(|from| !before[*from][*to]))
    {
        left.swap_remove(place);
    }
    left.is_empty()
}

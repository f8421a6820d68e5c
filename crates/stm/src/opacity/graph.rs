//! The check of a history.
//!
//! A history is opaque if some order of all attempts, committed or not, keeps the order of those
//! that did not overlap and lets each attempt read what the last committed attempt before it wrote.
//! Finding such an order is hard in general. Here the versions of each variable are known: every
//! value is written once, and whoever writes a variable has read the version before. So a history
//! is opaque if and only if (after Guerraoui and Kapalka) this graph of attempts has no circle:
//!
//! - from an attempt to each that starts after its end;
//! - from the writer of a version to each attempt that reads it;
//! - from the writer of a version to the writer of the next;
//! - from each attempt that reads a version to the writer of the next.
//!
//! Attempts that did not commit are readers only: nobody may have read what they wrote, which is
//! checked first. So is that an attempt reads its own writes, and that no version has two
//! successors, which would be a lost update.
//!
//! The order in time has as many edges as pairs, so it goes through a chain of points in time: an
//! attempt leads to the point of its end, each point to the next, and the last point before a start
//! to its attempt.

use std::collections::HashMap;

use super::history::{Access, INITIAL, Recorded};

/// A reason why a history is not opaque, for people.
pub(super) type Violation = String;

/// An attempt's first read of a variable, and its last write to it.
type Outside = HashMap<usize, (Option<u64>, Option<u64>)>;

/// The accesses of an attempt that others can notice.
fn outside(attempt: &Recorded) -> Result<Outside, Violation> {
    let mut known = Outside::new();
    for &access in &attempt.accesses {
        match access {
            Access::Read(variable, value) => {
                let (read, written) = known.entry(variable).or_default();
                let expected = written.or(*read);
                if expected.is_some_and(|expected| expected != value) {
                    return Err(format!("an attempt reads two values: {attempt:?}"));
                }
                if expected.is_none() {
                    *read = Some(value);
                }
            }
            Access::Write(variable, value) => {
                known.entry(variable).or_default().1 = Some(value);
            }
        }
    }
    Ok(known)
}

/// Checks a history.
///
/// # Errors
/// It is not opaque.
pub(super) fn check(attempts: &[Recorded], variables: usize) -> Result<(), Violation> {
    let all: Vec<Outside> = attempts.iter().map(outside).collect::<Result<_, _>>()?;
    let count = attempts.len();
    let mut writers: HashMap<(usize, u64), usize> = HashMap::new();
    let mut next: HashMap<(usize, u64), usize> = HashMap::new();
    for (attempt, known) in all.iter().enumerate() {
        if !attempts[attempt].is_committed {
            continue;
        }
        for (&variable, &(read, written)) in known {
            let Some(written) = written else { continue };
            writers.insert((variable, written), attempt);
            let read = read.ok_or("a write without a read before it")?;
            if let Some(other) = next.insert((variable, read), attempt) {
                return Err(format!(
                    "a lost update: {:?} and {:?}",
                    attempts[other], attempts[attempt]
                ));
            }
        }
    }
    // Attempts come first, then the points in time at which attempts end.
    let mut ends: Vec<(u64, usize)> = attempts.iter().map(|it| it.end).zip(0..).collect();
    ends.sort_unstable();
    let mut edges: Vec<Vec<u32>> = vec![Vec::new(); 2 * count];
    let mut add = |from: usize, to: usize| {
        if from != to {
            edges[from].push(to as u32);
        }
    };
    for (point, &(_, attempt)) in ends.iter().enumerate() {
        add(attempt, count + point);
        if point > 0 {
            add(count + point - 1, count + point);
        }
    }
    for (attempt, recorded) in attempts.iter().enumerate() {
        let before = ends.partition_point(|&(end, _)| end < recorded.start);
        if before > 0 {
            add(count + before - 1, attempt);
        }
    }
    for (attempt, known) in all.iter().enumerate() {
        for (&variable, &(read, _)) in known {
            assert!(variable < variables, "variable {variable} is not there");
            let Some(read) = read else { continue };
            if let Some(&next) = next.get(&(variable, read)) {
                add(attempt, next);
            }
            if read == INITIAL {
                continue;
            }
            // The edge from a version's writer to the next one's is among these: that one reads it.
            match writers.get(&(variable, read)) {
                Some(&writer) => add(writer, attempt),
                None => {
                    let attempt = &attempts[attempt];
                    return Err(format!("a read of what no commit wrote: {attempt:?}"));
                }
            }
        }
    }
    match circle(&edges) {
        None => Ok(()),
        Some(at) => {
            let some = attempts.get(at).or_else(|| {
                let (_, attempt) = ends[at - count];
                attempts.get(attempt)
            });
            Err(format!("a circle through or before {some:?}"))
        }
    }
}

/// A vertex that a circle keeps from being put in order, by removing all that nothing leads to.
fn circle(edges: &[Vec<u32>]) -> Option<usize> {
    let mut incoming = vec![0u32; edges.len()];
    for &to in edges.iter().flatten() {
        incoming[to as usize] += 1;
    }
    let mut free: Vec<usize> = (0..edges.len()).filter(|&at| incoming[at] == 0).collect();
    while let Some(at) = free.pop() {
        for &to in &edges[at] {
            let to = to as usize;
            incoming[to] -= 1;
            if incoming[to] == 0 {
                free.push(to);
            }
        }
    }
    incoming.iter().position(|&left| left > 0)
}

mod tests {
    use super::Access::{Read, Write};
    use super::*;

    fn attempt(start: u64, end: u64, is_committed: bool, accesses: &[Access]) -> Recorded {
        Recorded {
            start,
            end,
            is_committed,
            accesses: accesses.to_vec(),
        }
    }

    fn says(attempts: &[Recorded]) -> String {
        check(attempts, 2).err().unwrap_or_default()
    }

    #[test]
    fn histories_that_are_opaque_pass() {
        let both = [Read(0, 0), Write(0, 5), Read(1, 0), Write(1, 6)];
        let writer = attempt(0, 10, true, &both);
        let before = attempt(1, 9, true, &[Read(0, 0), Read(1, 0)]);
        let after = attempt(1, 9, false, &[Read(1, 6), Read(0, 5)]);
        assert_eq!(says(&[writer, before, after]), "");
    }

    #[test]
    fn histories_that_are_not_opaque_are_found() {
        let both = [Read(0, 0), Write(0, 5), Read(1, 0), Write(1, 6)];
        let writer = attempt(0, 10, true, &both);
        let halves = [Read(0, 5), Read(1, 0)];
        for is_committed in [true, false] {
            let reader = attempt(1, 9, is_committed, &halves);
            assert!(says(&[writer.clone(), reader]).contains("circle"));
        }
        // In time: the reader starts after the writer has ended.
        let late = attempt(11, 12, true, &[Read(0, 0)]);
        assert!(says(&[writer.clone(), late]).contains("circle"));
        let undone = attempt(0, 10, false, &both);
        let dirty = attempt(1, 9, false, &[Read(0, 5)]);
        assert!(says(&[undone, dirty]).contains("no commit"));
        let other = attempt(0, 10, true, &[Read(0, 0), Write(0, 7)]);
        assert!(says(&[writer, other]).contains("lost"));
        let twice = attempt(0, 1, false, &[Read(0, 0), Read(0, 5)]);
        assert!(says(&[twice]).contains("two values"));
        let skew = [
            attempt(0, 10, true, &[Read(0, 0), Read(1, 0), Write(1, 6)]),
            attempt(0, 10, true, &[Read(1, 0), Read(0, 0), Write(0, 5)]),
        ];
        assert!(says(&skew).contains("circle"));
    }
}

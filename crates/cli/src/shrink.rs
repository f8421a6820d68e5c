//! Making a list shorter as long as it keeps a property: delta debugging.

/// Removes parts of a list, halves first and single items last, as long as `keeps` holds of what is
/// left. `keeps` may answer with an even shorter list that does as well; none means that the
/// property is lost, or that it was asked often enough.
pub(crate) fn shrink<T: Clone>(
    mut list: Vec<T>,
    mut keeps: impl FnMut(&[T]) -> Option<Vec<T>>,
) -> Vec<T> {
    let mut size = list.len();
    while size > 0 && !list.is_empty() {
        let before = list.len();
        let mut from = 0;
        while from < list.len() {
            let to = (from + size).min(list.len());
            let rest: Vec<T> = [&list[..from], &list[to..]].concat();
            match keeps(&rest) {
                Some(kept) if kept.len() <= rest.len() => list = kept,
                Some(_) => list = rest,
                None => from = to,
            }
        }
        // Single items are tried until none can go: without one, another may be needless.
        if size > 1 || list.len() == before {
            size /= 2;
        }
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shrunk(list: Vec<u32>, needed: &[u32]) -> (Vec<u32>, usize) {
        let mut asked = 0;
        let keeps = |rest: &[u32]| {
            asked += 1;
            let all = needed.iter().all(|item| rest.contains(item));
            all.then(|| rest.to_vec())
        };
        (shrink(list, keeps), asked)
    }

    #[test]
    fn what_is_needed_stays_and_nothing_else() {
        for needed in [&[][..], &[0], &[99], &[3, 50, 51, 98]] {
            assert_eq!(shrunk((0..100).collect(), needed).0, needed);
        }
    }

    #[test]
    fn nothing_that_is_needless_is_found_soon() {
        let (left, asked) = shrunk((0..10_000).collect(), &[]);
        assert_eq!((left.len(), asked), (0, 1));
    }

    #[test]
    fn an_answer_may_be_shorter_than_the_question() {
        let left = shrink((0..8).collect(), |rest: &[u32]| {
            rest.contains(&5).then(|| vec![5])
        });
        assert_eq!(left, [5]);
    }
}

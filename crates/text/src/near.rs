//! Near names: the word that the author of a misspelt one probably meant.

/// The candidate nearest to `name`, if one is near enough to be worth naming.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = limit(name);
    let distances = candidates.into_iter().filter_map(|candidate| {
        if candidate == name || candidate.len().abs_diff(name.len()) > limit {
            return None;
        }
        let distance = match candidate.eq_ignore_ascii_case(name) {
            true => 0,
            false => strsim::osa_distance(name, candidate),
        };
        (distance <= limit).then_some((distance, candidate))
    });
    // The first of several that are equally near.
    distances
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, candidate)| candidate)
}

/// One slip in a short name, one in three letters in a long one. Names of one or two letters are
/// near to everything, so only their case may differ.
fn limit(name: &str) -> usize {
    match name.len() {
        0..=2 => 0,
        3..=5 => 1,
        length => length / 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_near_and_other_words_are_not() {
        let names = ["printInt", "printReal", "count", "x"];
        let near = |name| nearest(name, names);
        assert_eq!(near("prinInt"), Some("printInt"));
        assert_eq!(near("pritnReal"), Some("printReal"));
        assert_eq!(near("PRINTINT"), Some("printInt"));
        assert_eq!(near("coutn"), Some("count"));
        assert_eq!(near("X"), Some("x"));
        assert_eq!(near("y"), None);
        assert_eq!(near("banana"), None);
    }

    #[test]
    fn files_are_named_too() {
        let names = ["hello.isf", "sieve.isf"];
        assert_eq!(nearest("helo.isf", names), Some("hello.isf"));
        assert_eq!(nearest("mandelbrot.isf", names), None);
    }
}

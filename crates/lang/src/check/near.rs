//! Near names: what the author of a misspelt word probably meant.

/// The candidate nearest to `name`, if one is near enough to be worth naming.
pub(super) fn nearest<'a>(
    name: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    let limit = limit(name);
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        if candidate == name {
            continue;
        }
        let found = if candidate.eq_ignore_ascii_case(name) {
            0
        } else if candidate.len().abs_diff(name.len()) > limit {
            continue;
        } else {
            distance(name.as_bytes(), candidate.as_bytes())
        };
        if found <= limit && best.is_none_or(|(distance, _)| found < distance) {
            best = Some((found, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
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

/// Edit distance with exchange of neighbours (optimal string alignment).
fn distance(a: &[u8], b: &[u8]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let changed = usize::from(a[i - 1] != b[j - 1]);
            row[j] = (above[j] + 1)
                .min(row[j - 1] + 1)
                .min(above[j - 1] + changed);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut above, row);
    }
    above[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_near_and_other_words_are_not() {
        let names = ["printInt", "printReal", "count", "x"];
        let near = |name| nearest(name, names.iter().copied());
        assert_eq!(near("prinInt"), Some("printInt"));
        assert_eq!(near("pritnReal"), Some("printReal"));
        assert_eq!(near("PRINTINT"), Some("printInt"));
        assert_eq!(near("coutn"), Some("count"));
        assert_eq!(near("X"), Some("x"));
        assert_eq!(near("y"), None);
        assert_eq!(near("banana"), None);
    }
}

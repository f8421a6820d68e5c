//! Lists of cores and nodes as Linux writes them.

/// Parses a list such as `0-3,8,10-11`, ascending. Parts that make no sense are left out, and so is
/// everything above 2^18: such a list is not one of cores or nodes.
pub fn parse_list(text: &str) -> Vec<usize> {
    const LARGEST: usize = 1 << 18;
    let mut numbers = Vec::new();
    for part in text.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| text.trim().parse::<usize>();
        let (Ok(first), Ok(last)) = (number(first), number(last)) else {
            continue;
        };
        if last <= LARGEST {
            numbers.extend(first..=last);
        }
    }
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

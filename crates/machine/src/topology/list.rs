//! Lists of numbers as Linux writes them: `0-3,8,16-22:2/4`.

use thiserror::Error;

/// Most numbers in a list. Linux itself stops at 8192 CPUs; this only bounds the memory.
const NUMBERS_MAX: u64 = 1 << 20;

/// A list that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{part}` is not a number or range; write lists like `0-3,8`")]
pub struct ListError {
    /// The faulty part.
    pub part: String,
}

/// Reads a list; the numbers are returned ascending, each once. The empty text is the empty list.
/// In `a-b:used/group` the first `used` numbers of each `group` count.
///
/// # Errors
/// The part that is neither a number nor a range.
///
/// ```
/// use hearth_machine::topology::parse_list;
/// assert_eq!(parse_list("0-2,7\n").unwrap(), [0, 1, 2, 7]);
/// assert_eq!(parse_list("0-7:1/4").unwrap(), [0, 4]);
/// ```
pub fn parse_list(text: &str) -> Result<Vec<u32>, ListError> {
    let mut numbers = Vec::new();
    let text = text.trim();
    if text.is_empty() {
        return Ok(numbers);
    }
    for part in text.split(',') {
        let range = range(part.trim()).ok_or_else(|| ListError {
            part: part.trim().to_owned(),
        })?;
        numbers.extend(range);
    }
    numbers.sort_unstable();
    numbers.dedup();
    Ok(numbers)
}

fn range(part: &str) -> Option<Vec<u32>> {
    let (range, stride) = match part.split_once(':') {
        None => (part, None),
        Some((range, stride)) => {
            let (used, group) = stride.split_once('/')?;
            (range, Some((number(used)?, number(group)?)))
        }
    };
    let (first, last) = match range.split_once('-') {
        None => (number(range)?, number(range)?),
        Some((first, last)) => (number(first)?, number(last)?),
    };
    let (used, group) = stride.unwrap_or((1, 1));
    if last < first || used == 0 || used > group || u64::from(last - first) >= NUMBERS_MAX {
        return None;
    }
    Some(
        (first..=last)
            .filter(|n| (n - first) % group < used)
            .collect(),
    )
}

fn number(text: &str) -> Option<u32> {
    // `parse` would accept a sign.
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

/// Writes a list with ranges, as Linux does; the inverse of [`parse_list`].
pub fn format_list(numbers: impl IntoIterator<Item = u32>) -> String {
    let mut numbers: Vec<u32> = numbers.into_iter().collect();
    numbers.sort_unstable();
    numbers.dedup();
    let mut parts = Vec::new();
    let mut rest = numbers.as_slice();
    while let Some((&first, _)) = rest.split_first() {
        let length = rest
            .iter()
            .zip(first..=u32::MAX)
            .take_while(|(a, b)| **a == *b)
            .count();
        let last = rest[length - 1];
        parts.push(if length == 1 {
            first.to_string()
        } else {
            format!("{first}-{last}")
        });
        rest = &rest[length..];
    }
    parts.join(",")
}

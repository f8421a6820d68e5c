//! The patch of what was found: the text with the words, and procedures, beside the text without.

use std::fmt::Write as _;
use std::ops::Range;

use hearth_driver::input::Source;
use hearth_lang::patch::Patched;

/// Unchanged lines around a change.
const CONTEXT: usize = 3;

/// The patch, to be applied in the folder from which `name` leads to the program. Before it a line
/// for each place of the new text, which tools that apply patches pass over. Empty without places.
pub(super) fn of(name: &str, source: &Source, patched: &Patched) -> String {
    let mut text = String::new();
    if patched.places.is_empty() {
        return text;
    }
    for place in &patched.places {
        let what = match &place.callee {
            Some(callee) => format!("`{callee}`"),
            None => "a loop".to_owned(),
        };
        let kind = if place.is_extracted {
            "extracted procedure, "
        } else {
            ""
        };
        let pattern = place.pattern.name();
        let _ = writeln!(
            text,
            "{}:{}: {what}: {kind}{pattern}",
            source.name, place.line
        );
    }
    let _ = write!(
        text,
        "\n--- {}\n+++ {}\n",
        quoted("a", name),
        quoted("b", name)
    );
    let old: Vec<&str> = source.text.split_inclusive('\n').collect();
    let new: Vec<&str> = patched.text.split_inclusive('\n').collect();
    for hunk in hunks(&changes(&old, &new), old.len()) {
        write_hunk(&mut text, &old, &new, &hunk);
    }
    text
}

/// Lines of the old text, and those that stand there in the new one.
#[derive(Clone)]
struct Change {
    old: Range<usize>,
    new: Range<usize>,
}

/// The fewest lines to be taken away and put in, by Myers' search for the shortest way through the
/// grid of both texts: what it reached after each step is kept, and followed back.
fn changes(old: &[&str], new: &[&str]) -> Vec<Change> {
    let (n, m) = (old.len() as isize, new.len() as isize);
    let middle = n + m + 1;
    let mut reach = vec![0isize; (2 * middle + 1) as usize];
    let mut trace: Vec<Vec<isize>> = Vec::new();
    'search: for steps in 0..=n + m {
        trace.push(reach.clone());
        for k in (-steps..=steps).step_by(2) {
            let at = (middle + k) as usize;
            let goes_down = k == -steps || (k != steps && reach[at - 1] < reach[at + 1]);
            let mut x = match goes_down {
                true => reach[at + 1],
                false => reach[at - 1] + 1,
            };
            while x < n && x - k < m && old[x as usize] == new[(x - k) as usize] {
                x += 1;
            }
            reach[at] = x;
            if x >= n && x - k >= m {
                break 'search;
            }
        }
    }
    let mut changes: Vec<Change> = Vec::new();
    let (mut x, mut y) = (n, m);
    for steps in (1..trace.len() as isize).rev() {
        let reach = &trace[steps as usize];
        let k = x - y;
        let at = (middle + k) as usize;
        let goes_down = k == -steps || (k != steps && reach[at - 1] < reach[at + 1]);
        let before = if goes_down { k + 1 } else { k - 1 };
        let from_x = reach[(middle + before) as usize];
        let from_y = from_x - before;
        // One line, then those that are alike.
        let (line, end) = match goes_down {
            true => ((from_x, from_y), (from_x, from_y + 1)),
            false => ((from_x, from_y), (from_x + 1, from_y)),
        };
        let old = line.0 as usize..end.0 as usize;
        let new = line.1 as usize..end.1 as usize;
        match changes.last_mut() {
            Some(last) if last.old.start == old.end && last.new.start == new.end => {
                last.old.start = old.start;
                last.new.start = new.start;
            }
            _ => changes.push(Change { old, new }),
        }
        (x, y) = (from_x, from_y);
    }
    changes.reverse();
    changes
}

/// Changes that share the lines around them.
fn hunks(changes: &[Change], count: usize) -> Vec<Vec<Change>> {
    let mut hunks: Vec<Vec<Change>> = Vec::new();
    for change in changes {
        let from = change.old.start.saturating_sub(CONTEXT);
        match hunks.last_mut() {
            Some(hunk)
                if hunk
                    .last()
                    .is_some_and(|last| (last.old.end + CONTEXT).min(count) >= from) =>
            {
                hunk.push(change.clone());
            }
            _ => hunks.push(vec![change.clone()]),
        }
    }
    hunks
}

fn write_hunk(text: &mut String, old: &[&str], new: &[&str], hunk: &[Change]) {
    let (Some(first), Some(last)) = (hunk.first(), hunk.last()) else {
        return;
    };
    let before = first.old.start.min(CONTEXT);
    let after = (old.len() - last.old.end).min(CONTEXT);
    let of_old = first.old.start - before..last.old.end + after;
    let of_new = first.new.start - before..last.new.end + after;
    // A range without lines is named by the line before it.
    let range = |lines: &Range<usize>| match lines.is_empty() {
        true => format!("{},0", lines.start),
        false => format!("{},{}", lines.start + 1, lines.len()),
    };
    let _ = writeln!(text, "@@ -{} +{} @@", range(&of_old), range(&of_new));
    let mut write = |sign: char, lines: &[&str]| {
        for line in lines {
            text.push(sign);
            text.push_str(line);
            if !line.ends_with('\n') {
                text.push_str("\n\\ No newline at end of file\n");
            }
        }
    };
    let mut at = of_old.start;
    for change in hunk {
        write(' ', &old[at..change.old.start]);
        write('-', &old[change.old.clone()]);
        write('+', &new[change.new.clone()]);
        at = change.old.end;
    }
    write(' ', &old[at..of_old.end]);
}

/// A name as git writes it in a patch.
fn quoted(side: &str, name: &str) -> String {
    let is_plain = |byte: u8| (b' '..=b'~').contains(&byte) && !matches!(byte, b'"' | b'\\');
    if name.bytes().all(is_plain) {
        // A blank would end the name.
        let end = if name.contains(' ') { "\t" } else { "" };
        return format!("{side}/{name}{end}");
    }
    let mut quoted = format!("\"{side}/");
    for byte in name.bytes() {
        match byte {
            b'\n' => quoted.push_str("\\n"),
            b'\t' => quoted.push_str("\\t"),
            b'"' | b'\\' => {
                quoted.push('\\');
                quoted.push(byte as char);
            }
            _ if is_plain(byte) => quoted.push(byte as char),
            _ => {
                let _ = write!(quoted, "\\{byte:03o}");
            }
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_lead_from_one_text_to_the_other() {
        let mut random = 12345u64;
        let mut next = |below: u64| {
            random = random
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (random >> 33) % below
        };
        for _ in 0..200 {
            let mut text = || -> Vec<&str> {
                let count = next(12);
                let lines = (0..count).map(|_| ["a\n", "b\n", "c\n"][next(3) as usize]);
                lines.collect()
            };
            let (old, new) = (text(), text());
            let mut made = Vec::new();
            let mut at = 0;
            for change in changes(&old, &new) {
                made.extend_from_slice(&old[at..change.old.start]);
                assert_eq!(made.len(), change.new.start);
                made.extend_from_slice(&new[change.new.clone()]);
                at = change.old.end;
            }
            made.extend_from_slice(&old[at..]);
            assert_eq!(made, new);
        }
    }

    #[test]
    fn names_are_written_as_git_does() {
        assert_eq!(quoted("a", "sort.isf"), "a/sort.isf");
        assert_eq!(quoted("b", "my sort.isf"), "b/my sort.isf\t");
        assert_eq!(
            quoted("a", "größe.isf"),
            "\"a/gr\\303\\266\\303\\237e.isf\""
        );
    }
}

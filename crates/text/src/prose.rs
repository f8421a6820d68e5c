//! Sentences and lines.

/// A text with a capital letter in front and a full stop at its end.
pub fn sentence(text: &str) -> String {
    let text = capitalised(text);
    match text.ends_with('.') {
        true => text,
        false => text + ".",
    }
}

/// A text with its first letter in upper case.
pub fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => String::new(),
    }
}

/// The words of a text in lines no longer than `width` letters, unless a word is longer. The first
/// line begins with `first`, the others with `next`; each ends with a newline.
pub fn wrapped(text: &str, width: usize, first: &str, next: &str) -> String {
    let mut lines = String::new();
    let mut line = first.to_owned();
    let mut letters = line.chars().count();
    let mut is_empty = true;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if !is_empty && letters + 1 + length > width {
            lines += &line;
            lines.push('\n');
            next.clone_into(&mut line);
            letters = line.chars().count();
        } else if !is_empty {
            line.push(' ');
            letters += 1;
        }
        line.push_str(word);
        letters += length;
        is_empty = false;
    }
    lines + &line + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_begin_large_and_end() {
        assert_eq!(sentence("it costs more"), "It costs more.");
        assert_eq!(sentence("Done."), "Done.");
        assert_eq!(capitalised(""), "");
    }

    #[test]
    fn lines_are_wrapped() {
        assert_eq!(wrapped("a bb ccc", 7, "- ", "  "), "- a bb\n  ccc\n");
        assert_eq!(wrapped("longest word", 3, "", ""), "longest\nword\n");
        assert_eq!(wrapped("", 3, "", ""), "\n");
    }
}

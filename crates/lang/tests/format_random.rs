//! The formatter on layouts and comments that nobody would write.

mod random;

use hearth_lang::format::format;
use hearth_testing::random::Random;
use random::{PROGRAM, WORDS};

/// Pieces of layout to put between two tokens.
const LAYOUT: &[&str] = &[
    " ",
    "  ",
    "\t",
    " /* c */ ",
    "/* c */",
    " // c\n",
    "\n",
    "\n\n\n",
    " /* c\nd */ ",
    ";",
    " ; ",
    "\n/* c */ ",
    "\n// c\n\n// d\n",
    "{",
    "}",
    "(",
    ")",
];

/// If the text is a program: its layout is final, and it has all the comments.
fn check(text: &str) -> bool {
    let Ok(once) = format(text) else {
        return false;
    };
    assert_eq!(format(&once).as_ref(), Ok(&once), "not stable:\n{text}");
    let count = |text: &str| text.matches(['c', 'd']).count();
    assert_eq!(
        count(&once),
        count(text),
        "a comment of\n{text}\nin\n{once}"
    );
    true
}

#[test]
fn strange_layouts() {
    let mut random = Random::new(11);
    let gaps: Vec<usize> = PROGRAM
        .char_indices()
        .filter(|&(_, character)| !character.is_alphanumeric())
        .map(|(at, _)| at)
        .collect();
    let mut programs = 0;
    for _ in 0..20_000 {
        let mut text = PROGRAM.to_owned();
        for _ in 0..=random.below(6) {
            let at = gaps[random.below(gaps.len())].min(text.len());
            text.insert_str(at, random.pick::<&str>(LAYOUT));
        }
        programs += usize::from(check(&text));
    }
    assert!(programs > 1000, "only {programs} were programs");
}

#[test]
fn damaged_programs() {
    let mut random = Random::new(12);
    let mut programs = 0;
    for _ in 0..20_000 {
        let mut text = PROGRAM.to_owned();
        for _ in 0..=random.below(3) {
            let from = random.below(text.len());
            let to = (from + random.below(12)).min(text.len());
            let with = *random.pick(WORDS);
            if text.is_char_boundary(from) && text.is_char_boundary(to) {
                text.replace_range(from..to, with);
            }
        }
        programs += usize::from(check(&text));
    }
    assert!(programs > 500, "only {programs} were programs");
}

#[test]
fn any_tokens() {
    let mut random = Random::new(13);
    let mut programs = 0;
    for _ in 0..40_000 {
        let mut text = String::new();
        for _ in 0..random.below(12) {
            text.push_str(random.pick::<&str>(WORDS));
            text.push(' ');
        }
        programs += usize::from(check(&text));
    }
    assert!(programs > 1000, "only {programs} were programs");
}

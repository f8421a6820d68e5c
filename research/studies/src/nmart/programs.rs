//! Real programs of one thread, light to heavy, with what they read.
//!
//! Only gawk of the source's four is packaged. In the place of each other stands a program of
//! Debian's that does the same kind of work with the same kind of blocks:
//!
//! | source | here | why |
//! |---|---|---|
//! | gawk, word counts | gawk, word counts | the same, with a script of ours and texts made here with as many words and lines |
//! | cfrac, factors by continued fractions | bc, the continued fraction of the same numbers' roots | the arithmetic that cfrac spends its time on, in numbers that are small blocks and short-lived |
//! | espresso, a logic minimiser | berkeley-abc, a logic minimiser | covers of as many inputs and outputs, as sums of products and as diagrams |
//! | p2c, Pascal to C | f2c, Fortran to C | a translator of its age from language to language, which keeps its tree to the end |

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use hearth_allocators::synthetic::Random;

use crate::StudyError;

/// A program with its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Its name, such as `gawk2`.
    pub id: String,
    /// The source's program that it stands for, with the set: `cfrac1`.
    pub stands_for: String,
    /// 1 to 3, light to heavy.
    pub set: u8,
    /// The executable.
    pub command: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
}

/// Command, package, and the program of the source that it stands for.
const PROGRAMS: [(&str, &str, &str); 4] = [
    ("gawk", "gawk", "gawk"),
    ("bc", "bc", "cfrac"),
    ("berkeley-abc", "berkeley-abc", "espresso"),
    ("f2c", "f2c", "p2c"),
];

/// Makes the inputs in a folder, and returns the installed programs; those that are not, in
/// sentences.
///
/// # Errors
/// A file cannot be written.
pub fn programs(folder: &Path) -> Result<(Vec<Program>, Vec<String>), StudyError> {
    let written = |error, path: &Path| StudyError::File {
        action: "write",
        file: path.to_owned(),
        error,
    };
    fs::create_dir_all(folder).map_err(|error| written(error, folder))?;
    let (mut programs, mut notes) = (Vec::new(), Vec::new());
    for (name, package, stands_for) in PROGRAMS {
        let Some(command) = on_path(name) else {
            notes.push(format!(
                "{name}, in the place of the source's {stands_for}, is not installed and left out; \
                 for example: apt-get install {package}"
            ));
            continue;
        };
        for set in 1..=3 {
            let (files, arguments) = inputs(name, set);
            for (file, text) in files {
                let path = folder.join(file);
                fs::write(&path, text).map_err(|error| written(error, &path))?;
            }
            programs.push(Program {
                id: format!("{name}{set}"),
                stands_for: format!("{stands_for}{set}"),
                set,
                command: command.clone(),
                arguments,
            });
        }
    }
    Ok((programs, notes))
}

/// Finds a command.
#[must_use]
pub fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let mut places = std::env::split_paths(&path).map(|folder| folder.join(name));
    places.find(|place| place.is_file())
}

/// Files and arguments.
type Inputs = (Vec<(String, String)>, Vec<String>);

fn inputs(name: &str, set: u8) -> Inputs {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    match name {
        "gawk" => {
            let text = format!("words{set}.txt");
            let arguments = words(&["-f", "wordfreq.awk", &text]);
            let files = vec![
                ("wordfreq.awk".to_owned(), WORDFREQ.to_owned()),
                (text, words_of(set)),
            ];
            (files, arguments)
        }
        "bc" => {
            let file = format!("root{set}.bc");
            let arguments = words(&["-q", &file]);
            (vec![(file, continued_fraction(set))], arguments)
        }
        "f2c" => {
            let file = format!("functions{set}.f");
            let arguments = words(&[&file]);
            (vec![(file, fortran(set))], arguments)
        }
        _ => {
            let file = format!("cover{set}.pla");
            let script = match set {
                1 => "sop; fx",
                _ => "collapse; sop; fx",
            };
            let script = format!("read_pla {file}; {script}; print_stats");
            (vec![(file, cover(set))], words(&["-q", &script]))
        }
    }
}

/// Counts words without regard to case, and prints them with their counts.
const WORDFREQ: &str = r#"{
    line = tolower($0)
    gsub(/[^a-z ]/, "", line)
    count = split(line, found, " ")
    for (at = 1; at <= count; at++)
        seen[found[at]]++
}
END {
    for (word in seen)
        printf "%s\t%d\n", word, seen[word]
}
"#;

/// A text of as many words and lines as the source's: prose first, then lists of words.
fn words_of(set: u8) -> String {
    let (count, lines, known): (u64, u64, u32) = match set {
        1 => (7_500, 629, 1_200),
        2 => (25_144, 25_144, 24_000),
        _ => (69_965, 69_964, 66_000),
    };
    let mut random = Random::new(u64::from(set));
    let mut text = String::new();
    for at in 0..count {
        // In prose few words make up most of it; in a list nearly every word is another.
        let word = match set {
            1 => (f64::from(known) * random.unit().powi(3)) as u32,
            _ => random.below(known as usize * 8) as u32,
        };
        spell(word, &mut text);
        let is_end = (at + 1) * lines / count > at * lines / count;
        text.push(if is_end { '\n' } else { ' ' });
    }
    text
}

/// A number as a word that could be said.
fn spell(number: u32, text: &mut String) {
    const SYLLABLES: [&str; 16] = [
        "ba", "ke", "lo", "ri", "san", "tu", "vem", "no", "der", "ist", "pa", "qui", "hom", "ga",
        "fe", "mur",
    ];
    let mut left = number + 16;
    while left > 0 {
        text.push_str(SYLLABLES[left as usize % SYLLABLES.len()]);
        left /= SYLLABLES.len() as u32;
    }
}

/// The source's three numbers, 24, 31 and 35 digits.
const NUMBERS: [&str; 3] = [
    "327905606740421458831903",
    "4175764634412486014593803028771",
    "41757646344123832613190542166099121",
];

/// The numerators of a root's convergents, modulo the number: what its factors are sought among.
fn continued_fraction(set: u8) -> String {
    let steps = [40, 150, 600][usize::from(set) - 1];
    format!(
        "n = {}\nr = sqrt(n)\nm = 0; d = 1; a = r; p = 1; q = r\nfor (i = 0; i < {steps}; i++) {{\n\
         m = d * a - m; d = (n - m * m) / d; a = (r + m) / d\nt = (a * q + p) % n; p = q; q = t\n}}\n\
         q\nd\n",
        NUMBERS[usize::from(set) - 1]
    )
}

/// A cover of as many inputs and outputs as the source's three.
fn cover(set: u8) -> String {
    let (inputs, outputs, terms) = [(7, 10, 60), (8, 8, 120), (16, 40, 300)][usize::from(set) - 1];
    let mut random = Random::new(100 + u64::from(set));
    let mut text = format!(".i {inputs}\n.o {outputs}\n");
    for _ in 0..terms {
        text.extend((0..inputs).map(|_| ['0', '1', '-'][random.below(3)]));
        text.push(' ');
        text.extend((0..outputs).map(|_| ['0', '0', '0', '1'][random.below(4)]));
        text.push('\n');
    }
    text + ".e\n"
}

/// Functions of as many lines as the source's three programs, or a function's more.
fn fortran(set: u8) -> String {
    let lines = [22, 359, 2_214][usize::from(set) - 1];
    let mut text = String::new();
    let (mut count, mut number) = (0, 0);
    while count < lines {
        let _ = write!(
            text,
            "      double precision function f{number}(n, x, y)\n      integer n, i\n\
             \x20     double precision x(n), y(n), s\n      s = 0.0d0\n"
        );
        count += 7;
        for label in 1..=5 {
            let _ = write!(
                text,
                "      do {label}0 i = 1, n\n      s = s + x(i)*y(i+{label}) - sqrt(abs(x(i)))/{label}.5d0\n\
                 \x20     if (s .gt. {number}.0d0) s = s - {label}.25d0\n {label}0   continue\n"
            );
            count += 4;
        }
        let _ = write!(text, "      f{number} = s\n      return\n      end\n");
        number += 1;
    }
    text
}

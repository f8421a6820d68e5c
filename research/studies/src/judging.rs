//! Claims, judged by rules. The same rules judge our measurements and a source's figures.
//!
//! Everything compared is a ratio of two figures. Two are *alike* if they differ by no more than
//! [`ALIKE`] and nothing speaks against it; one is *more* if the whole interval of the ratio is
//! above 1. The interval is the 95 % bootstrap interval of the ratio of medians; a published figure
//! has none. A claim's size is met within a factor of [`SIZE`].

/// An answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Yes.
    Yes,
    /// No.
    No,
    /// One half of the question yes, the other no.
    InPart,
    /// This machine or these data cannot decide it.
    CannotTell,
}

impl Answer {
    /// Its word, for people.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Answer::Yes => "yes",
            Answer::No => "no",
            Answer::InPart => "in part",
            Answer::CannotTell => "cannot be told here",
        }
    }
}

/// Ratios this near to 1 are alike.
pub const ALIKE: f64 = 0.1;
/// A ratio within this factor of the published one has its size.
pub const SIZE: f64 = 1.5;

/// The relation of two times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// The first is longer.
    More,
    /// Neither is noticeably more or less.
    Alike,
    /// The first is shorter.
    Less,
    /// The runs differ by more than the two do.
    Unclear,
}

impl Relation {
    /// Parses the word of the published tables.
    #[must_use]
    pub fn named(text: &str) -> Option<Relation> {
        match text {
            "more" => Some(Relation::More),
            "alike" => Some(Relation::Alike),
            "less" => Some(Relation::Less),
            _ => None,
        }
    }

    /// Judges a ratio with its interval.
    #[must_use]
    pub fn of(value: f64, low: f64, high: f64) -> Relation {
        let is_near = (1.0 - ALIKE..=1.0 + ALIKE).contains(&value);
        if is_near && low <= 1.0 + ALIKE && high >= 1.0 - ALIKE {
            Relation::Alike
        } else if low > 1.0 {
            Relation::More
        } else if high < 1.0 {
            Relation::Less
        } else {
            Relation::Unclear
        }
    }
}

/// A ratio.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    /// The relation of the two.
    pub relation: Relation,
    /// The ratio and its interval, unless there are words only.
    pub ratio: Option<(f64, f64, f64)>,
}

impl Figure {
    /// Creates a figure without an interval.
    #[must_use]
    pub fn exact(value: f64) -> Figure {
        Figure::between(value, value, value)
    }

    /// Creates a figure with an interval.
    #[must_use]
    pub fn between(value: f64, low: f64, high: f64) -> Figure {
        Figure {
            relation: Relation::of(value, low, high),
            ratio: Some((value, low, high)),
        }
    }

    /// Said and not measured.
    #[must_use]
    pub fn in_words(relation: Relation) -> Figure {
        Figure {
            relation,
            ratio: None,
        }
    }

    /// Compares the medians of runs, with the bootstrap interval of their ratio.
    #[must_use]
    pub fn of_runs(of: &[f64], to: &[f64]) -> Option<Figure> {
        let ratio = hearth_stats::ratio(of, to).filter(|ratio| ratio.low > 0.0)?;
        Some(Figure::between(ratio.value, ratio.low, ratio.high))
    }

    /// Puts it in words, for people.
    #[must_use]
    pub fn words(&self) -> String {
        match (self.ratio, self.relation) {
            (Some((value, low, high)), _) if low == high => digits(value),
            (Some((value, low, high)), _) => {
                format!("{} [{}, {}]", digits(value), digits(low), digits(high))
            }
            (None, Relation::More) => "more".into(),
            (None, Relation::Less) => "less".into(),
            (None, _) => "alike".into(),
        }
    }
}

fn digits(value: f64) -> String {
    if value < 9.95 {
        format!("{value:.2}")
    } else {
        format!("{value:.1}")
    }
}

/// A claim and its judgement.
#[derive(Clone, Debug, PartialEq)]
pub struct JudgedClaim {
    /// Its name in tables.
    pub id: &'static str,
    /// The claim in words.
    pub claim: &'static str,
    /// The source's figures, in words; nothing if the claim is ours.
    pub published: Option<&'static str>,
    /// The answer by the evidence.
    pub answer: Answer,
    /// The reasons, with figures.
    pub because: String,
    /// Other measurements that explain it, in sentences.
    pub explained: Vec<String>,
}

impl JudgedClaim {
    /// The answer in words.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self.answer {
            Answer::Yes => "confirmed",
            Answer::InPart => "confirmed in part",
            Answer::No => "refuted",
            Answer::CannotTell => "cannot be shown here",
        }
    }
}

/// True if a ratio is as large as the published one. Below 1 the saving counts.
pub(crate) fn has_size(value: f64, published: f64) -> bool {
    let (value, published) = match published < 1.0 {
        true => (1.0 - value, 1.0 - published),
        false => (value, published),
    };
    value <= published * SIZE && value >= published / SIZE
}

//! Claims as tables, and how they are judged.
//!
//! A study's claims are rows of a table in Markdown, `published/STUDY/claims.md`: what is claimed,
//! the relations that must hold for it, the size of the first ratio if the source gives one, and
//! the machine that is needed to decide it. The figures that relations speak of have names; a
//! source's findings name them in `findings.csv`, and a study's `verdict` computes the same names
//! from what was measured. So one rule judges both, and answers differ only because machines and
//! programs do.

use std::collections::BTreeMap;

use crate::judging::{Answer, Figure, JudgedClaim, Relation, has_size};

/// A study's claims.
#[derive(Debug)]
pub struct Claims {
    /// The table: `| id | claim | published | relations | size | needs |`, a rule, and a row for
    /// each.
    ///
    /// Relations are `name: relation`, with semicolons between; a relation is `more`, `alike`,
    /// `less` or several of them with `or` between. Needs are `4 cores` (without them nothing is
    /// decided), `8 cores to refute` or `10 threads to refute` (with fewer a claim that does not
    /// hold is not refuted), or `4 cores for its size`.
    pub table: &'static str,
    /// Tolerance between a ratio and the published one.
    pub size: Size,
}

/// Tolerance between a ratio and the published one.
#[derive(Clone, Copy, Debug)]
pub enum Size {
    /// Within a factor of [`crate::judging::SIZE`].
    Factor,
    /// A difference of at most this.
    Difference(f64),
}

/// A row of the table.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// Its name in tables.
    pub id: &'static str,
    /// The claim in words.
    pub claim: &'static str,
    /// The source's figures in words; nothing if the claim is ours.
    pub published: Option<&'static str>,
    /// The relations that must hold: a figure's name, and how its two sides may stand to each
    /// other.
    pub relations: Vec<(&'static str, Vec<Relation>)>,
    /// The published size of the first ratio.
    pub size: Option<f64>,
    /// The machine that it needs.
    pub need: Option<Need>,
}

/// A machine that is needed to decide a claim.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Need {
    count: usize,
    of: Resource,
    to: Purpose,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Resource {
    Cores,
    Threads,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Purpose {
    Tell,
    Refute,
    ShowItsSize,
}

impl Need {
    fn parse(text: &str) -> Option<Need> {
        let mut words = text.splitn(3, ' ');
        Some(Need {
            count: words.next()?.parse().ok()?,
            of: match words.next()? {
                "cores" => Resource::Cores,
                "threads" => Resource::Threads,
                _ => return None,
            },
            to: match words.next() {
                None => Purpose::Tell,
                Some("to refute") => Purpose::Refute,
                Some("for its size") => Purpose::ShowItsSize,
                Some(_) => return None,
            },
        })
    }
}

impl Claims {
    /// All rows. A row that cannot be understood is left out; a test holds that there is none.
    #[must_use]
    pub fn rows(&self) -> Vec<Claim> {
        self.table.lines().skip(2).filter_map(row).collect()
    }
}

fn row(line: &'static str) -> Option<Claim> {
    let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
    let [id, claim, published, relations, size, need] = cells[..] else {
        return None;
    };
    let relation = |text: &'static str| {
        let (name, wanted) = text.trim().split_once(": ")?;
        let wanted: Option<Vec<Relation>> = wanted.split(" or ").map(Relation::named).collect();
        Some((name, wanted?))
    };
    Some(Claim {
        id,
        claim,
        published: Some(published).filter(|text| !text.is_empty()),
        relations: relations.split(';').map(relation).collect::<Option<_>>()?,
        size: if size.is_empty() {
            None
        } else {
            Some(size.parse().ok()?)
        },
        need: if need.is_empty() {
            None
        } else {
            Some(Need::parse(need)?)
        },
    })
}

/// A source's finding.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Finding {
    /// The figure's name.
    pub name: &'static str,
    /// The value, or how the two stand to each other.
    pub figure: Figure,
    /// The place in the source that says so.
    pub place: &'static str,
}

/// The lines below the head of a table, cut at semicolons.
pub fn rows(table: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    table.lines().skip(1).map(|line| line.split(';').collect())
}

/// The findings in a table `figure;relation;value;place`. Values are exact; `figure` makes figures
/// of them.
pub fn findings(table: &'static str, figure: fn(f64) -> Figure) -> Vec<Finding> {
    let read = |line: &'static str| {
        // A place may have semicolons of its own.
        let [name, relation, value, place] = line.splitn(4, ';').collect::<Vec<_>>()[..] else {
            return None;
        };
        let figure = match value.parse() {
            Ok(value) => figure(value),
            Err(_) => Figure::in_words(Relation::named(relation)?),
        };
        Some(Finding {
            name,
            figure,
            place,
        })
    };
    table.lines().skip(1).filter_map(read).collect()
}

/// Figures by name, from which claims are judged.
#[derive(Clone, Debug)]
pub struct Evidence {
    claims: &'static Claims,
    figures: BTreeMap<String, Figure>,
    cores: usize,
    /// The threads of the runs that are judged, if claims speak of them.
    threads: Option<usize>,
    explained: BTreeMap<&'static str, Vec<String>>,
}

impl Evidence {
    /// Creates evidence with no figures, of a machine with `cores` cores.
    #[must_use]
    pub fn new(claims: &'static Claims, cores: usize) -> Evidence {
        Evidence {
            claims,
            figures: BTreeMap::new(),
            cores,
            threads: None,
            explained: BTreeMap::new(),
        }
    }

    /// Adds findings.
    #[must_use]
    pub fn with(mut self, findings: Vec<Finding>) -> Evidence {
        for finding in findings {
            self.put(finding.name, finding.figure);
        }
        self
    }

    /// Adds a figure.
    pub fn put(&mut self, name: &str, figure: impl Into<Option<Figure>>) {
        if let Some(figure) = figure.into() {
            self.figures.insert(name.to_owned(), figure);
        }
    }

    /// Adds the ratio of the medians of runs, if there are any.
    pub fn put_runs<'a>(
        &mut self,
        name: &str,
        of: impl Into<Option<&'a [f64]>>,
        to: impl Into<Option<&'a [f64]>>,
    ) {
        let sides = of.into().zip(to.into());
        self.put(name, sides.and_then(|(of, to)| Figure::of_runs(of, to)));
    }

    /// Says with how many threads the judged runs were made.
    pub fn set_threads(&mut self, threads: usize) {
        self.threads = Some(threads);
    }

    /// Adds sentences for each claim that say why it came out so.
    pub fn explain(&mut self, sentences: BTreeMap<&'static str, Vec<String>>) {
        self.explained = sentences;
    }

    /// A figure.
    #[must_use]
    pub fn figure(&self, name: &str) -> Option<&Figure> {
        self.figures.get(name)
    }

    /// The names of all figures.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.figures.keys().map(String::as_str)
    }

    /// Judges all claims.
    #[must_use]
    pub fn verdicts(&self) -> Vec<JudgedClaim> {
        self.claims
            .rows()
            .iter()
            .map(|claim| self.judge(claim))
            .collect()
    }

    fn judge(&self, claim: &Claim) -> JudgedClaim {
        let relations = claim.relations.iter();
        let known: Vec<(&str, &[Relation], &Figure)> = relations
            .filter_map(|(name, wanted)| Some((*name, wanted.as_slice(), self.figures.get(*name)?)))
            .collect();
        let mut because: Vec<String> = known
            .iter()
            .map(|(name, _, figure)| format!("{name} {}", figure.words()))
            .collect();
        let (answer, remark) = self.answer(claim, &known);
        let figures = because.join(", ");
        because = [figures, remark]
            .into_iter()
            .filter(|text| !text.is_empty())
            .collect();
        JudgedClaim {
            id: claim.id,
            claim: claim.claim,
            published: claim.published,
            answer,
            because: because.join("; "),
            explained: self.explained.get(claim.id).cloned().unwrap_or_default(),
        }
    }

    fn answer(&self, claim: &Claim, known: &[(&str, &[Relation], &Figure)]) -> (Answer, String) {
        let held = known
            .iter()
            .filter(|(_, wanted, figure)| wanted.contains(&figure.relation));
        let held = held.count();
        let is_unclear = known
            .iter()
            .any(|(.., figure)| figure.relation == Relation::Unclear);
        if known.is_empty() {
            return (Answer::CannotTell, "not measured".into());
        }
        let holds = held == known.len();
        let lacks = |to: Purpose| {
            claim
                .need
                .filter(|need| need.to == to)
                .and_then(|need| self.lacks(need))
        };
        if let Some(lack) = lacks(Purpose::Tell) {
            return (Answer::CannotTell, format!("{lack} are needed to tell"));
        }
        if !holds && let Some(lack) = lacks(Purpose::Refute) {
            return (
                Answer::CannotTell,
                format!("{lack} are needed to refute it"),
            );
        }
        match held {
            0 if is_unclear => {
                return (
                    Answer::CannotTell,
                    "the runs differ by more than that".into(),
                );
            }
            0 => return (Answer::No, String::new()),
            _ if !holds => return (Answer::InPart, String::new()),
            _ if held < claim.relations.len() => {
                return (Answer::InPart, "the rest was not measured".into());
            }
            _ => {}
        }
        let first = known.first().and_then(|(.., figure)| figure.ratio);
        let Some((size, (value, ..))) = claim.size.zip(first) else {
            return (Answer::Yes, String::new());
        };
        if let Some(lack) = lacks(Purpose::ShowItsSize) {
            return (Answer::InPart, format!("{lack} are needed for its size"));
        }
        let has_size = match self.claims.size {
            Size::Factor => has_size(value, size),
            Size::Difference(most) => (value - size).abs() <= most,
        };
        match has_size {
            true => (Answer::Yes, String::new()),
            false => (
                Answer::InPart,
                format!("the direction and not the size, {size}"),
            ),
        }
    }

    /// Says in words how much the machine has of a need that it does not meet; `None` if it meets
    /// it.
    fn lacks(&self, need: Need) -> Option<String> {
        let (have, what) = match need.of {
            Resource::Cores => (self.cores, "core"),
            Resource::Threads => (self.threads?, "thread"),
        };
        let s = if have == 1 { "" } else { "s" };
        (have < need.count).then(|| format!("with {have} {what}{s}, where {}", need.count))
    }
}

//! A placement as text: the parts of the machine with their components, and the dearest
//! connections.
//!
//! ```text
//! threads  load
//! node 0, 64 GiB · L3 32 MiB
//!  0,16    █████████████▍··  84 %  Worker: w1, w2, w3 and 37 more
//!  1,17    ████············  25 %  Server: server
//!  2-7     nothing
//! ```

use hearth_machine::topology::{Thread, format_list};
use hearth_text::counted;

use super::{Kind, Placement, Survey, Way, amount, cores, percent, rate};
use crate::parts::{self, Look, Part};

/// Longest line, however wide the terminal: long lines are hard to read.
const WIDTH_MAX: usize = 80;
/// Narrowest layout; narrower terminals break the lines.
const WIDTH_MIN: usize = 32;
/// Width from which connections are rows of a table; below it they take two lines each.
const WIDTH_OF_TABLES: usize = 64;
/// Number of connections listed, the dearest.
const DEAREST: usize = 10;
/// Widest name of threads that fits the column; longer ones have a line of their own.
const LABEL_MAX: usize = 14;

/// Width and character set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextLook {
    /// In characters; more than 80 counts as 80, less than 32 as 32.
    pub width: usize,
    /// Nothing but ASCII; other characters in names become question marks.
    pub is_ascii: bool,
}

impl Default for TextLook {
    fn default() -> Self {
        TextLook {
            width: WIDTH_MAX,
            is_ascii: false,
        }
    }
}

impl Placement<'_> {
    /// The placement as lines, each ended by a line break; none is wider than asked.
    pub fn text(&self, look: TextLook) -> String {
        let width = look.width.clamp(WIDTH_MIN, WIDTH_MAX);
        let mut writer = Writer {
            survey: Survey::of(self),
            look: TextLook { width, ..look },
            text: String::new(),
            label: 0,
            lines_each: 1,
        };
        writer.all();
        writer.text
    }
}

struct Writer<'a> {
    survey: Survey<'a>,
    look: TextLook,
    text: String,
    /// The width of the column that names threads.
    label: usize,
    /// Lines that the components of a thread may take.
    lines_each: usize,
}

impl Writer<'_> {
    fn all(&mut self) {
        let machine = self.survey.placement.machine;
        let roots = parts::tree(machine, false);
        self.paragraph(&self.survey.placement.title.clone());
        self.line("");
        self.label = roots
            .iter()
            .map(|root| self.label_width(root, 0))
            .max()
            .unwrap_or(0);
        self.label = self.label.clamp(7, LABEL_MAX);
        let used = machine
            .cores()
            .iter()
            .filter(|core| self.is_used(&core.threads));
        self.lines_each = match used.count() {
            0..=8 => 4,
            9..=32 => 2,
            _ => 1,
        };
        let head = format!("{:<label$}  load", "threads", label = self.label);
        self.line(&head);
        for root in &roots {
            self.part(root, 0);
        }
        let nowhere = self.survey.nowhere.clone();
        if !nowhere.is_empty() {
            self.hanging("no place  ", 2, &nowhere, 4);
        }
        self.ways();
        self.dearest();
        for remark in self.survey.placement.remarks.clone() {
            self.line("");
            self.paragraph(&remark);
        }
    }

    /// Width of the widest name of a core in use.
    fn label_width(&self, part: &Part, depth: usize) -> usize {
        if part.parts.is_empty() {
            let is_used = self.is_used(&part.threads);
            let width = depth + self.numbers(&part.threads).len();
            return if is_used && width <= LABEL_MAX {
                width
            } else {
                0
            };
        }
        let inner = part
            .parts
            .iter()
            .map(|inner| self.label_width(inner, depth + 1));
        inner.max().unwrap_or(0)
    }

    fn is_used(&self, threads: &[Thread]) -> bool {
        self.survey.on(threads).next().is_some()
    }

    /// Threads by the operating system's numbers.
    fn numbers(&self, threads: &[Thread]) -> String {
        let machine = self.survey.placement.machine;
        format_list(threads.iter().map(|&thread| machine.os_thread(thread).0))
    }

    /// Writes a part with its contents. Neighbours without components share a line.
    fn part(&mut self, part: &Part, depth: usize) {
        let blanks = " ".repeat(depth);
        if part.look == Look::Core && part.parts.is_empty() {
            self.core(&part.threads, depth);
            return;
        }
        let names: Vec<&str> = part
            .names
            .iter()
            .chain(&part.bars)
            .map(String::as_str)
            .collect();
        let name = names.join(if self.look.is_ascii { " - " } else { " · " });
        if !self.is_used(&part.threads) {
            let numbers = self.numbers(&part.threads);
            let numbers = numbers.replace(',', ", ");
            self.wrapped(&format!("{blanks}{name}: nothing on {numbers}"), depth + 2);
            return;
        }
        self.wrapped(&format!("{blanks}{name}"), depth + 2);
        let mut idle: Vec<Thread> = Vec::new();
        for inner in &part.parts {
            let is_idle_core = inner.parts.is_empty() && !self.is_used(&inner.threads);
            if is_idle_core {
                idle.extend(&inner.threads);
                continue;
            }
            self.idle(&mut idle, depth + 1);
            self.part(inner, depth + 1);
        }
        self.idle(&mut idle, depth + 1);
    }

    fn idle(&mut self, threads: &mut Vec<Thread>, depth: usize) {
        if threads.is_empty() {
            return;
        }
        threads.sort_unstable();
        let numbers = self.numbers(threads);
        let short = depth + letters(&numbers) + 9 <= self.look.width;
        let label = if short {
            let label = self.label;
            let name = format!("{}{numbers}", " ".repeat(depth));
            format!("{name:<label$}  ")
        } else {
            self.labelled(&numbers, depth)
        };
        self.line(&format!("{label}nothing"));
        threads.clear();
    }

    /// Writes a core: its load and its components, by thread if there are several.
    fn core(&mut self, threads: &[Thread], depth: usize) {
        if !self.is_used(threads) {
            self.idle(&mut threads.to_vec(), depth);
            return;
        }
        let numbers = self.numbers(threads);
        let label = self.labelled(&numbers, depth);
        let load = self.survey.load(threads);
        let first = format!("{label}{} {:>5}  ", self.bar(load), percent(load, 1.0));
        let used: Vec<Thread> = threads
            .iter()
            .copied()
            .filter(|&thread| self.is_used(&[thread]))
            .collect();
        if let [thread] = used[..] {
            let lines = self.lines_each;
            self.hanging(
                &first,
                depth + 2,
                &self.survey.on[thread.index()].clone(),
                lines,
            );
            return;
        }
        self.line(first.trim_end());
        for thread in used {
            let numbers = self.numbers(&[thread]);
            let label = self.labelled(&numbers, depth + 1);
            let load = percent(self.survey.load(&[thread]), 1.0);
            let blanks = " ".repeat(self.bar_width());
            let first = format!("{label}{blanks} {load:>5}  ");
            let lines = self.lines_each;
            self.hanging(
                &first,
                depth + 3,
                &self.survey.on[thread.index()].clone(),
                lines,
            );
        }
    }

    /// The name of threads, padded to the next column. One that does not fit is written on its own
    /// lines before.
    fn labelled(&mut self, numbers: &str, depth: usize) -> String {
        let label = self.label;
        let mut name = format!("{}{numbers}", " ".repeat(depth));
        if letters(&name) > label {
            // A list has no blanks at which it could be broken.
            self.wrapped(&name.replace(',', ", "), depth + 1);
            name.clear();
        }
        format!("{name:<label$}  ")
    }

    fn bar_width(&self) -> usize {
        match self.look.width {
            0..=39 => 6,
            40..=63 => 10,
            _ => 16,
        }
    }

    /// A load, or another share, as a bar.
    fn bar(&self, share: f64) -> String {
        let width = self.bar_width();
        let eighths = (amount(share).min(1.0) * width as f64 * 8.0).round() as usize;
        let eighths = if share > 0.0 { eighths.max(1) } else { eighths };
        let (full, rest) = (eighths / 8, eighths % 8);
        let mut bar = "█".repeat(full);
        if rest > 0 {
            bar.push(['▏', '▎', '▍', '▌', '▋', '▊', '▉'][rest - 1]);
        }
        let empty = width - full - usize::from(rest > 0);
        bar + &"·".repeat(empty)
    }

    /// Components by type, with as many names as fit the lines of that width.
    fn members(&self, components: &[usize], width: usize, lines: usize) -> String {
        let kinds = self.survey.kinds(components.iter().copied());
        let fits = |text: &str| folded(text, width).len() <= lines;
        let all = kinds.iter().map(|kind| kind.names.len()).max().unwrap_or(0);
        // Nothing can be wider than the available room.
        let most = all.min(width * lines / 3);
        let named = (1..=most)
            .rev()
            .chain([0])
            .map(|count| listed(&kinds, count, kinds.len()));
        let fewer_kinds = (1..kinds.len()).rev().map(|count| listed(&kinds, 0, count));
        let mut last = String::new();
        for text in named.chain(fewer_kinds) {
            if fits(&text) {
                return text;
            }
            last = text;
        }
        last
    }

    /// Writes the cost of messages by the ways they go.
    fn ways(&mut self) {
        let total = self.survey.cost;
        if self.survey.connections.is_empty() {
            return;
        }
        self.line("");
        self.paragraph(&format!("Messages cost {}.", cores(total)));
        let ways = Way::ALL.map(Some).into_iter().chain([None]);
        for way in ways {
            let here = self.survey.connections.iter().filter(|(_, of)| *of == way);
            let here: Vec<_> = here.map(|(connection, _)| connection).collect();
            if here.is_empty() {
                continue;
            }
            let cost: f64 = here.iter().map(|one| amount(one.cost_ns_per_s)).sum();
            let name = way.map_or("no place", Way::name);
            let bar = self.bar(if total > 0.0 { cost / total } else { 0.0 });
            let mut line = format!("{name:<16}  {bar} {:>5}", percent(cost, total));
            let messages = here.iter().map(|one| amount(one.messages_per_s)).sum();
            let count = connections(here.len());
            let more = format!("  {count}, {} messages/s", rate(messages));
            if letters(&line) + letters(&more) <= self.look.width {
                line.push_str(&more);
            }
            self.line(&line);
        }
    }

    fn dearest(&mut self) {
        let survey = &self.survey;
        let dear = |(connection, _): &&(_, _)| {
            let connection: &super::Connection = connection;
            amount(connection.cost_ns_per_s) > 0.0
        };
        let told: Vec<_> = survey
            .connections
            .iter()
            .filter(dear)
            .take(DEAREST)
            .copied()
            .collect();
        if told.is_empty() {
            return;
        }
        let place = |index: usize| {
            let machine = survey.placement.machine;
            let thread = survey.component(index).thread;
            let thread = thread.filter(|thread| thread.index() < machine.threads().len());
            thread.map_or("?".to_owned(), |thread| {
                machine.os_thread(thread).0.to_string()
            })
        };
        let rows: Vec<[String; 5]> = told
            .iter()
            .map(|(one, way)| {
                let names = [one.from, one.to].map(|end| survey.component(end).name.as_str());
                [
                    names.join(" → "),
                    format!("{} → {}", place(one.from), place(one.to)),
                    way.map_or("no place", Way::name).to_owned(),
                    rate(one.messages_per_s),
                    percent(one.cost_ns_per_s, survey.cost),
                ]
            })
            .collect();
        let others = survey.connections.len() - told.len();
        let rest = told
            .iter()
            .map(|(one, _)| amount(one.cost_ns_per_s))
            .sum::<f64>();
        let rest = percent(survey.cost - rest, survey.cost);
        self.line("");
        if self.look.width < WIDTH_OF_TABLES {
            self.paragraph("The dearest connections");
            for [who, threads, way, messages, cost] in rows {
                self.wrapped(&who, 2);
                self.wrapped(&format!("  {cost}, {messages}/s, {threads}, {way}"), 4);
            }
        } else {
            self.table(rows);
        }
        if others > 0 {
            self.paragraph(&format!(
                "and {}: {rest} of the cost",
                counted(others, "other")
            ));
        }
    }

    fn table(&mut self, rows: Vec<[String; 5]>) {
        let head = [
            "dearest connections",
            "threads",
            "where",
            "messages/s",
            "cost",
        ];
        let rows: Vec<_> = [head.map(str::to_owned)].into_iter().chain(rows).collect();
        let width = |column: usize| {
            rows.iter()
                .map(|row| letters(&row[column]))
                .max()
                .unwrap_or(0)
        };
        let widths = [1, 2, 3, 4].map(width);
        // Two blanks before each of the four columns.
        let first = self
            .look
            .width
            .saturating_sub(widths.iter().sum::<usize>() + 8);
        let first = first.min(width(0));
        for [who, threads, way, messages, cost] in &rows {
            let who = self.shortened(who, first);
            let [a, b, c, d] = widths;
            self.line(&format!(
                "{who:<first$}  {threads:<a$}  {way:<b$}  {messages:>c$}  {cost:>d$}"
            ));
        }
    }

    /// Shortens a text to a length by leaving out its middle, since the ends tell more.
    fn shortened(&self, text: &str, width: usize) -> String {
        let count = letters(text);
        if count <= width {
            return text.to_owned();
        }
        let gap = if self.look.is_ascii { "..." } else { "…" };
        let kept = width.saturating_sub(letters(gap));
        let (before, after) = (kept.div_ceil(2), kept / 2);
        let start: String = text.chars().take(before).collect();
        let end: String = text.chars().skip(count - after).collect();
        format!("{start}{gap}{end}")
    }

    /// Writes a beginning and components behind it, indented to the end of the beginning if there
    /// is room, otherwise on lines of their own.
    fn hanging(&mut self, first: &str, indent: usize, components: &[usize], lines: usize) {
        let width = self.look.width;
        let begins = letters(first);
        let (at, width) = if begins + 30 <= width {
            (begins, width - begins)
        } else {
            (indent, width - indent)
        };
        let lines = folded(&self.members(components, width, lines), width);
        let blanks = " ".repeat(at);
        let mut text = if at == begins {
            String::from(first)
        } else {
            format!("{}\n{blanks}", first.trim_end())
        };
        text.push_str(&lines.join(&format!("\n{blanks}")));
        self.line(&text);
    }

    fn paragraph(&mut self, text: &str) {
        self.wrapped(text, 0);
    }

    /// Writes a text in as many lines as it needs, all but the first indented.
    fn wrapped(&mut self, text: &str, indent: usize) {
        let first = text.len() - text.trim_start().len();
        let width = self.look.width.saturating_sub(indent.max(first)).max(1);
        let lines = folded(text.trim_start(), width);
        let gap = format!("\n{}", " ".repeat(indent));
        self.line(&format!("{}{}", &text[..first], lines.join(&gap)));
    }

    /// Writes lines. Drops control characters, which could command the terminal.
    fn line(&mut self, text: &str) {
        let is_ascii = self.look.is_ascii;
        for line in text.split('\n') {
            for letter in line.trim_end().chars() {
                match letter {
                    letter if letter.is_control() => self.text.push('?'),
                    letter if letter.is_ascii() || !is_ascii => self.text.push(letter),
                    letter => self.text.push(plain(letter)),
                }
            }
            self.text.push('\n');
        }
    }
}

/// Replacement of a character in ASCII: a single one, since lines were measured before.
fn plain(letter: char) -> char {
    match letter {
        '█' | '▉' | '▊' | '▋' | '▌' => '#',
        '▏' | '▎' | '▍' | '·' => '.',
        '→' => '>',
        _ => '?',
    }
}

fn letters(text: &str) -> usize {
    text.chars().count()
}

fn connections(count: usize) -> String {
    counted(count, "connection")
}

/// Splits the words of a text into lines of a width; a word that is wider is broken.
fn folded(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut room = 0;
    for word in text.split_whitespace() {
        let letters: Vec<char> = word.chars().collect();
        if let Some(line) = lines.last_mut()
            && letters.len() < room
        {
            line.push(' ');
            line.extend(&letters);
            room -= letters.len() + 1;
            continue;
        }
        for piece in letters.chunks(width.max(1)) {
            lines.push(piece.iter().collect());
            room = width.saturating_sub(piece.len());
        }
    }
    lines
}

/// The first kinds, each with at most this many names: `Worker: w1, w2 and 37 more`.
fn listed(kinds: &[Kind], names: usize, count: usize) -> String {
    let told = kinds
        .iter()
        .take(count)
        .map(|kind| kind_listed(kind, names));
    let mut text = told.collect::<Vec<_>>().join("; ");
    let others: usize = kinds.iter().skip(count).map(|kind| kind.names.len()).sum();
    if others > 0 {
        let types = counted(kinds.len() - count, "other type");
        text.push_str(&format!("; {others} of {types}"));
    }
    text
}

fn kind_listed(kind: &Kind, names: usize) -> String {
    let all = kind.names.len();
    let what = kind.type_name;
    if all == 1 && kind.names[0] == what {
        return what.to_owned();
    }
    if names == 0 {
        let what = if what.is_empty() {
            "without a type"
        } else {
            what
        };
        return format!("{all} {what}");
    }
    let told = kind.names[..names.min(all)].join(", ");
    let more = match all.saturating_sub(names) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    if what.is_empty() {
        format!("{told}{more}")
    } else {
        format!("{what}: {told}{more}")
    }
}

//! From items to text: which groups are broken, and where lines end.

use super::items::Item;

/// Largest width of a line, in characters.
const WIDTH: usize = 100;

/// Indentation of each level, in characters.
const STEP: usize = 4;

pub(super) fn render(items: &[Item<'_>]) -> String {
    let forced = forced_breaks(items);
    let mut renderer = Renderer {
        items,
        out: String::new(),
        column: 0,
        indent: 0,
        gap: Gap::None,
        broken: Vec::new(),
    };
    for (at, &item) in items.iter().enumerate() {
        renderer.item(at, item, forced[at]);
    }
    if !renderer.out.is_empty() {
        renderer.out.push('\n');
    }
    renderer.out
}

/// The groups that hold a line break between two of their texts. Indexed by item.
fn forced_breaks(items: &[Item<'_>]) -> Vec<bool> {
    let mut forced = vec![false; items.len()];
    let mut open: Vec<usize> = Vec::new();
    // How many of the open groups were open at the last line break not yet followed by text.
    let mut pending = 0;
    for (at, item) in items.iter().enumerate() {
        match item {
            Item::Open(force) => {
                forced[at] = *force;
                open.push(at);
            }
            Item::Close => {
                open.pop();
                pending = pending.min(open.len());
            }
            Item::Break | Item::Blank | Item::Tight => pending = open.len(),
            Item::Text(_) | Item::LineComment(_) => {
                for &group in &open[..pending] {
                    forced[group] = true;
                }
                pending = 0;
            }
            _ => {}
        }
    }
    forced
}

/// The gap between the last text and the next.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Gap {
    None,
    Space,
    Break,
    Blank,
}

struct Renderer<'a> {
    items: &'a [Item<'a>],
    out: String,
    /// Characters on the current line.
    column: usize,
    indent: usize,
    gap: Gap,
    /// Whether each open group is broken.
    broken: Vec<bool>,
}

impl Renderer<'_> {
    fn item(&mut self, at: usize, item: Item<'_>, forced: bool) {
        match item {
            Item::Text(text) => self.text(text),
            Item::LineComment(text) => self.text(text),
            Item::Space => self.ask(Gap::Space),
            Item::Break => self.ask(Gap::Break),
            Item::Blank => self.ask(Gap::Blank),
            Item::Tight => self.gap = Gap::Break,
            Item::Line if self.in_broken() => self.ask(Gap::Break),
            Item::Line => self.ask(Gap::Space),
            Item::Soft if self.in_broken() => self.ask(Gap::Break),
            Item::Soft => {}
            Item::Fill if self.fits(at + 1, 1) => self.ask(Gap::Space),
            Item::Fill => self.ask(Gap::Break),
            Item::Open(_) => {
                let broken = forced || !self.fits(at + 1, 0);
                self.broken.push(broken);
            }
            Item::Close => {
                self.broken.pop();
            }
            Item::Indent => self.indent += STEP,
            Item::Dedent => self.indent -= STEP,
        }
    }

    fn in_broken(&self) -> bool {
        self.broken.last().copied().unwrap_or(true)
    }

    fn ask(&mut self, gap: Gap) {
        self.gap = self.gap.max(gap);
    }

    fn text(&mut self, text: &str) {
        match self.gap {
            Gap::None => {}
            _ if self.out.is_empty() => {}
            Gap::Space => {
                self.out.push(' ');
                self.column += 1;
            }
            Gap::Break | Gap::Blank => {
                self.out.push('\n');
                if self.gap == Gap::Blank {
                    self.out.push('\n');
                }
                self.out.extend(std::iter::repeat_n(' ', self.indent));
                self.column = self.indent;
            }
        }
        self.gap = Gap::None;
        self.append(text);
    }

    /// A block comment may have several lines; they stay as they are.
    fn append(&mut self, text: &str) {
        match text.rfind(['\n', '\r']) {
            None => {
                self.out.push_str(text);
                self.column += text.chars().count();
            }
            Some(last) => {
                self.out
                    .push_str(&text.replace("\r\n", "\n").replace('\r', "\n"));
                self.column = text[last + 1..].chars().count();
            }
        }
    }

    /// Whether what follows fits on the line: up to the next chance to break it outside the
    /// group that is open here or, in that group, at a `Fill`.
    fn fits(&self, from: usize, extra: usize) -> bool {
        let mut left = match self.gap {
            Gap::Break | Gap::Blank => WIDTH.saturating_sub(self.indent),
            Gap::Space => WIDTH.saturating_sub(self.column + 1),
            Gap::None => WIDTH.saturating_sub(self.column),
        };
        if extra > left {
            return false;
        }
        left -= extra;
        // A group is measured from inside, a `Fill` from the level where it stands.
        let mut depth = usize::from(extra == 0);
        let mut closed = false;
        let mut indents = 0i32;
        for item in &self.items[from..] {
            let width = match item {
                Item::Text(text) => text.lines().next().map_or(0, |line| line.chars().count()),
                Item::Break | Item::Blank | Item::Tight | Item::LineComment(_) => return true,
                Item::Fill | Item::Line | Item::Soft if depth == 0 => return true,
                Item::Open(force) if depth == 0 && (closed || *force) => return true,
                Item::Space | Item::Line | Item::Fill => 1,
                Item::Open(_) => {
                    depth += 1;
                    0
                }
                Item::Close => {
                    closed = true;
                    depth = depth.saturating_sub(1);
                    0
                }
                Item::Indent if depth == 0 => {
                    indents += 1;
                    0
                }
                // The end of the chain of operators that the `Fill` belongs to.
                Item::Dedent if depth == 0 => {
                    closed |= indents == 0;
                    indents -= 1;
                    0
                }
                Item::Soft | Item::Indent | Item::Dedent => 0,
            };
            if width > left {
                return false;
            }
            left -= width;
        }
        true
    }
}

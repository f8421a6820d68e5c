//! Many equal cells in blocks, each coloured by its kind and filled by its fill level: memory.
//!
//! The size of the drawing is bounded. Few blocks become rows, in which each cell is visible; more
//! become squares; of very many, several share one square, which shows only the share of each kind.

use crate::style::SERIES;
use crate::svg::{Anchor, Canvas, Path, Picture, text_width};

/// Most blocks drawn as rows, and as squares. Beyond, several share one.
const ROWS_MAX: usize = 48;
const SQUARES_MAX: usize = 240;
/// Most shared squares, in all groups.
const SHARED_MAX: usize = 1600;
const WIDTH: f64 = 900.0;
const FONT: f64 = 12.0;
const GAP: f64 = 4.0;

/// Appearance of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Look {
    /// Coloured like the series of a chart with that number.
    Series(usize),
    /// Present and empty.
    Pale,
    /// Absent.
    Nothing,
}

impl Look {
    fn classes(self) -> (String, String) {
        match self {
            Look::Series(number) => {
                let number = number % SERIES;
                (format!("s{number} band"), format!("s{number} bar"))
            }
            Look::Pale => ("pale".into(), "pale".into()),
            Look::Nothing => ("none".into(), "none".into()),
        }
    }
}

/// A cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cell {
    /// Its appearance.
    pub look: Look,
    /// Fill level, from 0 to 1.
    pub fill: f64,
}

/// Cells that belong together.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// Its name, for a reader who points at it.
    pub name: String,
    /// In order.
    pub cells: Vec<Cell>,
}

/// Blocks that belong together.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Its heading.
    pub name: String,
    /// In order.
    pub blocks: Vec<Block>,
}

/// Names of blocks and cells: `arena`, `arenas`, `chunk`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Names {
    /// One block.
    pub block: String,
    /// Several.
    pub blocks: String,
    /// One cell.
    pub cell: String,
}

/// Data of the picture.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tiles {
    /// Its title.
    pub title: String,
    /// Lines below the title.
    pub lead: Vec<String>,
    /// Meaning of the appearances.
    pub legend: Vec<(Look, String)>,
    /// Groups from top to bottom.
    pub groups: Vec<Group>,
    /// Names of blocks and cells.
    pub names: Names,
}

/// Form of blocks in the drawing.
#[derive(Clone, Copy)]
enum Form {
    Rows,
    Squares,
    /// This many in one square.
    Shared(usize),
}

impl Form {
    fn of(blocks: usize) -> Form {
        if blocks <= ROWS_MAX {
            Form::Rows
        } else if blocks <= SQUARES_MAX {
            Form::Squares
        } else {
            Form::Shared(blocks.div_ceil(SHARED_MAX))
        }
    }
}

impl Tiles {
    /// Draws the blocks.
    pub fn draw(&self) -> Picture {
        let mut canvas = Canvas::default();
        canvas.text("title", (4.0, 18.0), Anchor::Start, &self.title);
        let mut y = 24.0;
        let blocks: usize = self.groups.iter().map(|group| group.blocks.len()).sum();
        let form = Form::of(blocks);
        for line in self.lead.iter().chain([&self.explain(form)]) {
            y += 16.0;
            canvas.text("faint", (4.0, y), Anchor::Start, line);
        }
        y = self.draw_legend(&mut canvas, y + 12.0);
        for group in &self.groups {
            y += 24.0;
            canvas.text("bold", (4.0, y), Anchor::Start, &group.name);
            y += 8.0;
            y = match form {
                Form::Rows => draw_rows(&mut canvas, group, y),
                Form::Squares => draw_squares(&mut canvas, group, y),
                Form::Shared(count) => draw_shared(&mut canvas, group, count, y),
            };
        }
        Picture::new(&self.title, WIDTH + 8.0, y + 10.0, canvas)
    }

    /// Meaning of a shape.
    fn explain(&self, form: Form) -> String {
        let Names {
            block,
            blocks,
            cell,
        } = &self.names;
        match form {
            Form::Rows => format!("Each row is one {block}, each cell of it one {cell}."),
            Form::Squares => {
                format!("Each square is one {block}, each cell of it one {cell}, in rows.")
            }
            Form::Shared(1) => format!("Each square is one {block}: how much of it is what."),
            Form::Shared(count) => {
                format!("Each square is {count} {blocks}: how much of them is what.")
            }
        }
    }

    fn draw_legend(&self, canvas: &mut Canvas, y: f64) -> f64 {
        let (mut x, mut y) = (4.0, y);
        for (look, name) in &self.legend {
            let wide = 20.0 + text_width(name, FONT) + 14.0;
            if x + wide > WIDTH && x > 4.0 {
                (x, y) = (4.0, y + 18.0);
            }
            canvas.rect(&look.classes().1, (x, y), (14.0, 12.0), "");
            canvas.text("", (x + 20.0, y + 10.0), Anchor::Start, name);
            x += wide;
        }
        y + 14.0
    }
}

fn rectangle(path: &mut Path, at: (f64, f64), size: (f64, f64)) {
    path.move_to(at);
    path.line_to((at.0 + size.0, at.1));
    path.line_to((at.0 + size.0, at.1 + size.1));
    path.line_to((at.0, at.1 + size.1));
    path.close();
}

fn fill(cell: &Cell) -> f64 {
    if cell.fill.is_finite() {
        cell.fill.clamp(0.0, 1.0)
    } else {
        0.0
    }
}

/// Shapes by class, so that each class is one element.
#[derive(Default)]
struct Shapes(Vec<(String, Path)>);

impl Shapes {
    fn add(&mut self, class: String, at: (f64, f64), size: (f64, f64)) {
        if size.0 <= 0.0 || size.1 <= 0.0 {
            return;
        }
        let place = self.0.iter().position(|(known, _)| *known == class);
        let place = place.unwrap_or_else(|| {
            self.0.push((class, Path::default()));
            self.0.len() - 1
        });
        rectangle(&mut self.0[place].1, at, size);
    }

    /// Draws a cell: all of it faintly, and the filled part from below.
    fn cell(&mut self, cell: &Cell, at: (f64, f64), size: (f64, f64)) {
        let (faint, full) = cell.look.classes();
        self.add(faint, at, size);
        if matches!(cell.look, Look::Series(_)) {
            let high = size.1 * fill(cell);
            self.add(full, (at.0, at.1 + size.1 - high), (size.0, high));
        }
    }

    fn draw(&self, canvas: &mut Canvas) {
        for (class, path) in &self.0 {
            canvas.path(class, path);
        }
    }
}

fn draw_rows(canvas: &mut Canvas, group: &Group, y: f64) -> f64 {
    let longest = group.blocks.iter().map(|block| block.cells.len());
    let wide = (WIDTH / longest.max().unwrap_or(1).max(1) as f64).min(20.0);
    let mut y = y;
    for block in &group.blocks {
        let mut shapes = Shapes::default();
        for (nth, cell) in block.cells.iter().enumerate() {
            let at = (4.0 + wide * nth as f64, y);
            shapes.cell(cell, at, (wide - 1.0, 14.0));
        }
        shapes.draw(canvas);
        let size = (wide * block.cells.len() as f64, 14.0);
        canvas.rect("hit", (4.0, y), size, &block.name);
        y += 14.0 + GAP;
    }
    y
}

fn draw_squares(canvas: &mut Canvas, group: &Group, y: f64) -> f64 {
    let most = group.blocks.iter().map(|block| block.cells.len()).max();
    let side = (most.unwrap_or(1).max(1) as f64).sqrt().ceil() as usize;
    let cell_side = (40.0 / side as f64).max(1.0);
    let square = cell_side * side as f64;
    let columns = ((WIDTH / (square + GAP)) as usize).max(1);
    for (nth, block) in group.blocks.iter().enumerate() {
        let at = (
            4.0 + (square + GAP) * (nth % columns) as f64,
            y + (square + GAP) * (nth / columns) as f64,
        );
        let mut shapes = Shapes::default();
        for (nth, cell) in block.cells.iter().enumerate() {
            let place = (
                at.0 + cell_side * (nth % side) as f64,
                at.1 + cell_side * (nth / side) as f64,
            );
            shapes.cell(cell, place, (cell_side - 0.5, cell_side - 0.5));
        }
        shapes.draw(canvas);
        canvas.rect("hit", at, (square, square), &block.name);
    }
    y + (square + GAP) * group.blocks.len().div_ceil(columns) as f64
}

fn draw_shared(canvas: &mut Canvas, group: &Group, together: usize, y: f64) -> f64 {
    let square = 16.0;
    let columns = (WIDTH / (square + GAP)) as usize;
    let mut shapes = Shapes::default();
    let mut hits = Vec::new();
    for (nth, blocks) in group.blocks.chunks(together).enumerate() {
        let at = (
            4.0 + (square + GAP) * (nth % columns) as f64,
            y + (square + GAP) * (nth / columns) as f64,
        );
        draw_shares(&mut shapes, blocks, at, square);
        let tip = match blocks {
            [one] => one.name.clone(),
            _ => format!("{} from {} on", blocks.len(), blocks[0].name),
        };
        hits.push((at, tip));
    }
    shapes.draw(canvas);
    for (at, tip) in hits {
        canvas.rect("hit", at, (square, square), &tip);
    }
    let squares = group.blocks.len().div_ceil(together);
    y + (square + GAP) * squares.div_ceil(columns) as f64
}

/// Draws stripes whose width is the share of each appearance, each filled as its cells are on
/// average.
fn draw_shares(shapes: &mut Shapes, blocks: &[Block], at: (f64, f64), square: f64) {
    let mut shares: Vec<(Look, f64, f64)> = Vec::new();
    let mut all = 0.0;
    for cell in blocks.iter().flat_map(|block| &block.cells) {
        all += 1.0;
        match shares.iter_mut().find(|(look, ..)| *look == cell.look) {
            Some((_, count, full)) => (*count, *full) = (*count + 1.0, *full + fill(cell)),
            None => shares.push((cell.look, 1.0, fill(cell))),
        }
    }
    shares.sort_by_key(|(look, ..)| *look);
    let mut x = at.0;
    for (look, count, full) in shares {
        let wide = square * count / all;
        let cell = Cell {
            look,
            fill: full / count,
        };
        shapes.cell(&cell, (x, at.1), (wide, square));
        x += wide;
    }
}

//! `hearth heap top`: the same each second, in the terminal or as lines.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::IsTerminal;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use hearth_heap::inspect::HeapReading;
use hearth_report::heaps::{self, Depth, Reading, Spaces};
use hearth_sys::terminal::{self, Keys};
use hearth_terminal::{Failure, Interruption, output};

use super::heap::{bytes, heap_table, totals};
use crate::arguments::heap::HeapTop;

const PERIOD: Duration = Duration::from_secs(1);
/// Interval at which keys and signals are checked.
const LOOK: Duration = Duration::from_millis(100);
/// A terminal that does not know its size.
const SIZE: (usize, usize) = (80, 24);

// Control sequences, by ECMA-48 and as xterm has them.
const OTHER_SCREEN: &str = "\x1b[?1049h\x1b[?25l";
const FIRST_SCREEN: &str = "\x1b[?25h\x1b[?1049l";
const TO_THE_TOP: &str = "\x1b[H";
const CLEAR_LINE: &str = "\x1b[K";
const CLEAR_BELOW: &str = "\x1b[J";
const BOLD: &str = "\x1b[1m";
const PLAIN: &str = "\x1b[m";

pub(crate) fn top(arguments: &HeapTop) -> Result<(), Failure> {
    let spaces = heaps::find(arguments.pid)?;
    let count = arguments.count.unwrap_or(u64::MAX);
    let (stdin, stdout) = (std::io::stdin(), std::io::stdout());
    let keys = match stdout.is_terminal() {
        true => Keys::of(stdin.as_fd()).ok(),
        false => None,
    };
    match keys {
        Some(keys) => screens(&spaces, &keys, count),
        None => lines(&spaces, count),
    }
}

// ---- lines -------------------------------------------------------------------------------------

/// A line for each reading of each space.
fn lines(spaces: &Spaces, count: u64) -> Result<(), Failure> {
    let begun = Instant::now();
    output::write(line(
        [
            "second", "held", "idle", "live", "front", "large", "mapped", "heaps",
        ]
        .map(str::to_owned),
    ))?;
    for nth in 0..count {
        let due = PERIOD * u32::try_from(nth).unwrap_or(u32::MAX);
        std::thread::sleep(due.saturating_sub(begun.elapsed()));
        let readings = spaces.read(Depth::Totals);
        if !spaces.process.is_there() {
            return Ok(());
        }
        for reading in &readings {
            output::write(line([
                nth.to_string(),
                bytes(reading.held),
                bytes(reading.idle),
                bytes(reading.live()),
                bytes(reading.in_front()),
                bytes(reading.large.bytes),
                bytes(reading.mapped.bytes),
                reading.heaps.len().to_string(),
            ]))?;
        }
    }
    Ok(())
}

fn line(cells: [String; 8]) -> String {
    let mut text = String::new();
    for cell in cells {
        let _ = write!(text, "{cell:>11}");
    }
    text.push('\n');
    text
}

// ---- the screen --------------------------------------------------------------------------------

/// The terminal's other screen. The former one comes back when this is dropped.
struct Screen;

impl Screen {
    fn enter() -> Result<Screen, Failure> {
        output::write(OTHER_SCREEN)?;
        Ok(Screen)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // A terminal that has gone away needs nothing.
        let _ = output::write(FIRST_SCREEN);
    }
}

/// The reason why the readings end.
pub(super) enum End {
    Done,
    Left,
    Gone,
    Signal(u8),
}

fn screens(spaces: &Spaces, keys: &Keys<'_>, count: u64) -> Result<(), Failure> {
    let interruption = Interruption::watch();
    let title = spaces.title();
    let mut before = HashMap::new();
    let end = on_screen(keys, count, &interruption, |size| {
        let readings = spaces.read(Depth::Totals);
        if !spaces.process.is_there() {
            return Ok(None);
        }
        let lines = frame(&title, &readings, &before, size);
        before = live_by_heap(&readings);
        Ok(Some(lines))
    })?;
    match end {
        End::Done | End::Left => Ok(()),
        End::Gone => output::write(format!("{} has ended\n", spaces.title())),
        End::Signal(signal) => Err(Failure::Interrupted(signal, "left off".into())),
    }
}

/// Shows lines each second, of which the first is the title, until the reader leaves or there are
/// none. They are made for so many columns and rows.
pub(super) fn on_screen(
    keys: &Keys<'_>,
    count: u64,
    interruption: &Interruption,
    mut lines: impl FnMut((usize, usize)) -> Result<Option<Vec<String>>, Failure>,
) -> Result<End, Failure> {
    let _screen = Screen::enter()?;
    for _ in 0..count {
        let begun = Instant::now();
        let size = terminal::size(std::io::stdout().as_fd()).unwrap_or(SIZE);
        let Some(lines) = lines(size)? else {
            return Ok(End::Gone);
        };
        output::write(painted(&lines, size))?;
        while let Some(left) = PERIOD.checked_sub(begun.elapsed()) {
            if interruption.flag.load(Ordering::SeqCst) {
                return Ok(End::Signal(interruption.signal.load(Ordering::SeqCst)));
            }
            // Ctrl-C and Ctrl-D as well.
            if let Some(b'q' | b'Q' | 3 | 4) = keys.wait(left.min(LOOK)) {
                return Ok(End::Left);
            }
        }
    }
    Ok(End::Done)
}

/// Live bytes by space and heap.
type Before = HashMap<(u64, u32), u64>;

fn live_by_heap(readings: &[Reading]) -> Before {
    let of = |reading: &Reading| {
        let directory = reading.directory;
        let heaps = reading.heaps.iter();
        heaps
            .map(move |heap| ((directory, heap.number), heap.live()))
            .collect::<Vec<_>>()
    };
    readings.iter().flat_map(of).collect()
}

/// The lines of all spaces, which share the rows.
fn frame(
    title: &str,
    readings: &[Reading],
    before: &Before,
    (_, rows): (usize, usize),
) -> Vec<String> {
    let mut lines = vec![format!("{title}; q leaves")];
    let rows_each = rows.saturating_sub(1) / readings.len().max(1);
    for reading in readings {
        let mut own = vec![String::new()];
        own.extend(totals(reading).lines().map(str::to_owned));
        own.push(String::new());
        let change = |heap: &HeapReading| {
            let was = before.get(&(reading.directory, heap.number))?;
            Some(changed(*was, heap.live()))
        };
        let left = rows_each.saturating_sub(own.len() + 1);
        let table = heap_table(reading, left, change);
        own.extend(table.lines(2).lines().map(str::to_owned));
        own.truncate(rows_each);
        lines.extend(own);
    }
    lines
}

/// The text for the terminal, clipped to its size.
fn painted(lines: &[String], (columns, rows): (usize, usize)) -> String {
    let mut text = String::from(TO_THE_TOP);
    for (nth, line) in lines.iter().take(rows).enumerate() {
        if nth > 0 {
            text.push_str("\r\n");
        }
        let (on, off) = if nth == 0 { (BOLD, PLAIN) } else { ("", "") };
        let line: String = line
            .chars()
            .filter(|c| !c.is_control())
            .take(columns)
            .collect();
        let _ = write!(text, "{CLEAR_LINE}{on}{line}{off}");
    }
    text.push_str(CLEAR_BELOW);
    text
}

fn changed(was: u64, now: u64) -> String {
    match now.cmp(&was) {
        std::cmp::Ordering::Equal => String::new(),
        std::cmp::Ordering::Greater => format!("+{}", bytes(now - was)),
        std::cmp::Ordering::Less => format!("-{}", bytes(was - now)),
    }
}

//! The items of a layout.

/// One step of printing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Item<'a> {
    /// A token or a block comment.
    Text(&'a str),
    /// A `//` comment. It has no width: code is not broken for its sake.
    LineComment(&'a str),
    /// A blank.
    Space,
    /// A blank, or a line break if its group is broken.
    Line,
    /// Nothing, or a line break if its group is broken.
    Soft,
    /// A blank, or a line break if what follows up to the next chance does not fit.
    Fill,
    /// A line break.
    Break,
    /// A line break and a blank line.
    Blank,
    /// A line break, and no blank line even if one was asked for.
    Tight,
    /// Begins a group, which is broken as a whole or not at all; `true` breaks it.
    Open(bool),
    Close,
    Indent,
    Dedent,
}

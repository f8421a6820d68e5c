//! Reports misuse of memory and aborts.

use crate::ground::os;

/// Misuse of a pointer passed to `free`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// No heap has handed it out.
    Foreign,
    /// No block starts there: freed already, or a pointer into the middle of a block.
    NotABlock,
}

/// Success, or the address that is not a block and what is wrong with it.
pub(crate) type Checked = Result<(), (usize, Fault)>;

/// Reports a bad pointer and aborts: to continue would corrupt the heap.
#[cold]
pub(crate) fn report(address: usize, fault: Fault, owner: u32) {
    let what: &[u8] = match fault {
        Fault::Foreign => b" was not allocated here",
        Fault::NotABlock => b" is not the start of a block in use: freed twice, or overwritten",
    };
    let owner_text = os::hexadecimal(owner as usize);
    let of: [&[u8]; 2] = if owner == 0 {
        [b"", b""]
    } else {
        [b"; heap ", &owner_text[14..]]
    };
    os::die(&[
        b"hearth: free: ",
        &os::hexadecimal(address),
        what,
        of[0],
        of[1],
        b"\n",
    ]);
}

/// Reports a write to a free block, found when the block is about to be handed out, and aborts.
#[cold]
pub(crate) fn report_written(block: usize, at: usize, bytes: usize, owner: u32) {
    let (at, first_of_at) = os::decimal(at);
    let (bytes, first_of_bytes) = os::decimal(bytes);
    os::die(&[
        b"hearth: malloc: ",
        &os::hexadecimal(block),
        b" was written to while it was free: byte ",
        &at[first_of_at..],
        b" of ",
        &bytes[first_of_bytes..],
        b" has changed; heap ",
        &os::hexadecimal(owner as usize)[14..],
        b"\n",
    ]);
}

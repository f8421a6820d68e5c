//! What should not be: the process is told, and ended.

use crate::ground::os;

/// What a pointer that is to be freed turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// No heap has given this out.
    Foreign,
    /// No block starts there: it was freed already, or the pointer leads into the middle of one.
    NotABlock,
}

/// Done; or a block that is none, and what is wrong with it.
pub(crate) type Checked = Result<(), (usize, Fault)>;

/// Says what is wrong with a pointer, and ends the process: going on would corrupt it.
#[cold]
pub(crate) fn report(address: usize, fault: Fault, owner: u32) {
    let what: &[u8] = match fault {
        Fault::Foreign => b" was not given out by this allocator",
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

/// Says that a free block was written to, which is found when it is to be given out, and ends the process.
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

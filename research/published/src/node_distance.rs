//! Node distances as the nMART source measured them (its section on the kernel patch), and the
//! formula that made tables of its means.
//!
//! A row is a memory node, a column the node whose cores touch and copy that memory:
//! `distance(i, j) = 10 · mean(i, j) / min_j mean(i, j)`. The firmware's scale starts at 10 for a
//! node's own memory.
//!
//! The formula itself, with its two roundings, and the fallback orders are
//! [`hearth_machine::profile::distance`].

/// Four nodes: mean seconds for 256 MB touched and copied.
pub const FOUR_NODES_SECONDS: [[f64; 4]; 4] = [
    [2.321, 3.065, 2.915, 3.330],
    [3.044, 2.268, 3.280, 2.847],
    [2.877, 3.275, 2.266, 3.070],
    [3.287, 2.845, 3.083, 2.271],
];

/// The four-node table as printed. Its quotients are cut off, not rounded.
pub const FOUR_NODES_PRINTED: [[u32; 4]; 4] = [
    [10, 13, 12, 14],
    [13, 10, 14, 12],
    [12, 14, 10, 13],
    [14, 12, 13, 10],
];

/// The table which the printed generator makes of the same means: rounded, and therefore with
/// ties between one hop and two.
pub const FOUR_NODES_ROUNDED: [[u32; 4]; 4] = [
    [10, 13, 13, 14],
    [13, 10, 14, 13],
    [13, 14, 10, 14],
    [14, 13, 14, 10],
];

/// Distances that the firmware of the four-node machine claims.
pub const FOUR_NODES_FIRMWARE: [[u32; 4]; 4] = [
    [10, 20, 20, 20],
    [20, 10, 20, 20],
    [20, 20, 10, 20],
    [20, 20, 20, 10],
];

/// The four fallback orders that follow from the measured distances.
pub const FOUR_NODES_ORDERS: [[usize; 4]; 4] =
    [[0, 2, 1, 3], [1, 3, 0, 2], [2, 0, 3, 1], [3, 1, 2, 0]];

/// Eight nodes: mean seconds.
pub const EIGHT_NODES_SECONDS: [[f64; 8]; 8] = [
    [0.185, 0.279, 0.468, 0.506, 0.395, 0.440, 0.483, 0.500],
    [0.268, 0.180, 0.483, 0.443, 0.362, 0.299, 0.494, 0.464],
    [0.381, 0.467, 0.174, 0.260, 0.431, 0.457, 0.433, 0.407],
    [0.426, 0.437, 0.264, 0.179, 0.469, 0.434, 0.471, 0.384],
    [0.430, 0.356, 0.362, 0.462, 0.176, 0.261, 0.429, 0.462],
    [0.473, 0.295, 0.407, 0.428, 0.264, 0.178, 0.467, 0.431],
    [0.391, 0.469, 0.425, 0.464, 0.431, 0.406, 0.169, 0.255],
    [0.416, 0.452, 0.461, 0.443, 0.471, 0.368, 0.264, 0.178],
];

/// The eight-node table as printed: rounded. Node 7's memory from node 4 is printed as 27 where
/// its mean gives 26.46, the one cell that does not follow.
pub const EIGHT_NODES_PRINTED: [[u32; 8]; 8] = [
    [10, 15, 25, 27, 21, 24, 26, 27],
    [15, 10, 27, 25, 20, 17, 27, 26],
    [22, 27, 10, 15, 25, 26, 25, 23],
    [24, 24, 15, 10, 26, 24, 26, 21],
    [24, 20, 21, 26, 10, 15, 24, 26],
    [27, 17, 23, 24, 15, 10, 26, 24],
    [23, 28, 25, 27, 26, 24, 10, 15],
    [23, 25, 26, 25, 27, 21, 15, 10],
];

/// The cell of [`EIGHT_NODES_PRINTED`] that does not follow: row, column, and what does follow.
pub const EIGHT_NODES_DIFFERS: (usize, usize, u32) = (7, 4, 26);

/// Distances that the firmware of the eight-node machine claims.
pub const EIGHT_NODES_FIRMWARE: [[u32; 8]; 8] = [
    [10, 16, 16, 22, 16, 22, 16, 22],
    [16, 10, 22, 16, 22, 16, 22, 16],
    [16, 22, 10, 16, 16, 22, 16, 22],
    [22, 16, 16, 10, 22, 16, 22, 16],
    [16, 22, 16, 22, 10, 16, 16, 22],
    [22, 16, 22, 16, 16, 10, 22, 16],
    [16, 22, 16, 22, 16, 22, 10, 16],
    [22, 16, 22, 16, 22, 16, 16, 10],
];

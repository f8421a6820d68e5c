//! Codecs of blocks: a fast one in place of LZO, a strong one in place of zlib.

use std::io;

/// A codec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    /// LZ4.
    Fast,
    /// Zstandard at its default level.
    Strong,
}

impl Codec {
    /// Packs a block.
    ///
    /// # Errors
    /// The codec has no memory.
    pub fn pack(self, raw: &[u8]) -> io::Result<Vec<u8>> {
        match self {
            Codec::Fast => Ok(lz4_flex::block::compress(raw)),
            Codec::Strong => zstd::bulk::compress(raw, 0),
        }
    }

    /// Unpacks a block of known size.
    ///
    /// # Errors
    /// It is damaged.
    pub fn unpack(self, packed: &[u8], raw_bytes: usize) -> io::Result<Vec<u8>> {
        match self {
            Codec::Fast => lz4_flex::block::decompress(packed, raw_bytes).map_err(io::Error::other),
            Codec::Strong => zstd::bulk::decompress(packed, raw_bytes),
        }
    }
}

//! The bytes of a recording: numbers, names, checksums, blocks.

mod block;
mod checksum;
mod field_decoder;
mod field_encoder;
mod file_start;

pub(crate) use block::{BlockHead, HEAD_BYTES, Names, split_names};
pub(crate) use field_decoder::{FieldDecoder, Malformed};
pub(crate) use field_encoder::FieldEncoder;
pub(crate) use file_start::{FileStart, START_BYTES};

pub use block::MAX_BLOCK_BYTES;
pub use field_encoder::MAX_NAME_BYTES;
pub use file_start::FORMAT_VERSION;

//! Recordings as files.

mod block_search;
mod plain_file;
mod read_error;
mod reader;
mod writer;
mod written_place;

pub use plain_file::{open_plain_file, special_file};
pub use read_error::ReadError;
pub use reader::RecordingReader;
pub use writer::RecordingWriter;
pub use written_place::refused_place;

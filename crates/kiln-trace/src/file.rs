//! Recordings as files.

mod read_error;
mod reader;
mod writer;

pub use read_error::ReadError;
pub use reader::RecordingReader;
pub use writer::RecordingWriter;

//! Where a recording is written.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};

/// A file that only ever grows, but for an end that could not be written whole.
pub trait RecordingFile: Write + Send {
    /// Cuts everything behind so many bytes off, and goes on there.
    ///
    /// # Errors
    /// What the operating system says.
    fn cut(&mut self, bytes: u64) -> io::Result<()>;
}

impl RecordingFile for File {
    fn cut(&mut self, bytes: u64) -> io::Result<()> {
        self.set_len(bytes)?;
        self.seek(SeekFrom::Start(bytes)).map(|_| ())
    }
}

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

    /// Whether the file may have so many bytes. It is asked before each write: where a process may write no file that is so large, the write
    /// itself would end the process by a signal.
    ///
    /// # Errors
    /// What the write would say ([`FileTooLarge`](io::ErrorKind::FileTooLarge)).
    fn check_room(&self, bytes: u64) -> io::Result<()> {
        let _ = bytes;
        Ok(())
    }

    /// Whether it is still the file that was opened, and not closed by the program. It is asked when the program asks how far the recording is.
    ///
    /// # Errors
    /// What a write would say.
    fn check_kept(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl RecordingFile for File {
    fn cut(&mut self, bytes: u64) -> io::Result<()> {
        self.set_len(bytes)?;
        self.seek(SeekFrom::Start(bytes)).map(|_| ())
    }

    #[cfg(unix)]
    fn check_room(&self, bytes: u64) -> io::Result<()> {
        use rustix::process::{Resource, getrlimit};
        // Asked anew each time: a process may change it while it runs. A pipe has no limit.
        let is_too_large = getrlimit(Resource::Fsize).current.is_some_and(|limit| bytes > limit);
        match is_too_large && self.metadata().is_ok_and(|known| known.is_file()) {
            true => Err(rustix::io::Errno::FBIG.into()),
            false => Ok(()),
        }
    }
}

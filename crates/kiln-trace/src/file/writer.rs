//! Writes a recording.

use std::io::{self, Write};

use crate::format::{BlockHead, FieldEncoder, FileStart};
use crate::record::TraceEvent;

/// A block that has so many bytes is written. Far less than a block may have: an event adds a few names at the most.
const FULL_BYTES: usize = 128 << 10;

/// Writes events, block by block.
///
/// A block that cannot be written is dropped, and the error is returned. Where the writer stands then is not known, so nothing more
/// should be written; what was written before stays readable.
pub struct RecordingWriter<W: Write> {
    out: W,
    block: FieldEncoder,
}

impl<W: Write> RecordingWriter<W> {
    /// Begins a recording.
    ///
    /// # Errors
    /// What the file says.
    pub fn new(mut out: W) -> io::Result<Self> {
        out.write_all(&FileStart::bytes())?;
        Ok(Self { out, block: FieldEncoder::default() })
    }

    /// Adds an event, and writes the block if it is full.
    ///
    /// # Errors
    /// What the file says.
    pub fn push(&mut self, event: &TraceEvent<'_>) -> io::Result<()> {
        event.encode(&mut self.block);
        if self.block.bytes() >= FULL_BYTES { self.write_block() } else { Ok(()) }
    }

    /// Writes what was added so far, so that a reader finds it.
    ///
    /// # Errors
    /// What the file says.
    pub fn write_block(&mut self) -> io::Result<()> {
        if self.block.bytes() == 0 {
            return Ok(());
        }
        let (names, events) = self.block.contents();
        let head = BlockHead::of(&names, events).bytes();
        let out = &mut self.out;
        let written =
            out.write_all(&head).and_then(|()| out.write_all(&names)).and_then(|()| out.write_all(events));
        self.block.clear();
        written?;
        self.out.flush()
    }

    /// The file.
    pub(crate) fn get_mut(&mut self) -> &mut W {
        &mut self.out
    }

    /// Writes the rest, and returns the file.
    ///
    /// # Errors
    /// What the file says.
    pub fn finish(mut self) -> io::Result<W> {
        self.write_block()?;
        Ok(self.out)
    }
}

//! Just enough of Python's pickle format to write a snapshot.
//!
//! Only opcodes that PyTorch's viewer knows are used. Lists are appended in batches, because the viewer passes each batch
//! as arguments of one call.

use std::io::{self, Write};

/// Items appended at once.
const BATCH: usize = 1000;

/// Writes values one inside the other.
pub(crate) struct Pickler<W> {
    to: W,
}

impl<W: Write> Pickler<W> {
    /// Begins a pickle.
    pub(crate) fn new(mut to: W) -> io::Result<Self> {
        to.write_all(&[0x80, 2])?;
        Ok(Self { to })
    }

    /// Ends it.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.to.write_all(b".")
    }

    pub(crate) fn integer(&mut self, value: u64) -> io::Result<()> {
        match value {
            0..=0xff => self.to.write_all(&[b'K', value as u8]),
            0x100..=0x7fff_ffff => {
                self.to.write_all(b"J")?;
                self.to.write_all(&(value as u32).to_le_bytes())
            }
            _ => {
                // Nine bytes, so that the sign bit is never one.
                let bytes = value.to_le_bytes();
                let len = if value >> 63 == 0 { 8 } else { 9 };
                self.to.write_all(&[0x8a, len])?;
                self.to.write_all(&bytes)?;
                self.to.write_all(if len == 9 { &[0] } else { &[] })
            }
        }
    }

    pub(crate) fn text(&mut self, value: &str) -> io::Result<()> {
        self.to.write_all(b"X")?;
        self.to.write_all(&(value.len() as u32).to_le_bytes())?;
        self.to.write_all(value.as_bytes())
    }

    /// A dictionary; the closure writes keys and values in turn.
    pub(crate) fn dictionary(&mut self, items: impl FnOnce(&mut Self) -> io::Result<()>) -> io::Result<()> {
        self.to.write_all(b"}(")?;
        items(self)?;
        self.to.write_all(b"u")
    }

    /// A key with an integer.
    pub(crate) fn integer_item(&mut self, key: &str, value: u64) -> io::Result<()> {
        self.text(key)?;
        self.integer(value)
    }

    /// A key with a text.
    pub(crate) fn text_item(&mut self, key: &str, value: &str) -> io::Result<()> {
        self.text(key)?;
        self.text(value)
    }

    /// A list; the closure writes each item.
    pub(crate) fn list<T>(
        &mut self,
        items: &[T],
        mut write: impl FnMut(&mut Self, &T) -> io::Result<()>,
    ) -> io::Result<()> {
        self.to.write_all(b"]")?;
        for batch in items.chunks(BATCH) {
            self.to.write_all(b"(")?;
            for item in batch {
                write(self, item)?;
            }
            self.to.write_all(b"e")?;
        }
        Ok(())
    }
}

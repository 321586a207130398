//! Reads a message of another process. Nothing in it is trusted.

use crate::protocol::protocol_error::ProtocolViolation;

/// Bytes that are no valid message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a message that cannot be read: {what}")]
pub(crate) struct Malformed {
    /// What is wrong with it.
    pub(crate) what: &'static str,
}

impl From<Malformed> for ProtocolViolation {
    fn from(malformed: Malformed) -> Self {
        Self::new(malformed.what)
    }
}

/// The unread rest of a message.
#[derive(Clone, Debug)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// How many bytes are left.
    pub(crate) fn left(&self) -> usize {
        self.rest.len()
    }

    /// Ends a message: no bytes may be left.
    pub(crate) fn end(self) -> Result<(), Malformed> {
        if self.rest.is_empty() { Ok(()) } else { Err(Malformed { what: "bytes after its end" }) }
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Malformed> {
        self.array().map(|[byte]| byte)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_le_bytes)
    }

    /// A length, then as many bytes.
    pub(crate) fn slice(&mut self) -> Result<&'a [u8], Malformed> {
        let length = self.u32()? as usize;
        let (slice, rest) =
            self.rest.split_at_checked(length).ok_or(Malformed { what: "a length beyond its end" })?;
        self.rest = rest;
        Ok(slice)
    }

    /// A length, then as many bytes of text.
    pub(crate) fn text(&mut self) -> Result<&'a str, Malformed> {
        std::str::from_utf8(self.slice()?).map_err(|_| Malformed { what: "text that is not UTF-8" })
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (array, rest) = self.rest.split_first_chunk().ok_or(Malformed { what: "it ends too early" })?;
        self.rest = rest;
        Ok(*array)
    }
}

//! Reads a message that somebody else wrote, and trusts nothing in it.

/// Bytes that are no message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a message that cannot be read: {what}")]
pub(crate) struct Malformed {
    /// What is wrong with it.
    pub(crate) what: &'static str,
}

/// The rest of a message.
#[derive(Clone, Debug)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Bytes that are left.
    pub(crate) fn left(&self) -> usize {
        self.rest.len()
    }

    /// Ends a message: nothing may be left over.
    pub(crate) fn end(self) -> Result<(), Malformed> {
        if self.rest.is_empty() { Ok(()) } else { Err(Malformed { what: "bytes behind its end" }) }
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

    /// Bytes behind their length.
    pub(crate) fn slice(&mut self) -> Result<&'a [u8], Malformed> {
        let length = self.u32()? as usize;
        let (slice, rest) =
            self.rest.split_at_checked(length).ok_or(Malformed { what: "a length beyond its end" })?;
        self.rest = rest;
        Ok(slice)
    }

    /// Text behind its length.
    pub(crate) fn text(&mut self) -> Result<&'a str, Malformed> {
        std::str::from_utf8(self.slice()?).map_err(|_| Malformed { what: "text that is not UTF-8" })
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (array, rest) = self.rest.split_first_chunk().ok_or(Malformed { what: "it ends too soon" })?;
        self.rest = rest;
        Ok(*array)
    }
}

//! Reads the fields of events.

use std::ops::Range;

/// Contents whose checksum is right and that mean nothing: what is wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Malformed(pub(crate) &'static str);

/// A place in the contents of a block.
pub(crate) struct FieldDecoder<'a> {
    contents: &'a [u8],
    rest: &'a [u8],
    names: &'a [Range<usize>],
    last_time: u64,
}

impl<'a> FieldDecoder<'a> {
    /// Reads on from `rest`, which is the end of `contents`.
    pub(crate) fn new(contents: &'a [u8], rest: &'a [u8], names: &'a [Range<usize>], last_time: u64) -> Self {
        Self { contents, rest, names, last_time }
    }

    /// How far it has come.
    pub(crate) fn at(&self) -> usize {
        self.contents.len() - self.rest.len()
    }

    /// The last time that was read.
    pub(crate) fn last_time(&self) -> u64 {
        self.last_time
    }

    /// Leaves bytes out.
    pub(crate) fn skip(&mut self, bytes: usize) -> Result<(), Malformed> {
        self.rest = self.rest.get(bytes..).ok_or(CUT_OFF)?;
        Ok(())
    }

    /// One byte.
    pub(crate) fn byte(&mut self) -> Result<u8, Malformed> {
        let (byte, rest) = self.rest.split_first().ok_or(CUT_OFF)?;
        self.rest = rest;
        Ok(*byte)
    }

    /// A number.
    pub(crate) fn number(&mut self) -> Result<u64, Malformed> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return Err(Malformed("a number with more than 64 bits"));
            }
            number |= bits << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(Malformed("a number with more than 64 bits"))
    }

    /// A number of 32 bits.
    pub(crate) fn small(&mut self) -> Result<u32, Malformed> {
        u32::try_from(self.number()?).map_err(|_| Malformed("a number with more than 32 bits"))
    }

    /// A time.
    pub(crate) fn time(&mut self) -> Result<u64, Malformed> {
        let coded = self.number()?;
        let distance = (coded >> 1) as i64 ^ -((coded & 1) as i64);
        self.last_time = self.last_time.wrapping_add(distance as u64);
        Ok(self.last_time)
    }

    /// A name.
    pub(crate) fn name(&mut self) -> Result<&'a str, Malformed> {
        let unknown = Malformed("a name that the block does not have");
        let Some(index) = self.number()?.checked_sub(1) else { return Ok("") };
        let index = usize::try_from(index).map_err(|_| unknown)?;
        let range = self.names.get(index).ok_or(unknown)?;
        let bytes = self.contents.get(range.clone()).ok_or(unknown)?;
        std::str::from_utf8(bytes).map_err(|_| Malformed("a name that is no text"))
    }
}

const CUT_OFF: Malformed = Malformed("an event that is cut off");

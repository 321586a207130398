//! Registers of video instructions: a part of a register, picked by a selector, and its sign.

use std::fmt;

use crate::register::RegisterId;

/// A register of a video instruction: `%r1.h0`, `-%r1.b2`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SelectedRegister {
    /// The register.
    pub register: RegisterId,
    /// Which part of it counts; all of it without one.
    pub selector: Option<Selector>,
    /// Whether `-` stands before it.
    pub negated: bool,
}

/// A list of bytes (`.b3210`) or half words (`.h10`) of one register, or of two: the second one has the numbers behind those of the first.
///
/// ```
/// use kiln_ptx::Selector;
///
/// let selector = Selector::from_keyword("h32").unwrap();
/// assert_eq!((selector.bits(), selector.to_string()), (16, "h32".to_owned()));
/// assert_eq!(selector.places().collect::<Vec<_>>(), [2, 3]);
/// assert!(Selector::from_keyword("h4").is_none());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Selector {
    halves: bool,
    count: u8,
    /// The first as written is the highest.
    digits: [u8; 4],
}

impl Selector {
    /// Reads a selector without its dot.
    pub fn from_keyword(word: &str) -> Option<Self> {
        let (halves, most, limit) = match word.as_bytes().first()? {
            b'h' => (true, 2, b'4'),
            b'b' => (false, 4, b'8'),
            _ => return None,
        };
        let written = word.as_bytes().get(1..)?;
        if written.is_empty()
            || written.len() > most
            || !written.iter().all(|digit| (b'0'..limit).contains(digit))
        {
            return None;
        }
        let mut digits = [0; 4];
        digits.iter_mut().zip(written).for_each(|(slot, digit)| *slot = digit - b'0');
        Some(Self { halves, count: written.len() as u8, digits })
    }

    /// Bits of each part: 8 or 16.
    pub fn bits(self) -> u32 {
        if self.halves { 16 } else { 8 }
    }

    /// The numbers of the parts, the lowest one first: the last that is written.
    pub fn places(self) -> impl DoubleEndedIterator<Item = u32> + ExactSizeIterator {
        (0..usize::from(self.count)).rev().map(move |at| u32::from(self.digits[at]))
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.halves { "h" } else { "b" })?;
        self.places().rev().try_for_each(|place| write!(f, "{place}"))
    }
}

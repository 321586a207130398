//! How much a heap may hold beside what is in use.

use std::fmt;
use std::str::FromStr;

/// How much a heap may hold beside what is in use, before it gathers scattered free memory instead of taking more.
///
/// Where a large block finds no free memory in a row, a heap can take new memory from the device, or map free frames one after
/// the other. Mapping costs tens of microseconds a frame. A program that asks for the same sizes in the same order again finds
/// every row mapped already and pays once; one that never repeats itself pays for a part of its large blocks, again and
/// again. With memory to spare it does not have to: rows that are long enough stay free.
///
/// The share is of what a stream has in use. More than the default is taken only while there is room: no more than half
/// of what the budget and the device still have, so that near a limit the heap holds what it would hold by default. When
/// memory is refused, it gathers whatever is scattered, and [`trim`](crate::MemoryResourceExt::trim) gives the spare back.
///
/// ```
/// use kiln_mem::{HeapConfig, Spare, Stack};
///
/// assert_eq!(HeapConfig::default().spare, Spare::percent(9));
/// let stack: Stack = "budget(8GiB, heap(spare=50%))".parse()?;
/// assert_eq!(stack.spare(), Some(Spare::percent(50)));
/// # Ok::<(), kiln_mem::stack::StackError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Spare {
    percent: u32,
}

/// A text that is no share to spare.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("not a percentage from 0% to {}%; write, for example, 50%", Spare::MOST_PERCENT)]
pub struct BadSpare;

impl Spare {
    /// More is not worth a word: with ten times what is in use to spare nothing is ever scattered.
    pub const MOST_PERCENT: u32 = 1000;

    /// So many hundredths of what is in use, at most [`MOST_PERCENT`](Self::MOST_PERCENT).
    pub const fn percent(percent: u32) -> Self {
        Self { percent: if percent < Self::MOST_PERCENT { percent } else { Self::MOST_PERCENT } }
    }

    /// The share of so much in use, where so much may still be taken.
    pub(crate) fn of(self, used: u64, room: u64) -> u64 {
        let share = |spare: Self| used.saturating_mul(u64::from(spare.percent)) / 100;
        let (own, usual) = (share(self), share(Self::default()));
        own.min(usual.saturating_add(room / 2))
    }
}

impl Default for Spare {
    /// 9 %, which keeps what is held below 1.1 times what is in use.
    fn default() -> Self {
        Self::percent(9)
    }
}

impl fmt::Display for Spare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", self.percent)
    }
}

impl FromStr for Spare {
    type Err = BadSpare;

    fn from_str(text: &str) -> Result<Self, BadSpare> {
        let digits = text.strip_suffix('%').ok_or(BadSpare)?.trim_end();
        if !digits.bytes().all(|digit| digit.is_ascii_digit()) {
            return Err(BadSpare);
        }
        match digits.parse() {
            Ok(percent @ 0..=Self::MOST_PERCENT) => Ok(Self { percent }),
            _ => Err(BadSpare),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_the_limit_nothing_but_the_default_is_left() {
        let spare = Spare::percent(50);
        assert_eq!(spare.of(1000, u64::MAX), 500);
        assert_eq!(spare.of(1000, 200), 190);
        assert_eq!(spare.of(1000, 0), 90);
        assert_eq!(Spare::percent(2).of(1000, 0), 20, "less than the default is less everywhere");
        assert_eq!(Spare::percent(50).of(u64::MAX, u64::MAX), u64::MAX / 100);
    }

    #[test]
    fn a_share_is_written_as_it_is_read() {
        for percent in [0, 9, 50, 1000] {
            let spare = Spare::percent(percent);
            assert_eq!(spare.to_string().parse(), Ok(spare));
        }
        for text in ["", "%", "50", "-1%", "+5%", "1001%", "9.5%", "99999999999%", "five%"] {
            assert_eq!(text.parse::<Spare>(), Err(BadSpare), "{text}");
        }
    }
}

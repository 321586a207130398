//! How much a heap may hold beside what is in use.

use std::fmt;
use std::str::FromStr;

/// How much a heap may hold besides what is in use, before it remaps free memory instead of taking more.
///
/// If a large block finds no contiguous free memory, a heap can take new memory from the device, or map free frames one after the other.
/// Mapping costs tens of microseconds a frame. A program that asks for the same sizes in the same order again finds every remap mapped
/// already and pays once. A program that never repeats itself pays for a part of its large blocks, again and again. With spare memory it
/// does not: runs that are long enough stay free.
///
/// By default a heap begins with 9 % of what is in use. It uses 50 % once it has mapped twice as many frames as it may keep mapped
/// ([`HeapConfig::mapping_host_bytes`](crate::HeapConfig::mapping_host_bytes); some 3 seconds of mapping by default) and has spent more than a fiftieth of the
/// time on it; [`HeapActivity::spare_raised`](crate::HeapActivity::spare_raised) says so. A program that knows what it needs sets it from the start.
///
/// The share is of what a stream has in use. More than 9 % is taken only while there is room: no more than half of what the budget and the
/// device still have, so that near a limit the heap holds what it holds by default. When memory is refused, the heap remaps what it has, and
/// [`trim`](crate::MemoryResourceExt::trim) gives spare memory back.
///
/// ```
/// use kiln_mem::{HeapConfig, Spare, Stack};
///
/// assert_eq!(HeapConfig::default().spare, Spare::between(9, 50));
/// let stack: Stack = "budget(8GiB, heap(spare=50%))".parse()?;
/// assert_eq!(stack.spare(), Some(Spare::percent(50)));
/// let stack: Stack = "heap(spare=5%..100%)".parse()?;
/// assert_eq!(stack.spare(), Some(Spare::between(5, 100)));
/// # Ok::<(), kiln_mem::resource_stack::StackError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Spare {
    percent: u32,
    /// Once the budget for mapping is spent.
    most: u32,
}

/// A text that is no [`Spare`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("not a percentage from 0% to {}%; write, for example, 50%, or 9%..50%", Spare::MOST_PERCENT)]
pub struct SpareError;

impl Spare {
    /// The largest share: with ten times what is in use, contiguous memory is always free.
    pub const MOST_PERCENT: u32 = 1000;

    /// A percentage of what is in use, at most [`MOST_PERCENT`](Self::MOST_PERCENT), however much is mapped.
    pub const fn percent(percent: u32) -> Self {
        Self::between(percent, percent)
    }

    /// A percentage of what is in use, and `most` once the budget for mapping is spent. `most` is at least `percent`.
    pub const fn between(percent: u32, most: u32) -> Self {
        let percent = if percent < Self::MOST_PERCENT { percent } else { Self::MOST_PERCENT };
        let most = if most < Self::MOST_PERCENT { most } else { Self::MOST_PERCENT };
        Self { percent, most: if most > percent { most } else { percent } }
    }

    /// The share of `used`, if `room` may still be taken; `is_spent` if the budget for mapping is spent.
    pub(crate) fn of(self, used: u64, room: u64, is_spent: bool) -> u64 {
        let share = |percent: u32| used.saturating_mul(u64::from(percent)) / 100;
        let own = share(if is_spent { self.most } else { self.percent });
        own.min(share(Self::default().percent).saturating_add(room / 2))
    }
}

impl Default for Spare {
    /// 9 %, which keeps what is held below 1.1 times what is in use, and 50 % once the budget for mapping is spent.
    fn default() -> Self {
        Self::between(9, 50)
    }
}

impl fmt::Display for Spare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", self.percent)?;
        if self.most == self.percent { Ok(()) } else { write!(f, "..{}%", self.most) }
    }
}

impl FromStr for Spare {
    type Err = SpareError;

    fn from_str(text: &str) -> Result<Self, SpareError> {
        let (least, most) = match text.split_once("..") {
            Some((least, most)) => (percent_of(least.trim_end())?, percent_of(most.trim_start())?),
            None => (percent_of(text)?, percent_of(text)?),
        };
        if most < least { Err(SpareError) } else { Ok(Self::between(least, most)) }
    }
}

fn percent_of(text: &str) -> Result<u32, SpareError> {
    let digits = text.strip_suffix('%').ok_or(SpareError)?.trim_end();
    if !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return Err(SpareError);
    }
    digits.parse().ok().filter(|percent| *percent <= Spare::MOST_PERCENT).ok_or(SpareError)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_the_limit_nothing_but_the_default_is_left() {
        let spare = Spare::percent(50);
        assert_eq!(spare.of(1000, u64::MAX, false), 500);
        assert_eq!(spare.of(1000, 200, false), 190);
        assert_eq!(spare.of(1000, 0, false), 90);
        assert_eq!(Spare::percent(2).of(1000, 0, true), 20, "less than the default is less everywhere");
        assert_eq!(Spare::percent(50).of(u64::MAX, u64::MAX, false), u64::MAX / 100);
    }

    #[test]
    fn more_is_spared_once_mapping_is_spent_but_not_near_the_limit() {
        let spare = Spare::default();
        assert_eq!((spare.of(1000, u64::MAX, false), spare.of(1000, u64::MAX, true)), (90, 500));
        assert_eq!((spare.of(1000, 20, true), spare.of(1000, 0, true)), (100, 90));
        assert_eq!(Spare::between(30, 10), Spare::percent(30));
        assert_eq!(Spare::between(2000, 3000), Spare::percent(1000));
    }

    #[test]
    fn a_share_is_written_as_it_is_read() {
        for percent in [0, 9, 50, 1000] {
            for spare in [Spare::percent(percent), Spare::between(percent, 1000)] {
                assert_eq!(spare.to_string().parse(), Ok(spare));
            }
        }
        assert_eq!("5% .. 70%".parse(), Ok(Spare::between(5, 70)));
        for text in [
            "",
            "%",
            "50",
            "-1%",
            "+5%",
            "1001%",
            "9.5%",
            "99999999999%",
            "five%",
            "50%..9%",
            "..9%",
            "9%..",
            "9..50%",
        ] {
            assert_eq!(text.parse::<Spare>(), Err(SpareError), "{text}");
        }
    }
}

//! A warp register: 32 lane values.
//!
//! A register is held as one array over the lanes, so that an instruction is one loop the compiler can vectorise.
//! Every value is 64 bits wide; narrower ones are held with their upper bits zero. That invariant is kept by
//! the writer of a column, and lets every reader cast down without looking.

/// Threads in a warp.
pub(crate) const LANES: usize = 32;

/// The mask of all lanes.
pub(crate) const FULL: u32 = u32::MAX;

/// One 64-bit value per lane.
pub(crate) type Column = [u64; LANES];

/// The order in which lanes of one instruction reach memory.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LaneOrder {
    first: u32,
    mirror: u32,
}

impl LaneOrder {
    /// One of 1024 orders, by ten bits of a number; 0 is lowest first.
    pub(crate) fn of(bits: u64) -> Self {
        Self { first: bits as u32 & 31, mirror: (bits >> 5) as u32 & 31 }
    }

    /// Whether it is lowest first.
    pub(crate) fn is_rising(self) -> bool {
        self.first == 0 && self.mirror == 0
    }

    /// Calls `f` with the number of every lane in `mask`, in this order.
    pub(crate) fn each(self, mask: u32, mut f: impl FnMut(usize)) {
        for place in 0..LANES as u32 {
            let lane = ((place + self.first) & 31) ^ self.mirror;
            if mask >> lane & 1 != 0 {
                f(lane as usize);
            }
        }
    }
}

/// Calls `f` with the number of every lane in `mask`, lowest first.
#[inline(always)]
pub(crate) fn each(mask: u32, mut f: impl FnMut(usize)) {
    if mask == FULL {
        for lane in 0..LANES {
            f(lane);
        }
    } else {
        let mut rest = mask;
        while rest != 0 {
            f(rest.trailing_zeros() as usize & (LANES - 1));
            rest &= rest - 1;
        }
    }
}

/// Lanes from which on all of them are computed: a loop over all is faster than one over some.
const MANY: u32 = 12;

/// Calls `f` with the number of every lane in `mask`, and of others where that is faster: what is computed for these is not used.
#[inline(always)]
pub(crate) fn each_computed(mask: u32, mut f: impl FnMut(usize)) {
    if mask == FULL || mask.count_ones() >= MANY {
        for lane in 0..LANES {
            f(lane);
        }
    } else {
        each(mask, f);
    }
}

/// The lanes of `mask` for which `f` holds.
#[inline(always)]
pub(crate) fn lanes_where(mask: u32, mut f: impl FnMut(usize) -> bool) -> u32 {
    let mut found = 0;
    each(mask, |lane| found |= u32::from(f(lane)) << lane);
    found
}

/// Writes the lanes of `mask` and leaves the others.
#[inline(always)]
pub(crate) fn blend(into: &mut Column, from: &Column, mask: u32) {
    if mask == FULL {
        *into = *from;
    } else {
        for lane in 0..LANES {
            let kept = if mask & (1 << lane) != 0 { 0 } else { u64::MAX };
            into[lane] = (into[lane] & kept) | (from[lane] & !kept);
        }
    }
}

/// The lowest lane of a mask; 0 for an empty one.
#[inline(always)]
pub(crate) fn first_lane(mask: u32) -> usize {
    mask.trailing_zeros() as usize & (LANES - 1)
}

/// The value all lanes of `mask` hold, if they agree.
pub(crate) fn uniform(column: &Column, mask: u32) -> Option<u64> {
    let value = column[first_lane(mask)];
    let mut same = true;
    each(mask, |lane| same &= column[lane] == value);
    same.then_some(value)
}

//! Size classes: the sizes that requests to the heap are rounded up to.
//!
//! Memory is counted in units of 256 bytes, the alignment every CUDA allocation has. Requests of up to 1 MiB are
//! rounded up to one of 176 classes, so that a freed block fits the next request of about its size and the cache
//! of a thread can find it by number. Small classes lie at most 12.5 % apart; above 64 KiB, where rounding would cost real
//! memory, at most 3.2 %. Larger requests are rounded to 4 KiB, which keeps slivers out of the free lists and costs
//! 0.4 % at most.

/// Bytes of a unit.
pub(crate) const UNIT_BYTES: u64 = 256;
/// The largest size that has a class.
pub(crate) const CLASSED_UNITS: u32 = 4096;
/// How many classes there are.
pub(crate) const CLASSES: usize = 16 + 4 * 8 + 4 * 32;

/// Classes up to here are one unit apart.
const LINEAR_UNITS: u32 = 16;
/// Classes up to here come eight to the doubling.
const COARSE_UNITS: u32 = 256;
/// Requests above the classes are rounded to a multiple of this.
const LARGE_STEP_UNITS: u64 = 16;

/// Units that hold so many bytes, rounded as the heap rounds; none if they cannot be counted.
pub(crate) fn rounded_units(bytes: u64) -> Option<u32> {
    let units = bytes.div_ceil(UNIT_BYTES).max(1);
    if units <= u64::from(CLASSED_UNITS) {
        return Some(class_units(class_of(units as u32)));
    }
    u32::try_from(units.checked_next_multiple_of(LARGE_STEP_UNITS)?).ok()
}

/// Units of a request above the classes, rounded; no more than half of what can be counted.
#[inline]
pub(crate) fn large_units(units: u32) -> u32 {
    (units + LARGE_STEP_UNITS as u32 - 1) & !(LARGE_STEP_UNITS as u32 - 1)
}

/// The smallest class that holds so many units; they are at least one and no more than [`CLASSED_UNITS`].
#[inline(always)]
pub(crate) fn class_of(units: u32) -> usize {
    // The mask changes nothing, and tells the compiler that the index is in the table.
    usize::from(CLASS_OF[units.wrapping_sub(1) as usize % CLASSED_UNITS as usize])
}

/// Units of a block of a class.
#[inline]
pub(crate) fn class_units(class: usize) -> u32 {
    u32::from(UNITS_OF[class])
}

/// Classes by units less one, and units by class, so that finding one is a load.
static CLASS_OF: [u8; CLASSED_UNITS as usize] = {
    let mut classes = [0; CLASSED_UNITS as usize];
    let mut units = 1;
    while units <= CLASSED_UNITS {
        classes[units as usize - 1] = computed_class(units) as u8;
        units += 1;
    }
    classes
};
static UNITS_OF: [u16; CLASSES] = {
    let mut units = [0; CLASSES];
    let mut class = 0;
    while class < CLASSES {
        units[class] = computed_units(class as u32) as u16;
        class += 1;
    }
    units
};

const fn computed_class(units: u32) -> u32 {
    let last = units - 1;
    if units <= LINEAR_UNITS {
        return last;
    }
    let log = last.ilog2();
    if units <= COARSE_UNITS {
        LINEAR_UNITS + (log - 4) * 8 + ((last >> (log - 3)) - 8)
    } else {
        LINEAR_UNITS + 32 + (log - 8) * 32 + ((last >> (log - 5)) - 32)
    }
}

const fn computed_units(class: u32) -> u32 {
    if class < LINEAR_UNITS {
        return class + 1;
    }
    let coarse = class - LINEAR_UNITS;
    if coarse < 32 {
        return (coarse % 8 + 9) << (coarse / 8 + 1);
    }
    let fine = coarse - 32;
    (fine % 32 + 33) << (fine / 32 + 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_has_the_smallest_class_that_holds_it() {
        let mut below = 0;
        for class in 0..CLASSES {
            let units = class_units(class);
            assert!(units > below, "classes grow");
            for size in below + 1..=units {
                assert_eq!(class_of(size), class, "{size} units");
            }
            below = units;
        }
        assert_eq!(below, CLASSED_UNITS);
    }

    #[test]
    fn rounding_costs_an_eighth_at_most_and_little_where_it_is_dear() {
        for units in LINEAR_UNITS..=CLASSED_UNITS {
            let rounded = class_units(class_of(units));
            let part = if units <= COARSE_UNITS { 8 } else { 32 };
            assert!((rounded - units) * part < units + part, "{units} became {rounded}");
        }
        for bytes in [(1 << 20) + 1, 3 << 20, (1 << 30) + 7] {
            let rounded = u64::from(rounded_units(bytes).unwrap()) * UNIT_BYTES;
            assert!(rounded >= bytes && rounded - bytes < 4096);
            assert_eq!(large_units(bytes.div_ceil(UNIT_BYTES) as u32), rounded_units(bytes).unwrap());
        }
    }

    #[test]
    fn a_size_that_cannot_be_counted_has_no_units() {
        assert_eq!(rounded_units(0), Some(1));
        assert_eq!(rounded_units(1), Some(1));
        assert_eq!(rounded_units(u64::MAX), None);
        assert_eq!(rounded_units(1 << 40), None);
    }
}

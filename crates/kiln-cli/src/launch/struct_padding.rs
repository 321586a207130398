//! Which bytes of an array may be padding of structs.
//!
//! No thread writes padding, so a gap in an array of bytes may be right. C puts padding before a field, and behind the last one, up to a multiple of an alignment: a gap
//! that ends elsewhere, or is as long as that alignment, is a field. Every struct of an array has the same padding. A kernel that accesses single bytes alone has
//! fields of one byte, which need none; only an alignment that the source asks for adds some then.

use std::ops::Range;

/// No type of CUDA is aligned to more.
const MAX_ALIGNMENT_BYTES: u64 = 16;

/// What is known of the structs that an array may have.
pub(super) struct StructPadding {
    /// The widest access of the kernel to the array, in bytes.
    widest_access: u64,
    /// The size of a struct, if the gaps repeat throughout the array as those of structs do.
    period: Option<u64>,
}

impl StructPadding {
    /// For an array of so many bytes with these gaps, by offset.
    pub(super) fn new(widest_access: Option<u64>, gaps: &[Range<u64>], bytes: u64) -> Self {
        Self { widest_access: widest_access.unwrap_or(MAX_ALIGNMENT_BYTES), period: period(gaps, bytes) }
    }

    /// Whether a gap may be padding.
    pub(super) fn is_padding(&self, gap: &Range<u64>) -> bool {
        let length = gap.end - gap.start;
        let end = alignment(gap.end);
        match (self.widest_access, self.period) {
            // An alignment that a struct of bytes does not need leaves less than half of it unused.
            (..=1, Some(period)) => 2 * length < end.min(alignment(period)),
            (..=1, None) => false,
            // The size of a struct is a multiple of its alignment.
            (_, Some(period)) => length < end.min(alignment(period)),
            // One struct, or none: fields are aligned to their size.
            (widest, None) => length < end.min(widest),
        }
    }
}

/// The alignment of an offset.
fn alignment(offset: u64) -> u64 {
    (1 << offset.trailing_zeros().min(63)).min(MAX_ALIGNMENT_BYTES)
}

/// The distance at which the gaps repeat, if they are those of two or more equal structs, one behind the other.
fn period(gaps: &[Range<u64>], bytes: u64) -> Option<u64> {
    let first = gaps.first()?;
    (1..=gaps.len() / 2).find_map(|of_one| {
        let period = gaps[of_one].start - first.start;
        let repeats = || {
            let mut pairs = gaps.iter().zip(&gaps[of_one..]);
            pairs.all(|(one, next)| next.start - one.start == period && next.end - one.end == period)
        };
        let fills = gaps.len().is_multiple_of(of_one) && (gaps.len() / of_one) as u64 * period == bytes;
        (fills && repeats()).then_some(period)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which gaps of an array are padding.
    fn padding(widest: u64, gaps: &[Range<u64>], bytes: u64) -> Vec<bool> {
        let structs = StructPadding::new(Some(widest), gaps, bytes);
        gaps.iter().map(|gap| structs.is_padding(gap)).collect()
    }

    #[test]
    fn padding_ends_at_an_alignment_that_is_longer() {
        assert_eq!(padding(8, &[12..16, 28..32], 32), [true, true], "{{double; int}}");
        assert_eq!(padding(8, &[1..8, 12..16], 16), [true, true], "one {{char; double..; int}}");
        assert_eq!(padding(4, &[12..16, 28..32], 32), [true, true], "three floats, aligned to 16");
        assert_eq!(padding(1, &[3..4, 7..8, 11..12], 12), [true; 3], "three bytes, aligned to 4");
    }

    #[test]
    fn a_field_or_a_part_of_a_plain_array_is_no_padding() {
        assert_eq!(
            padding(4, &[0..4, 72..76], 144),
            [false, false],
            "the first field of every second struct"
        );
        assert_eq!(padding(1, std::slice::from_ref(&(61..64)), 64), [false], "the end of an array of bytes");
        assert_eq!(padding(4, std::slice::from_ref(&(52..64)), 64), [false], "the end of an array of words");
        assert_eq!(padding(1, &[1..2, 3..4, 5..6, 7..8], 8), [false; 4], "every second byte");
        assert_eq!(padding(1, &[1..4, 5..8], 8), [false; 2], "three of four bytes");
        assert_eq!(padding(8, std::slice::from_ref(&(20..23)), 32), [false], "it ends at no alignment");
        assert_eq!(padding(8, std::slice::from_ref(&(0..16)), 64), [false], "it is too long");
    }
}

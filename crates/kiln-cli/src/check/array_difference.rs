//! In which elements two arrays differ.

use kiln_libs::Tolerance;

use super::given_tolerance::GivenTolerance;
use crate::npy::Array;

/// How an array differs from another one of its type and length.
pub(super) struct ArrayDifference {
    /// The first element that differs.
    pub(super) element: u64,
    /// What it is, and what it is in the other array.
    pub(super) values: [String; 2],
    /// Whether one of the two is an infinity or NaN, which no tolerance reaches.
    pub(super) is_infinite: bool,
    /// How many differ.
    pub(super) count: u64,
}

impl ArrayDifference {
    /// Elements that lie further from those of another array than a multiple of the tolerance, which is taken of the other ones. Equal numbers are equal
    /// whatever their bits are, and NaN equals NaN.
    pub(super) fn between(
        found: &Array,
        wanted: &Array,
        tolerance: GivenTolerance,
        factor: f64,
    ) -> Option<Self> {
        let tolerance = tolerance.of(found.element);
        let size = found.element.bytes().max(1) as usize;
        let pairs = found.bytes.chunks_exact(size).zip(wanted.bytes.chunks_exact(size));
        let mut apart = (0_u64..)
            .zip(pairs)
            .filter(|(_, (one, other))| one != other && !is_close(found, (one, other), &tolerance, factor));
        let (element, (one, other)) = apart.next()?;
        let values = [one, other].map(|bytes| found.text_of(bytes));
        let mut numbers = [one, other].into_iter().filter_map(|bytes| found.floats_of(bytes)).flatten();
        let is_infinite = numbers.any(|number| !number.is_finite());
        Some(Self { element, values, is_infinite, count: 1 + apart.count() as u64 })
    }
}

/// Whether two elements of different bits are as close as they have to be: of complex numbers both parts. The bound of an infinity is infinite, and nothing
/// but the same infinity is close to one.
fn is_close(array: &Array, (one, other): (&[u8], &[u8]), tolerance: &Tolerance, factor: f64) -> bool {
    let (Some(one), Some(other)) = (array.floats_of(one), array.floats_of(other)) else { return false };
    one.iter().zip(&other).all(|(one, other)| {
        let is_equal = one == other || one.is_nan() && other.is_nan();
        let is_finite = one.is_finite() && other.is_finite();
        is_equal || is_finite && (one - other).abs() <= factor * tolerance.bound(*other, *other)
    })
}

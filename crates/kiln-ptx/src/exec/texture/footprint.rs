//! The texels of one dimension that a coordinate reads.

use crate::exec::texture_object::AddressMode;

/// One dimension of a texture.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Axis {
    /// Texels.
    pub(crate) size: u32,
    pub(crate) mode: AddressMode,
    pub(crate) normalized: bool,
}

/// A texel of one dimension and its weight in 256ths; `None` for what lies outside.
pub(crate) type Tap = (Option<u32>, u32);

/// The fraction of weights.
const ONE: i64 = 256;

impl Axis {
    /// The coordinate in texels.
    fn scaled(self, x: f32) -> f64 {
        let x = if x.is_finite() { f64::from(x) } else { 0.0 };
        if self.normalized { x * f64::from(self.size) } else { x }
    }

    /// The texel with a number that may lie outside.
    fn texel(self, index: i64) -> Option<u32> {
        let size = i64::from(self.size);
        if (0..size).contains(&index) {
            return Some(index as u32);
        }
        match self.mode {
            AddressMode::Border => None,
            AddressMode::Wrap if self.normalized => Some(index.rem_euclid(size) as u32),
            AddressMode::Mirror if self.normalized => {
                let place = index.rem_euclid(2 * size);
                Some(if place < size { place } else { 2 * size - 1 - place } as u32)
            }
            _ => Some(index.clamp(0, size - 1) as u32),
        }
    }
}

/// The texel that a coordinate lies in.
pub(crate) fn nearest_axis(axis: Axis, x: f32, offset: i32) -> [Tap; 2] {
    let index = axis.scaled(x).floor() as i64 + i64::from(offset);
    [(axis.texel(index), ONE as u32), (None, 0)]
}

/// The two texels around a coordinate.
pub(crate) fn linear_axis(axis: Axis, x: f32, offset: i32) -> [Tap; 2] {
    let place = ((axis.scaled(x) - 0.5) * ONE as f64).round_ties_even() as i64;
    let (index, weight) = (place.div_euclid(ONE) + i64::from(offset), place.rem_euclid(ONE) as u32);
    [(axis.texel(index), ONE as u32 - weight), (axis.texel(index.saturating_add(1)), weight)]
}

/// The same without weights.
pub(crate) fn gather_axis(axis: Axis, x: f32, offset: i32) -> [Option<u32>; 2] {
    linear_axis(axis, x, offset).map(|(texel, _)| texel)
}

/// The texel with a number, which coordinates that are integers give.
pub(crate) fn axis_of_index(axis: Axis, x: i32, offset: i32) -> [Tap; 2] {
    let axis = Axis { normalized: false, ..axis };
    [(axis.texel(i64::from(x) + i64::from(offset)), ONE as u32), (None, 0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(mode: AddressMode, normalized: bool) -> Axis {
        Axis { size: 4, mode, normalized }
    }

    #[test]
    fn coordinates_outside_are_clamped_wrapped_mirrored_or_missing() {
        let at = |mode, x: f32| nearest_axis(axis(mode, true), x, 0)[0].0;
        // Of four texels: -0.1 is texel -1, 1.1 texel 4.
        let pair = |mode| [at(mode, -0.1), at(mode, 1.1), at(mode, -1.1), at(mode, 2.1)];
        assert_eq!(pair(AddressMode::Clamp), [Some(0), Some(3), Some(0), Some(3)]);
        assert_eq!(pair(AddressMode::Wrap), [Some(3), Some(0), Some(3), Some(0)]);
        assert_eq!(pair(AddressMode::Mirror), [Some(0), Some(3), Some(3), Some(0)]);
        assert_eq!(pair(AddressMode::Border), [None; 4]);
        // Coordinates in texels do not wrap.
        assert_eq!(nearest_axis(axis(AddressMode::Wrap, false), 5.0, 0)[0].0, Some(3));
    }

    #[test]
    fn weights_are_rounded_to_256ths() {
        let axis = axis(AddressMode::Clamp, false);
        assert_eq!(linear_axis(axis, 1.5, 0), [(Some(1), 256), (Some(2), 0)]);
        assert_eq!(linear_axis(axis, 2.0, 0), [(Some(1), 128), (Some(2), 128)]);
        assert_eq!(linear_axis(axis, 1.501, 0), [(Some(1), 256), (Some(2), 0)]);
        assert_eq!(linear_axis(axis, 1.503, 0), [(Some(1), 255), (Some(2), 1)]);
        // A fraction that rounds up to one is the next texel.
        assert_eq!(linear_axis(axis, 2.499, 0), [(Some(2), 256), (Some(3), 0)]);
        assert_eq!(linear_axis(axis, 0.25, 0), [(Some(0), 64), (Some(0), 192)]);
        assert_eq!(linear_axis(axis, 1.5, -1)[0], (Some(0), 256));
    }
}

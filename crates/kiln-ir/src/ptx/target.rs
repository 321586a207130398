//! Features of architectures and PTX versions.

use std::fmt;

/// A version of PTX.
pub(super) type Version = (u32, u32);

/// The architectures there are, with the first version of PTX that names each.
const ARCHITECTURES: [(u32, Version); 14] = [
    (70, (6, 0)),
    (72, (6, 1)),
    (75, (6, 3)),
    (80, (7, 0)),
    (86, (7, 1)),
    (87, (7, 4)),
    (89, (7, 8)),
    (90, (7, 8)),
    (100, (8, 6)),
    (101, (8, 6)),
    (103, (8, 8)),
    (110, (9, 0)),
    (120, (8, 7)),
    (121, (8, 8)),
];

/// An architecture that PTX is emitted for. A device runs PTX of its architecture and of every lower one.
///
/// ```
/// use kiln_ir::PtxTarget;
///
/// let hopper = PtxTarget::new(90).unwrap();
/// assert_eq!(hopper.to_string(), "sm_90");
/// assert_eq!(PtxTarget::for_device(91), Some(hopper));
/// assert_eq!(PtxTarget::for_device(61), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PtxTarget {
    number: u32,
}

impl PtxTarget {
    /// The architecture with this number: 90 for compute capability 9.0. `None` for one this crate does not know.
    pub fn new(number: u32) -> Option<Self> {
        ARCHITECTURES.iter().any(|(known, _)| *known == number).then_some(Self { number })
    }

    /// The highest known architecture whose code a device of this number runs; `None` for a device that is too old.
    pub fn for_device(number: u32) -> Option<Self> {
        Self::all().filter(|target| target.number <= number).last()
    }

    /// All of them, the lowest first.
    pub fn all() -> impl Iterator<Item = Self> {
        ARCHITECTURES.iter().map(|(number, _)| Self { number: *number })
    }

    /// Its number.
    pub const fn number(self) -> u32 {
        self.number
    }

    /// The lowest version of PTX that has it.
    pub(super) fn version(self) -> Version {
        ARCHITECTURES
            .iter()
            .find(|(number, _)| *number == self.number)
            .map_or((6, 0), |(_, version)| *version)
    }

    /// Whether it has a feature.
    pub(super) fn has(self, feature: Feature) -> bool {
        self.number >= feature.since().0
    }
}

impl fmt::Display for PtxTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sm_{}", self.number)
    }
}

/// Features that only some architectures have; the others use a longer sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Feature {
    /// `redux.sync`: otherwise a tree of shuffles.
    Redux,
    /// `cvt.rn.bf16.f32`: otherwise rounded with integers.
    Bf16Convert,
    /// `fma.rn.bf16`: otherwise in `f64`, rounded to odd.
    Bf16Fma,
    /// `min.f16`, `max.f16`: otherwise in `f32`.
    HalfExtremes,
    /// `mma.sync` of 16 rows for `f16`, `bf16`, TF32 and `s8`, of 8 rows for `f64`: otherwise a loop of fused products.
    TensorCores,
}

impl Feature {
    /// The first architecture and the first version of PTX that have it.
    pub(super) fn since(self) -> (u32, Version) {
        match self {
            Self::Redux | Self::Bf16Convert | Self::Bf16Fma | Self::HalfExtremes | Self::TensorCores => {
                (80, (7, 0))
            }
        }
    }
}

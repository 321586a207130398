//! What is wrong with a tensor map.

use std::fmt;

/// A tensor map that does not describe a tensor: the field, and the rule it breaks.
///
/// ```
/// use kiln_ptx::exec::{TensorElement, TensorMap, TensorMapField};
///
/// let error = TensorMap::tiled(0x1000, TensorElement::F32, &[64, 64], &[300, 8]).encode().unwrap_err();
/// assert_eq!((error.field, error.index), (TensorMapField::BoxDim, Some(0)));
/// assert_eq!(error.to_string(), "boxDim[0] of the tensor map is 300; it must be from 1 to 256");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}{} of the tensor map is {value}; it must be {rule}", Index(*index))]
pub struct TensorMapError {
    /// The field.
    pub field: TensorMapField,
    /// Which of its numbers, where it has several.
    pub index: Option<usize>,
    /// The number that is there.
    pub value: i64,
    /// What it must be.
    pub rule: TensorMapRule,
}

struct Index(Option<usize>);

impl fmt::Display for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |index| write!(f, "[{index}]"))
    }
}

/// A field of a tensor map, by the name of the parameter of `cuTensorMapEncodeTiled` or `cuTensorMapEncodeIm2col`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TensorMapField {
    /// The number of dimensions.
    TensorRank,
    /// The address of the first element.
    GlobalAddress,
    /// Elements in each dimension.
    GlobalDim,
    /// Bytes from one element to the next in each dimension but the first.
    GlobalStrides,
    /// Elements of the box in each dimension.
    BoxDim,
    /// Steps from one element of the box to the next.
    ElementStrides,
    /// How channels are kept apart in memory.
    Interleave,
    /// How the box is permuted in shared memory.
    Swizzle,
    /// What stands for elements outside of the tensor.
    OobFill,
    /// Where the pixels of a column begin.
    PixelBoxLowerCorner,
    /// Where they end.
    PixelBoxUpperCorner,
    /// Channels of each pixel.
    ChannelsPerPixel,
    /// Pixels of a column.
    PixelsPerColumn,
}

impl fmt::Display for TensorMapField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TensorRank => "tensorRank",
            Self::GlobalAddress => "globalAddress",
            Self::GlobalDim => "globalDim",
            Self::GlobalStrides => "globalStrides",
            Self::BoxDim => "boxDim",
            Self::ElementStrides => "elementStrides",
            Self::Interleave => "interleave",
            Self::Swizzle => "swizzle",
            Self::OobFill => "oobFill",
            Self::PixelBoxLowerCorner => "pixelBoxLowerCorner",
            Self::PixelBoxUpperCorner => "pixelBoxUpperCorner",
            Self::ChannelsPerPixel => "channelsPerPixel",
            Self::PixelsPerColumn => "pixelsPerColumn",
        })
    }
}

/// What a number of a tensor map must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TensorMapRule {
    /// From the first to the second, both included.
    Range(i64, i64),
    /// A multiple.
    MultipleOf(u32),
    /// Less than this.
    Below(u64),
    /// A list of so many numbers: the number that is there is that of those given.
    Count(usize),
    /// A number whose elements together have a multiple of 16 bytes.
    RowMultipleOf16,
    /// A number whose elements together have at most so many bytes: a row must fit into the span of the swizzle.
    RowWithin(u32),
    /// 0 (none) for tensors with fewer than three dimensions.
    NoInterleave,
    /// 1 (32 bytes), as an interleave of 32 bytes requires.
    Swizzle32,
    /// 0 (zeros) for elements that are integers.
    ZeroFill,
    /// A corner that leaves a box with pixels.
    NotEmpty,
}

impl fmt::Display for TensorMapRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Range(low, high) => write!(f, "from {low} to {high}"),
            Self::MultipleOf(bytes) => write!(f, "a multiple of {bytes}"),
            Self::Below(limit) => write!(f, "less than {limit}"),
            Self::Count(count) => write!(f, "a list of {count}: one number for each dimension it concerns"),
            Self::RowMultipleOf16 => {
                f.write_str("so many elements that a row of the box has a multiple of 16 bytes")
            }
            Self::RowWithin(bytes) => {
                write!(
                    f,
                    "so few elements that a row of the box has at most the {bytes} bytes of the swizzle"
                )
            }
            Self::NoInterleave => f.write_str("0 (none), or the tensor must have 3, 4 or 5 dimensions"),
            Self::Swizzle32 => f.write_str("1 (32 bytes) with an interleave of 32 bytes"),
            Self::ZeroFill => f.write_str("0 (zeros), or the elements must be floating-point numbers"),
            Self::NotEmpty => f.write_str("a corner that leaves at least one pixel in the box"),
        }
    }
}

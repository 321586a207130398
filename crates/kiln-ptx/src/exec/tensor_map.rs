//! Tensor maps: what a tensor copy (TMA) needs to know of a tensor and of the boxes that are copied.
//!
//! On a GPU the 128 bytes of a tensor map are a secret of the driver. Here they are a record that this crate writes and reads.

use super::tensor_element::TensorElement;
use super::tensor_map_error::{TensorMapError, TensorMapField, TensorMapRule};
use super::tensor_record::{MAX_RANK, TensorRecord};

/// A tensor in global memory, and the boxes of it that copies move. Dimensions are named from the innermost on.
///
/// ```
/// use kiln_ptx::exec::{TensorElement, TensorMap, TensorSwizzle};
///
/// // Tiles of 64 columns and 32 rows of a matrix of halves with 100 columns and 80 rows, in rows of 256 bytes.
/// let map = TensorMap::tiled(0x1000, TensorElement::F16, &[100, 80], &[64, 32])
///     .with_strides(&[256])
///     .with_swizzle(TensorSwizzle::B128);
/// assert_eq!(map.box_bytes(), 64 * 32 * 2);
/// let bytes = map.encode()?;
/// assert_eq!(TensorMap::read(&bytes), Some(map));
/// # Ok::<(), kiln_ptx::exec::TensorMapError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorMap {
    /// The address of the first element.
    pub address: u64,
    /// What an element is.
    pub element: TensorElement,
    /// Elements in each dimension, one to five of them.
    pub dimensions: Vec<u64>,
    /// Bytes from one element to the next in each dimension but the innermost.
    pub strides: Vec<u64>,
    /// What a copy moves.
    pub boxes: TensorBoxes,
    /// Steps from one element of a box to the next, in each dimension.
    pub element_strides: Vec<u32>,
    /// How channels are kept apart in memory.
    pub interleave: TensorInterleave,
    /// How a box is permuted in shared memory.
    pub swizzle: TensorSwizzle,
    /// What stands for elements outside of the tensor.
    pub fill: TensorFill,
}

/// What a copy moves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TensorBoxes {
    /// A box of the tensor, with so many elements in each dimension.
    Tile(Vec<u32>),
    /// A column of pixels, for a convolution.
    Im2col(TensorColumns),
}

/// Columns of pixels. Corners are named from the width on: width, height, depth, as many as the tensor has between its channels and its images.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorColumns {
    /// Where the pixels begin, counted from the first one.
    pub lower_corner: Vec<i32>,
    /// Where they end, counted from the last one.
    pub upper_corner: Vec<i32>,
    /// Channels of each pixel.
    pub channels: u32,
    /// Pixels of a column.
    pub pixels: u32,
}

/// How channels are kept apart in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum TensorInterleave {
    /// All channels of a pixel lie together.
    #[default]
    None,
    /// Slices of 16 bytes.
    B16,
    /// Slices of 32 bytes.
    B32,
}

/// How a box is permuted in shared memory: pieces of 16 bytes change places within so many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum TensorSwizzle {
    /// It is not.
    #[default]
    None,
    /// 32 bytes.
    B32,
    /// 64 bytes.
    B64,
    /// 128 bytes.
    B128,
}

impl TensorSwizzle {
    /// The bytes within which pieces change places; `None` without a swizzle.
    pub fn span_bytes(self) -> Option<u32> {
        match self {
            Self::None => None,
            Self::B32 => Some(32),
            Self::B64 => Some(64),
            Self::B128 => Some(128),
        }
    }

    /// The bytes after which the pattern repeats; shared memory is best aligned to them.
    pub fn pattern_bytes(self) -> u32 {
        match self {
            Self::None => 128,
            Self::B32 => 256,
            Self::B64 => 512,
            Self::B128 => 1024,
        }
    }

    /// Where a byte lies that would lie at an address of shared memory without the swizzle.
    ///
    /// ```
    /// use kiln_ptx::exec::TensorSwizzle;
    ///
    /// assert_eq!(TensorSwizzle::B128.place(0x400 + 3 * 128), 0x400 + 3 * 128 + 3 * 16);
    /// assert_eq!(TensorSwizzle::B32.place(0x400 + 3 * 128), 0x400 + 3 * 128 + 16);
    /// ```
    pub fn place(self, address: u64) -> u64 {
        let bits = match self {
            Self::None => 0,
            Self::B32 => 0x10,
            Self::B64 => 0x30,
            Self::B128 => 0x70,
        };
        address ^ (address >> 3 & bits)
    }
}

/// What stands for elements outside of the tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum TensorFill {
    /// Zeros.
    #[default]
    Zero,
    /// A NaN.
    Nan,
}

impl TensorMap {
    /// Bytes of a tensor map.
    pub const BYTES: u64 = 128;
    /// What its address is a multiple of.
    pub const ALIGN: u64 = 64;

    /// Boxes of a tensor whose rows lie one behind the other.
    pub fn tiled(address: u64, element: TensorElement, dimensions: &[u64], boxes: &[u32]) -> Self {
        Self::dense(address, element, dimensions, TensorBoxes::Tile(boxes.to_vec()))
    }

    /// Columns of pixels of such a tensor: channels, width, height, depth, images, of which height and depth may be missing.
    pub fn im2col(address: u64, element: TensorElement, dimensions: &[u64], columns: TensorColumns) -> Self {
        Self::dense(address, element, dimensions, TensorBoxes::Im2col(columns))
    }

    fn dense(address: u64, element: TensorElement, dimensions: &[u64], boxes: TensorBoxes) -> Self {
        let mut bytes = u64::from(element.bytes());
        let outer = dimensions.len().saturating_sub(1);
        let strides = dimensions.iter().take(outer).map(|size| {
            bytes = bytes.saturating_mul(*size);
            bytes
        });
        Self {
            address,
            element,
            strides: strides.collect(),
            dimensions: dimensions.to_vec(),
            boxes,
            element_strides: vec![1; dimensions.len()],
            interleave: TensorInterleave::None,
            swizzle: TensorSwizzle::None,
            fill: TensorFill::Zero,
        }
    }

    /// The same with other bytes from one element to the next, in each dimension but the innermost.
    #[must_use]
    pub fn with_strides(self, strides: &[u64]) -> Self {
        Self { strides: strides.to_vec(), ..self }
    }

    /// The same with steps from one element of a box to the next.
    #[must_use]
    pub fn with_element_strides(self, strides: &[u32]) -> Self {
        Self { element_strides: strides.to_vec(), ..self }
    }

    /// The same with a swizzle.
    #[must_use]
    pub fn with_swizzle(self, swizzle: TensorSwizzle) -> Self {
        Self { swizzle, ..self }
    }

    /// The same with an interleaved layout.
    #[must_use]
    pub fn with_interleave(self, interleave: TensorInterleave) -> Self {
        Self { interleave, ..self }
    }

    /// The same with another value for elements outside of the tensor.
    #[must_use]
    pub fn with_fill(self, fill: TensorFill) -> Self {
        Self { fill, ..self }
    }

    /// Bytes that one copy moves and an `mbarrier` object counts, elements outside of the tensor included.
    pub fn box_bytes(&self) -> u64 {
        self.record().map_or(0, |record| record.box_bytes())
    }

    /// Bytes from the first element of the tensor to the end of the last one.
    pub fn tensor_bytes(&self) -> u64 {
        let row = self.dimensions.first().map_or(0, |size| size.saturating_mul(self.element.bytes().into()));
        let outer = self.dimensions.iter().skip(1).zip(&self.strides);
        outer.fold(row, |bytes, (size, stride)| {
            bytes.saturating_add(size.saturating_sub(1).saturating_mul(*stride))
        })
    }

    /// Looks at all rules of CUDA.
    ///
    /// # Errors
    ///
    /// The first field that breaks a rule.
    pub fn check(&self) -> Result<(), TensorMapError> {
        self.record()?.check()
    }

    /// The bytes of the tensor map, as simulated devices read them.
    ///
    /// # Errors
    ///
    /// The first field that breaks a rule of CUDA.
    pub fn encode(&self) -> Result<[u8; 128], TensorMapError> {
        let record = self.record()?;
        record.check()?;
        Ok(record.to_bytes())
    }

    /// The tensor map that [`encode`](Self::encode) wrote; `None` if the bytes are none.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let record = TensorRecord::read(bytes)?;
        let rank = record.rank as usize;
        let inner = rank.saturating_sub(2).min(3);
        let boxes = match record.im2col {
            false => TensorBoxes::Tile(record.box_dim.iter().take(rank).copied().collect()),
            true => TensorBoxes::Im2col(TensorColumns {
                lower_corner: record.lower.iter().take(inner).copied().collect(),
                upper_corner: record.upper.iter().take(inner).copied().collect(),
                channels: record.channels,
                pixels: record.pixels,
            }),
        };
        Some(Self {
            address: record.address,
            element: record.element,
            dimensions: record.dimensions.iter().take(rank).copied().collect(),
            strides: record.strides.iter().take(rank.saturating_sub(1)).copied().collect(),
            boxes,
            element_strides: record.element_strides.iter().take(rank).copied().collect(),
            interleave: record.interleave,
            swizzle: record.swizzle,
            fill: record.fill,
        })
    }

    fn record(&self) -> Result<TensorRecord, TensorMapError> {
        let rank = self.dimensions.len();
        if !(1..=MAX_RANK).contains(&rank) {
            let rule = TensorMapRule::Range(1, MAX_RANK as i64);
            return Err(TensorMapError {
                field: TensorMapField::TensorRank,
                index: None,
                value: rank as i64,
                rule,
            });
        }
        let mut record = TensorRecord::new(self.address, self.element, rank as u32);
        fill(TensorMapField::GlobalDim, &mut record.dimensions, &self.dimensions, rank)?;
        fill(TensorMapField::GlobalStrides, &mut record.strides, &self.strides, rank - 1)?;
        fill(TensorMapField::ElementStrides, &mut record.element_strides, &self.element_strides, rank)?;
        match &self.boxes {
            TensorBoxes::Tile(boxes) => fill(TensorMapField::BoxDim, &mut record.box_dim, boxes, rank)?,
            TensorBoxes::Im2col(columns) => {
                let inner = rank.saturating_sub(2);
                record.im2col = true;
                fill(TensorMapField::PixelBoxLowerCorner, &mut record.lower, &columns.lower_corner, inner)?;
                fill(TensorMapField::PixelBoxUpperCorner, &mut record.upper, &columns.upper_corner, inner)?;
                (record.channels, record.pixels) = (columns.channels, columns.pixels);
            }
        }
        (record.interleave, record.swizzle, record.fill) = (self.interleave, self.swizzle, self.fill);
        Ok(record)
    }
}

/// Copies a list of numbers that must have a length.
fn fill<T: Copy>(
    field: TensorMapField,
    to: &mut [T],
    from: &[T],
    count: usize,
) -> Result<(), TensorMapError> {
    if from.len() != count {
        let rule = TensorMapRule::Count(count);
        return Err(TensorMapError { field, index: None, value: from.len() as i64, rule });
    }
    to.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
    Ok(())
}

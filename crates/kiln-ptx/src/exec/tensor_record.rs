//! The bytes of a tensor map, and the rules that its numbers keep.

use super::tensor_element::TensorElement;
use super::tensor_map::{TensorFill, TensorInterleave, TensorSwizzle};
use super::tensor_map_error::{TensorMapError, TensorMapField as Field, TensorMapRule as Rule};

/// The most dimensions of a tensor.
pub(crate) const MAX_RANK: usize = 5;
/// Bytes of a tensor map.
pub(crate) const MAP_BYTES: usize = 128;
/// What tells a tensor map from other bytes.
const MAGIC: [u8; 8] = *b"kilnTMA\x01";
/// What strides and rows of a box are multiples of.
const GRANULE: u64 = 16;
/// The most elements of a box in one dimension.
const MAX_BOX: i64 = 256;
/// The most elements of a tensor in one dimension.
const MAX_DIMENSION: u64 = 1 << 32;
/// Strides are less than this.
const STRIDE_LIMIT: u64 = 1 << 40;

/// The numbers of a tensor map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TensorRecord {
    pub(crate) address: u64,
    pub(crate) dimensions: [u64; MAX_RANK],
    pub(crate) strides: [u64; MAX_RANK - 1],
    pub(crate) box_dim: [u32; MAX_RANK],
    pub(crate) element_strides: [u32; MAX_RANK],
    pub(crate) lower: [i32; 3],
    pub(crate) upper: [i32; 3],
    pub(crate) channels: u32,
    pub(crate) pixels: u32,
    pub(crate) rank: u32,
    pub(crate) element: TensorElement,
    pub(crate) interleave: TensorInterleave,
    pub(crate) swizzle: TensorSwizzle,
    pub(crate) fill: TensorFill,
    pub(crate) im2col: bool,
}

impl TensorRecord {
    pub(crate) fn new(address: u64, element: TensorElement, rank: u32) -> Self {
        Self {
            address,
            dimensions: [1; MAX_RANK],
            strides: [0; MAX_RANK - 1],
            box_dim: [1; MAX_RANK],
            element_strides: [1; MAX_RANK],
            lower: [0; 3],
            upper: [0; 3],
            channels: 1,
            pixels: 1,
            rank,
            element,
            interleave: TensorInterleave::None,
            swizzle: TensorSwizzle::None,
            fill: TensorFill::Zero,
            im2col: false,
        }
    }

    /// The bytes of the map. The address comes first.
    pub(crate) fn to_bytes(self) -> [u8; MAP_BYTES] {
        let mut bytes = Vec::with_capacity(MAP_BYTES);
        bytes.extend(self.address.to_le_bytes());
        bytes.extend(MAGIC);
        // The largest number of elements does not fit: it is written as zero.
        self.dimensions.iter().for_each(|size| bytes.extend((*size as u32).to_le_bytes()));
        self.strides.iter().for_each(|stride| bytes.extend(stride.to_le_bytes()));
        self.box_dim.iter().for_each(|size| bytes.extend((*size as u16).to_le_bytes()));
        self.element_strides.iter().for_each(|stride| bytes.push(*stride as u8));
        self.lower.iter().chain(&self.upper).for_each(|at| bytes.extend((*at as i16).to_le_bytes()));
        bytes.extend((self.channels as u16).to_le_bytes());
        bytes.extend((self.pixels as u16).to_le_bytes());
        bytes.extend([self.rank as u8, self.element.code(), self.interleave as u8, self.swizzle as u8]);
        bytes.extend([self.fill as u8, u8::from(self.im2col)]);
        let mut map = [0; MAP_BYTES];
        map.iter_mut().zip(bytes).for_each(|(to, from)| *to = from);
        map
    }

    /// The record that bytes hold, if they are a tensor map.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let mut rest = Reader(bytes);
        let address = rest.number(8)?;
        if rest.take(8)? != MAGIC {
            return None;
        }
        let mut record = Self::new(address, TensorElement::U8, 0);
        for size in &mut record.dimensions {
            *size = match rest.number(4)? {
                0 => MAX_DIMENSION,
                size => size,
            };
        }
        for stride in &mut record.strides {
            *stride = rest.number(8)?;
        }
        for size in &mut record.box_dim {
            *size = rest.number(2)? as u32;
        }
        for stride in &mut record.element_strides {
            *stride = rest.number(1)? as u32;
        }
        for at in record.lower.iter_mut().chain(&mut record.upper) {
            *at = i32::from(rest.number(2)? as u16 as i16);
        }
        (record.channels, record.pixels) = (rest.number(2)? as u32, rest.number(2)? as u32);
        record.rank = rest.number(1)? as u32;
        record.element = TensorElement::of_code(rest.number(1)? as u8)?;
        record.interleave = interleave(rest.number(1)?)?;
        record.swizzle = swizzle(rest.number(1)?)?;
        record.fill = fill(rest.number(1)?)?;
        record.im2col = rest.number(1)? != 0;
        Some(record)
    }

    /// Bytes of a row of the box: the elements that lie together.
    pub(crate) fn row_bytes(&self) -> u64 {
        let elements = if self.im2col { self.channels } else { self.box_dim[0] };
        u64::from(elements) * u64::from(self.element.bytes())
    }

    /// Bytes from one row of the box to the next in shared memory: a swizzle gives each row as many as it exchanges pieces in.
    pub(crate) fn pitch_bytes(&self) -> u64 {
        self.swizzle.span_bytes().map_or(0, u64::from).max(self.row_bytes())
    }

    /// Bytes from the first row of the box in shared memory to the end of the last one.
    pub(crate) fn shared_bytes(&self) -> u64 {
        let before = self.rows().saturating_sub(1).saturating_mul(self.pitch_bytes());
        before.saturating_add(self.row_bytes())
    }

    /// The address behind the last element of the tensor.
    pub(crate) fn end(&self) -> u64 {
        let outer =
            (1..self.rank as usize).map(|at| (self.dimensions[at] - 1).wrapping_mul(self.strides[at - 1]));
        let row = self.dimensions[0].wrapping_mul(self.element.bytes().into());
        outer.fold(self.address.wrapping_add(row), u64::wrapping_add)
    }

    /// Elements of the box in a dimension.
    pub(crate) fn box_size(&self, dimension: usize) -> u64 {
        let size = u64::from(self.box_dim.get(dimension).copied().unwrap_or(1));
        match dimension {
            0 => size,
            _ => size.div_ceil(u64::from(self.step(dimension))),
        }
    }

    /// Steps from one element of the box to the next. That of the innermost dimension counts for interleaved tensors alone.
    pub(crate) fn step(&self, dimension: usize) -> u32 {
        match dimension {
            0 => 1,
            _ => self.element_strides.get(dimension).map_or(1, |step| (*step).max(1)),
        }
    }

    /// Rows of the box.
    pub(crate) fn rows(&self) -> u64 {
        match self.im2col {
            true => u64::from(self.pixels),
            false => (1..self.rank as usize).map(|dimension| self.box_size(dimension)).product(),
        }
    }

    /// Bytes of the box.
    pub(crate) fn box_bytes(&self) -> u64 {
        self.row_bytes().saturating_mul(self.rows())
    }

    /// Looks at the rules of `cuTensorMapEncodeTiled` and `cuTensorMapEncodeIm2col`.
    pub(crate) fn check(&self) -> Result<(), TensorMapError> {
        let least = if self.im2col { 3 } else { 1 };
        require(Field::TensorRank, None, i64::from(self.rank), Rule::Range(least, MAX_RANK as i64))?;
        let rank = self.rank as usize;
        let has_slices = self.interleave != TensorInterleave::None;
        if has_slices && rank < 3 {
            return Err(broken(Field::Interleave, None, self.interleave as i64, Rule::NoInterleave));
        }
        let granule = if self.interleave == TensorInterleave::B32 { 2 * GRANULE } else { GRANULE };
        if !self.address.is_multiple_of(granule) {
            let rule = Rule::MultipleOf(granule as u32);
            return Err(broken(Field::GlobalAddress, None, self.address as i64, rule));
        }
        for (at, size) in self.dimensions.iter().enumerate().take(rank) {
            require(Field::GlobalDim, Some(at), *size as i64, Rule::Range(1, MAX_DIMENSION as i64))?;
        }
        for (at, stride) in self.strides.iter().enumerate().take(rank - 1) {
            let broken = |rule| Err(broken(Field::GlobalStrides, Some(at), *stride as i64, rule));
            if !stride.is_multiple_of(granule) {
                return broken(Rule::MultipleOf(granule as u32));
            }
            if *stride >= STRIDE_LIMIT {
                return broken(Rule::Below(STRIDE_LIMIT));
            }
        }
        let first = usize::from(!has_slices);
        for (at, step) in self.element_strides.iter().enumerate().take(rank).skip(first) {
            require(Field::ElementStrides, Some(at), i64::from(*step), Rule::Range(1, 8))?;
        }
        match self.im2col {
            true => self.check_columns(rank)?,
            false => {
                for (at, size) in self.box_dim.iter().enumerate().take(rank) {
                    require(Field::BoxDim, Some(at), i64::from(*size), Rule::Range(1, MAX_BOX))?;
                }
            }
        }
        self.check_rows(has_slices)?;
        if self.fill == TensorFill::Nan && !self.element.is_float() {
            return Err(broken(Field::OobFill, None, self.fill as i64, Rule::ZeroFill));
        }
        Ok(())
    }

    fn check_columns(&self, rank: usize) -> Result<(), TensorMapError> {
        let limit = match rank {
            3 => 1 << 15,
            4 => 1 << 7,
            _ => 1 << 4,
        };
        for at in 0..rank - 2 {
            let (lower, upper) = (i64::from(self.lower[at]), i64::from(self.upper[at]));
            require(Field::PixelBoxLowerCorner, Some(at), lower, Rule::Range(-limit, limit - 1))?;
            require(Field::PixelBoxUpperCorner, Some(at), upper, Rule::Range(-limit, limit - 1))?;
            if self.dimensions[at + 1] as i64 + upper - lower <= 0 {
                return Err(broken(Field::PixelBoxUpperCorner, Some(at), upper, Rule::NotEmpty));
            }
        }
        require(Field::ChannelsPerPixel, None, i64::from(self.channels), Rule::Range(1, MAX_BOX))?;
        require(Field::PixelsPerColumn, None, i64::from(self.pixels), Rule::Range(1, 1024))
    }

    /// What a row of the box must be.
    fn check_rows(&self, has_slices: bool) -> Result<(), TensorMapError> {
        if self.interleave == TensorInterleave::B32 && self.swizzle != TensorSwizzle::B32 {
            return Err(broken(Field::Swizzle, None, self.swizzle as i64, Rule::Swizzle32));
        }
        if has_slices {
            return Ok(());
        }
        let (field, at, value) = match self.im2col {
            true => (Field::ChannelsPerPixel, None, self.channels),
            false => (Field::BoxDim, Some(0), self.box_dim[0]),
        };
        let broken = |rule| Err(broken(field, at, i64::from(value), rule));
        if !self.row_bytes().is_multiple_of(GRANULE) {
            return broken(Rule::RowMultipleOf16);
        }
        match self.swizzle.span_bytes() {
            Some(span) if self.row_bytes() > u64::from(span) => broken(Rule::RowWithin(span)),
            _ => Ok(()),
        }
    }
}

/// The layout of a number, as `tensormap.replace` counts them.
pub(crate) fn interleave(code: u64) -> Option<TensorInterleave> {
    [TensorInterleave::None, TensorInterleave::B16, TensorInterleave::B32]
        .get(usize::try_from(code).ok()?)
        .copied()
}

/// The swizzle of a number.
pub(crate) fn swizzle(code: u64) -> Option<TensorSwizzle> {
    let all = [TensorSwizzle::None, TensorSwizzle::B32, TensorSwizzle::B64, TensorSwizzle::B128];
    all.get(usize::try_from(code).ok()?).copied()
}

/// The fill of a number.
pub(crate) fn fill(code: u64) -> Option<TensorFill> {
    [TensorFill::Zero, TensorFill::Nan].get(usize::try_from(code).ok()?).copied()
}

fn broken(field: Field, index: Option<usize>, value: i64, rule: Rule) -> TensorMapError {
    TensorMapError { field, index, value, rule }
}

fn require(field: Field, index: Option<usize>, value: i64, rule: Rule) -> Result<(), TensorMapError> {
    match rule {
        Rule::Range(low, high) if !(low..=high).contains(&value) => Err(broken(field, index, value, rule)),
        _ => Ok(()),
    }
}

/// Takes bytes apart.
struct Reader<'b>(&'b [u8]);

impl<'b> Reader<'b> {
    fn take(&mut self, count: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self, bytes: usize) -> Option<u64> {
        Some(self.take(bytes)?.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }
}

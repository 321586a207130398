//! What an array holds: its texels, rows, slices and layers.
//!
//! An array of a simulated device is memory whose rows and slices lie one behind the other, as its textures read them.

use std::ffi::c_uint;

use cudarc::driver::sys;
use kiln_driver::Code;
use kiln_ptx::exec::{TexelFormat, TexelKind};

use crate::boundary::Answer;
use crate::records;

pub(crate) const LAYERED: c_uint = sys::CUDA_ARRAY3D_LAYERED;
pub(crate) const SURFACE: c_uint = sys::CUDA_ARRAY3D_SURFACE_LDST;
pub(crate) const CUBEMAP: c_uint = sys::CUDA_ARRAY3D_CUBEMAP;
const GATHER: c_uint = sys::CUDA_ARRAY3D_TEXTURE_GATHER;
/// What is made like any other array here.
const KNOWN_FLAGS: c_uint = LAYERED | SURFACE | CUBEMAP | GATHER;
const SPARSE: c_uint = sys::CUDA_ARRAY3D_SPARSE;
const DEFERRED: c_uint = sys::CUDA_ARRAY3D_DEFERRED_MAPPING;
/// Formats with larger numbers than those of numbers begin here.
const FIRST_OTHER_FORMAT: c_uint = 0x50;
const FACES: usize = 6;

/// The most texels of each dimension, by the number of dimensions, and the most layers.
const MOST_1D: usize = 131_072;
const MOST_2D: [usize; 2] = [131_072, 65_536];
const MOST_3D: usize = 16_384;
const MOST_LAYERED: usize = 32_768;
const MOST_LAYERS: usize = 2_048;

/// The structure `CUDA_ARRAY_DESCRIPTOR`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Plane {
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) format: c_uint,
    pub(crate) channels: c_uint,
}

/// The structure `CUDA_ARRAY3D_DESCRIPTOR`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct ArrayShape {
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) depth: usize,
    pub(crate) format: c_uint,
    pub(crate) channels: c_uint,
    pub(crate) flags: c_uint,
}

const _: () = assert!(size_of::<Plane>() == size_of::<sys::CUDA_ARRAY_DESCRIPTOR>());
const _: () = assert!(size_of::<ArrayShape>() == size_of::<sys::CUDA_ARRAY3D_DESCRIPTOR>());

impl From<Plane> for ArrayShape {
    fn from(Plane { width, height, format, channels }: Plane) -> Self {
        Self { width, height, depth: 0, format, channels, flags: 0 }
    }
}

/// What a texel is, by the numbers of the API.
pub(crate) fn texel_format(format: c_uint, channels: c_uint) -> Answer<TexelFormat> {
    use sys::CUarray_format as F;
    let all = [
        (F::CU_AD_FORMAT_UNSIGNED_INT8, TexelKind::U8),
        (F::CU_AD_FORMAT_UNSIGNED_INT16, TexelKind::U16),
        (F::CU_AD_FORMAT_UNSIGNED_INT32, TexelKind::U32),
        (F::CU_AD_FORMAT_SIGNED_INT8, TexelKind::S8),
        (F::CU_AD_FORMAT_SIGNED_INT16, TexelKind::S16),
        (F::CU_AD_FORMAT_SIGNED_INT32, TexelKind::S32),
        (F::CU_AD_FORMAT_HALF, TexelKind::F16),
        (F::CU_AD_FORMAT_FLOAT, TexelKind::F32),
    ];
    let known = all.iter().find(|(number, _)| *number as c_uint == format);
    let (_, kind) = known.ok_or_else(|| {
        // Formats of video, of compressed blocks and of normalized channels.
        if format >= FIRST_OTHER_FORMAT {
            let text = format!(
                "an array or texture of format {format:#x} was asked for, and kiln has the formats of 8, 16 and 32 bits per channel"
            );
            records::note_once(&text, &text);
            return Code::NOT_SUPPORTED;
        }
        Code::INVALID_VALUE
    })?;
    if !matches!(channels, 1 | 2 | 4) {
        return Err(Code::INVALID_VALUE);
    }
    Ok(TexelFormat { kind: *kind, channels })
}

impl ArrayShape {
    /// Refuses what no array can be.
    pub(crate) fn check(&self) -> Answer {
        texel_format(self.format, self.channels)?;
        if self.flags & (SPARSE | DEFERRED) != 0 {
            records::note_once(
                "sparse arrays",
                "an array with sparse or deferred mapping was asked for, which kiln does not have",
            );
            return Err(Code::NOT_SUPPORTED);
        }
        let [width, height, depth] = [self.width, self.height, self.depth];
        let is = |flag: c_uint| self.flags & flag != 0;
        let fits = match (is(LAYERED), is(CUBEMAP)) {
            (_, true) => {
                width == height
                    && width <= MOST_LAYERED
                    && if is(LAYERED) { depth > 0 && depth.is_multiple_of(FACES) } else { depth == FACES }
            }
            (true, false) => {
                width <= MOST_LAYERED && height <= MOST_LAYERED && (1..=MOST_LAYERS).contains(&depth)
            }
            (false, false) if depth > 0 => {
                height > 0 && [width, height, depth].iter().all(|of| *of <= MOST_3D)
            }
            (false, false) if height > 0 => width <= MOST_2D[0] && height <= MOST_2D[1],
            (false, false) => width <= MOST_1D,
        };
        let is_known = self.flags & !KNOWN_FLAGS == 0;
        let gathers_well = !is(GATHER) || height > 0 && depth == 0;
        if width > 0 && fits && is_known && gathers_well { Ok(()) } else { Err(Code::INVALID_VALUE) }
    }

    /// Bytes of a texel.
    pub(crate) fn texel_bytes(&self) -> u64 {
        texel_format(self.format, self.channels).map_or(1, |format| format.bytes().into())
    }

    pub(crate) fn row_bytes(&self) -> u64 {
        self.width as u64 * self.texel_bytes()
    }

    /// Rows of a slice or layer.
    pub(crate) fn rows(&self) -> u64 {
        self.height.max(1) as u64
    }

    /// Slices or layers.
    pub(crate) fn slices(&self) -> u64 {
        self.depth.max(1) as u64
    }

    pub(crate) fn slice_bytes(&self) -> u64 {
        self.row_bytes() * self.rows()
    }

    /// All bytes, if there can be so many.
    pub(crate) fn bytes(&self) -> Answer<u64> {
        self.slice_bytes().checked_mul(self.slices()).ok_or(Code::INVALID_VALUE)
    }

    /// Layers, the faces of cubes included.
    pub(crate) fn layers(&self) -> u32 {
        if self.flags & (LAYERED | CUBEMAP) != 0 { self.depth as u32 } else { 1 }
    }

    /// The extent of a layer in texels.
    pub(crate) fn extent(&self) -> [u32; 3] {
        let depth = if self.layers() > 1 || self.flags & LAYERED != 0 { 1 } else { self.slices() as u32 };
        [self.width as u32, self.rows() as u32, depth]
    }

    /// The same array with half the texels in each direction, so often.
    pub(crate) fn level(&self, level: u32) -> Self {
        let half = |of: usize| if of == 0 { 0 } else { (of >> level).max(1) };
        let depth = if self.flags & (LAYERED | CUBEMAP) != 0 { self.depth } else { half(self.depth) };
        Self { width: half(self.width), height: half(self.height), depth, ..*self }
    }

    /// How many levels there can be.
    pub(crate) fn most_levels(&self) -> u32 {
        let depth = if self.flags & (LAYERED | CUBEMAP) != 0 { 1 } else { self.depth };
        usize::BITS - self.width.max(self.height).max(depth).leading_zeros()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(width: usize, height: usize, depth: usize, flags: c_uint) -> ArrayShape {
        ArrayShape { width, height, depth, format: 0x20, channels: 4, flags }
    }

    #[test]
    fn shapes_are_those_of_the_api() {
        for good in [
            shape(7, 0, 0, 0),
            shape(7, 5, 0, 0),
            shape(7, 5, 3, 0),
            shape(7, 0, 3, LAYERED),
            shape(7, 7, 12, LAYERED | CUBEMAP),
            shape(7, 7, 6, CUBEMAP),
        ] {
            assert_eq!(good.check(), Ok(()));
        }
        for bad in [
            shape(0, 5, 0, 0),
            shape(7, 0, 3, 0),
            shape(7, 5, 6, CUBEMAP),
            shape(7, 7, 5, CUBEMAP),
            shape(7, 7, 0, LAYERED),
            shape(7, 5, 0, 1 << 20),
        ] {
            assert_eq!(bad.check(), Err(Code::INVALID_VALUE));
        }
        assert_eq!(ArrayShape { channels: 3, ..shape(7, 5, 0, 0) }.check(), Err(Code::INVALID_VALUE));
        assert_eq!(ArrayShape { format: 5, ..shape(7, 5, 0, 0) }.check(), Err(Code::INVALID_VALUE));
        assert_eq!(ArrayShape { format: 0xb0, ..shape(7, 5, 0, 0) }.check(), Err(Code::NOT_SUPPORTED));
    }

    #[test]
    fn bytes_are_counted_row_by_row() {
        let layered = shape(7, 5, 3, LAYERED);
        assert_eq!((layered.row_bytes(), layered.slice_bytes(), layered.bytes()), (112, 560, Ok(1680)));
        assert_eq!((layered.extent(), layered.layers()), ([7, 5, 1], 3));
        assert_eq!((shape(7, 5, 3, 0).extent(), shape(7, 5, 3, 0).layers()), ([7, 5, 3], 1));
        assert_eq!((layered.level(2).extent(), layered.most_levels()), ([1, 1, 1], 3));
    }
}

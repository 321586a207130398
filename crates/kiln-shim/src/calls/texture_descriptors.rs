//! The structures that describe textures and surfaces, and what they show.

use std::ffi::{c_int, c_uint};

use cudarc::driver::sys;
use kiln_driver::Code;
use kiln_ptx::exec::{TexelFormat, TexelKind};

use crate::boundary::Answer;
use crate::calls::array_shape::texel_format;
use crate::calls::arrays::{array, mipmapped};
use crate::calls::process_state::ProcessState;
use crate::records;

const ARRAY: c_uint = sys::CUresourcetype::CU_RESOURCE_TYPE_ARRAY as c_uint;
const MIPMAPPED: c_uint = sys::CUresourcetype::CU_RESOURCE_TYPE_MIPMAPPED_ARRAY as c_uint;
const LINEAR: c_uint = sys::CUresourcetype::CU_RESOURCE_TYPE_LINEAR as c_uint;
const PITCHED: c_uint = sys::CUresourcetype::CU_RESOURCE_TYPE_PITCH2D as c_uint;
/// Textures begin at multiples of this, and their rows at multiples of that.
const START_BYTES: u64 = 512;
const ROW_BYTES: u64 = 32;
pub(crate) const MOST_LINE_TEXELS: u64 = 1 << 30;
const MOST_PITCHED: [usize; 2] = [131_072, 65_000];
const MOST_PITCH_BYTES: usize = 2_097_120;

/// The structure `CUDA_RESOURCE_DESC`, with its union as words.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Resource {
    kind: c_uint,
    padding: c_uint,
    words: [u64; 16],
    flags: c_uint,
    rest: c_uint,
}

/// The structure `CUDA_TEXTURE_DESC`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Sampling {
    pub(crate) address_modes: [c_uint; 3],
    filter: c_uint,
    pub(crate) flags: c_uint,
    anisotropy: c_uint,
    mipmap_filter: c_uint,
    level_bias: f32,
    level_range: [f32; 2],
    pub(crate) border: [f32; 4],
    rest: [c_int; 12],
}

/// The structure `CUDA_RESOURCE_VIEW_DESC`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct View {
    format: c_uint,
    width: usize,
    height: usize,
    depth: usize,
    levels: [c_uint; 2],
    layers: [c_uint; 2],
    rest: [c_uint; 16],
}

const _: () = assert!(size_of::<Resource>() == size_of::<sys::CUDA_RESOURCE_DESC>());
const _: () = assert!(size_of::<Sampling>() == size_of::<sys::CUDA_TEXTURE_DESC>());
const _: () = assert!(size_of::<View>() == size_of::<sys::CUDA_RESOURCE_VIEW_DESC>());

/// The memory behind a texture or surface.
pub(crate) struct Shown {
    pub(crate) address: u64,
    pub(crate) extent: [u32; 3],
    pub(crate) layers: u32,
    pub(crate) row_bytes: u64,
    pub(crate) slice_bytes: u64,
    pub(crate) format: TexelFormat,
    /// Whether it is memory without rows, which is read by index.
    pub(crate) is_line: bool,
    /// The flags of the array, if it is one.
    pub(crate) array_flags: Option<c_uint>,
}

impl Resource {
    fn word(&self, index: usize) -> u64 {
        self.words.get(index).copied().unwrap_or(0)
    }

    /// What it names.
    pub(crate) fn shown(&self, state: &ProcessState) -> Answer<Shown> {
        state.backend.machine("cuTexObjectCreate and cuSurfObjectCreate")?;
        if self.flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        match self.kind {
            ARRAY => of_array(state, self.word(0) as usize),
            MIPMAPPED => {
                let mipmapped = mipmapped(state, self.word(0) as usize)?;
                if let [level] = mipmapped.levels.as_slice() {
                    return of_array(state, *level);
                }
                records::note_once(
                    "levels of detail",
                    "a texture with more than one level of detail was asked for, which kiln does not have; make one of a level, which \
                     cuMipmappedArrayGetLevel gives",
                );
                Err(Code::NOT_SUPPORTED)
            }
            LINEAR => self.line(state),
            PITCHED => self.pitched(state),
            _ => Err(Code::INVALID_VALUE),
        }
    }

    /// The format of memory, and its first address.
    fn texels(&self) -> Answer<(u64, TexelFormat)> {
        let [format, channels] = [self.word(1) as u32, (self.word(1) >> 32) as u32];
        let address = self.word(0);
        if !address.is_multiple_of(START_BYTES) {
            return Err(Code::INVALID_VALUE);
        }
        Ok((address, texel_format(format, channels)?))
    }

    fn line(&self, state: &ProcessState) -> Answer<Shown> {
        let ((address, format), bytes) = (self.texels()?, self.word(2));
        let texels = bytes / u64::from(format.bytes());
        if texels == 0 || texels > MOST_LINE_TEXELS {
            return Err(Code::INVALID_VALUE);
        }
        state.memory.find(address, bytes)?;
        Ok(Shown {
            address,
            extent: [texels as u32, 1, 1],
            layers: 1,
            row_bytes: bytes,
            slice_bytes: bytes,
            format,
            is_line: true,
            array_flags: None,
        })
    }

    fn pitched(&self, state: &ProcessState) -> Answer<Shown> {
        let (address, format) = self.texels()?;
        let [width, height, pitch] = [self.word(2), self.word(3), self.word(4)].map(|word| word as usize);
        let needed = width as u64 * u64::from(format.bytes());
        let fits = (1..=MOST_PITCHED[0]).contains(&width)
            && (1..=MOST_PITCHED[1]).contains(&height)
            && pitch <= MOST_PITCH_BYTES
            && (pitch as u64).is_multiple_of(ROW_BYTES)
            && pitch as u64 >= needed;
        if !fits {
            return Err(Code::INVALID_VALUE);
        }
        let (row_bytes, last) = (pitch as u64, (height as u64 - 1) * pitch as u64);
        state.memory.find(address, last + needed)?;
        Ok(Shown {
            address,
            extent: [width as u32, height as u32, 1],
            layers: 1,
            row_bytes,
            slice_bytes: row_bytes * height as u64,
            format,
            is_line: false,
            array_flags: None,
        })
    }
}

fn of_array(state: &ProcessState, handle: usize) -> Answer<Shown> {
    let array = array(state, handle)?;
    let shape = &array.shape;
    Ok(Shown {
        address: array.address,
        extent: shape.extent(),
        layers: shape.layers(),
        row_bytes: shape.row_bytes(),
        slice_bytes: shape.slice_bytes(),
        format: texel_format(shape.format, shape.channels)?,
        is_line: false,
        array_flags: Some(shape.flags),
    })
}

impl Sampling {
    /// Whether texels are blended.
    pub(crate) fn is_linear(&self) -> Answer<bool> {
        match self.filter {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Code::INVALID_VALUE),
        }
    }

    /// Whether a kernel gets integers, which are not blended.
    pub(crate) fn gives_integers(&self, shown: &Shown) -> bool {
        let reads_integers = self.flags & sys::CU_TRSF_READ_AS_INTEGER != 0;
        match shown.format.kind {
            TexelKind::F16 | TexelKind::F32 => false,
            TexelKind::U32 | TexelKind::S32 => true,
            _ => reads_integers,
        }
    }
}

impl View {
    /// What a texture without a view tells.
    pub(crate) const NONE: Self =
        Self { format: 0, width: 0, height: 0, depth: 0, levels: [0; 2], layers: [0; 2], rest: [0; 16] };

    /// The part of a resource that it shows, in its format.
    pub(crate) fn of(&self, shown: Shown) -> Answer<Shown> {
        let format = self.texel_format(shown.format)?;
        let [width, height, depth] = shown.extent.map(|of| of as usize);
        // A dimension that the resource does not have is 0 or 1 here.
        let fits = self.width == width
            && (self.height == height || self.height == 0 && height == 1)
            && (self.depth == depth || self.depth == 0 && depth == 1 || shown.layers > 1);
        let [first, last] = self.layers;
        let has_layers = first <= last && last < shown.layers;
        if !fits || self.levels != [0, 0] || !has_layers || format.bytes() != shown.format.bytes() {
            return Err(Code::INVALID_VALUE);
        }
        let address = shown.address + u64::from(first) * shown.slice_bytes;
        Ok(Shown { address, layers: last - first + 1, format, ..shown })
    }

    /// The formats of views come in groups of 1, 2 and 4 channels.
    fn texel_format(&self, own: TexelFormat) -> Answer<TexelFormat> {
        const KINDS: [TexelKind; 8] = [
            TexelKind::U8,
            TexelKind::S8,
            TexelKind::U16,
            TexelKind::S16,
            TexelKind::U32,
            TexelKind::S32,
            TexelKind::F16,
            TexelKind::F32,
        ];
        let Some(number) = self.format.checked_sub(1) else { return Ok(own) };
        match KINDS.get(number as usize / 3) {
            Some(kind) => Ok(TexelFormat { kind: *kind, channels: 1 << (number % 3) }),
            // Compressed blocks.
            None if number < 34 => Err(Code::NOT_SUPPORTED),
            None => Err(Code::INVALID_VALUE),
        }
    }
}

//! Texture and surface objects: what a handle stands for.
//!
//! On a GPU the driver keeps them. Here an object is a record of [`TextureObject::BYTES`] in global memory, and its handle is the address of that record, so that
//! an upload binds a texture. The texels lie in global memory too, row after row, and accesses to them are checked as all others are.

/// A texture or surface.
///
/// ```
/// use kiln_ptx::exec::{TexelFormat, TexelKind, TextureObject};
///
/// let format = TexelFormat { kind: TexelKind::F32, channels: 1 };
/// let image = TextureObject::image(0x1000, format, [64, 32, 1]);
/// assert_eq!((image.row_bytes, image.slice_bytes), (256, 8192));
/// assert_eq!(TextureObject::read(&image.record()), Some(image));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TextureObject {
    /// The address of the first texel.
    pub texels: u64,
    /// Texels in each dimension; 1 for those that it does not have.
    pub extent: [u32; 3],
    /// Layers of an array, faces of a cube included: 6 for each cube.
    pub layers: u32,
    /// Bytes from one row to the next.
    pub row_bytes: u64,
    /// Bytes from one slice of a volume, or one layer, to the next.
    pub slice_bytes: u64,
    /// What a texel is.
    pub format: TexelFormat,
    /// How it is sampled.
    pub sampler: TextureSampler,
}

/// What a texel is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TexelFormat {
    /// The type of each channel.
    pub kind: TexelKind,
    /// Channels: 1, 2 or 4.
    pub channels: u32,
}

/// The type of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TexelKind {
    /// 8 bits, unsigned.
    U8,
    /// 8 bits, signed.
    S8,
    /// 16 bits, unsigned.
    U16,
    /// 16 bits, signed.
    S16,
    /// 32 bits, unsigned.
    U32,
    /// 32 bits, signed.
    S32,
    /// Half precision.
    F16,
    /// Single precision.
    F32,
}

/// How a texture is sampled.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TextureSampler {
    /// What is read outside of the texture, for each dimension.
    pub address: [AddressMode; 3],
    /// Whether the nearest texels are blended.
    pub linear: bool,
    /// Whether coordinates go from 0 to 1 and not to the number of texels.
    pub normalized: bool,
    /// Whether integers of 8 and 16 bits are read as numbers from 0 or -1 to 1.
    pub as_fraction: bool,
    /// What is read outside under [`AddressMode::Border`].
    pub border: [f32; 4],
}

/// What is read outside of a texture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AddressMode {
    /// The texel at the edge.
    #[default]
    Clamp,
    /// The texture again; with coordinates that are not normalized the edge.
    Wrap,
    /// The texture again, every second time mirrored; with coordinates that are not normalized the edge.
    Mirror,
    /// A color.
    Border,
}

impl TexelKind {
    const ALL: [Self; 8] =
        [Self::U8, Self::S8, Self::U16, Self::S16, Self::U32, Self::S32, Self::F16, Self::F32];

    /// Bytes of one channel.
    pub fn bytes(self) -> u32 {
        match self {
            Self::U8 | Self::S8 => 1,
            Self::U16 | Self::S16 | Self::F16 => 2,
            Self::U32 | Self::S32 | Self::F32 => 4,
        }
    }

    fn code(self) -> u64 {
        Self::ALL.iter().position(|kind| *kind == self).unwrap_or(0) as u64
    }
}

impl TexelFormat {
    /// Bytes of one texel.
    pub fn bytes(self) -> u32 {
        self.kind.bytes() * self.channels
    }
}

impl AddressMode {
    const ALL: [Self; 4] = [Self::Clamp, Self::Wrap, Self::Mirror, Self::Border];

    pub(crate) fn code(self) -> u64 {
        Self::ALL.iter().position(|mode| *mode == self).unwrap_or(0) as u64
    }
}

impl TextureObject {
    /// Bytes of the record in global memory.
    pub const BYTES: u64 = 96;
    const WORDS: usize = 12;
    /// What a record begins with: no address and no usual number.
    const MARK: u64 = 0x7478_6574_6e6c_696b;

    /// An image of this extent whose rows and slices lie one behind the other, with point sampling at the edge clamped.
    pub fn image(texels: u64, format: TexelFormat, extent: [u32; 3]) -> Self {
        let row_bytes = u64::from(extent[0]) * u64::from(format.bytes());
        let slice_bytes = row_bytes * u64::from(extent[1]);
        Self { texels, extent, layers: 1, row_bytes, slice_bytes, format, sampler: TextureSampler::default() }
    }

    /// The record of the object, for global memory.
    pub fn record(&self) -> Vec<u8> {
        let TextureSampler { address, linear, normalized, as_fraction, border } = self.sampler;
        let modes = address.iter().rev().fold(0, |modes, mode| modes << 2 | mode.code());
        let flags = u64::from(linear) | u64::from(normalized) << 1 | u64::from(as_fraction) << 2 | modes << 8;
        let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        let [x, y, z, w] = border.map(f32::to_bits);
        let words: [u64; Self::WORDS] = [
            Self::MARK,
            self.texels,
            pair(self.extent[0], self.extent[1]),
            pair(self.extent[2], self.layers),
            self.row_bytes,
            self.slice_bytes,
            self.format.kind.code() | u64::from(self.format.channels) << 8,
            flags,
            pair(x, y),
            pair(z, w),
            0,
            0,
        ];
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    /// The object of a record; `None` if it is none.
    pub fn read(record: &[u8]) -> Option<Self> {
        let mut words =
            record.chunks_exact(8).filter_map(|word| Some(u64::from_le_bytes(word.try_into().ok()?)));
        let mut word = || words.next();
        if word()? != Self::MARK {
            return None;
        }
        let halves = |word: u64| [word as u32, (word >> 32) as u32];
        let (texels, [width, height], [depth, layers]) = (word()?, halves(word()?), halves(word()?));
        let (row_bytes, slice_bytes, format, flags) = (word()?, word()?, word()?, word()?);
        let ([x, y], [z, w]) = (halves(word()?), halves(word()?));
        let channels = (format >> 8) as u32;
        let kind = *TexelKind::ALL.get((format & 0xff) as usize)?;
        let mode = |at: u32| AddressMode::ALL[(flags >> (8 + 2 * at) & 3) as usize];
        let is_whole = width > 0 && height > 0 && depth > 0 && layers > 0 && matches!(channels, 1 | 2 | 4);
        is_whole.then_some(Self {
            texels,
            extent: [width, height, depth],
            layers,
            row_bytes,
            slice_bytes,
            format: TexelFormat { kind, channels },
            sampler: TextureSampler {
                address: [mode(0), mode(1), mode(2)],
                linear: flags & 1 != 0,
                normalized: flags & 2 != 0,
                as_fraction: flags & 4 != 0,
                border: [x, y, z, w].map(f32::from_bits),
            },
        })
    }

    /// The address of a texel.
    pub(crate) fn address(&self, [x, y, z]: [u32; 3]) -> u64 {
        let offset = u64::from(x) * u64::from(self.format.bytes())
            + u64::from(y).wrapping_mul(self.row_bytes)
            + u64::from(z).wrapping_mul(self.slice_bytes);
        self.texels.wrapping_add(offset)
    }
}

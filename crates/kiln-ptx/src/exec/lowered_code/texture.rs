//! Textures and surfaces.

use super::{Reg, Source, Update};

/// An instruction on a texture or a surface.
pub(crate) struct TextureStep {
    pub(crate) action: TextureAction,
    pub(crate) geometry: Geometry,
    /// The object, and another one whose sampler counts.
    pub(crate) handle: Source,
    pub(crate) sampler: Option<Source>,
    /// The layer first, where there is one.
    pub(crate) coordinates: Box<[Source]>,
    /// Texels to add to the coordinates.
    pub(crate) offsets: Box<[Source]>,
    pub(crate) to: Box<[Reg]>,
    pub(crate) from: Box<[Source]>,
}

/// What is done.
#[derive(Clone, Copy)]
pub(crate) enum TextureAction {
    /// `tex`
    Fetch {
        /// Whether the coordinates are floats.
        float: bool,
    },
    /// `tld4`: one channel of the four texels around a place.
    Gather { channel: u8 },
    /// `txq` and `suq`
    Query(TextureQuery),
    /// `suld`
    Load(SurfaceAccess),
    /// `sust`
    Store(SurfaceAccess),
    /// `sured`
    Reduce(SurfaceAccess, Update),
}

/// The part of a surface that is accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SurfaceAccess {
    /// Bytes of each value.
    pub(crate) bytes: u32,
    /// Whether the first coordinate counts texels, which values are converted to; otherwise it counts bytes.
    pub(crate) formatted: bool,
    pub(crate) outside: Outside,
}

/// What an access outside of a surface does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outside {
    /// It ends the launch.
    Trap,
    /// It reaches the edge.
    Clamp,
    /// It reads zero and writes nothing.
    Zero,
}

/// Dimensions of a texture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Geometry {
    /// Of one layer or face.
    pub(crate) dimensions: u8,
    pub(crate) layered: bool,
    pub(crate) cube: bool,
}

impl Geometry {
    /// The geometry of a word such as `a2d`.
    pub(crate) fn named(word: &str) -> Option<Self> {
        let (dimensions, layered, cube) = match word {
            "1d" => (1, false, false),
            "2d" => (2, false, false),
            "3d" => (3, false, false),
            "a1d" => (1, true, false),
            "a2d" => (2, true, false),
            "cube" => (2, false, true),
            "acube" => (2, true, true),
            _ => return None,
        };
        Some(Self { dimensions, layered, cube })
    }

    /// Coordinates that count, the layer included.
    pub(crate) fn coordinates(self) -> usize {
        usize::from(self.dimensions) + usize::from(self.layered) + usize::from(self.cube)
    }
}

/// What `txq` and `suq` ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextureQuery {
    Width,
    Height,
    Depth,
    Layers,
    Levels,
    ChannelType,
    ChannelOrder,
    Normalized,
    Linear,
    AddressMode(u8),
}

impl TextureQuery {
    pub(crate) fn named(word: &str) -> Option<Self> {
        Some(match word {
            "width" => Self::Width,
            "height" => Self::Height,
            "depth" => Self::Depth,
            "array_size" => Self::Layers,
            "num_mipmap_levels" => Self::Levels,
            "channel_data_type" => Self::ChannelType,
            "channel_order" => Self::ChannelOrder,
            "normalized_coords" => Self::Normalized,
            "filter_mode" => Self::Linear,
            "addr_mode_0" => Self::AddressMode(0),
            "addr_mode_1" => Self::AddressMode(1),
            "addr_mode_2" => Self::AddressMode(2),
            _ => return None,
        })
    }
}

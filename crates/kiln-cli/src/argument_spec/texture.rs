//! A texture or surface, as written on the command line.

use std::fmt;

use kiln_ptx::exec::{AddressMode, TexelFormat, TexelKind, TextureObject, TextureSampler};

use crate::element_type::ElementType;

/// `2d+linear+wrap`: the geometry of a texture, and how it is sampled.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct TextureSpec {
    /// The words as written.
    words: String,
    /// Dimensions of an array of texels, layers and faces included.
    dimensions: usize,
    /// Whether the first of them counts layers or faces.
    layered: bool,
    cube: bool,
    address: AddressMode,
    linear: bool,
    normalized: bool,
    as_fraction: bool,
}

impl TextureSpec {
    /// Reads the words between the first two colons of `tex:2d+linear:A.npy`.
    pub(crate) fn parse(words: &str) -> Result<Self, String> {
        let mut parts = words.split('+');
        let geometry = parts.next().unwrap_or_default();
        let (dimensions, layered, cube) = match geometry {
            "1d" => (1, false, false),
            "2d" => (2, false, false),
            "3d" => (3, false, false),
            "a1d" => (2, true, false),
            "a2d" => (3, true, false),
            "cube" | "acube" => (3, true, true),
            _ => {
                return Err(format!(
                    "`{geometry}` is no geometry of a texture; write 1d, 2d, 3d, a1d, a2d, cube or acube"
                ));
            }
        };
        let mut spec = Self {
            words: words.to_owned(),
            dimensions,
            layered,
            cube,
            address: AddressMode::Clamp,
            linear: false,
            normalized: false,
            as_fraction: false,
        };
        for word in parts {
            match word {
                "clamp" => spec.address = AddressMode::Clamp,
                "wrap" => spec.address = AddressMode::Wrap,
                "mirror" => spec.address = AddressMode::Mirror,
                "border" => spec.address = AddressMode::Border,
                "point" => spec.linear = false,
                "linear" => spec.linear = true,
                "normalized" => spec.normalized = true,
                "fraction" => spec.as_fraction = true,
                _ => {
                    return Err(format!(
                        "`{word}` says nothing about a texture; write point or linear, clamp, wrap, mirror or border, normalized, fraction"
                    ));
                }
            }
        }
        Ok(spec)
    }

    /// The object of an array of texels, whose address is not known yet.
    pub(crate) fn object(&self, element: ElementType, shape: &[u64]) -> Result<TextureObject, String> {
        let kind = texel_kind(element)
            .ok_or_else(|| format!("a texture has no elements of type {}", element.numpy()))?;
        let (sizes, channels) = match shape.len().checked_sub(self.dimensions) {
            Some(0) => (shape, 1),
            Some(1) => (&shape[..self.dimensions], shape[self.dimensions]),
            _ => return Err(self.wanted(shape)),
        };
        let sizes: Option<Vec<u32>> =
            sizes.iter().map(|size| u32::try_from(*size).ok().filter(|size| *size > 0)).collect();
        let sizes = sizes.ok_or_else(|| "a dimension of the array has no texels, or too many".to_owned())?;
        let channels = u32::try_from(channels).ok().filter(|channels| matches!(channels, 1 | 2 | 4));
        let channels = channels.ok_or_else(|| {
            "a texel has 1, 2 or 4 channels, which are the last dimension of the array".to_owned()
        })?;
        let (layers, sizes) = if self.layered { (sizes[0], &sizes[1..]) } else { (1, &sizes[..]) };
        if self.cube && (!layers.is_multiple_of(6) || sizes[0] != sizes[1]) {
            return Err("a cube has six square faces, which are the first dimension of the array".to_owned());
        }
        let mut extent = [1; 3];
        extent.iter_mut().zip(sizes.iter().rev()).for_each(|(slot, size)| *slot = *size);
        let mut object = TextureObject::image(0, TexelFormat { kind, channels }, extent);
        object.layers = layers;
        object.sampler = TextureSampler {
            address: [self.address; 3],
            linear: self.linear,
            normalized: self.normalized,
            as_fraction: self.as_fraction,
            border: [0.0; 4],
        };
        Ok(object)
    }

    fn wanted(&self, shape: &[u64]) -> String {
        let dimensions = self.dimensions;
        format!(
            "the array has the shape {shape:?}, and {} needs {dimensions} dimensions, or {} with the channels of a texel",
            self.words.split('+').next().unwrap_or_default(),
            dimensions + 1
        )
    }
}

fn texel_kind(element: ElementType) -> Option<TexelKind> {
    Some(match element {
        ElementType::U8 => TexelKind::U8,
        ElementType::I8 => TexelKind::S8,
        ElementType::U16 => TexelKind::U16,
        ElementType::I16 => TexelKind::S16,
        ElementType::U32 => TexelKind::U32,
        ElementType::I32 => TexelKind::S32,
        ElementType::F16 => TexelKind::F16,
        ElementType::F32 => TexelKind::F32,
        _ => return None,
    })
}

impl fmt::Display for TextureSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(words: &str, element: ElementType, shape: &[u64]) -> Result<TextureObject, String> {
        TextureSpec::parse(words)?.object(element, shape)
    }

    #[test]
    fn shapes_become_extents_channels_and_layers() {
        let image = object("2d+linear+wrap+normalized+fraction", ElementType::U8, &[3, 5, 4]).unwrap();
        assert_eq!((image.extent, image.layers, image.format.channels), ([5, 3, 1], 1, 4));
        assert_eq!((image.row_bytes, image.slice_bytes), (20, 60));
        assert_eq!(image.sampler.address, [AddressMode::Wrap; 3]);
        assert!(image.sampler.linear && image.sampler.normalized && image.sampler.as_fraction);
        let layers = object("a2d", ElementType::F32, &[7, 3, 5]).unwrap();
        assert_eq!((layers.extent, layers.layers), ([5, 3, 1], 7));
        let volume = object("3d", ElementType::F16, &[7, 3, 5]).unwrap();
        assert_eq!((volume.extent, volume.layers), ([5, 3, 7], 1));
        assert_eq!(object("cube", ElementType::F32, &[6, 4, 4]).unwrap().layers, 6);
    }

    #[test]
    fn wrong_words_and_shapes_are_told() {
        for (words, shape, told) in [
            ("4d", &[2, 2][..], "no geometry"),
            ("2d+smooth", &[2, 2], "says nothing"),
            ("2d", &[8], "needs 2 dimensions, or 3"),
            ("2d", &[8, 8, 3], "1, 2 or 4 channels"),
            ("cube", &[5, 4, 4], "six square faces"),
            ("1d", &[0], "no texels"),
        ] {
            let error = object(words, ElementType::F32, shape).unwrap_err();
            assert!(error.contains(told), "{words} {shape:?}: {error}");
        }
        assert!(object("1d", ElementType::F64, &[4]).unwrap_err().contains("float64"));
    }
}

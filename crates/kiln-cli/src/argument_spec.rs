//! An argument of a kernel, as written on the command line.

mod syntax;
mod texture;

use std::fmt;
use std::path::PathBuf;

use crate::element_type::ElementType;

pub(crate) use texture::TextureSpec;

/// An argument: an array that the kernel reads, writes or both; a null pointer; a value; a struct of these.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Spec {
    /// `in:A.npy`
    In { from: PathBuf },
    /// `out:f32:1024:B.npy`, `zeros:f32:1024:B.npy` or `uninit:f32:1024:B.npy`; without a file it is not kept. `scratch:f32:1024` is never kept.
    Out { start: Start, element: ElementType, len: u64, to: Option<PathBuf> },
    /// `inout:A.npy:B.npy`; without the second file the result is not kept.
    InOut { from: PathBuf, to: Option<PathBuf> },
    /// `null`
    Null,
    /// `f32:2.5`
    Value { element: ElementType, text: String, bytes: Vec<u8> },
    /// `bytes:00ff12`
    Bytes(Vec<u8>),
    /// `struct:{f32:1.5,u32:2}`
    Struct(Vec<Self>),
    /// `tex:2d+linear:A.npy`
    Texture { texture: TextureSpec, from: PathBuf },
    /// `surf:2d:A.npy:B.npy`; without the second file the result is not kept.
    Surface { texture: TextureSpec, from: PathBuf, to: Option<PathBuf> },
}

/// What a new array holds before the launch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Start {
    /// `out`: the kernel writes every element. Zeros under `kiln run`; under `kiln check` an element that is read before it is written is a finding,
    /// and so is one that is never written.
    Output,
    /// `zeros`
    Zeros,
    /// `uninit`: what the memory holds; on the simulated device a read of what was not written is a finding. Elements may stay unwritten.
    Uninitialised,
    /// `scratch`: the same, and what the launch leaves there does not matter.
    Scratch,
}

impl Start {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Output => "out",
            Self::Zeros => "zeros",
            Self::Uninitialised => "uninit",
            Self::Scratch => "scratch",
        }
    }
}

impl Spec {
    /// The files that are written when the kernel has run.
    pub(crate) fn outputs(&self) -> Vec<&PathBuf> {
        match self {
            Self::Out { to, .. } | Self::InOut { to, .. } | Self::Surface { to, .. } => to.iter().collect(),
            Self::Struct(fields) => fields.iter().flat_map(Self::outputs).collect(),
            Self::In { .. } | Self::Null | Self::Value { .. } | Self::Bytes(_) | Self::Texture { .. } => {
                Vec::new()
            }
        }
    }

    /// The files that are read before the kernel runs.
    pub(crate) fn inputs(&self) -> Vec<&PathBuf> {
        match self {
            Self::In { from }
            | Self::InOut { from, .. }
            | Self::Texture { from, .. }
            | Self::Surface { from, .. } => vec![from],
            Self::Struct(fields) => fields.iter().flat_map(Self::inputs).collect(),
            Self::Out { .. } | Self::Null | Self::Value { .. } | Self::Bytes(_) => Vec::new(),
        }
    }

    /// Size and alignment as C lays it out.
    pub(crate) fn layout(&self) -> Layout {
        match self {
            Self::In { .. }
            | Self::Out { .. }
            | Self::InOut { .. }
            | Self::Null
            | Self::Texture { .. }
            | Self::Surface { .. } => Layout { bytes: 8, alignment: 8 },
            Self::Value { bytes, .. } => {
                Layout { bytes: bytes.len() as u64, alignment: (bytes.len() as u64).max(1) }
            }
            Self::Bytes(bytes) => Layout { bytes: bytes.len() as u64, alignment: 1 },
            Self::Struct(fields) => struct_layout(fields).1,
        }
    }
}

/// Size and alignment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Layout {
    pub(crate) bytes: u64,
    pub(crate) alignment: u64,
}

/// Where the fields of a struct begin, and the layout of the whole: as C lays it out, padded to its alignment.
pub(crate) fn struct_layout(fields: &[Spec]) -> (Vec<u64>, Layout) {
    let (mut end, mut alignment) = (0_u64, 1);
    let mut offsets = Vec::with_capacity(fields.len());
    for field in fields {
        let layout = field.layout();
        let offset = end.next_multiple_of(layout.alignment);
        offsets.push(offset);
        end = offset + layout.bytes;
        alignment = alignment.max(layout.alignment);
    }
    (offsets, Layout { bytes: end.next_multiple_of(alignment), alignment })
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::In { from } => write!(f, "in:{}", from.display()),
            Self::Out { start, element, len, to } => {
                write!(f, "{}:{element}:{len}", start.word())?;
                to.as_ref().map_or(Ok(()), |to| write!(f, ":{}", to.display()))
            }
            Self::InOut { from, to } => {
                write!(f, "inout:{}", from.display())?;
                to.as_ref().map_or(Ok(()), |to| write!(f, ":{}", to.display()))
            }
            Self::Texture { texture, from } => write!(f, "tex:{texture}:{}", from.display()),
            Self::Surface { texture, from, to } => {
                write!(f, "surf:{texture}:{}", from.display())?;
                to.as_ref().map_or(Ok(()), |to| write!(f, ":{}", to.display()))
            }
            Self::Null => f.write_str("null"),
            Self::Value { element, text, .. } => write!(f, "{element}:{text}"),
            Self::Bytes(bytes) => {
                f.write_str("bytes:")?;
                bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
            Self::Struct(fields) => {
                let fields: Vec<String> = fields.iter().map(ToString::to_string).collect();
                write!(f, "struct:{{{}}}", fields.join(","))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structs_are_laid_out_as_in_c() {
        for (text, bytes, alignment) in [
            ("struct:{f32:1,u32:2}", 8, 4),
            ("struct:{u8:1,f64:2,u8:3}", 24, 8),
            ("struct:{null,i32:3}", 16, 8),
            ("struct:{u8:1,struct:{u16:1,u8:2},u8:4}", 8, 2),
            ("struct:{bytes:0102030405,u16:1}", 8, 2),
            ("struct:{}", 0, 1),
        ] {
            let spec: Spec = text.parse().unwrap();
            assert_eq!(spec.layout(), Layout { bytes, alignment }, "{text}");
        }
    }
}

//! Checks code images before the driver reads them.
//!
//! The driver takes a bare pointer and finds the end of an image by reading it, so a truncated or foreign file makes
//! it read past the end of ours. What is handed over is therefore checked to be what it claims, to lie inside of
//! its own length, and to end in zeros.

use std::ffi::CString;

use kiln_driver::{Error, Image, Refusal, Result};

const ELF_MAGIC: [u8; 4] = *b"\x7fELF";
const FATBIN_MAGIC: [u8; 4] = 0xba55_ed50_u32.to_le_bytes();
/// The machine number of CUDA in an ELF header.
const ELF_MACHINE_CUDA: u16 = 190;
/// Sections of this type take no room in the file.
const ELF_SECTION_NOBITS: u32 = 8;
/// Zeros behind the copy of an image.
const PADDING_BYTES: usize = 16;

/// An image that is safe to hand to the driver: the driver's parser ends inside of it.
#[derive(Debug)]
pub(crate) struct Checked(Vec<u8>);

impl Checked {
    /// Copies and checks an image.
    pub(crate) fn new(call: &'static str, image: &Image<'_>) -> Result<Self> {
        match image {
            Image::Ptx(text) | Image::PtxToKeep { text, .. } if text.trim().is_empty() => {
                Err(refuse(call, "PTX without text".into()))
            }
            Image::Ptx(text) | Image::PtxToKeep { text, .. } => CString::new(*text)
                .map(|text| Self(text.into_bytes_with_nul()))
                .map_err(|error| refuse(call, format!("PTX with a zero byte at {}", error.nul_position()))),
            Image::Cubin(bytes) => {
                check_binary(bytes).map_err(|why| refuse(call, why.into()))?;
                let mut copy = Vec::with_capacity(bytes.len() + PADDING_BYTES);
                copy.extend_from_slice(bytes);
                copy.resize(bytes.len() + PADDING_BYTES, 0);
                Ok(Self(copy))
            }
            other => Err(Error::unsupported(
                call,
                other.name(),
                "a CUDA device runs PTX, cubin and library operations",
            )),
        }
    }

    /// The first byte.
    pub(crate) fn start(&self) -> *const u8 {
        self.0.as_ptr()
    }

    /// Bytes, with the zeros it ends in.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

/// Machine code for one architecture, or several bound together.
fn check_binary(bytes: &[u8]) -> std::result::Result<(), &'static str> {
    if bytes.starts_with(&ELF_MAGIC) {
        check_cubin(bytes).ok_or("a cubin that is cut off or damaged")
    } else if bytes.starts_with(&FATBIN_MAGIC) {
        check_fatbin(bytes).ok_or("a fat binary that is cut off or damaged")
    } else {
        Err("neither a cubin nor a fat binary")
    }
}

/// Follows the header of an ELF file: every table and section it names lies inside.
fn check_cubin(bytes: &[u8]) -> Option<()> {
    if u16_at(bytes, 0x12)? != ELF_MACHINE_CUDA {
        return None;
    }
    let programs = (u64_at(bytes, 0x20)?, u16_at(bytes, 0x36)?, u16_at(bytes, 0x38)?);
    let sections = (u64_at(bytes, 0x28)?, u16_at(bytes, 0x3a)?, u16_at(bytes, 0x3c)?);
    for (offset, size, count) in [programs, sections] {
        inside(bytes, offset, u64::from(size) * u64::from(count))?;
    }
    let (table, size, count) = sections;
    for index in 0..u64::from(count) {
        let header = usize::try_from(table + index * u64::from(size)).ok()?;
        if u32_at(bytes, header + 0x04)? != ELF_SECTION_NOBITS {
            inside(bytes, u64_at(bytes, header + 0x18)?, u64_at(bytes, header + 0x20)?)?;
        }
    }
    Some(())
}

/// A fat binary says how long its header and the rest are.
fn check_fatbin(bytes: &[u8]) -> Option<()> {
    inside(bytes, u64::from(u16_at(bytes, 6)?), u64_at(bytes, 8)?)
}

fn inside(bytes: &[u8], offset: u64, len: u64) -> Option<()> {
    (offset.checked_add(len)? <= bytes.len() as u64).then_some(())
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|bytes| u16::from_le_bytes(*bytes))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
}

fn refuse(call: &'static str, log: String) -> Error {
    Error::refused(call, Refusal::Image { code: None, log })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header and one section of eight bytes behind the section table.
    fn cubin() -> Vec<u8> {
        let mut bytes = vec![0; 64 + 64 + 8];
        bytes[..4].copy_from_slice(&ELF_MAGIC);
        bytes[0x12..0x14].copy_from_slice(&ELF_MACHINE_CUDA.to_le_bytes());
        bytes[0x28..0x30].copy_from_slice(&64u64.to_le_bytes());
        bytes[0x3a..0x3c].copy_from_slice(&64u16.to_le_bytes());
        bytes[0x3c..0x3e].copy_from_slice(&1u16.to_le_bytes());
        bytes[64 + 0x04] = 1;
        bytes[64 + 0x18..64 + 0x20].copy_from_slice(&128u64.to_le_bytes());
        bytes[64 + 0x20..64 + 0x28].copy_from_slice(&8u64.to_le_bytes());
        bytes
    }

    #[test]
    fn a_whole_cubin_is_taken_and_every_cut_of_it_is_not() {
        let whole = cubin();
        assert_eq!(check_binary(&whole), Ok(()));
        for len in 0..whole.len() {
            assert!(check_binary(&whole[..len]).is_err(), "{len} bytes");
        }
        let image = Checked::new("load", &Image::Cubin(&whole)).unwrap();
        assert!(image.0.starts_with(&whole) && image.0.ends_with(&[0; PADDING_BYTES]));
    }

    #[test]
    fn sections_that_point_anywhere_are_refused() {
        for at in [0x20, 0x28, 64 + 0x18, 64 + 0x20] {
            let mut bytes = cubin();
            bytes[at..at + 8].copy_from_slice(&u64::MAX.to_le_bytes());
            bytes[0x36..0x3a].copy_from_slice(&[56, 0, 1, 0]);
            assert!(check_binary(&bytes).is_err(), "{at:#x}");
        }
        let mut other_machine = cubin();
        other_machine[0x12] = 62;
        assert!(check_binary(&other_machine).is_err());
    }

    #[test]
    fn a_fat_binary_must_be_as_long_as_it_says() {
        let mut bytes = vec![0; 24];
        bytes[..4].copy_from_slice(&FATBIN_MAGIC);
        bytes[6] = 16;
        bytes[8] = 8;
        assert_eq!(check_binary(&bytes), Ok(()));
        bytes[8] = 9;
        assert!(check_binary(&bytes).is_err());
    }

    #[test]
    fn garbage_and_torn_text_are_refused() {
        assert!(Checked::new("load", &Image::Cubin(b"")).is_err());
        assert!(Checked::new("load", &Image::Cubin(b".version 8.0")).is_err());
        assert!(Checked::new("load", &Image::Ptx(".version\0 8.0")).is_err());
        assert!(Checked::new("load", &Image::Ptx(" \n")).is_err());
        assert!(Checked::new("load", &Image::HostKernels("x")).unwrap_err().is_unsupported());
        assert_eq!(Checked::new("load", &Image::Ptx("x")).unwrap().0, b"x\0");
    }
}

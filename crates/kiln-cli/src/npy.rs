//! Arrays in `.npy` files, as numpy writes them.
//!
//! Read are versions 1, 2 and 3 of the format with numbers in C order and little-endian; anything else is an error that says what it
//! is and what to do in numpy about it. Written is the oldest version that holds the header, which every reader knows.

mod header;

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::element_type::ElementType;

use header::Header;

/// An array: its element type, its shape, and its bytes in C order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Array {
    pub(crate) element: ElementType,
    pub(crate) shape: Vec<u64>,
    pub(crate) bytes: Vec<u8>,
}

/// Why a file is no array that can be used.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum NpyError {
    /// Another kind of file.
    #[error("it is no .npy file")]
    Magic,
    /// A version from the future.
    #[error("it has version {0}.{1} of the format; versions 1, 2 and 3 are known")]
    Version(u8, u8),
    /// It ends inside its header.
    #[error("it is cut off: its header is not all there")]
    HeaderCut,
    /// A header that says nothing, or something else.
    #[error("its header cannot be read: {0}")]
    Header(String),
    /// Columns first.
    #[error("its elements are in Fortran order; save numpy.ascontiguousarray(a)")]
    FortranOrder,
    /// The bytes of a number the other way round.
    #[error("its elements are big-endian (`{0}`); save a.astype(a.dtype.newbyteorder('<'))")]
    BigEndian(String),
    /// Strings, dates, structures, objects.
    #[error("elements of type `{0}` cannot be given to a kernel; save numbers or bools")]
    Dtype(String),
    /// More elements than any machine has bytes.
    #[error("its shape has more elements than can be counted")]
    Shape,
    /// It has other data than its header says.
    #[error("its header says {wanted} bytes of data, and there are {given}")]
    Length {
        /// What its shape and element type make.
        wanted: u64,
        /// What is there.
        given: u64,
    },
}

impl Array {
    /// `len` zeros.
    pub(crate) fn zeros(element: ElementType, len: u64) -> Option<Self> {
        let bytes = usize::try_from(len.checked_mul(element.bytes())?).ok()?;
        let mut zeros = Vec::new();
        zeros.try_reserve_exact(bytes).ok()?;
        zeros.resize(bytes, 0);
        Some(Self { element, shape: vec![len], bytes: zeros })
    }

    /// How many elements there are.
    pub(crate) fn elements(&self) -> u64 {
        self.bytes.len() as u64 / self.element.bytes()
    }

    /// Reads a whole file.
    pub(crate) fn decode(file: &[u8]) -> Result<Self, NpyError> {
        let (header, data) = Header::decode(file)?;
        let element = header.element()?;
        let elements = header.shape.iter().try_fold(1_u64, |all, size| all.checked_mul(*size));
        let wanted = elements.and_then(|all| all.checked_mul(element.bytes())).ok_or(NpyError::Shape)?;
        // With one long dimension both orders are the same.
        if header.fortran_order && header.shape.iter().filter(|size| **size > 1).count() > 1 {
            return Err(NpyError::FortranOrder);
        }
        if wanted != data.len() as u64 {
            return Err(NpyError::Length { wanted, given: data.len() as u64 });
        }
        Ok(Self { element, shape: header.shape, bytes: data.to_vec() })
    }

    /// The bytes of a file.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut file = header::encode(self.element.descr(), &self.shape);
        file.extend_from_slice(&self.bytes);
        file
    }
}

/// Files that are written beside their places and are moved there together.
#[derive(Default)]
pub(crate) struct Outputs {
    parts: Vec<(PathBuf, PathBuf)>,
}

impl Outputs {
    /// Writes an array beside its place.
    pub(crate) fn add(&mut self, place: &Path, array: &Array) -> std::io::Result<()> {
        let name = place.file_name().ok_or(std::io::ErrorKind::InvalidInput)?.to_string_lossy();
        let part = place.with_file_name(format!(".{name}.{}.part", std::process::id()));
        self.parts.push((part.clone(), place.to_owned()));
        let mut file = File::create(&part)?;
        file.write_all(&array.encode())?;
        file.sync_all()
    }

    /// Moves all of them to their places.
    pub(crate) fn publish(mut self) -> std::io::Result<()> {
        while let Some((part, place)) = self.parts.pop() {
            if let Err(error) = fs::rename(&part, &place) {
                self.parts.push((part, place));
                return Err(error);
            }
        }
        Ok(())
    }
}

impl Drop for Outputs {
    /// What was not moved is nobody's.
    fn drop(&mut self) {
        for (part, _) in &self.parts {
            let _ = fs::remove_file(part);
        }
    }
}

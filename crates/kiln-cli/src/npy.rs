//! Arrays in `.npy` files, as numpy writes them.
//!
//! Versions 1, 2 and 3 of the format are read, with numbers in C order and little-endian. Any other file is an error that says what it
//! is and what to do in numpy about it. The oldest version that holds the header is written, because every reader knows it.
//!
//! The format is read here and not by a crate: `npyz` and `ndarray-npy` parse the header with `py_literal`, which brings a parser
//! generator and big integers: thirty packages for one dictionary of three keys. Neither says what to do in numpy.

mod cast;
mod header;
mod write_all_or_none;

use std::io::Write;
use std::path::Path;

use crate::element_type::ElementType;

use header::Header;

pub(crate) use write_all_or_none::Outputs;

/// An array: its element type, its shape, and its bytes in C order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Array {
    pub(crate) element: ElementType,
    pub(crate) shape: Vec<u64>,
    pub(crate) bytes: Vec<u8>,
}

/// Why a file cannot be used as an array.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum NpyError {
    /// Another kind of file.
    #[error("it is not a .npy file; save it with numpy.save")]
    Magic,
    /// An unknown version.
    #[error("it has version {0}.{1} of the format, and versions 1, 2 and 3 are supported")]
    Version(u8, u8),
    /// It ends inside its header.
    #[error("it is truncated: its header is incomplete")]
    HeaderCut,
    /// A header that is not the expected dictionary.
    #[error("its header cannot be read: {0}")]
    Header(String),
    /// The first index varies fastest.
    #[error("its elements are in Fortran order; save numpy.ascontiguousarray(a)")]
    FortranOrder,
    /// The most significant byte of a number comes first.
    #[error("its elements are big-endian (`{0}`); save a.astype(a.dtype.newbyteorder('<'))")]
    BigEndian(String),
    /// Strings, dates, structures, objects.
    #[error("elements of type `{0}` cannot be given to a kernel; save numbers or bools")]
    Dtype(String),
    /// More elements than fit any memory.
    #[error("its shape has too many elements")]
    Shape,
    /// More or less data than its header says.
    #[error("its header says {wanted} bytes of data, and it has {given}")]
    Length {
        /// What shape and element type need.
        wanted: u64,
        /// What the file has.
        given: u64,
    },
}

/// Why a file cannot be read as an array.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    /// The file itself.
    #[error(transparent)]
    File(#[from] std::io::Error),
    /// A folder, a pipe or a device.
    #[error("it is not a regular file, and arrays are read from regular files; save it with numpy.save")]
    Kind,
    /// What is in it.
    #[error(transparent)]
    Content(#[from] NpyError),
}

impl Array {
    /// `len` zeros.
    pub(crate) fn zeros(element: ElementType, len: u64) -> Option<Self> {
        let bytes = usize::try_from(len.checked_mul(element.bytes())?).ok()?;
        // The system gives zeros page by page when they are used; a reservation tells first whether it would.
        Vec::<u8>::new().try_reserve_exact(bytes).ok()?;
        Some(Self { element, shape: vec![len], bytes: vec![0; bytes] })
    }

    /// The number of elements.
    pub(crate) fn elements(&self) -> u64 {
        self.bytes.len() as u64 / self.element.bytes()
    }

    /// Reads a regular file. A pipe may have no writer, and a device no end.
    pub(crate) fn read(path: &Path) -> Result<Self, ReadError> {
        if !std::fs::metadata(path)?.is_file() {
            return Err(ReadError::Kind);
        }
        Ok(Self::decode(std::fs::read(path)?)?)
    }

    /// Reads the bytes of a whole file.
    pub(crate) fn decode(mut file: Vec<u8>) -> Result<Self, NpyError> {
        let (header, data) = Header::decode(&file)?;
        let (element, wanted) = (header.element()?, header.data_bytes()?);
        // With one long dimension both orders are the same.
        if header.fortran_order && header.shape.iter().filter(|size| **size > 1).count() > 1 {
            return Err(NpyError::FortranOrder);
        }
        if wanted != data.len() as u64 {
            return Err(NpyError::Length { wanted, given: data.len() as u64 });
        }
        let start = file.len() - data.len();
        file.drain(..start);
        Ok(Self { element, shape: header.shape, bytes: file })
    }

    /// Writes the bytes of a file.
    pub(crate) fn write(&self, file: &mut impl Write) -> std::io::Result<()> {
        file.write_all(&header::encode(self.element.descr(), &self.shape))?;
        file.write_all(&self.bytes)
    }

    /// How many bytes [`write`](Self::write) writes.
    pub(crate) fn file_bytes(&self) -> u64 {
        (header::encode(self.element.descr(), &self.shape).len() + self.bytes.len()) as u64
    }
}

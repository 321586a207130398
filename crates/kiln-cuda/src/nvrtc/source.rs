//! CUDA C source and its in-memory headers.

/// CUDA C, with the headers it may include from memory.
///
/// ```
/// use kiln_cuda::nvrtc::{CudaSource, Header};
///
/// let headers = [Header { name: "width.h", text: "#define WIDTH 32" }];
/// let source = CudaSource { headers: &headers, ..CudaSource::new("tile.cu", "#include \"width.h\"") };
/// assert_eq!(source.name, "tile.cu");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CudaSource<'a> {
    /// The name diagnostics use.
    pub name: &'a str,
    /// The text.
    pub text: &'a str,
    /// Headers that are found by name before any folder is looked into.
    pub headers: &'a [Header<'a>],
}

/// A header in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header<'a> {
    /// The name it is included by.
    pub name: &'a str,
    /// The text.
    pub text: &'a str,
}

impl CudaSource<'_> {
    /// Whether it may include something: a word in a comment counts as well.
    pub(super) fn may_include(&self) -> bool {
        let texts = self.headers.iter().map(|header| header.text).chain([self.text]);
        texts.into_iter().any(|text| text.contains("include"))
    }
}

impl<'a> CudaSource<'a> {
    /// A source without headers in memory.
    pub fn new(name: &'a str, text: &'a str) -> Self {
        Self { name, text, headers: &[] }
    }
}

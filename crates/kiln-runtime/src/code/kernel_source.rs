//! The source of a kernel as a user gives it: CUDA C or PTX.

/// Code as a user has it.
///
/// Text is PTX if its first word is `.version`, and CUDA C otherwise.
///
/// ```
/// use kiln::code::Source;
///
/// assert!(matches!(Source::from("// generated\n.version 8.0\n"), Source::Ptx(_)));
/// assert!(matches!(Source::from("__global__ void k() {}"), Source::CudaC { .. }));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Source<'a> {
    /// CUDA C, compiled by NVRTC.
    CudaC {
        /// The name it has in messages.
        name: &'a str,
        /// The text.
        text: &'a str,
    },
    /// PTX.
    Ptx(&'a str),
    /// Machine code; what its kernels take is asked from the driver.
    Cubin(&'a [u8]),
}

impl<'a> From<&'a str> for Source<'a> {
    fn from(text: &'a str) -> Self {
        if is_ptx(text) { Self::Ptx(text) } else { Self::CudaC { name: UNNAMED, text } }
    }
}

/// The name of CUDA C that was given none.
const UNNAMED: &str = "<kernel source>";

/// Whether the first word that is no comment is `.version`.
fn is_ptx(text: &str) -> bool {
    let mut rest = text.trim_start();
    loop {
        if let Some(line) = rest.strip_prefix("//") {
            rest = line.split_once('\n').map_or("", |(_, rest)| rest).trim_start();
        } else if let Some(comment) = rest.strip_prefix("/*") {
            rest = comment.split_once("*/").map_or("", |(_, rest)| rest).trim_start();
        } else {
            return rest.starts_with(".version");
        }
    }
}

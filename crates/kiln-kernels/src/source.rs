//! Sources: CUDA C and the PTX it was compiled to.

/// A file of CUDA C and its PTX.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CaseSource {
    /// The name of the file, such as `reduce.cu`.
    pub file: &'static str,
    /// CUDA C.
    pub cuda: &'static str,
    /// What NVRTC 13.0 made of it.
    pub ptx: &'static str,
}

impl CaseSource {
    /// The options it was compiled with: the first line tells.
    ///
    /// ```
    /// let case = &kiln_kernels::cases()[0];
    /// assert!(case.source.options().iter().any(|option| option.starts_with("--gpu-architecture=")));
    /// ```
    pub fn options(&self) -> Vec<&'static str> {
        let first = self.cuda.lines().next().unwrap_or("");
        first.strip_prefix("// nvrtc: ").map_or_else(Vec::new, |options| options.split_whitespace().collect())
    }
}

/// A source of this crate by its stem.
macro_rules! source {
    ($stem:literal) => {
        &$crate::CaseSource {
            file: concat!($stem, ".cu"),
            cuda: include_str!(concat!("../../kernels/", $stem, ".cu")),
            ptx: include_str!(concat!("../../kernels/", $stem, ".ptx")),
        }
    };
}
pub(crate) use source;

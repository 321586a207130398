//! The parts of the CUDA toolkit the tests use, as data.

use std::path::{Path, PathBuf};

/// What to do when a part cannot be had.
pub(crate) const ADVICE: &str = "install pip for python3, or a CUDA toolkit and set CUDA_HOME, or name the parts \
     with KILN_NVRTC, KILN_PTXAS, KILN_CUDA_INCLUDE and KILN_CURAND";

/// One part.
pub(crate) struct Part {
    /// What messages call it.
    pub(crate) name: &'static str,
    /// The variable that names its place to the tests, and may name it to us.
    pub(crate) variable: &'static str,
    /// The Python package that holds it.
    pub(crate) package: &'static str,
    /// The version of the package.
    pub(crate) version: &'static str,
    /// How much there is to download.
    pub(crate) megabytes: u32,
    /// Its place below the unpacked package.
    pub(crate) in_package: &'static str,
    /// Its places below the root of a toolkit: the first that exists. A trailing `*` stands for any ending.
    in_toolkit: &'static [&'static str],
    /// Whether the variable names the directory and not the file.
    pub(crate) directory: bool,
}

/// The parts. Versions of CUDA 13.0, and not the newest: a later NVRTC writes PTX that drivers of CUDA 13.0 refuse.
pub(crate) const PARTS: [Part; 4] = [
    Part {
        name: "NVRTC",
        variable: "KILN_NVRTC",
        package: "nvidia-cuda-nvrtc",
        version: "13.0.88",
        megabytes: 90,
        in_package: "nvidia/cu13/lib/libnvrtc.so.13",
        in_toolkit: &["lib64/libnvrtc.so.*", "lib/libnvrtc.so.*", "targets/x86_64-linux/lib/libnvrtc.so.*"],
        directory: false,
    },
    Part {
        name: "ptxas",
        variable: "KILN_PTXAS",
        package: "nvidia-cuda-nvcc",
        version: "13.0.88",
        megabytes: 37,
        in_package: "nvidia/cu13/bin/ptxas",
        in_toolkit: &["bin/ptxas"],
        directory: false,
    },
    Part {
        name: "the CUDA headers",
        variable: "KILN_CUDA_INCLUDE",
        package: "nvidia-cuda-runtime",
        version: "13.0.96",
        megabytes: 2,
        in_package: "nvidia/cu13/include/cuda_fp16.h",
        in_toolkit: &["include/cuda_fp16.h", "targets/x86_64-linux/include/cuda_fp16.h"],
        directory: true,
    },
    // Its generators on the host need no GPU: the tests of random numbers compare with them.
    Part {
        name: "cuRAND",
        variable: "KILN_CURAND",
        package: "nvidia-curand",
        version: "10.4.0.35",
        megabytes: 60,
        in_package: "nvidia/cu13/lib/libcurand.so.10",
        in_toolkit: &[
            "lib64/libcurand.so.*",
            "lib/libcurand.so.*",
            "targets/x86_64-linux/lib/libcurand.so.*",
        ],
        directory: false,
    },
];

impl Part {
    /// Its place in a toolkit, if it is there.
    pub(crate) fn in_toolkit(&self, root: &Path) -> Option<PathBuf> {
        self.in_toolkit.iter().find_map(|place| first_match(root, place)).map(|file| self.place(&file))
    }

    /// What its variable is set to, given its file.
    pub(crate) fn place(&self, file: &Path) -> PathBuf {
        match file.parent() {
            Some(directory) if self.directory => directory.to_owned(),
            _ => file.to_owned(),
        }
    }
}

/// The file of that name, or the first by name that begins as the pattern does.
fn first_match(root: &Path, pattern: &str) -> Option<PathBuf> {
    let path = root.join(pattern.trim_end_matches('*'));
    if !pattern.ends_with('*') {
        return path.is_file().then_some(path);
    }
    let prefix = path.file_name()?.to_str()?;
    let entries = path.parent()?.read_dir().ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    entries
        .filter(|file| file.file_name().and_then(|n| n.to_str()).is_some_and(|n| n.starts_with(prefix)))
        .min()
}

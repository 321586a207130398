//! The headers of C and C++ that CUDA C includes and that NVRTC does not have: `stdint.h`, `cmath`, `type_traits` and others.
//!
//! They have what device code can use: types, limits, constants, and names in `std` for functions that are built into NVRTC. A header of the same name that
//! the program gives, in memory or in an include folder, comes first. A 64-bit integer is a `long long`, as in NVIDIA's headers under NVRTC, so that both
//! may be included.

use std::path::{Path, PathBuf};

use super::options::CompileOptions;
use super::source::{CudaSource, Header};

/// A header of the folder beside this file.
macro_rules! headers {
    ($($name:literal),* $(,)?) => {
        &[$(Header { name: $name, text: include_str!(concat!("standard_headers/", $name)) }),*]
    };
}

/// All of them, by name.
const STANDARD: &[Header<'static>] = headers![
    "algorithm",
    "assert.h",
    "cassert",
    "cfloat",
    "cinttypes",
    "climits",
    "cmath",
    "cstddef",
    "cstdint",
    "cstdio",
    "cstdlib",
    "cstring",
    "float.h",
    "inttypes.h",
    "limits",
    "limits.h",
    "math.h",
    "stdbool.h",
    "stddef.h",
    "stdint.h",
    "stdio.h",
    "stdlib.h",
    "string.h",
    "type_traits",
    "utility",
];

/// The headers of C and C++ that a source may include although no folder has them; a cache of compiled code takes them into its key.
///
/// ```
/// let headers = kiln_cuda::nvrtc::standard_headers();
/// assert!(headers.iter().any(|header| header.name == "stdint.h" && header.text.contains("uint32_t")));
/// ```
pub fn standard_headers() -> &'static [Header<'static>] {
    STANDARD
}

/// The headers in memory of one compilation: those of the source, and the standard ones that neither these nor a folder replaces.
pub(super) fn with_standard<'a>(source: &CudaSource<'a>, options: &CompileOptions) -> Vec<Header<'a>> {
    let mut headers = source.headers.to_vec();
    let folders = include_folders(options);
    let is_given = |name: &str| {
        source.headers.iter().any(|header| header.name == name)
            || folders.iter().any(|folder| folder.join(name).is_file())
    };
    headers.extend(STANDARD.iter().filter(|header| !is_given(header.name)));
    headers
}

/// Where the options say to look, also those that are written as NVRTC takes them.
fn include_folders(options: &CompileOptions) -> Vec<PathBuf> {
    const LONG: &str = "--include-path";
    const SHORT: &str = "-I";
    let mut folders = options.include_folders.clone();
    let mut further = options.further.iter();
    while let Some(argument) = further.next() {
        let joined = argument.strip_prefix(LONG).and_then(|rest| rest.strip_prefix('='));
        let short = argument.strip_prefix(SHORT).filter(|folder| !folder.is_empty());
        let named = match argument.as_str() {
            LONG | SHORT => further.next().map(String::as_str),
            _ => joined.or(short),
        };
        folders.extend(named.map(|folder| Path::new(folder).to_owned()));
    }
    folders
}

#[cfg(test)]
mod tests {
    use super::super::architecture::Architecture;
    use super::super::options::CompileTarget;
    use super::*;

    #[test]
    fn folders_are_found_in_every_spelling() {
        let mut options = CompileOptions::new(CompileTarget::Ptx(Architecture::new(90)));
        options.include_folders.push("first".into());
        options.further =
            ["-Isecond", "-I", "third", "--include-path=fourth", "--include-path", "fifth", "-w"]
                .map(String::from)
                .into();
        let expected = ["first", "second", "third", "fourth", "fifth"].map(PathBuf::from);
        assert_eq!(include_folders(&options), expected);
    }

    #[test]
    fn every_header_is_given_once_unless_the_source_has_it() {
        let options = CompileOptions::new(CompileTarget::Ptx(Architecture::new(90)));
        let own = [Header { name: "math.h", text: "#define MINE 1" }];
        let source = CudaSource { headers: &own, ..CudaSource::new("k.cu", "") };
        let headers = with_standard(&source, &options);
        assert_eq!(headers.len(), STANDARD.len());
        assert!(
            headers.iter().filter(|header| header.name == "math.h").all(|header| header.text == own[0].text)
        );
        assert!(STANDARD.is_sorted_by_key(|header| header.name));
    }
}

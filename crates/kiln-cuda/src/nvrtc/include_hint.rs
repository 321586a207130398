//! How to get a header that a source includes and that was not found.

use super::diagnostic::{Diagnostic, DiagnosticSeverity};
use super::error::CompileFailure;
use crate::libraries::{HeaderPackage, HeadersNotFound, LibraryVersion, ToolkitHeaders};

/// How NVRTC begins the message about a header that it did not find; the name follows, in quotes.
const MESSAGES: [&str; 2] = ["cannot open source file \"", "could not open source file \""];

/// The same failure with a hint, if a header was not found.
pub(super) fn with_hint(
    failure: CompileFailure,
    headers: &Result<&ToolkitHeaders, HeadersNotFound>,
    nvrtc: LibraryVersion,
) -> CompileFailure {
    let header = failure.diagnostics.iter().find_map(missing_header);
    let hint = header.map(|header| hint(header, headers, nvrtc));
    CompileFailure { hint, ..failure }
}

/// The header that a message says was not found.
fn missing_header(diagnostic: &Diagnostic) -> Option<&str> {
    if diagnostic.severity != DiagnosticSeverity::Error {
        return None;
    }
    let rest = MESSAGES.iter().find_map(|message| diagnostic.message.split_once(message))?.1;
    rest.split_once('"').map(|(header, _)| header)
}

fn hint(header: &str, headers: &Result<&ToolkitHeaders, HeadersNotFound>, nvrtc: LibraryVersion) -> String {
    match (HeaderPackage::of(header), headers) {
        (None, _) => "add its folder to the include folders, or give the header with the source".into(),
        (Some(package), Ok(found)) => {
            let requirement = package.requirement(Some(nvrtc));
            format!("it is not among the {found}; `pip install {requirement}`")
        }
        (Some(HeaderPackage::Runtime), Err(missing)) => {
            format!("it is one of the CUDA headers, which were not found: {}", missing.advice())
        }
        (Some(package), Err(_)) => {
            let runtime = HeaderPackage::Runtime.requirement(Some(nvrtc));
            let requirement = package.requirement(Some(nvrtc));
            format!(
                "it is one of the CUDA headers, which were not found: `pip install {runtime} {requirement}`"
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CUDA_13: LibraryVersion = LibraryVersion { major: 13, minor: Some(0), patch: None };

    fn told(log: &str, found: bool) -> Option<String> {
        let headers = ToolkitHeaders {
            folders: vec!["/cuda/include".into()],
            version: None,
            origin: crate::LibraryOrigin::CudaHome,
        };
        let missing = HeadersNotFound { tried: Vec::new(), nvrtc: Some(CUDA_13) };
        let headers = if found { Ok(&headers) } else { Err(missing) };
        let diagnostics = Diagnostic::parse(log);
        let failure = CompileFailure { source: "k.cu".into(), diagnostics, log: log.into(), hint: None };
        with_hint(failure, &headers, CUDA_13).hint
    }

    #[test]
    fn each_kind_of_header_has_its_own_hint() {
        let old = "k.cu(1): catastrophic error: cannot open source file \"cuda_fp16.h\"";
        let new = "k.cu(1): catastrophic error: could not open source file \"cub/cub.cuh\" (no directories)";
        assert!(told(old, false).unwrap().contains("`pip install 'nvidia-cuda-runtime==13.0.*'`"));
        let hint = told(new, true).unwrap();
        assert!(hint.contains("/cuda/include") && hint.contains("nvidia-cuda-cccl==13.0.*"), "{hint}");
        let hint = told(new, false).unwrap();
        assert!(hint.contains("nvidia-cuda-runtime==13.0.*") && hint.contains("nvidia-cuda-cccl"), "{hint}");
        let own = told(&old.replace("cuda_fp16.h", "mine.h"), true).unwrap();
        assert!(own.contains("include folders") && !own.contains("pip"), "{own}");
        assert_eq!(told("k.cu(1): error: identifier \"x\" is undefined", false), None);
    }
}

//! The shipped PTX is what the sources compile to.

use std::path::Path;

use kiln_cuda::nvrtc::{Architecture, CompileOptions, CompileTarget, CudaSource, Header, Nvrtc};
use kiln_driver::Version;
use kiln_libs::dnn::embedded_ptx as networks;
use kiln_libs::prims::embedded_ptx::{CAPABILITY, HEADER, SHIPPED, ShippedKernels};
use kiln_libs::solve::embedded_ptx as solvers;
use kiln_libs::sparse::embedded_ptx as sparse;

use crate::parameter_names::with_names;
use crate::rig::skip;

/// The release that wrote the files. Another one writes other PTX.
const RELEASE: Version = Version { major: 13, minor: 0 };

/// The variable that has the files written anew.
const WRITE: &str = "KILN_WRITE_KERNELS";

fn compile(nvrtc: &Nvrtc, shipped: &ShippedKernels) -> String {
    let headers = [HEADER, networks::HEADER, solvers::HEADER].map(|(name, text)| Header { name, text });
    let mut source = CudaSource::new(shipped.source_name, shipped.source);
    source.headers = &headers;
    let mut options = CompileOptions::new(CompileTarget::Ptx(Architecture::new(CAPABILITY)));
    options.macros =
        shipped.macros.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    with_names(nvrtc.compile(&source, &options).unwrap().ptx)
}

/// All files, with their folders.
fn files() -> impl Iterator<Item = (&'static str, &'static ShippedKernels)> {
    let files = SHIPPED.iter().map(|shipped| ("src/prims/ptx", shipped));
    let files = files.chain(networks::SHIPPED.iter().map(|shipped| ("src/dnn/ptx", shipped)));
    let files = files.chain(sparse::SHIPPED.iter().map(|shipped| ("src/sparse/ptx", shipped)));
    files.chain(solvers::SHIPPED.iter().map(|shipped| ("src/solve/ptx", shipped)))
}

#[test]
fn parameters_have_the_names_of_the_sources() {
    for (_, shipped) in files() {
        let entries: Vec<&str> =
            shipped.ptx.split(".entry ").skip(1).filter_map(|text| Some(text.split_once('(')?.0)).collect();
        assert!(!entries.is_empty(), "{}", shipped.family);
        for entry in entries {
            let is_numbered = shipped.ptx.contains(&format!("{entry}_param_"));
            assert!(
                !is_numbered,
                "{} for {}: {entry} has parameters without names",
                shipped.family, shipped.of
            );
        }
    }
}

#[test]
fn shipped_ptx_is_what_the_sources_compile_to() {
    const TEST: &str = "shipped_ptx_is_what_the_sources_compile_to";
    let nvrtc = match Nvrtc::load() {
        Ok(nvrtc) if nvrtc.version() == RELEASE => nvrtc,
        Ok(nvrtc) => return skip(TEST, &format!("NVRTC {} wrote none of the files", nvrtc.version())),
        Err(error) => return skip(TEST, &error.to_string()),
    };
    for (folder, shipped) in files() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        let ptx = compile(nvrtc, shipped);
        if std::env::var_os(WRITE).is_some() {
            std::fs::write(folder.join(format!("{}_{}.ptx", shipped.family, shipped.of)), ptx).unwrap();
        } else {
            assert!(ptx == shipped.ptx, "{} for {}: run `cargo xtask kernels`", shipped.family, shipped.of);
        }
    }
}

//! `cargo xtask driver-table`: writes `crates/kiln-shim/src/api_table.rs`, the list of all functions that our `libcuda.so.1` exports.
//!
//! The names come from the bindings of cudarc, in the version that the workspace uses: every function that is bound for a CUDA version up to 13.0.
//! A name is implemented if a file of the crate defines it; the rest answers that it is not supported. The version of a name is the one that its type has in
//! `cudaTypedefs.h` of the toolkit: programs ask for functions with it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::failure::{Failure, Result};
use crate::process;
use crate::toolkit::{Search, Toolkit};
use crate::workspace::Workspace;

const TABLE: &str = "crates/kiln-shim/src/api_table.rs";
const SOURCES: [&str; 2] = ["crates/kiln-shim/src", "crates/kiln-shim/src/calls"];
/// The bindings to the driver, in the sources of cudarc.
const BINDINGS_FILE: &str = "src/driver/sys/mod.rs";
/// The newest version whose functions are exported, and the oldest that cudarc has bindings for.
const NEWEST: u32 = 13_000;
const OLDEST_BOUND: u32 = 11_040;
const LINE_COLUMNS: usize = 110;

/// The header with a type for each form of a function, which names the version that has it first.
const TYPEDEFS: &str = "cudaTypedefs.h";
/// Functions that have no type there; all are of one version.
const WITHOUT_TYPE: (&str, u32) = ("cuProfiler", 4000);

/// For each function the versions that changed it, the oldest first: the first form has no suffix, the second one `_v2`.
type Versions = BTreeMap<String, BTreeSet<u32>>;

/// Writes the table.
pub(crate) fn run(workspace: &Workspace) -> Result {
    let bindings = read(&sources_of_cudarc(workspace)?.join(BINDINGS_FILE))?;
    let headers = Toolkit::find_or_fetch(&workspace.target, Search::Everywhere)?.headers()?;
    let versions = versions(&read(&headers.join(TYPEDEFS))?);
    let table = table(&bindings, &versions, &implemented(&workspace.root)?)?;
    fs::write(workspace.root.join(TABLE), &table)
        .map_err(|error| Failure::new(format!("{TABLE} cannot be written: {error}")))?;
    println!("{TABLE}: {}", table.lines().next().unwrap_or_default());
    Ok(())
}

/// The folder in which cargo has the sources of cudarc.
pub(crate) fn sources_of_cudarc(workspace: &Workspace) -> Result<PathBuf> {
    let mut command: Command = workspace.cargo();
    // Packages of other systems need not be downloaded for this.
    let system = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    command.args(["metadata", "--format-version", "1", "--offline", "--filter-platform", &system]);
    let text = process::output(&mut command)?;
    let value: Value = serde_json::from_str(&text)
        .map_err(|error| Failure::new(format!("cargo metadata is not JSON: {error}")))?;
    let packages = value["packages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let manifest = packages.iter().find(|package| package["name"] == "cudarc");
    let manifest = manifest.and_then(|package| package["manifest_path"].as_str());
    let root = manifest.and_then(|manifest| Path::new(manifest).parent());
    let root = root.ok_or_else(|| Failure::new("the workspace does not use cudarc any more"))?;
    Ok(root.to_owned())
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).map_err(|error| Failure::file("read", path, &error))
}

/// The functions that the crate defines, with the forms that use the stream of a thread.
fn implemented(root: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for folder in SOURCES {
        let entries = fs::read_dir(root.join(folder));
        let entries = entries.map_err(|error| Failure::new(format!("{folder} cannot be read: {error}")))?;
        let files = entries.flatten().map(|entry| entry.path());
        let sources = files.filter(|path| path.extension().is_some_and(|extension| extension == "rs"));
        for path in sources.filter(|path| !path.ends_with("api_table.rs")) {
            names.extend(defined(&read(&path)?));
        }
    }
    Ok(names)
}

/// The functions that stand in a file as `    fn cuName` or `    fn cuName | cuName_ptsz`.
fn defined(source: &str) -> Vec<String> {
    let lines = source.lines().filter_map(|line| line.strip_prefix("    fn cu"));
    let heads = lines.map(|rest| rest.split('(').next().unwrap_or_default());
    let names = heads.flat_map(|head| head.split('|').map(|name| name.trim().to_owned()).collect::<Vec<_>>());
    names.map(|name| if name.starts_with("cu") { name } else { format!("cu{name}") }).collect()
}

/// The versions of all functions that have types.
fn versions(typedefs: &str) -> Versions {
    let mut versions = Versions::new();
    for rest in typedefs.split("*PFN_cu").skip(1) {
        let name = rest.split(')').next().unwrap_or_default();
        // Forms with the thread's stream end with a further word, and are found by those without.
        if let Some((name, Ok(version))) = name.rsplit_once("_v").map(|(name, number)| (name, number.parse()))
        {
            versions.entry(format!("cu{name}")).or_default().insert(version);
        }
    }
    versions
}

/// All functions up to the newest version, with the version that has them first.
fn bound(bindings: &str, typedefs: &Versions) -> Result<BTreeMap<String, u32>> {
    let mut names = BTreeMap::new();
    let mut versions = OLDEST_BOUND;
    for line in bindings.lines() {
        if let Some(condition) = line.strip_prefix("#[cfg(any(feature = \"cuda-") {
            versions = condition.get(..5).and_then(|digits| digits.parse().ok()).unwrap_or(OLDEST_BOUND);
        } else if let Some(rest) = line.strip_prefix("pub unsafe fn cu") {
            let name = format!("cu{}", rest.split('(').next().unwrap_or_default());
            if name.as_bytes().get(2).is_some_and(u8::is_ascii_uppercase) && versions <= NEWEST {
                let since = since(&name, typedefs)?;
                names.insert(name, since);
            }
            versions = OLDEST_BOUND;
        } else if line.starts_with("pub ") || line.starts_with("extern ") {
            versions = OLDEST_BOUND;
        }
    }
    Ok(names)
}

/// The version that has a form first.
fn since(name: &str, typedefs: &Versions) -> Result<u32> {
    let (base, form) = match name.rsplit_once("_v").map(|(base, form)| (base, form.parse::<usize>())) {
        Some((base, Ok(form))) => (base, form),
        _ => (name, 1),
    };
    if name.starts_with(WITHOUT_TYPE.0) {
        return Ok(WITHOUT_TYPE.1);
    }
    let version = typedefs.get(base).and_then(|versions| versions.iter().nth(form.saturating_sub(1)));
    version.copied().ok_or_else(|| Failure::new(format!("{TYPEDEFS} has no version for {name}")))
}

fn table(bindings: &str, versions: &Versions, implemented: &[String]) -> Result<String> {
    let mut names = bound(bindings, versions)?;
    // A form with the thread's stream is as old as the function.
    for name in implemented.iter().filter(|name| name.ends_with("_ptsz") || name.ends_with("_ptds")) {
        let of = names.get(&name[..name.len() - 5]).copied().unwrap_or(7000).max(7000);
        names.insert(name.clone(), of);
    }
    let (ours, others): (Vec<_>, Vec<_>) = names.iter().partition(|(name, _)| implemented.contains(name));
    let mut text = format!(
        "//! All {} functions that the library exports: {} are implemented, {} answer that they are not supported.\n",
        names.len(),
        ours.len(),
        others.len()
    );
    text.push_str(HEADER);
    for (word, group) in [("implemented", ours), ("unsupported", others)] {
        let _ = writeln!(text, "    {word}:");
        let mut line = String::new();
        for (name, since) in group {
            let entry = format!(" {name}@{since},");
            if line.len() + entry.len() + 7 > LINE_COLUMNS {
                let _ = writeln!(text, "       {line}");
                line.clear();
            }
            line.push_str(&entry);
        }
        let _ = writeln!(text, "       {line};");
    }
    text.push_str("}\n");
    Ok(text)
}

const HEADER: &str = r#"//!
//! Written by `cargo xtask driver-table` from the bindings of cudarc and `cudaTypedefs.h`; do not edit. Each name has the CUDA version that has it first.

use std::ffi::c_int;

/// A function that the library exports.
pub(crate) struct EntryPoint {
    pub(crate) name: &'static str,
    /// The CUDA version that has it first, such as 12040 for 12.4.
    pub(crate) since: c_int,
    address: unsafe extern "C" fn() -> c_int,
}

impl EntryPoint {
    /// Where it is, for a program that calls it with the arguments that the API says.
    pub(crate) fn address(&self) -> usize {
        self.address as usize
    }
}

/// The names of all functions that the library exports.
pub fn exported_names() -> impl Iterator<Item = &'static str> {
    ENTRY_POINTS.iter().map(|entry| entry.name)
}

macro_rules! api_table {
    (implemented: $($ours:ident @ $ours_since:literal,)* ; unsupported: $($other:ident @ $other_since:literal,)* ;) => {
        /// The functions as symbols; the table needs their addresses alone.
        mod symbols {
            use std::ffi::c_int;

            unsafe extern "C" {
                $(pub(super) fn $ours() -> c_int;)*
            }
        }

        /// Functions that are not implemented. They take no arguments: a caller in C passes them in vain.
        mod unsupported {
            use std::ffi::c_int;

            $(
                #[unsafe(no_mangle)]
                pub(super) extern "C" fn $other() -> c_int {
                    crate::boundary::unsupported(stringify!($other))
                }
            )*
        }

        /// All of them.
        pub(crate) static ENTRY_POINTS: &[EntryPoint] = &[
            $(EntryPoint { name: stringify!($ours), since: $ours_since, address: symbols::$ours },)*
            $(EntryPoint { name: stringify!($other), since: $other_since, address: unsupported::$other },)*
        ];
    };
}

api_table! {
"#;

#[cfg(test)]
mod tests {
    use super::*;

    const BINDINGS: &str = "\
pub unsafe fn cuInit(Flags: c_uint) -> CUresult {
pub unsafe fn cuMemAlloc_v2(dptr: *mut CUdeviceptr, bytesize: usize) -> CUresult {
#[cfg(any(feature = \"cuda-13000\", feature = \"cuda-13010\"))]
pub unsafe fn cuCtxGetDevice_v2(device: *mut CUdevice, ctx: CUcontext) -> CUresult {
#[cfg(any(feature = \"cuda-13020\"))]
pub unsafe fn cuTooNew() -> CUresult {
#[cfg(any(feature = \"cuda-12080\"))]
pub struct S {
pub unsafe fn culib() -> &'static Library {
pub unsafe fn cuCtxDestroy_v2(ctx: CUcontext) -> CUresult {
";
    const TYPES: &str = "\
typedef CUresult (CUDAAPI *PFN_cuInit_v2000)(unsigned int Flags);
typedef CUresult (CUDAAPI *PFN_cuMemAlloc_v3020)(CUdeviceptr_v2 *dptr, size_t bytesize);
typedef CUresult (CUDAAPI *PFN_cuMemAlloc_v2000)(CUdeviceptr_v1 *dptr, unsigned int bytesize);
typedef CUresult (CUDAAPI *PFN_cuMemcpy_v4000)(CUdeviceptr_v2 dst, CUdeviceptr_v2 src, size_t ByteCount);
typedef CUresult (CUDAAPI *PFN_cuMemcpy_v7000_ptds)(CUdeviceptr_v2 dst, CUdeviceptr_v2 src, size_t ByteCount);
typedef CUresult (CUDAAPI *PFN_cuCtxGetDevice_v2000)(CUdevice_v1 *device);
typedef CUresult (CUDAAPI *PFN_cuCtxGetDevice_v13000)(CUdevice_v1 *device, CUcontext ctx);
typedef CUresult (CUDAAPI *PFN_cuCtxDestroy_v2000)(CUcontext ctx);
typedef CUresult (CUDAAPI *PFN_cuCtxDestroy_v4000)(CUcontext ctx);
";

    #[test]
    fn a_name_without_a_version_is_told() {
        let error = bound("pub unsafe fn cuNew() -> CUresult {\n", &versions(TYPES)).unwrap_err();
        assert!(error.to_string().contains("no version for cuNew"), "{error}");
        let profiler = bound("pub unsafe fn cuProfilerStop() -> CUresult {\n", &versions(TYPES));
        assert_eq!(profiler.unwrap()["cuProfilerStop"], 4000);
    }

    #[test]
    fn names_come_from_the_bindings_and_versions_from_the_types() {
        let names = bound(BINDINGS, &versions(TYPES)).unwrap();
        let names: Vec<_> = names.iter().map(|(name, since)| (name.as_str(), *since)).collect();
        let expected = [
            ("cuCtxDestroy_v2", 4000),
            ("cuCtxGetDevice_v2", 13_000),
            ("cuInit", 2000),
            ("cuMemAlloc_v2", 3020),
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn what_is_defined_is_implemented() {
        let source =
            "driver_api! {\n    fn cuInit(flags: c_uint) {\n    fn cuMemcpy | cuMemcpy_ptds (to: u64) {\n";
        assert_eq!(defined(source), ["cuInit", "cuMemcpy", "cuMemcpy_ptds"]);
        let table = table(BINDINGS, &versions(TYPES), &defined(source)).unwrap();
        assert!(
            table.starts_with("//! All 5 functions that the library exports: 2 are implemented, 3 answer"),
            "{table}"
        );
        assert!(table.contains("implemented:\n        cuInit@2000, cuMemcpy_ptds@7000,;"), "{table}");
    }
}

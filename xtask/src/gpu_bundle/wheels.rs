//! Packages that the peers in C++ are built from on the host, fetched once and carried along as they are.
//!
//! The host has no network and RMM is rarely installed, but it is published as Python packages with headers and
//! libraries. Versions and checksums are pinned, and pip compares the checksums. The files stay packed: a fifth of the
//! size, and the script of the peers unpacks them with the Python that it needs anyway. Without a network the bundle
//! goes without them, and says so.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::{Failure, Result};
use crate::process;

/// One package.
struct Wheel {
    package: &'static str,
    version: &'static str,
    sha256: &'static str,
    /// How its file's name begins.
    prefix: &'static str,
}

/// RMM with its headers and the CCCL they are written for, and what it logs with.
const WHEELS: [Wheel; 2] = [
    Wheel {
        package: "librmm-cu13",
        version: "26.10.0",
        sha256: "39edcc7396f5291e95331089909b1e13e445fa2dbd4e7323992fb29fb04a5a1b",
        prefix: "librmm_cu13-26.10.0-",
    },
    Wheel {
        package: "rapids-logger",
        version: "0.3.0",
        sha256: "9d9094dd241c4e0f2d0c3bad448871e62f9b915e1ef65db41b0a1cf4473b1066",
        prefix: "rapids_logger-0.3.0-",
    },
];

/// The package files, fetched into a directory if they are not there; none at all if one cannot be had, which is said.
pub(crate) fn all(directory: &Path) -> Vec<PathBuf> {
    let found: Result<Vec<PathBuf>> = WHEELS.iter().map(|wheel| one(wheel, directory)).collect();
    found.unwrap_or_else(|failure| {
        eprint!("{failure}");
        eprintln!(
            "the bundle goes without RMM: its peer is measured only where the host has librmm installed"
        );
        Vec::new()
    })
}

fn one(wheel: &Wheel, directory: &Path) -> Result<PathBuf> {
    if let Some(file) = find(directory, wheel.prefix) {
        return Ok(file);
    }
    // pip checks a package before it moves it to its place, so what is in place is whole and right.
    let requirement = format!("{}=={} --hash=sha256:{}\n", wheel.package, wheel.version, wheel.sha256);
    let list = directory.join(format!("{}.txt", wheel.package));
    std::fs::create_dir_all(directory).map_err(|error| Failure::file("create", directory, &error))?;
    std::fs::write(&list, requirement).map_err(|error| Failure::file("write", &list, &error))?;
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--require-hashes", "--dest"]);
    pip.arg(directory).arg("--requirement").arg(&list);
    process::succeed(&mut pip)?;
    let missing = || Failure::new(format!("pip reported success but left no {}", wheel.package));
    find(directory, wheel.prefix).ok_or_else(missing)
}

/// The package file in a directory whose name begins so.
fn find(directory: &Path, prefix: &str) -> Option<PathBuf> {
    let paths = directory.read_dir().ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    let is_it = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with(prefix) && name.ends_with(".whl")
    };
    paths.filter(is_it).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_in_place_is_found_by_its_version() {
        let directory = std::env::temp_dir().join(format!("kiln-wheels-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        for name in ["librmm_cu13-26.08.0-any.whl", "librmm_cu13-26.10.0-any.whl.part"] {
            std::fs::write(directory.join(name), "").unwrap();
        }
        assert_eq!(find(&directory, WHEELS[0].prefix), None);
        let right = directory.join("librmm_cu13-26.10.0-any.whl");
        std::fs::write(&right, "").unwrap();
        assert_eq!(find(&directory, WHEELS[0].prefix), Some(right));
        std::fs::remove_dir_all(&directory).unwrap();
        assert_eq!(find(&directory, WHEELS[0].prefix), None);
    }

    #[test]
    fn every_package_is_pinned() {
        for wheel in &WHEELS {
            assert!(wheel.sha256.len() == 64 && wheel.sha256.bytes().all(|digit| digit.is_ascii_hexdigit()));
            assert!(wheel.prefix.starts_with(&wheel.package.replace('-', "_")));
            assert!(wheel.prefix.contains(wheel.version));
        }
    }
}

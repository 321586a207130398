//! Which crate may use which.
//!
//! A crate boundary is worth having when it carries a rule. Here are the rules, as data: which of our crates each
//! may use, who may name cudarc, and where unsafe code is forbidden.

use super::finding::Finding;
use super::source_text::Masked;
use super::tree::Tree;
use crate::workspace::Package;

/// What one crate may do.
struct Boundary {
    package: &'static str,
    /// Our crates it may use, tests aside.
    may_use: &'static [&'static str],
    /// Whether it may hold unsafe code.
    unsafe_code: bool,
}

/// The rules. Tests, examples and benchmarks may use whatever they like.
const BOUNDARIES: &[Boundary] = &[
    Boundary { package: "kiln-sync", may_use: &[], unsafe_code: true },
    Boundary { package: "kiln-driver", may_use: &["kiln-sync"], unsafe_code: true },
    Boundary { package: "kiln-lanes", may_use: &[], unsafe_code: true },
    Boundary { package: "kiln-ptx", may_use: &["kiln-lanes"], unsafe_code: false },
    Boundary { package: "kiln-ir", may_use: &[], unsafe_code: false },
    Boundary { package: "kiln-operation", may_use: &[], unsafe_code: false },
    Boundary { package: "kiln-trace", may_use: &["kiln-sync"], unsafe_code: false },
    Boundary { package: "kiln-watch", may_use: &["kiln-trace"], unsafe_code: false },
    Boundary { package: "kiln-order", may_use: &["kiln-driver", "kiln-sync"], unsafe_code: true },
    Boundary { package: "kiln-mem", may_use: &["kiln-driver", "kiln-order", "kiln-sync"], unsafe_code: true },
    Boundary {
        package: "kiln-cuda",
        may_use: &["kiln-driver", "kiln-operation", "kiln-sync"],
        unsafe_code: true,
    },
    Boundary {
        package: "kiln-sim",
        may_use: &["kiln-driver", "kiln-operation", "kiln-ptx"],
        unsafe_code: true,
    },
    Boundary {
        package: "kiln-isolate",
        may_use: &["kiln-driver", "kiln-cuda", "kiln-sim"],
        unsafe_code: true,
    },
    Boundary {
        package: "kiln-shim",
        may_use: &[
            "kiln-driver",
            "kiln-cuda",
            "kiln-isolate",
            "kiln-ptx",
            "kiln-sim",
            "kiln-sync",
            "kiln-trace",
        ],
        unsafe_code: true,
    },
    Boundary { package: "kiln-conform", may_use: &["kiln-driver"], unsafe_code: true },
    Boundary { package: "kiln-kernels", may_use: &[], unsafe_code: false },
    Boundary {
        package: "kiln-probe",
        may_use: &["kiln-driver", "kiln-cuda", "kiln-sim", "kiln-isolate"],
        unsafe_code: false,
    },
    Boundary {
        package: "kiln-runtime",
        may_use: &[
            "kiln-driver",
            "kiln-cuda",
            "kiln-mem",
            "kiln-order",
            "kiln-sync",
            "kiln-ptx",
            "kiln-isolate",
            "kiln-probe",
            "kiln-trace",
        ],
        unsafe_code: true,
    },
    Boundary {
        package: "kiln-program",
        may_use: &["kiln-driver", "kiln-ir", "kiln-mem", "kiln-runtime"],
        unsafe_code: true,
    },
    Boundary {
        package: "kiln-libs",
        may_use: &["kiln-driver", "kiln-ir", "kiln-mem", "kiln-operation", "kiln-runtime", "kiln-sync"],
        unsafe_code: true,
    },
    Boundary {
        package: "kiln-group",
        may_use: &["kiln-driver", "kiln-operation", "kiln-probe", "kiln-runtime"],
        unsafe_code: true,
    },
    Boundary { package: "kiln-service", may_use: &["kiln-driver", "kiln-runtime"], unsafe_code: false },
    Boundary {
        package: "kiln",
        may_use: &[
            "kiln-driver",
            "kiln-group",
            "kiln-ir",
            "kiln-mem",
            "kiln-order",
            "kiln-probe",
            "kiln-program",
            "kiln-runtime",
            "kiln-service",
            "kiln-sim",
            "kiln-trace",
        ],
        unsafe_code: false,
    },
    Boundary {
        package: "kiln-cli",
        may_use: &[
            "kiln",
            "kiln-driver",
            "kiln-isolate",
            "kiln-libs",
            "kiln-mem",
            "kiln-sim",
            "kiln-ptx",
            "kiln-ir",
            "kiln-trace",
            "kiln-watch",
        ],
        unsafe_code: true,
    },
    Boundary {
        package: "kiln-bench",
        may_use: &[
            "kiln",
            "kiln-cuda",
            "kiln-driver",
            "kiln-ir",
            "kiln-isolate",
            "kiln-kernels",
            "kiln-libs",
            "kiln-mem",
            "kiln-ptx",
            "kiln-sim",
            "kiln-sync",
        ],
        unsafe_code: true,
    },
    Boundary { package: "kiln-models", may_use: &[], unsafe_code: true },
    Boundary { package: "kiln-book", may_use: &[], unsafe_code: false },
    Boundary { package: "xtask", may_use: &[], unsafe_code: false },
];

/// Packages from outside that only some of ours may use, and the others not in tests either. The benchmarks name
/// cudarc because it is a peer they measure, the book because it shows both side by side, and kiln-shim takes types and constants of the driver API from it.
const RESERVED: [(&str, &[&str]); 1] = [("cudarc", &["kiln-book", "kiln-cuda", "kiln-bench", "kiln-shim"])];

/// For tests and benchmarks: nothing that users build depends on them.
const DEV_ONLY: [&str; 3] = ["kiln-conform", "kiln-kernels", "kiln-models"];

/// Every crate keeps to its boundary.
pub(crate) fn dependencies(_: &Tree, packages: &[Package]) -> Vec<Finding> {
    packages.iter().flat_map(|package| in_package(package, packages)).collect()
}

fn in_package(package: &Package, packages: &[Package]) -> Vec<Finding> {
    let path = package.manifest.to_string_lossy();
    let Some(boundary) = boundary(package) else {
        let text = "a crate without a boundary; add it to xtask/src/tidy/boundaries.rs with what it may use";
        return vec![Finding::new(&path, 1, text)];
    };
    let complaint = |dependency: &crate::workspace::Dependency| {
        let name = dependency.name.as_str();
        let ours = packages.iter().any(|package| package.name == name);
        if let Some((_, owners)) = RESERVED.iter().find(|(reserved, _)| *reserved == name) {
            let allowed = owners.contains(&package.name.as_str());
            return (!allowed).then(|| format!("only {} may use {name}", owners.join(" and ")));
        }
        if dependency.dev || !ours || boundary.may_use.contains(&name) {
            return None;
        }
        Some(if DEV_ONLY.contains(&name) {
            format!("{name} is for tests; make it a dev-dependency")
        } else {
            format!("{} may not use {name}; it would join what the boundary keeps apart", package.name)
        })
    };
    package.dependencies.iter().filter_map(complaint).map(|text| Finding::new(&path, 1, text)).collect()
}

/// A crate without unsafe code says so to the compiler.
pub(crate) fn unsafe_code(tree: &Tree, packages: &[Package]) -> Vec<Finding> {
    let safe = packages.iter().filter(|package| boundary(package).is_some_and(|b| !b.unsafe_code));
    let roots = safe.filter_map(|package| {
        let directory = package.manifest.parent()?.to_string_lossy().into_owned();
        let roots = ["lib.rs", "main.rs"].map(|name| format!("{directory}/src/{name}"));
        roots.iter().find_map(|path| tree.file(path))
    });
    roots
        .filter(|file| !Masked::new(&file.text).code.contains("#![forbid(unsafe_code)]"))
        .map(|file| Finding::new(&file.path, 1, "add `#![forbid(unsafe_code)]`"))
        .collect()
}

fn boundary(package: &Package) -> Option<&'static Boundary> {
    BOUNDARIES.iter().find(|boundary| boundary.package == package.name)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::workspace::Dependency;

    fn package(name: &str, dependencies: &[(&str, bool)]) -> Package {
        Package {
            name: name.into(),
            manifest: PathBuf::from(format!("crates/{name}/Cargo.toml")),
            license: None,
            published: true,
            features: Default::default(),
            dependencies: dependencies
                .iter()
                .map(|(name, dev)| Dependency { name: (*name).into(), dev: *dev, features: Vec::new() })
                .collect(),
            targets: Vec::new(),
        }
    }

    fn found(packages: &[Package]) -> Vec<String> {
        dependencies(&Tree::of(&[]), packages).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_the_rules_allow_is_fine() {
        let packages = [
            package("kiln-driver", &[("thiserror", false), ("kiln-sim", true)]),
            package("kiln-cuda", &[("cudarc", false), ("kiln-driver", false), ("kiln-conform", true)]),
            package("kiln-sim", &[("kiln-driver", false), ("kiln-ptx", false)]),
            package("kiln-ptx", &[]),
            package("kiln-conform", &[("kiln-driver", false)]),
        ];
        assert_eq!(found(&packages), [] as [String; 0]);
    }

    #[test]
    fn every_wall_can_be_run_into() {
        let others = || ["kiln-driver", "kiln-conform"].map(|name| package(name, &[]));
        let wrong = |name: &str, dependency: (&str, bool)| {
            let [driver, conform] = others();
            found(&[package(name, &[dependency]), driver, conform])
        };
        assert!(wrong("kiln-ptx", ("kiln-driver", false))[0].contains("may not use kiln-driver"));
        assert!(
            wrong("kiln", ("cudarc", true))[0]
                .contains("only kiln-book and kiln-cuda and kiln-bench and kiln-shim may use cudarc")
        );
        assert!(wrong("kiln-sim", ("kiln-conform", false))[0].contains("dev-dependency"));
        assert!(wrong("kiln-new", ("clap", false))[0].contains("without a boundary"));
    }

    #[test]
    fn a_safe_crate_that_does_not_say_so_is_found() {
        let root = "crates/kiln-ptx/src/lib.rs";
        let packages = [package("kiln-ptx", &[]), package("kiln-cuda", &[])];
        let said = Tree::of(&[(root, "//! PTX.\n#![forbid(unsafe_code)]\n")]);
        let only_in_a_comment =
            Tree::of(&[(root, "//! #![forbid(unsafe_code)]\n"), ("crates/kiln-cuda/src/lib.rs", "")]);
        assert_eq!(unsafe_code(&said, &packages).len(), 0);
        assert_eq!(unsafe_code(&only_in_a_comment, &packages).len(), 1);
    }
}

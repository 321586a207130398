//! Features that exist for tests reach no build of a user.
//!
//! With `mutations` a rule of the order can be taken out. Tests turn it on, by dev-dependencies or by `--all-features`; nothing else may.

use super::finding::Finding;
use super::tree::Tree;
use crate::workspace::Package;

/// Features that only tests may turn on.
const TEST_ONLY: [&str; 1] = ["mutations"];

/// No default, no other feature and no dependency outside of tests turns such a feature on.
pub(crate) fn reach(_: &Tree, packages: &[Package]) -> Vec<Finding> {
    packages.iter().flat_map(in_package).collect()
}

fn in_package(package: &Package) -> Vec<Finding> {
    let path = package.manifest.to_string_lossy();
    let features = package.features.iter().flat_map(|(name, enabled)| {
        let reached =
            enabled.iter().filter_map(|each| test_only(each)).filter(move |reached| reached != name);
        reached.map(move |reached| format!("the feature `{name}` turns `{reached}` on, which is for tests"))
    });
    let dependencies =
        package.dependencies.iter().filter(|dependency| !dependency.dev).flat_map(|dependency| {
            let reached = dependency.features.iter().filter_map(|each| test_only(each));
            reached.map(move |reached| {
                format!("the dependency on {} turns `{reached}` on, which is for tests", dependency.name)
            })
        });
    features.chain(dependencies).map(|text| Finding::new(&path, 1, &text)).collect()
}

/// The feature for tests that an entry of a manifest turns on: `name`, `package/name` or `package?/name`.
fn test_only(entry: &str) -> Option<&'static str> {
    let name = entry.rsplit('/').next().unwrap_or(entry);
    TEST_ONLY.into_iter().find(|feature| *feature == name)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::workspace::Dependency;

    fn found(features: &[(&str, &[&str])], dependencies: &[(&str, bool, &[&str])]) -> usize {
        let owned = |list: &[&str]| list.iter().map(|each| (*each).to_owned()).collect::<Vec<_>>();
        let dependency = |(name, dev, features): &(&str, bool, &[&str])| Dependency {
            name: (*name).to_owned(),
            dev: *dev,
            features: owned(features),
        };
        let package = Package {
            name: "a".into(),
            manifest: PathBuf::from("crates/a/Cargo.toml"),
            license: None,
            published: true,
            features: features.iter().map(|(name, list)| ((*name).to_owned(), owned(list))).collect(),
            dependencies: dependencies.iter().map(dependency).collect(),
            targets: Vec::new(),
        };
        in_package(&package).len()
    }

    #[test]
    fn a_feature_may_be_passed_on_under_its_own_name_and_no_other() {
        assert_eq!(found(&[("mutations", &["b/mutations"]), ("default", &["c/std"])], &[]), 0);
        assert_eq!(found(&[("default", &["mutations"])], &[]), 1);
        assert_eq!(found(&[("all", &["b?/mutations", "b/mutations"])], &[]), 2);
    }

    #[test]
    fn tests_may_turn_it_on_and_builds_of_users_may_not() {
        assert_eq!(found(&[], &[("b", true, &["mutations"]), ("b", false, &["std"])]), 0);
        assert_eq!(found(&[], &[("b", false, &["mutations"])]), 1);
    }
}

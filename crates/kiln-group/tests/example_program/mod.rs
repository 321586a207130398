//! Examples as programs, for tests of several packages.

use std::path::PathBuf;
use std::process::Command;

/// Where cargo puts an example of kiln-group when it builds the tests; built now if only this test was asked for.
pub(crate) fn example_program(name: &str) -> PathBuf {
    example_of("kiln-group", name)
}

/// The same for an example of another package.
pub(crate) fn example_of(package: &str, name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let program = test.parent().and_then(|deps| deps.parent()).unwrap().join("examples").join(name);
    if !program.exists() {
        let arguments = ["build", "--quiet", "--package", package, "--example", name];
        let built = Command::new(env!("CARGO")).args(arguments).status().unwrap();
        assert!(built.success() && program.exists(), "the example was not built");
    }
    program
}

//! `cargo xtask properties`: the tests of properties, with other random values than the gate's.
//!
//! The gate draws the same values every time, by the seed in `.cargo/config.toml`, so that a change is judged by what it changes. This draws
//! others, seed after seed, and names the one that fails.

use clap::Args;

use crate::failure::{Failure, Result};
use crate::test;
use crate::workspace::Workspace;

/// Packages with such tests, and what selects them: a test binary and parts of names.
const PROPERTIES: &[(&str, &[&str])] = &[
    ("kiln-ptx", &["--test", "suite", "--", "effects_property::", "effects_executed::", "damage::"]),
    ("kiln", &["--lib", "--", "footprint", "hazards", "partition", "arena"]),
    ("kiln-isolate", &["--lib", "--", "fuzzed"]),
];

/// What can be said on the command line.
#[derive(Args)]
pub(crate) struct Arguments {
    /// How many seeds
    #[arg(long, default_value_t = 20)]
    seeds: u64,
    /// The first of them; by default one from the clock
    #[arg(long)]
    from: Option<u64>,
}

/// Runs the tests once for every seed.
pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let from = arguments.from.unwrap_or_else(|| now.map_or(0, |now| now.as_secs()));
    for seed in from..from.saturating_add(arguments.seeds) {
        println!("seed {seed}");
        for (package, rest) in PROPERTIES {
            let mut command = workspace.cargo();
            command.args(["test", "--quiet", "--package", package]).args(*rest);
            command.env("PROPTEST_RNG_SEED", seed.to_string());
            let (totals, succeeded) = test::stream(&mut command)?;
            // A test that was renamed is not one that holds.
            if !succeeded || totals.passed == 0 {
                let again = format!("cargo xtask properties --from {seed} --seeds 1");
                return Err(Failure::new(format!(
                    "a property of {package} does not hold, its tests did not build, or there are none; see it again: {again}"
                )));
            }
        }
    }
    println!("{} seeds from {from}: every property held", arguments.seeds);
    Ok(())
}

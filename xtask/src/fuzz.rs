//! `cargo xtask fuzz`: readers of foreign input, fed with random inputs, and the executor of PTX with random kernels, both ways.
//!
//! A target is an example of its crate that takes seconds and a seed, makes its inputs from the seed alone and exits
//! with a failure, saying which input did it, when the reader panics or does not come back. It needs nothing but
//! cargo and runs the same on every machine.

use std::path::PathBuf;

use clap::Args;

use crate::failure::{Failure, Result};
use crate::process;
use crate::workspace::Workspace;

/// One reader to feed.
struct Target {
    name: &'static str,
    package: &'static str,
    example: &'static str,
    /// What the package has to be built with.
    features: &'static [&'static str],
}

/// Everything that reads foreign input, and the executor.
const TARGETS: &[Target] = &[
    Target { name: "ptx", package: "kiln-ptx", example: "fuzz_parse", features: &[] },
    Target { name: "executor", package: "kiln-ptx", example: "compare_executors", features: &[] },
    Target { name: "kir", package: "kiln-ir", example: "fuzz_kir", features: &[] },
    Target { name: "wire", package: "kiln-isolate", example: "fuzz_wire", features: &["fuzzing"] },
    Target { name: "recording", package: "kiln-trace", example: "fuzz_recording", features: &[] },
];

/// Optimised, but with the checks on that turn a wrong sum into a finding.
const PROFILE: [&str; 4] = [
    "--config=profile.fuzz.inherits=\"release\"",
    "--config=profile.fuzz.debug-assertions=true",
    "--config=profile.fuzz.overflow-checks=true",
    "--profile=fuzz",
];

/// What can be said on the command line.
#[derive(Args)]
pub(crate) struct Arguments {
    /// What to feed; everything, one after the other, if it is left out
    target: Option<String>,
    /// How long for each
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// What the inputs are made from; the same seed makes the same inputs
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// So many inputs instead of a time, in several processes with limits for time and memory (`ptx` alone)
    #[arg(long, value_name = "COUNT", conflicts_with = "seconds", requires = "target")]
    texts: Option<u64>,
    /// How many processes share them; one for each core if it is left out
    #[arg(long, value_name = "COUNT", requires = "texts")]
    jobs: Option<usize>,
    /// Further files that inputs are made of
    #[arg(long = "file", value_name = "FILE", requires = "texts")]
    files: Vec<PathBuf>,
}

/// The target that takes a number of inputs.
const COUNTED: &str = "ptx";

/// Runs one target or all.
pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result {
    for target in chosen(arguments.target.as_deref())? {
        let what = match arguments.texts {
            Some(texts) => format!("{texts} inputs"),
            None => format!("{} s", arguments.seconds),
        };
        println!("fuzz {}: seed {}, {what}", target.name, arguments.seed);
        let mut command = workspace.cargo();
        command.arg("run").args(PROFILE).args(["--package", target.package, "--example", target.example]);
        command.args(target.features.iter().map(|feature| format!("--features={feature}")));
        command.arg("--").args(words(arguments, target.name)?);
        process::succeed(&mut command)?;
    }
    Ok(())
}

/// What a target is told.
fn words(arguments: &Arguments, target: &str) -> Result<Vec<String>> {
    let seed = arguments.seed.to_string();
    let Some(texts) = arguments.texts else { return Ok(vec![arguments.seconds.to_string(), seed]) };
    if target != COUNTED {
        return Err(Failure::new(format!(
            "`--texts` is for the target `{COUNTED}`; `{target}` takes `--seconds`"
        )));
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut words =
        vec!["--texts".to_owned(), texts.to_string(), arguments.jobs.unwrap_or(cores).to_string(), seed];
    words.extend(arguments.files.iter().map(|file| file.display().to_string()));
    Ok(words)
}

fn chosen(name: Option<&str>) -> Result<Vec<&'static Target>> {
    let targets: Vec<_> =
        TARGETS.iter().filter(|target| name.is_none_or(|name| name == target.name)).collect();
    match (name, &targets[..]) {
        (Some(name), []) => {
            let known: Vec<_> = TARGETS.iter().map(|target| target.name).collect();
            Err(Failure::new(format!("there is no fuzz target `{name}`; there are: {}", known.join(", "))))
        }
        _ => Ok(targets),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_is_an_example_of_its_package() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for target in TARGETS {
            let file = root.join("crates").join(target.package).join("examples").join(target.example);
            let is_there = file.with_extension("rs").exists() || file.join("main.rs").exists();
            assert!(is_there, "{} has no {}", target.package, target.example);
        }
    }

    #[test]
    fn an_unknown_target_is_refused_with_the_known_ones() {
        let text = chosen(Some("elf")).err().unwrap().to_string();
        assert!(text.contains("`elf`") && text.contains("ptx"), "{text}");
        assert_eq!(chosen(None).unwrap().len(), TARGETS.len());
        assert_eq!(chosen(Some("ptx")).unwrap().len(), 1);
    }

    #[test]
    fn a_number_of_inputs_is_for_ptx() {
        let arguments = Arguments {
            target: Some("ptx".to_owned()),
            seconds: 60,
            seed: 3,
            texts: Some(1000),
            jobs: Some(4),
            files: vec![PathBuf::from("a.ptx")],
        };
        assert_eq!(words(&arguments, "ptx").unwrap(), ["--texts", "1000", "4", "3", "a.ptx"]);
        let refused = words(&arguments, "kir").err().unwrap().to_string();
        assert!(refused.contains("`kir`") && refused.contains("--seconds"), "{refused}");
        assert_eq!(words(&Arguments { texts: None, ..arguments }, "kir").unwrap(), ["60", "3"]);
    }
}

//! A program that runs under `kiln exec`, with what it printed and what was found.

use std::ffi::OsStr;
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use clap::ValueEnum;
use serde_json::Value;

use crate::failure::{Failure, Result};
use crate::process;
use crate::workspace::Workspace;

/// How often a running program is looked at.
const LOOK: Duration = Duration::from_millis(20);
/// What a program that was told to end has for it.
const GRACE: Duration = Duration::from_secs(10);

/// The devices that a suite gets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum SuiteDevice {
    /// Simulated ones.
    Sim,
    /// The GPUs of this machine, checked.
    Cuda,
}

impl SuiteDevice {
    /// Refuses several seeds where they mean nothing.
    pub(crate) fn check_seeds(self, seeds: u64) -> Result {
        let message = "--seeds picks orders of the simulated device; leave it or --device cuda out";
        if self == Self::Cuda && seeds > 1 { Err(Failure::new(message)) } else { Ok(()) }
    }
}

/// How programs are run.
pub(crate) struct ExecRun {
    kiln: std::path::PathBuf,
    device: SuiteDevice,
    seeds: u64,
    /// How long a program may take.
    limit: Duration,
}

/// What is left of a program.
pub(crate) struct Ran {
    /// What it printed, on both outputs.
    pub(crate) printed: String,
    /// Whether it was told to end because it took too long.
    pub(crate) is_late: bool,
    /// The findings of all runs.
    pub(crate) findings: Vec<String>,
}

impl ExecRun {
    /// Builds the command and its library.
    pub(crate) fn build(
        workspace: &Workspace,
        is_optimised: bool,
        seeds: u64,
        limit: Duration,
    ) -> Result<Self> {
        let mut build = workspace.cargo();
        if is_optimised {
            build.args(["build", "--release", "--package", "kiln-cli", "--package", "kiln-shim"]);
        } else {
            // With the features that the tests of the workspace have, so that what these built is not built again.
            build.args(["build", "--workspace", "--all-features", "--lib", "--bin", "kiln"]);
        }
        process::succeed(&mut build)?;
        let profile = if is_optimised { "release" } else { "debug" };
        let kiln = workspace.target.join(profile).join("kiln");
        Ok(Self { kiln, device: SuiteDevice::Sim, seeds, limit })
    }

    /// The same on other devices.
    pub(crate) fn on(self, device: SuiteDevice) -> Self {
        Self { device, ..self }
    }

    /// How often a program runs, each time with the next seed.
    pub(crate) fn seeds(&self) -> u64 {
        self.seeds
    }

    /// The same with one seed.
    pub(crate) fn once(&self) -> Self {
        Self { kiln: self.kiln.clone(), seeds: 1, ..*self }
    }

    /// The command for a program; its arguments and environment are added to it.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(&self.kiln);
        command.args(["exec", "--json"]);
        match self.device {
            SuiteDevice::Sim => command.args(["--seeds", &self.seeds.to_string()]),
            SuiteDevice::Cuda => command.args(["--device", "cuda"]),
        };
        command.arg("--").arg(program);
        command
    }

    /// Runs such a command.
    pub(crate) fn run(&self, command: &mut Command) -> Result<Ran> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| process::not_started(command, &error))?;
        let report = reader(child.stdout.take());
        let printed = reader(child.stderr.take());
        let is_late = self.wait(&mut child)?;
        let text = |reader: JoinHandle<Vec<u8>>| {
            let bytes = reader.join().unwrap_or_default();
            String::from_utf8_lossy(&bytes).into_owned()
        };
        let (report, printed) = (text(report), text(printed));
        if let Some(error) =
            printed.lines().find(|line| line.starts_with("kiln: ")).filter(|_| report.is_empty())
        {
            return Err(Failure::new(format!("kiln exec answered: {error}")));
        }
        Ok(Ran { findings: findings(&report), printed, is_late })
    }

    /// Waits for the end, and says whether it was brought about.
    fn wait(&self, child: &mut Child) -> Result<bool> {
        let (began, mut told) = (Instant::now(), None::<Instant>);
        let cannot = |error: std::io::Error| Failure::new(format!("a program cannot be waited for: {error}"));
        while child.try_wait().map_err(cannot)?.is_none() {
            match told {
                None if began.elapsed() > self.limit => {
                    // The command passes it on to the program, and still says what was found.
                    let _ = Command::new("kill").args(["-TERM", &child.id().to_string()]).status();
                    told = Some(Instant::now());
                }
                Some(since) if since.elapsed() > GRACE => child.kill().map_err(cannot)?,
                _ => thread::sleep(LOOK),
            }
        }
        Ok(told.is_some())
    }
}

fn reader(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // What could be read so far is what counts.
            let _ = pipe.read_to_end(&mut bytes);
        }
        bytes
    })
}

/// The texts of the findings in a report.
fn findings(report: &str) -> Vec<String> {
    let report: Value = serde_json::from_str(report).unwrap_or_default();
    let findings = report["findings"].as_array().map(Vec::as_slice).unwrap_or_default();
    findings.iter().filter_map(|finding| Some(finding["text"].as_str()?.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_takes_one_seed() {
        assert!(SuiteDevice::Sim.check_seeds(9).is_ok() && SuiteDevice::Cuda.check_seeds(1).is_ok());
        let error = SuiteDevice::Cuda.check_seeds(2).unwrap_err().to_string();
        assert!(error.contains("--seeds"), "{error}");
    }

    #[test]
    fn the_command_names_the_devices() {
        let exec = ExecRun { kiln: "kiln".into(), device: SuiteDevice::Sim, seeds: 3, limit: LOOK };
        let words = |exec: &ExecRun| -> Vec<String> {
            exec.command("tests").get_args().map(|word| word.to_string_lossy().into_owned()).collect()
        };
        assert_eq!(words(&exec), ["exec", "--json", "--seeds", "3", "--", "tests"]);
        assert_eq!(words(&exec.once()), ["exec", "--json", "--seeds", "1", "--", "tests"]);
        assert_eq!(words(&exec.on(SuiteDevice::Cuda)), ["exec", "--json", "--device", "cuda", "--", "tests"]);
    }
}

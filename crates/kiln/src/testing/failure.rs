//! How a test failed, and how to repeat it.

use std::fmt;

use kiln_mem::layer::TaggedBlocks;
use kiln_sim::SimReport;

/// A test that failed: on which device, with which seed, and how to repeat it.
///
/// Its `Debug` is the same text as its `Display`, because that is what a test that returns an error prints.
#[derive(Clone)]
pub struct TestFailure {
    seed: Option<u64>,
    cause: FailureCause,
    /// What the device found besides.
    findings: Option<Box<SimReport>>,
    repeat: String,
}

/// Why a test failed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum FailureCause {
    /// The test returned this error, or the device did when the test was over.
    Error(crate::Error),
    /// The simulated device found something: a race, an access out of bounds, a stream that was not given back.
    Findings(Box<SimReport>),
    /// Buffers outlived the test.
    Leak {
        /// How much memory they hold.
        bytes: u64,
        /// The buffers that are left, by tag.
        blocks: Vec<TaggedBlocks>,
    },
    /// The test panicked with this message.
    Panic(String),
    /// A variable of the environment has an invalid value.
    Environment(String),
}

impl TestFailure {
    pub(super) fn new(seed: Option<u64>, cause: FailureCause) -> Self {
        let place = match seed {
            Some(seed) => format!("{}={seed}", super::SEED_VARIABLE),
            None => format!("{}=cuda", super::DEVICE_VARIABLE),
        };
        Self { seed, cause, findings: None, repeat: format!("{place} {}", command()) }
    }

    /// The same with what the device found before the test failed.
    pub(super) fn with_findings(self, findings: Option<Box<SimReport>>) -> Self {
        Self { findings, ..self }
    }

    /// The seed it failed with; none on a GPU.
    pub fn seed(&self) -> Option<u64> {
        self.seed
    }

    /// Why it failed.
    pub fn cause(&self) -> &FailureCause {
        &self.cause
    }

    /// What the simulated device found: the cause, or what it found before the test panicked or returned.
    pub fn findings(&self) -> Option<&SimReport> {
        match &self.cause {
            FailureCause::Findings(report) => Some(report),
            _ => self.findings.as_deref(),
        }
    }

    /// The command that runs the test in the same way again.
    pub fn repeat(&self) -> &str {
        &self.repeat
    }
}

/// The command that runs the test of this thread. The test runner names a thread after its test.
fn command() -> String {
    let package =
        std::env::var("CARGO_PKG_NAME").map_or_else(|_| String::new(), |name| format!(" -p {name}"));
    let thread = std::thread::current();
    match thread.name().filter(|name| *name != "main") {
        Some(test) => format!("cargo test{package} -- --exact {test}"),
        None => format!("cargo test{package}"),
    }
}

impl fmt::Display for TestFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let FailureCause::Environment(message) = &self.cause {
            return write!(f, "the test was not run: {message}");
        }
        match self.seed {
            Some(seed) => write!(f, "the test failed on the simulated device with seed {seed}: ")?,
            None => f.write_str("the test failed on the GPU: ")?,
        }
        match &self.cause {
            FailureCause::Error(error) => write!(f, "{error:#}")?,
            FailureCause::Findings(report) => report.fmt(f)?,
            FailureCause::Leak { bytes, blocks } => {
                write!(f, "buffers of {bytes} bytes were not dropped when the test was over")?;
                blocks.iter().try_for_each(|blocks| write!(f, "\n  {blocks}"))?;
            }
            FailureCause::Panic(message) => write!(f, "it panicked: {message}")?,
            FailureCause::Environment(message) => f.write_str(message)?,
        }
        if let Some(report) = &self.findings {
            write!(f, "\nthe device found this before: {report}")?;
        }
        write!(f, "\nrepeat it with: {}", self.repeat)
    }
}

impl fmt::Debug for TestFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for TestFailure {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.cause {
            FailureCause::Error(error) => Some(error),
            _ => None,
        }
    }
}

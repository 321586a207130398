//! A dispatch: a sequence of one step.

use kiln_runtime::{Result, Timing};

use crate::binding::{Bindings, Outputs};
use crate::dispatch_config::DispatchConfig;
use crate::program_backend::Pipeline;

/// What a dispatch or a sequence brought.
#[derive(Debug)]
pub struct Dispatched {
    /// Results that had no vector of the caller's to go to.
    pub outputs: Outputs,
    /// How long it took, if that was asked for.
    pub timing: Option<Timing>,
    /// How often programs ran, turns of loops counted. A program that had no elements to run over did not run.
    pub steps: u64,
}

impl Pipeline {
    /// Runs the program once.
    ///
    /// # Errors
    /// What does not fit; a trap; a lost device. A program that does not check all its accesses is refused.
    #[track_caller]
    pub fn dispatch(&self, bindings: Bindings<'_>) -> Result<Dispatched> {
        self.dispatch_with(bindings, &DispatchConfig::default())
    }

    /// Runs the program as a configuration says.
    ///
    /// # Errors
    /// As for [`dispatch`](Self::dispatch); a time-out; a flag that never says stop.
    #[track_caller]
    pub fn dispatch_with(&self, bindings: Bindings<'_>, config: &DispatchConfig) -> Result<Dispatched> {
        self.check_safe()?;
        self.run(bindings, config)
    }

    /// Runs a program that does not check all its accesses.
    ///
    /// # Safety
    /// Run with these arguments and this shape, it stays inside the buffers whose accesses it does not check.
    ///
    /// # Errors
    /// As for [`dispatch_with`](Self::dispatch_with).
    #[track_caller]
    pub unsafe fn dispatch_unchecked(
        &self,
        bindings: Bindings<'_>,
        config: &DispatchConfig,
    ) -> Result<Dispatched> {
        self.run(bindings, config)
    }

    #[track_caller]
    fn run(&self, bindings: Bindings<'_>, config: &DispatchConfig) -> Result<Dispatched> {
        self.sequence(bindings, config)?.run()
    }
}

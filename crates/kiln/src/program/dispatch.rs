//! A dispatch: a sequence of one step.

use std::time::Duration;

use kiln_ir::Type;

use super::bindings::Bindings;
use super::config::{Converge, DispatchConfig};
use super::error::ProgramError;
use super::outputs::Outputs;
use super::pipeline::Pipeline;
use super::sequence::{Placed, Sequence};
use crate::error::Result;
use crate::telemetry::Timing;

/// Steps between two looks at the flag, at the most.
const MAX_BATCH_STEPS: u64 = 64;

/// What a dispatch brought.
#[derive(Debug)]
pub struct Dispatched {
    /// Results that had no vector of the caller's to go to.
    pub outputs: Outputs,
    /// How long it took, if that was asked for.
    pub timing: Option<Timing>,
    /// How often the program ran.
    pub steps: u64,
}

impl Pipeline {
    /// Runs the program once.
    ///
    /// # Errors
    /// What does not fit; a trap; a lost device. A program that does not check all its accesses is refused.
    pub fn dispatch(&self, bindings: Bindings<'_>) -> Result<Dispatched> {
        self.dispatch_with(bindings, &DispatchConfig::default())
    }

    /// Runs the program as a configuration says.
    ///
    /// # Errors
    /// As for [`dispatch`](Self::dispatch); a time-out; a flag that never says stop.
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
    pub unsafe fn dispatch_unchecked(
        &self,
        bindings: Bindings<'_>,
        config: &DispatchConfig,
    ) -> Result<Dispatched> {
        self.run(bindings, config)
    }

    fn run(&self, bindings: Bindings<'_>, config: &DispatchConfig) -> Result<Dispatched> {
        let mut sequence = self.backend().sequence();
        if let Some(limit) = config.timeout {
            sequence.timeout(limit);
        }
        if config.profile {
            sequence.profile();
        }
        let result = match &config.converge {
            None => sequence
                .run_step(self, bindings, config)
                .and_then(|()| sequence.run())
                .map(|(outputs, timing)| Dispatched { outputs, timing, steps: config.steps }),
            Some(converge) => self.run_until(sequence, bindings, config, converge),
        };
        match &config.label {
            Some(label) => result.map_err(|error| error.labelled(label)),
            None => result,
        }
    }

    fn run_until<'a>(
        &self,
        mut sequence: Sequence<'a>,
        bindings: Bindings<'a>,
        config: &DispatchConfig,
        converge: &Converge,
    ) -> Result<Dispatched> {
        if config.steps != 1 || config.block.is_some_and(|block| block != self.program().block) {
            let why = "say steps and another block apart from a loop until a flag";
            return Err(ProgramError::Unsupported { what: "a loop until a flag", why }.into());
        }
        let placed = sequence.place(self, bindings, config)?;
        let flag = flag(&placed, converge)?;
        let (mut steps, mut batch, mut timing) = (0, 1, None);
        let mut outputs = Outputs::default();
        while steps < converge.limit {
            let now = batch.min(converge.limit - steps);
            for _ in 0..now {
                sequence.fill(&placed.buffers[flag], 0_u8)?;
                sequence.launch(self, &placed)?;
            }
            sequence.watch(self, &placed)?;
            let (word, took) = sequence.flush_word(&placed.buffers[flag], &mut outputs)?;
            steps += now;
            timing = sum(timing, took);
            if word == 0 {
                sequence.bring_back(placed)?;
                let took = sequence.flush(&mut outputs)?;
                return Ok(Dispatched { outputs, timing: sum(timing, took), steps });
            }
            batch = (2 * batch).min(MAX_BATCH_STEPS);
        }
        Err(ProgramError::NotConverged { program: self.program().name.clone(), steps }.into())
    }
}

/// The place of the flag among the buffers.
fn flag(placed: &Placed<'_>, converge: &Converge) -> Result<usize> {
    let found = placed.fitting.buffers.iter().position(|binding| binding.name == converge.flag);
    match found.map(|at| (at, &placed.fitting.buffers[at])) {
        Some((at, binding))
            if binding.element == Type::U32 && binding.length == 1 && binding.role.is_writable() =>
        {
            Ok(at)
        }
        Some(_) => {
            let why = "its flag must be a buffer of one u32 that the program writes";
            Err(ProgramError::Unsupported { what: "a loop until a flag", why }.into())
        }
        None => {
            let known: Vec<&str> =
                placed.fitting.buffers.iter().map(|binding| binding.name.as_str()).collect();
            let (what, name) = ("buffer", converge.flag.clone());
            Err(ProgramError::Unknown { what, name, known: known.join(", ") }.into())
        }
    }
}

fn sum(first: Option<Timing>, second: Option<Timing>) -> Option<Timing> {
    let plus = |a: Duration, b: Duration| a.saturating_add(b);
    match (first, second) {
        (Some(a), Some(b)) => Some(Timing {
            device: plus(a.device, b.device),
            enqueue: plus(a.enqueue, b.enqueue),
            wait: plus(a.wait, b.wait),
            wall: plus(a.wall, b.wall),
        }),
        (only, None) | (None, only) => only,
    }
}

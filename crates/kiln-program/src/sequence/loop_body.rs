//! Records the steps of one iteration of a loop.

use kiln_runtime::internal::pattern;
use kiln_runtime::{Element, GpuRef, Result};

use super::Sequence;
use super::split_into_submissions::FirstTurn;
use crate::binding::Bindings;
use crate::dispatch_config::DispatchConfig;
use crate::error::ProgramError;
use crate::program_backend::Pipeline;

/// What a loop of a [`Sequence`] does each time: programs, fills and copies.
///
/// What a program of the loop takes from the host goes up before the first turn, and what it brings back comes back after the last one.
pub struct Turn<'s, 'a> {
    pub(crate) sequence: &'s mut Sequence<'a>,
    pub(crate) first: FirstTurn<'a>,
}

impl<'a> Turn<'_, 'a> {
    /// Runs a program.
    ///
    /// # Errors
    /// As for [`Sequence::step`].
    pub fn step(&mut self, pipeline: &Pipeline, bindings: Bindings<'a>) -> Result<&mut Self> {
        self.step_with(pipeline, bindings, &DispatchConfig::default())
    }

    /// Runs a program as a configuration says.
    ///
    /// # Errors
    /// As for [`Sequence::step_with`]; a loop inside of the loop.
    pub fn step_with(
        &mut self,
        pipeline: &Pipeline,
        bindings: Bindings<'a>,
        config: &DispatchConfig,
    ) -> Result<&mut Self> {
        self.sequence.check_step(pipeline, config)?;
        if config.converge.is_some() {
            let why = "loops do not lie inside of each other";
            return Err(ProgramError::Unsupported { what: "a loop until a flag", why }.into());
        }
        let variant = pipeline.variant(config)?;
        let pipeline = variant.as_deref().unwrap_or(pipeline);
        let placed = self.sequence.place(pipeline, bindings, config)?;
        for _ in 0..config.steps {
            self.sequence.launch(pipeline, &placed, &mut self.first.nodes)?;
        }
        let programs = placed.launches().saturating_mul(config.steps);
        self.first.programs = self.first.programs.saturating_add(programs);
        self.first.placed.push(placed);
        Ok(self)
    }

    /// Sets every element of a resident buffer.
    ///
    /// # Errors
    /// A buffer of another runtime.
    pub fn fill<T: Element>(&mut self, to: &GpuRef<T>, value: T) -> Result<&mut Self> {
        let builder = &mut self.sequence.builder;
        let node = if pattern(bytemuck::bytes_of(&value)).is_some() {
            builder.fill(to, value)?
        } else {
            // No device fills with it by itself, so the elements go up once and are copied in each turn.
            let elements = builder.scratch::<T>(to.len())?;
            builder.fill(&elements, value)?;
            builder.copy(&elements, to)?
        };
        self.first.nodes.push(node);
        Ok(self)
    }

    /// Copies one resident buffer to another.
    ///
    /// # Errors
    /// If the lengths differ or they overlap; a buffer of another runtime.
    pub fn copy<T: Element>(&mut self, from: &GpuRef<T>, to: &GpuRef<T>) -> Result<&mut Self> {
        let node = self.sequence.builder.copy(from, to)?;
        self.first.nodes.push(node);
        Ok(self)
    }
}

impl std::fmt::Debug for Turn<'_, '_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "turn of {} commands", self.first.nodes.len())
    }
}

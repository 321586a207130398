//! `PendingDispatch`: a dispatch as a future.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use kiln_runtime::{Error, Result, Ticket};

use super::Sequence;
use super::run::Run;
use crate::binding::Bindings;
use crate::dispatch::Dispatched;
use crate::dispatch_config::DispatchConfig;
use crate::error::ProgramError;
use crate::program_backend::Pipeline;

/// A dispatch or a sequence whose work is queued, to be awaited on any executor.
///
/// Made by [`Pipeline::dispatch_async`] and [`Sequence::run_async`](crate::Sequence::run_async). The first submission is queued when this
/// is made; vectors of the caller are written when it is ready. A loop that a flag ends is driven by its polls.
///
/// Dropping it early lets what is queued run and leaves vectors of the caller as they were. Resident buffers that a program was to write are
/// then [not to be trusted](kiln_runtime::GpuRef::is_trusted) if the program can trap or a loop was cut short, because nothing looked.
#[must_use = "a future does nothing until it is awaited"]
pub struct PendingDispatch<'a> {
    ticket: Ticket,
    run: Pin<Box<dyn Future<Output = Result<Dispatched>> + Send + 'a>>,
}

impl Pipeline {
    /// As [`dispatch`](Self::dispatch), without blocking: the work is queued, and awaiting what is returned brings the outputs.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # fn block_on<F: Future>(future: F) -> F::Output {
    /// #     let mut future = std::pin::pin!(future);
    /// #     loop {
    /// #         let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    /// #         if let std::task::Poll::Ready(output) = future.as_mut().poll(&mut context) {
    /// #             return output;
    /// #         }
    /// #         std::thread::yield_now();
    /// #     }
    /// # }
    /// use kiln::DeviceRuntime;
    /// use kiln::program::{Backend, Bindings, Program};
    ///
    /// let program = Program::parse("kernel twice(in x: u32[], out y: u32[like x]) block(64) over(x) { y[global.x] = x[global.x] * 2; }")?;
    /// let backend = Backend::over(DeviceRuntime::simulated(1)?);
    /// let twice = backend.compile(&program)?;
    /// let one = twice.dispatch_async(Bindings::new().input("x", &[1u32, 2]))?;
    /// let two = twice.dispatch_async(Bindings::new().input("x", &[3u32, 4]))?;
    /// assert_eq!(block_on(two)?.outputs.take::<u32>("y")?, [6, 8]);
    /// assert_eq!(block_on(one)?.outputs.take::<u32>("y")?, [2, 4]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// What does not fit, and what the driver says of the first submission. A trap and a fault are what the future answers.
    #[track_caller]
    pub fn dispatch_async<'a>(&self, bindings: Bindings<'a>) -> Result<PendingDispatch<'a>> {
        self.dispatch_async_with(bindings, &DispatchConfig::default())
    }

    /// As [`dispatch_async`](Self::dispatch_async), as a configuration says.
    ///
    /// # Errors
    /// As for [`dispatch_async`](Self::dispatch_async); a time-out, which the executor's own timer is for.
    #[track_caller]
    pub fn dispatch_async_with<'a>(
        &self,
        bindings: Bindings<'a>,
        config: &DispatchConfig,
    ) -> Result<PendingDispatch<'a>> {
        self.check_safe()?;
        self.sequence(bindings, config)?.run_async()
    }

    /// A dispatch as a sequence of one step.
    pub(crate) fn sequence<'a>(
        &self,
        bindings: Bindings<'a>,
        config: &DispatchConfig,
    ) -> Result<Sequence<'a>> {
        let mut sequence = self.backend().sequence();
        if let Some(limit) = config.timeout {
            sequence.timeout(limit);
        }
        if let Some(label) = &config.label {
            sequence.label(label);
        }
        if config.profile {
            sequence.profile();
        }
        sequence.run_step(self, bindings, config)?;
        Ok(sequence)
    }
}

impl<'a> PendingDispatch<'a> {
    /// Queues the first part of a run.
    pub(crate) fn start(mut run: Run<'a>, label: Option<String>) -> Result<Self> {
        let labelled = move |error: Error| match &label {
            Some(label) => error.labelled(label),
            None => error,
        };
        let ticket = run.start().map_err(&labelled)?;
        let run = Box::pin(async move { run.complete().await.map_err(labelled) });
        Ok(Self { ticket, run })
    }

    /// A ticket for the first submission, which is all of the work unless there is a loop of many turns.
    pub fn ticket(&self) -> &Ticket {
        &self.ticket
    }
}

impl Future for PendingDispatch<'_> {
    type Output = Result<Dispatched>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.run.as_mut().poll(context)
    }
}

impl fmt::Debug for PendingDispatch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "dispatch that began with {:?}", self.ticket)
    }
}

/// Why a run that does not block has no deadline.
pub(crate) fn no_timeout() -> Error {
    let why = "the executor has a timer; await the dispatch inside of its time-out";
    ProgramError::Unsupported { what: "a time-out of a dispatch that does not block", why }.into()
}

//! The thread of a service: it starts requests, answers them, and decides what becomes of a lost device.

use std::sync::Arc;
use std::time::Instant;

use kiln_runtime::device_state::Phase;
use kiln_runtime::{Cause, DeviceRuntime, DeviceState, Error, Result, Stale, Status, Subscription};

use crate::queue::{Next, RequestQueue, guarded, shielded};
use crate::rebuild_limit::Restarts;
use crate::refused::RefusalReason;

/// Makes the runtime of a service, and makes it again.
pub(crate) type Make = Box<dyn Fn() -> Result<DeviceRuntime> + Send>;

pub(crate) struct Worker {
    queue: Arc<RequestQueue>,
    make: Make,
    restarts: Restarts,
    device: Option<(DeviceRuntime, Subscription)>,
    /// How many devices there were, which tells the current one from earlier ones.
    devices: u64,
}

impl Worker {
    pub(crate) fn new(queue: Arc<RequestQueue>, make: Make, restarts: Restarts) -> Self {
        Self { queue, make, restarts, device: None, devices: 0 }
    }

    pub(crate) fn run(mut self) {
        self.build();
        loop {
            let device = self.device.as_ref().map(|(device, _)| device.clone());
            match self.queue.next(device.as_ref()) {
                Next::Answer(completed) => shielded(completed),
                Next::Start(job, in_flight) => match &device {
                    Some(device) => shielded(|| job.start(device, in_flight, &self.queue)),
                    // Nothing is started without a device.
                    None => job.refuse(RefusalReason::Closed),
                },
                Next::Follow(device, status) if device == self.devices => self.follow(&status),
                Next::Follow(..) => {}
                Next::End => return self.end(),
            }
        }
    }

    /// Makes a runtime; as often as the rule allows.
    fn build(&mut self) {
        loop {
            let error = match self.open() {
                Ok(()) => return self.change(Phase::Ready),
                Err(error) => error,
            };
            if !self.try_again(&error) {
                return;
            }
        }
    }

    fn open(&mut self) -> Result<()> {
        let device = guarded(&self.make).map_err(|why| match why {
            RefusalReason::Device(error) => error,
            panicked => Error::other(panicked),
        })?;
        self.devices += 1;
        let (queue, number) = (self.queue.clone(), self.devices);
        // Every change is followed, however late, so that the service has been in every phase its device was in.
        let subscription = device.on_change(move |status| queue.tell(number, status.clone()))?;
        self.device = Some((device, subscription));
        Ok(())
    }

    /// The device is gone: rebuild it after a pause, or give up. Whether to rebuild.
    fn try_again(&mut self, error: &Error) -> bool {
        self.device = None;
        self.lose(error);
        match self.restarts.next(Instant::now()) {
            Some(pause) => {
                tracing::warn!(%error, ?pause, "a device is lost and will be built again");
                self.change(Phase::Rebuilding);
                !self.queue.pause(pause)
            }
            None => {
                self.give_up(error);
                false
            }
        }
    }

    fn lose(&self, error: &Error) {
        let cause = error
            .driver()
            .cloned()
            .unwrap_or_else(|| kiln_driver::Error::unsupported("start", "this device", format!("{error:#}")));
        self.queue.device_state.lose(Cause::new(cause));
    }

    /// There is no device any more: all present and future requests are told.
    fn give_up(&self, error: &Error) {
        tracing::error!(%error, "a device is lost");
        self.queue.device_state.fail();
        self.queue.fail(error);
    }

    /// Builds another device if the restart policy allows it.
    fn recover(&mut self, error: &Error) {
        if self.try_again(error) {
            self.build();
        }
    }

    /// The device's state changed: follow it.
    fn follow(&mut self, status: &Status) {
        if self.device.is_none() {
            return;
        }
        match &status.state {
            DeviceState::Failed(cause) => self.recover(&cause.error().clone().into()),
            DeviceState::Lost(cause) => {
                self.queue.device_state.lose((**cause).clone());
            }
            DeviceState::Rebuilding(_) => self.change(Phase::Rebuilding),
            DeviceState::Ready if self.queue.device_state.phase() == Phase::Rebuilding => {
                self.change(Phase::Ready)
            }
            // The runtime was shut down below the service; it finishes what it began.
            DeviceState::ShuttingDown | DeviceState::Stopped => {
                let error = Error::new(Stale::ShuttingDown);
                self.lose(&error);
                self.give_up(&error);
            }
            // Starting, or ready as before.
            _ => {}
        }
    }

    fn end(mut self) {
        self.change(Phase::ShuttingDown);
        self.queue.end();
        // The runtime may have other users, so it is dropped and not shut down.
        self.device = None;
        self.change(Phase::Stopped);
    }

    fn change(&self, to: Phase) {
        self.queue.device_state.change(to);
    }
}

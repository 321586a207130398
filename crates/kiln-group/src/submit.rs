//! Work that goes to the device that is likely to finish first.

use kiln_runtime::{DeviceRuntime, Error, ErrorKind, Ticket};

use crate::device_group::DeviceGroup;
use crate::device_load::{BegunWork, DeviceLoad, WorkEnd, ranking};
use crate::error::{GroupError, Result};
use crate::ticket::GroupTicket;

impl DeviceGroup {
    /// Queues work on the device that is likely to finish it first, and returns the device's place, what `work` returns, and the ticket.
    ///
    /// `work` queues something on the device it is given and returns the ticket of the last of it; it does not wait. If a device refuses, `work` is called
    /// for the next one. It must therefore bring its data along or find it on each device, as in a [`ShardedBuffer`](crate::ShardedBuffer) or by a copy.
    ///
    /// ```
    /// use kiln::group::DeviceGroup;
    /// use kiln::sim::{DeviceConfig, Machine, MachineConfig};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let config = MachineConfig::seeded(1).device(DeviceConfig::default()).device(DeviceConfig::default());
    /// let machine = Machine::new(config);
    /// let group = DeviceGroup::over([machine.device(0)?, machine.device(1)?], &Default::default())?;
    /// let (place, sevens, ticket) = group.submit(|gpu| {
    ///     let buffer = gpu.allocate::<u32>(1000)?;
    ///     let ticket = buffer.fill(7)?;
    ///     Ok((buffer, ticket))
    /// })?;
    /// ticket.wait()?;
    /// assert!(sevens.belongs_to(group.runtime(place)?));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// What `work` answers, where that is not the device's fault; the last device's refusal, if all refuse; [`GroupError::NoneReady`] if none can
    /// be used.
    pub fn submit<R>(
        &self,
        mut work: impl FnMut(&DeviceRuntime) -> std::result::Result<(R, Ticket), Error>,
    ) -> Result<(usize, R, GroupTicket)> {
        let probe = self.loads_meter().next_probes();
        let mut refused = GroupError::NoneReady { len: self.len() };
        for index in ranking(&self.loads(), probe) {
            match self.submit_on(index, &mut work) {
                Ok((answer, ticket)) => return Ok((index, answer, ticket)),
                Err(GroupError::Device { index, source }) if is_of_device(&source) => {
                    refused = GroupError::Device { index, source };
                }
                Err(error) => return Err(error),
            }
        }
        Err(refused)
    }

    /// As [`submit`](Self::submit), on a device of the caller's choice. The work counts for the load of the device.
    ///
    /// # Errors
    /// A device that the group does not have; what `work` answers.
    pub fn submit_on<R>(
        &self,
        index: usize,
        work: impl FnOnce(&DeviceRuntime) -> std::result::Result<(R, Ticket), Error>,
    ) -> Result<(R, GroupTicket)> {
        let no_device = GroupError::NoSuchDevice { index, len: self.len() };
        let (runtime, meter) = match (self.runtime(index)?, self.loads_meter().device(index)) {
            (runtime, Some(meter)) => (runtime, meter.clone()),
            (_, None) => return Err(no_device),
        };
        let driver = runtime.driver().clone();
        let began = driver.clock().now();
        let begun = BegunWork::new(meter);
        let (answer, ticket) = match work(runtime) {
            Ok(queued) => queued,
            Err(error) => {
                begun.end(failure(&error));
                return Err(GroupError::at(index)(error));
            }
        };
        ticket.on_done(move |ended| {
            begun.end(match ended {
                Ok(()) => WorkEnd::Done(driver.clock().now().saturating_sub(began)),
                Err(error) => failure(&error),
            });
        });
        Ok((answer, GroupTicket::new(vec![(index, ticket)])))
    }

    /// How busy each device is with work that was [submitted](Self::submit) through the group.
    pub fn loads(&self) -> Vec<DeviceLoad> {
        self.loads_meter().loads(|index| match self.runtimes().get(index) {
            Some(runtime) => runtime.status().phase(),
            None => kiln_runtime::device_state::Phase::Stopped,
        })
    }

    /// The device that is likely to finish new work first; none if none is ready.
    pub fn least_loaded(&self) -> Option<usize> {
        ranking(&self.loads(), false).first().copied()
    }
}

fn failure(error: &Error) -> WorkEnd {
    if is_of_device(error) { WorkEnd::DeviceFailed } else { WorkEnd::NotMeasured }
}

/// Whether an error says something about the device, and not about what was asked of it.
fn is_of_device(error: &Error) -> bool {
    match error.kind() {
        ErrorKind::NotReady { .. } | ErrorKind::Faulted { .. } | ErrorKind::Stale(_) => true,
        _ => error.is_lost() || error.is_sticky() || error.is_oom() || error.is_retryable(),
    }
}

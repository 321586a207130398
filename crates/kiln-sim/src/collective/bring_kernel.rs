//! The function of a communicator that reads what one rank brings to a collective, where the ranks meet outside of this machine.

use std::sync::Arc;

use kiln_driver::{Access, Error, Result};
use kiln_operation::{ARGUMENT_BYTES, Collective};

use crate::code::kernel::{KernelFault, LaunchContext, SimKernel, SimParameter, SimSignature};

/// Copies a buffer to another one, as the collective that it reads the first one for: a copy may move bytes that were never written, and a collective must not.
pub(crate) struct BringKernel {
    signature: SimSignature,
}

impl BringKernel {
    /// The reading part of a collective that is written as its function is.
    pub(crate) fn new(call: &'static str, collective: &str) -> Result<Arc<Self>> {
        const NEXT: &str = "name a collective";
        let wrong = |error: kiln_operation::OperationError| Error::invalid(call, error.to_string(), NEXT);
        collective.parse::<Collective>().map_err(wrong)?;
        let parameters = vec![
            SimParameter::Pointer(Access::Read),
            SimParameter::Pointer(Access::Write),
            SimParameter::Value { bytes: ARGUMENT_BYTES, alignment: ARGUMENT_BYTES },
        ];
        let signature = SimSignature {
            parameters,
            declares_accesses: true,
            max_threads_per_block: 1,
            ..SimSignature::default()
        };
        Ok(Arc::new(Self { signature }))
    }
}

impl SimKernel for BringKernel {
    fn signature(&self) -> &SimSignature {
        &self.signature
    }

    fn parameter_name(&self, index: usize) -> Option<&str> {
        ["send", "copy", "bytes"].get(index).copied()
    }

    fn run(&self, launch: &LaunchContext<'_>) -> std::result::Result<(), KernelFault> {
        let mut bytes = vec![0; launch.value::<u64>(2)? as usize];
        launch.memory().read(launch.address(0)?, &mut bytes)?;
        Ok(launch.memory().write(launch.address(1)?, &bytes)?)
    }
}

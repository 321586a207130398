//! The function of a communicator that ends its rank.

use crate::code::kernel::{KernelFault, LaunchContext, SimKernel, SimSignature};

/// Does nothing when it runs: the rank was ended when the launch was submitted.
pub(crate) struct AbortKernel {
    signature: SimSignature,
}

impl Default for AbortKernel {
    fn default() -> Self {
        let signature =
            SimSignature { declares_accesses: true, max_threads_per_block: 1, ..SimSignature::default() };
        Self { signature }
    }
}

impl SimKernel for AbortKernel {
    fn signature(&self) -> &SimSignature {
        &self.signature
    }

    fn run(&self, _launch: &LaunchContext<'_>) -> Result<(), KernelFault> {
        Ok(())
    }
}

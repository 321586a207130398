//! The function of a communicator that reduces what all ranks brought, where they met outside of this machine.

use std::sync::Arc;

use kiln_driver::{Access, Error, Result};
use kiln_operation::{ARGUMENT_BYTES, Collective, CommunicatorRank};

use crate::code::kernel::{KernelFault, LaunchContext, SimKernel, SimParameter, SimSignature};
use crate::collective::collective_kernel::reduced;

/// Takes the blocks of all ranks in one buffer, in their order, and writes their reduction into another.
pub(crate) struct FoldKernel {
    collective: Collective,
    ranks: u64,
    signature: SimSignature,
}

impl FoldKernel {
    /// The reduction of a collective that is written as its function is.
    pub(crate) fn new(call: &'static str, rank: CommunicatorRank, collective: &str) -> Result<Arc<Self>> {
        const NEXT: &str = "name a collective that reduces";
        let collective: Collective = collective
            .parse()
            .map_err(|error: kiln_operation::OperationError| Error::invalid(call, error.to_string(), NEXT))?;
        if !collective.kind().reduces() {
            return Err(Error::invalid(call, format!("{} reduces nothing", collective.name()), NEXT));
        }
        let count = SimParameter::Value { bytes: ARGUMENT_BYTES, alignment: ARGUMENT_BYTES };
        let parameters =
            vec![SimParameter::Pointer(Access::Read), SimParameter::Pointer(Access::Write), count];
        let signature = SimSignature {
            parameters,
            declares_accesses: true,
            max_threads_per_block: 1,
            ..SimSignature::default()
        };
        Ok(Arc::new(Self { collective, ranks: u64::from(rank.size), signature }))
    }
}

impl SimKernel for FoldKernel {
    fn signature(&self) -> &SimSignature {
        &self.signature
    }

    fn parameter_name(&self, index: usize) -> Option<&str> {
        ["blocks", "recv", "count"].get(index).copied()
    }

    fn run(&self, launch: &LaunchContext<'_>) -> std::result::Result<(), KernelFault> {
        let bytes = launch.value::<u64>(2)?.saturating_mul(self.collective.element().bytes());
        if bytes == 0 {
            return Ok(());
        }
        let (from, to) = (launch.address(0)?, launch.address(1)?);
        let mut blocks = Vec::new();
        for rank in 0..self.ranks {
            let mut block = vec![0; bytes as usize];
            launch.memory().read(from.wrapping_add(rank * bytes), &mut block)?;
            blocks.push(block);
        }
        Ok(launch.memory().write(to, &reduced(&self.collective, blocks.into_iter()))?)
    }
}

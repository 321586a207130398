//! Sends that would wait for each other on GPUs, told to the rank whose receive shows it.

use kiln_runtime::internal::note_finding;

use super::{Bridge, Brought, Caller, rendezvous};
use crate::error::{GroupError, Result};
use crate::transfer::Transfer;
use crate::transfer_order::MetTransfer;

impl Bridge {
    /// Tells the store, which knows the transfers of all ranks, that something was received.
    pub(super) fn check_order(&self, transfer: Transfer, brought: &Brought, caller: Caller) -> Result<()> {
        let said = brought.said.to_owned();
        let met = MetTransfer { transfer, sent_in: brought.call, received_in: caller.number, said };
        let answer =
            self.job.rendezvous.put_asking(&met.key(&self.name), &met.value()).map_err(rendezvous)?;
        let Some(sends) = answer else { return Ok(()) };
        let sends = String::from_utf8_lossy(&sends).lines().map(str::to_owned).collect();
        let error = GroupError::CrossingSends { sends };
        note_finding(&error.to_string());
        Err(error)
    }
}

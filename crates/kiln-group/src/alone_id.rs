//! The id of a communicator of one rank. It needs none, but one that is given is to be right: the program may run with more ranks next time.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use kiln_driver::{DeviceKind, Image};
use kiln_operation::{CommunicatorId, CommunicatorRank};
use kiln_runtime::{DeviceRuntime, Module};

use crate::communicator_config::DeviceCommunicatorConfig;
use crate::error::{GroupError, Result};

/// Ids that ranks of this process had alone, on GPUs.
static USED: Mutex<Option<HashSet<CommunicatorId>>> = Mutex::new(None);

/// Takes an id for a rank that is alone. A simulated machine knows its ids, and which were used, and holds this one as long as what is returned. A GPU needs no NCCL for a rank that is alone: there it is
/// known whether the process has used the id alone.
///
/// # Errors
/// As for a communicator of several ranks: an id of zeros, or one that was used before; on a simulated machine one that none of its devices made.
pub(crate) fn claim_alone(
    runtime: &DeviceRuntime,
    id: CommunicatorId,
    rank: u32,
    config: &DeviceCommunicatorConfig,
) -> Result<Option<Module>> {
    let alone = CommunicatorRank { id, rank, size: 1, deadline: config.deadline };
    alone.check().map_err(GroupError::collective)?;
    alone.check_id().map_err(GroupError::collective)?;
    if runtime.info().kind != DeviceKind::Cuda {
        let load = runtime.load_module(&Image::Communicator(&alone.to_string()));
        return load.map(Some).map_err(|source| GroupError::Rank { rank, source });
    }
    let mut used = USED.lock().unwrap_or_else(PoisonError::into_inner);
    match used.get_or_insert_default().insert(id) {
        true => Ok(None),
        false => Err(GroupError::Collective {
            what: format!("rank {rank} of communicator {} was made before", id.short()),
            next: "make a new id for a new communicator",
        }),
    }
}

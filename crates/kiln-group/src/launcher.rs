//! The programs that start one process for each rank.

use std::fmt;

/// A program that starts one process for each rank.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Launcher {
    /// `KILN_RANK` and `KILN_WORLD_SIZE`, set by hand.
    ByHand,
    /// PyTorch's `torchrun`.
    Torchrun,
    /// `mpirun` of Open MPI.
    OpenMpi,
    /// `mpiexec` of MPICH, Intel MPI and others with the process manager Hydra.
    Mpich,
    /// `srun` of Slurm.
    Slurm,
    /// An indexed Job of Kubernetes.
    Kubernetes,
}

impl fmt::Display for Launcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ByHand => "KILN_RANK",
            Self::Torchrun => "torchrun",
            Self::OpenMpi => "Open MPI",
            Self::Mpich => "MPICH",
            Self::Slurm => "Slurm",
            Self::Kubernetes => "Kubernetes",
        })
    }
}

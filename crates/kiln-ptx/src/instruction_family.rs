//! Families of instructions that need special hardware, such as tensor cores, bulk copies, clusters and textures.

use std::fmt;

use crate::instruction_form::Form;
use crate::modifier::{Flag, Scope};
use crate::opcode::Opcode;
use crate::state_space::Space;

/// What an instruction belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Family {
    /// Arithmetic, memory, control, warps and barriers: what every device executes and the simulator aims at.
    Ordinary,
    /// Matrix units: `wmma`, `mma`, `wgmma`, `tcgen05` and the moves that feed them.
    TensorCore,
    /// Bulk and tensor copies: `cp.async.bulk`, `tensormap`.
    BulkCopy,
    /// Thread-block clusters and the shared memory of other blocks.
    Cluster,
    /// Memory shown on several devices at once: `multimem`.
    Multicast,
    /// Textures.
    Texture,
    /// Surfaces.
    Surface,
    /// A word this crate does not know.
    Unknown,
}

impl Form {
    /// The family of the instruction.
    ///
    /// ```
    /// use kiln_ptx::{Family, Form};
    ///
    /// assert_eq!(Form::read("ld.global.f32").family(), Family::Ordinary);
    /// assert_eq!(Form::read("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32").family(), Family::TensorCore);
    /// assert_eq!(Form::read("frobnicate.u32").family(), Family::Unknown);
    /// ```
    pub fn family(&self) -> Family {
        match self.opcode() {
            Opcode::Wmma
            | Opcode::Mma
            | Opcode::Wgmma
            | Opcode::Tcgen05
            | Opcode::Ldmatrix
            | Opcode::Stmatrix
            | Opcode::Movmatrix => Family::TensorCore,
            Opcode::Tensormap => Family::BulkCopy,
            Opcode::Cp | Opcode::St if self.has(Flag::Bulk) => Family::BulkCopy,
            Opcode::Multimem => Family::Multicast,
            Opcode::Mapa | Opcode::Getctarank | Opcode::Clusterlaunchcontrol => Family::Cluster,
            Opcode::Barrier if self.scope() == Some(Scope::Cluster) => Family::Cluster,
            Opcode::Tex | Opcode::Tld4 | Opcode::Txq | Opcode::Istypep => Family::Texture,
            Opcode::Suld | Opcode::Sust | Opcode::Sured | Opcode::Suq => Family::Surface,
            Opcode::Unknown => Family::Unknown,
            _ if self.spaces().any(|space| space == Space::SharedCluster) => Family::Cluster,
            _ => Family::Ordinary,
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ordinary => "ordinary",
            Self::TensorCore => "tensor core",
            Self::BulkCopy => "bulk copy",
            Self::Cluster => "cluster",
            Self::Multicast => "multicast",
            Self::Texture => "texture",
            Self::Surface => "surface",
            Self::Unknown => "unknown",
        })
    }
}

//! Code images, loaded functions and their attributes.

use std::sync::OnceLock;

use crate::handle::FunctionId;

/// Code to load.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Image<'a> {
    /// PTX text; the driver compiles it for the device.
    Ptx(&'a str),
    /// PTX text, as [`Ptx`](Self::Ptx), for a caller that keeps what the driver's compiler made: the next
    /// [`Cubin`](Self::Cubin) of those bytes loads the same code without that compiler.
    PtxToKeep {
        /// The text.
        text: &'a str,
        /// Receives the machine code before `load` returns; it stays empty where the driver cannot hand it out.
        machine_code: &'a OnceLock<Vec<u8>>,
    },
    /// Machine code for one architecture, or several bound together.
    Cubin(&'a [u8]),
    /// Host functions registered with a simulated device under this name.
    HostKernels(&'a str),
    /// One operation of a mathematical library, as the text of a `kiln_operation::Operation`. The module has one function, which is named as
    /// the operation is; its launches take a grid and a block of 1.
    Library(&'a str),
    /// One rank of a communicator, as the text of a `kiln_operation::CommunicatorRank`. A function of the module is a collective or a group of them,
    /// and its name is the text of a `kiln_operation::CollectiveGroup`; its launches take a grid and a block of 1. Loading does not wait for the
    /// other ranks: the first launch does, on the device.
    Communicator(&'a str),
    /// Makes the id of a new communicator, for all ranks of it. The module has no functions and can be unloaded at once; the process that made the id
    /// must live until all ranks are loaded.
    CommunicatorId {
        /// Receives the 128 bytes of the id before `load` returns.
        id: &'a OnceLock<Vec<u8>>,
    },
}

impl<'a> Image<'a> {
    /// The text, if it is PTX.
    pub fn ptx(&self) -> Option<&'a str> {
        match self {
            Self::Ptx(text) | Self::PtxToKeep { text, .. } => Some(text),
            _ => None,
        }
    }

    /// One word for messages.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Ptx(_) | Self::PtxToKeep { .. } => "PTX",
            Self::Cubin(_) => "cubin",
            Self::HostKernels(_) => "host kernels",
            Self::Library(_) => "a library operation",
            Self::Communicator(_) => "a communicator",
            Self::CommunicatorId { .. } => "the id of a communicator",
        }
    }
}

/// A kernel that can be launched.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Function {
    /// Its name for commands.
    pub id: FunctionId,
    /// What the driver knows of it.
    pub attributes: FunctionAttributes,
}

/// What a driver knows of a kernel.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FunctionAttributes {
    /// Threads a block may have at most.
    pub max_threads_per_block: u32,
    /// Registers of a thread.
    pub registers: u32,
    /// Shared memory it declares.
    pub static_shared_bytes: u32,
    /// Local memory of a thread.
    pub local_bytes: u32,
    /// Constant memory it declares.
    pub constant_bytes: u32,
    /// Device memory that a library operation works in besides its operands. Its address, a multiple of 256, is the last parameter; there is no
    /// such parameter where this is 0.
    pub workspace_bytes: u64,
    /// Offset and size of each parameter, where the driver can tell.
    pub parameters: Option<Vec<ParameterSpan>>,
}

/// Where a parameter lies in the packed arguments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ParameterSpan {
    /// Bytes from the start.
    pub offset: u32,
    /// Its size.
    pub bytes: u32,
}

/// How many blocks of a kernel fit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Occupancy {
    /// Blocks resident on one multiprocessor with the shape asked about.
    pub blocks_per_multiprocessor: u32,
    /// The block size that fills the device best.
    pub suggested_block_threads: u32,
    /// The grid that fills the device with blocks of that size.
    pub suggested_grid_blocks: u32,
}

//! Why a launch is refused.

/// Why a launch was refused; nothing has run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// A dimension is zero, or there are more threads than a block may have.
    #[error(
        "a block of {threads} threads and a grid of {blocks} blocks cannot be launched; use 1 to 1024 threads and at least 1 block"
    )]
    Shape {
        /// Threads of a block.
        threads: u64,
        /// Blocks of the grid.
        blocks: u64,
    },
    /// The kernel was compiled for other blocks.
    #[error("kernel {kernel} was compiled for blocks of {bound}, not of {threads} threads")]
    Bounds {
        /// The kernel.
        kernel: String,
        /// What its header says.
        bound: String,
        /// Threads of a block.
        threads: u64,
    },
    /// More shared memory than a block may have.
    #[error("kernel {kernel} would need {bytes} bytes of shared memory; a block has at most {limit}")]
    Shared {
        /// The kernel.
        kernel: String,
        /// Declared and dynamic shared memory together.
        bytes: u64,
        /// The most a block may have.
        limit: u64,
    },
    /// More declared shared memory than a kernel may have; what a launch adds has another limit.
    #[error(
        "kernel {kernel} declares {bytes} bytes of static shared memory, and at most {limit} are allowed; declare it `extern` and give the size at the launch"
    )]
    StaticShared {
        /// The kernel.
        kernel: String,
        /// Bytes of its shared variables.
        bytes: u64,
        /// The most they may have.
        limit: u64,
    },
    /// More local memory than a thread may have.
    #[error(
        "kernel {kernel} declares {bytes} bytes of local memory for each thread, and at most {limit} are allowed; move large arrays to global memory"
    )]
    Local {
        /// The kernel.
        kernel: String,
        /// Bytes of its local variables.
        bytes: u64,
        /// The most a thread may have.
        limit: u64,
    },
    /// More bytes of parameters than a kernel may have.
    #[error(
        "kernel {kernel} has {bytes} bytes of parameters, and at most {limit} are allowed; pass large data through a pointer"
    )]
    Parameters {
        /// The kernel.
        kernel: String,
        /// Bytes of its parameters.
        bytes: u64,
        /// The most it may have.
        limit: u64,
    },
    /// An instruction with an operand that it does not allow.
    #[error("kernel {kernel}: {text}")]
    Operand {
        /// The kernel.
        kernel: String,
        /// What is wrong, with the instruction and its line.
        text: String,
    },
    /// This machine does not have the memory to run it.
    #[error(
        "kernel {kernel} needs {bytes} bytes of this machine's memory for the local and shared memory of its threads, which are not free; use smaller blocks, or run it on a GPU"
    )]
    HostMemory {
        /// The kernel.
        kernel: String,
        /// Bytes that were asked for.
        bytes: u64,
    },
    /// The clusters of the launch do not fit the kernel, the grid or the architecture.
    #[error("kernel {kernel} {text}")]
    Cluster {
        /// The kernel.
        kernel: String,
        /// What does not fit, and what to do.
        text: String,
    },
    /// Fewer bytes of arguments than the kernel has.
    #[error("kernel {kernel} takes {expected} bytes of arguments, but {given} were given")]
    Arguments {
        /// The kernel.
        kernel: String,
        /// Bytes of its parameters.
        expected: u64,
        /// Bytes given.
        given: usize,
    },
    /// Not an address for every variable of the module.
    #[error("the module of kernel {kernel} has {expected} variables, but {given} addresses were given")]
    Variables {
        /// The kernel.
        kernel: String,
        /// Variables of the module.
        expected: usize,
        /// Addresses given.
        given: usize,
    },
}

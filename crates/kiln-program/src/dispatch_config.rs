//! `DispatchConfig`: grid, block, shared memory, loop, timeout and other settings of a dispatch.

use std::time::Duration;

use kiln_driver::Dim3;

/// How a program is dispatched. Every choice is honoured or refused with an error.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DispatchConfig {
    /// Blocks in the grid; otherwise a thread for each element of the buffer the program runs over.
    pub grid: Option<Dim3>,
    /// Threads in a block; otherwise what the program says. Another block is another compilation, kept like the first.
    pub block: Option<[u32; 3]>,
    /// Elements of the shared memory whose size the program leaves open.
    pub dynamic_shared_elements: Option<u64>,
    /// How often the program runs, one after the other; once if nothing else is said. 0 runs it not at all.
    pub steps: u64,
    /// Run it until a flag says that nothing changes any more.
    pub converge: Option<Converge>,
    /// Whether all blocks must be resident at once. A program with a grid barrier always asks for it.
    pub cooperative: bool,
    /// How long to wait for the end.
    pub timeout: Option<Duration>,
    /// A name that errors carry.
    pub label: Option<String>,
    /// Whether device time is taken.
    pub profile: bool,
    /// Whether a result may be computed before it is known to be wanted.
    pub speculation: Speculation,
}

/// Whether a result may be computed before it is known to be wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Speculation {
    /// It is not.
    #[default]
    Off,
    /// It must be, which is refused: nothing here speculates.
    Force,
}

/// When to stop.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Converge {
    /// A buffer of the program with one `u32`. It is zero before each step, and a step that changed something makes it something else. Once a step
    /// leaves it zero, further steps must change nothing: some may have run already.
    pub flag: String,
    /// Steps at the most.
    pub limit: u64,
}

impl Default for DispatchConfig {
    fn default() -> Self {
        Self {
            grid: None,
            block: None,
            dynamic_shared_elements: None,
            steps: 1,
            converge: None,
            cooperative: false,
            timeout: None,
            label: None,
            profile: false,
            speculation: Speculation::Off,
        }
    }
}

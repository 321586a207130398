//! Computes the grid of a launch, and checks it against the limits of a device.

use super::binding::BindingPlan;
use super::error::PlanError;
use crate::program::Program;

/// What a device can do. The defaults are what every supported device can.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DeviceLimits {
    /// Threads of a block.
    pub threads_per_block: u64,
    /// Blocks of a grid in each dimension.
    pub grid: [u64; 3],
    /// Bytes of shared memory of a block, declared and dynamic together.
    pub shared_bytes_per_block: u64,
    /// Blocks of this program that can be resident on the device at once; `None` if unknown.
    pub resident_blocks: Option<u64>,
}

impl Default for DeviceLimits {
    fn default() -> Self {
        Self {
            threads_per_block: 1024,
            grid: [(1 << 31) - 1, 65535, 65535],
            shared_bytes_per_block: 48 << 10,
            resident_blocks: None,
        }
    }
}

/// What the caller asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct LaunchRequest {
    /// Blocks of the grid; `None` to cover the buffer the program names.
    pub grid: Option<[u32; 3]>,
    /// Bytes of dynamic shared memory.
    pub dynamic_shared_bytes: u32,
}

/// The shape of a launch that a device can run.
///
/// ```
/// use kiln_ir::{BindingPlan, DeviceLimits, LaunchPlan, LaunchRequest, Program};
///
/// let program = Program::parse("kernel zero(out x: u8[]) block(256) over(x) { x[global.x] = 0; }")?;
/// let bindings = BindingPlan::new(&program, &[("x", 1000)])?;
/// let plan = LaunchPlan::new(&program, &bindings, &LaunchRequest::default(), &DeviceLimits::default())?;
/// assert_eq!((plan.grid, plan.block), ([4, 1, 1], [256, 1, 1]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LaunchPlan {
    /// Blocks of the grid.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub dynamic_shared_bytes: u32,
    /// Whether the launch must be cooperative.
    pub cooperative: bool,
    /// Whether there is nothing to do: the buffer that the grid covers is empty. Then the grid is zero.
    pub is_empty: bool,
}

impl LaunchPlan {
    /// Plans a launch.
    ///
    /// # Errors
    /// No grid, one that is zero, or more than the device has.
    pub fn new(
        program: &Program,
        bindings: &BindingPlan,
        request: &LaunchRequest,
        limits: &DeviceLimits,
    ) -> Result<Self, PlanError> {
        let kernel = || program.name.clone();
        let grid = match (request.grid, program.over) {
            (Some(grid), _) if grid.contains(&0) => {
                return Err(PlanError::Shape {
                    kernel: kernel(),
                    what: format!("a grid of {grid:?} has no blocks"),
                });
            }
            (Some(grid), _) => grid.map(u64::from),
            (None, Some(id)) => {
                let elements = bindings.binding(id).map_or(0, |binding| binding.length);
                cover(elements, program.block)
            }
            (None, None) => return Err(PlanError::NoGrid { kernel: kernel() }),
        };
        check(program, grid, request, limits)?;
        let cooperative = program.meets_in_grid();
        let blocks: u64 = grid.iter().product();
        if let Some(limit) = limits.resident_blocks.filter(|limit| cooperative && blocks > *limit) {
            return Err(PlanError::CooperativeResidencyExceeded { kernel: kernel(), blocks, limit });
        }
        Ok(Self {
            // Every count was checked against a limit below 2^32.
            grid: grid.map(|count| count as u32),
            block: program.block,
            dynamic_shared_bytes: request.dynamic_shared_bytes,
            cooperative,
            is_empty: blocks == 0,
        })
    }
}

/// Blocks along x, so that `global.x` reaches every element.
fn cover(elements: u64, block: [u32; 3]) -> [u64; 3] {
    match elements {
        0 => [0, 0, 0],
        _ => [elements.div_ceil(u64::from(block[0])), 1, 1],
    }
}

fn check(
    program: &Program,
    grid: [u64; 3],
    request: &LaunchRequest,
    limits: &DeviceLimits,
) -> Result<(), PlanError> {
    let limit = |what: &str, found: u64, limit: u64| match found > limit {
        true => Err(PlanError::Limit { kernel: program.name.clone(), what: what.to_owned(), found, limit }),
        false => Ok(()),
    };
    for ((axis, found), most) in ["x", "y", "z"].iter().zip(grid).zip(limits.grid) {
        limit(&format!("the number of blocks along {axis}"), found, most.min(u64::from(u32::MAX)))?;
    }
    let threads = program.block.iter().map(|count| u64::from(*count)).product();
    limit("the number of threads of a block", threads, limits.threads_per_block)?;
    let declared = program.shared_bytes();
    let dynamic = u64::from(request.dynamic_shared_bytes);
    let has_dynamic = program.shared.iter().any(|shared| shared.count.is_none());
    if dynamic > 0 && !has_dynamic {
        let what =
            format!("{dynamic} bytes of dynamic shared memory were asked for, but the program has none");
        return Err(PlanError::Shape { kernel: program.name.clone(), what });
    }
    let start = if has_dynamic { declared.next_multiple_of(16) } else { declared };
    limit("shared memory", start + dynamic, limits.shared_bytes_per_block)
}

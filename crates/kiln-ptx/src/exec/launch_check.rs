//! What is checked before a kernel runs: its code when it is loaded, its shape when it is launched.

use super::barrier::{BARRIERS, BadCount};
use super::code_location::{CodeSite, Line};
use super::entry::Entry;
use super::launch_error::LaunchError;
use super::lowered_code::{BarrierKind, Code, Constant, Op, Source};
use super::options::LaunchShape;
use super::warp_register::LANES;

impl Entry {
    /// Whether `ptxas` accepts its parameters, its shared and local memory, and the operands of its barriers.
    ///
    /// # Errors
    /// What is too large or wrong.
    pub fn check_code(&self) -> Result<(), LaunchError> {
        let kernel = || self.name().to_owned();
        let code = self.code();
        let (bytes, limit) = (code.static_shared_bytes, LaunchShape::MAX_STATIC_SHARED_BYTES);
        if bytes > limit {
            return Err(LaunchError::StaticShared { kernel: kernel(), bytes, limit });
        }
        let (bytes, limit) = (self.local_bytes(), LaunchShape::MAX_LOCAL_BYTES);
        if bytes > limit {
            return Err(LaunchError::Local { kernel: kernel(), bytes, limit });
        }
        let (bytes, limit) = (self.parameter_bytes(), self.max_parameter_bytes());
        if bytes > limit {
            return Err(LaunchError::Parameters { kernel: kernel(), bytes, limit });
        }
        match bad_barrier(code) {
            Some(text) => Err(LaunchError::Operand { kernel: kernel(), text }),
            None => Ok(()),
        }
    }

    /// Whether a launch of that shape can run.
    ///
    /// # Errors
    /// What does not fit the kernel or this machine.
    pub fn check_launch(&self, shape: &LaunchShape) -> Result<(), LaunchError> {
        let kernel = || self.name().to_owned();
        let (threads, blocks) = (shape.threads(), shape.blocks());
        if threads == 0 || threads > LaunchShape::MAX_THREADS || blocks == 0 {
            return Err(LaunchError::Shape { threads, blocks });
        }
        if let Some(bounds) = self.function().map(|function| &function.bounds) {
            if let Some(required) = bounds.required_threads.filter(|required| *required != shape.block) {
                let [x, y, z] = required;
                let bound = format!("{x} x {y} x {z} threads");
                return Err(LaunchError::Bounds { kernel: kernel(), bound, threads });
            }
            if let Some(most) = bounds.max_threads_per_block().filter(|most| threads > *most) {
                let bound = format!("at most {most}");
                return Err(LaunchError::Bounds { kernel: kernel(), bound, threads });
            }
        }
        let clusters = self.clusters(shape)?;
        self.check_code()?;
        let (bytes, limit) =
            (self.shared_bytes() + u64::from(shape.dynamic_shared_bytes), LaunchShape::MAX_SHARED_BYTES);
        if bytes > limit {
            return Err(LaunchError::Shared { kernel: kernel(), bytes, limit });
        }
        let at_once = if shape.cooperative { blocks } else { clusters.size() };
        let warps = threads.div_ceil(LANES as u64).saturating_mul(at_once);
        // Each lane has a frame, and marks for what was written of it.
        let local = warps.saturating_mul(LANES as u64).saturating_mul(self.local_bytes());
        let needed = local.saturating_add(local / 8).saturating_add(at_once.saturating_mul(bytes));
        match is_free(needed) {
            true => Ok(()),
            false => Err(LaunchError::HostMemory { kernel: kernel(), bytes: needed }),
        }
    }

    pub(super) fn check_arguments(&self, arguments: &[u8], globals: &[u64]) -> Result<(), LaunchError> {
        let kernel = || self.name().to_owned();
        let expected = self.parameter_bytes();
        if (arguments.len() as u64) < expected {
            return Err(LaunchError::Arguments { kernel: kernel(), expected, given: arguments.len() });
        }
        let expected = self.program.variables.list.len();
        if globals.len() < expected {
            return Err(LaunchError::Variables { kernel: kernel(), expected, given: globals.len() });
        }
        Ok(())
    }

    /// The most bytes of parameters, by the version of the PTX.
    fn max_parameter_bytes(&self) -> u64 {
        let version = self.program.module.version;
        let wide = (version.major, version.minor) >= LaunchShape::WIDE_PARAMETERS_FROM;
        if wide { LaunchShape::MAX_PARAMETER_BYTES } else { LaunchShape::MAX_NARROW_PARAMETER_BYTES }
    }
}

/// Whether this machine can give so much memory now. Small amounts are not tried.
fn is_free(bytes: u64) -> bool {
    const SMALL_BYTES: u64 = 16 << 20;
    let try_out = |bytes: usize| Vec::<u8>::new().try_reserve_exact(bytes).is_ok();
    bytes < SMALL_BYTES || usize::try_from(bytes).is_ok_and(try_out)
}

/// What is wrong with the first barrier whose number or count is written in the code and is not possible.
fn bad_barrier(code: &Code) -> Option<String> {
    let written = |source: Source| match code.constants.get(source.split().ok()? as usize)? {
        Constant::Bits(bits) => Some(*bits as u32),
        Constant::Variable(..) => None,
    };
    (0..).zip(&code.steps).find_map(|(pc, step)| {
        let Op::Barrier(barrier) = &step.op else { return None };
        let number = written(barrier.number);
        let count = barrier.count.and_then(written);
        let what = match (number, count.and_then(BadCount::of)) {
            (Some(number), _) if number as usize >= BARRIERS => {
                format!("uses barrier {number}, and a block has barriers 0 to {}", BARRIERS - 1)
            }
            (_, Some(bad)) => bad.words(),
            _ if barrier.kind == BarrierKind::Arrive && barrier.count.is_none() => {
                "arrives without a count of threads; write how many take part".to_owned()
            }
            _ => return None,
        };
        let site = CodeSite::of(code, pc);
        Some(format!("`{}` at {} {what}", site.instruction, Line(&site)))
    })
}

//! The flags that say what is launched.

use clap::Args;
use kiln_driver::Dim3;

use super::program::Shape;
use crate::device::Where;
use crate::failure::Failure;
use crate::source_file::SourceFlags;
use crate::spec::Spec;

/// The flags `run` and `check` have in common.
#[derive(Args, Clone, Debug)]
pub(crate) struct LaunchFlags {
    #[command(flatten)]
    pub(crate) source: SourceFlags,
    /// The kernel, by its name in CUDA C or PTX; a template with its arguments, such as 'scale<float>'. A program file has one
    /// program, and needs none.
    #[arg(long, value_name = "NAME")]
    pub(crate) kernel: Option<String>,
    /// Blocks of the grid; a program that says which buffer it runs over needs none.
    #[arg(long, value_name = "X[,Y[,Z]]", value_parser = extents)]
    pub(crate) grid: Option<Dim3>,
    /// Threads of a block; a program has its own, which this replaces.
    #[arg(long, value_name = "X[,Y[,Z]]", value_parser = extents)]
    pub(crate) block: Option<Dim3>,
    /// Dynamic shared memory.
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    pub(crate) shared: u32,
    /// An argument, in the order of the parameters (of a program: its buffers, then its scalars): in:A.npy, out:f32:1024:B.npy, inout:A.npy:B.npy, or a value such as
    /// f32:2.5. Element types by Rust's names or numpy's.
    #[arg(long = "arg", value_name = "SPEC", allow_hyphen_values = true)]
    pub(crate) arguments: Vec<Spec>,
    /// Where to run; `auto` takes a GPU if there is one and the policy allows it, else the simulated device.
    #[arg(long, value_enum, default_value_t = Where::Auto)]
    pub(crate) device: Where,
    /// Picks the order in which the simulated device runs blocks and warps.
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// The most instructions a warp may run on the simulated device before the kernel is said not to end.
    #[arg(long, value_name = "N", default_value_t = 1 << 28, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) step_limit: u64,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

impl LaunchFlags {
    /// The name and the shape, which a kernel does not have by itself.
    pub(super) fn of_kernel(&self) -> Result<(&str, Shape), Failure> {
        let missing = |flag: &str| {
            Failure::usage(format!("a kernel of CUDA C or PTX needs {flag}; --help has examples"))
        };
        let kernel = self.kernel.as_deref().ok_or_else(|| missing("--kernel NAME"))?;
        let grid = self.grid.ok_or_else(|| missing("--grid X[,Y[,Z]]"))?;
        let block = self.block.ok_or_else(|| missing("--block X[,Y[,Z]]"))?;
        Ok((kernel, Shape { grid, block }))
    }
}

fn extents(text: &str) -> Result<Dim3, String> {
    let sizes: Option<Vec<u32>> = text.split(',').map(|size| size.trim().parse().ok()).collect();
    match sizes.as_deref() {
        Some([x]) => Ok(Dim3::new(*x, 1, 1)),
        Some([x, y]) => Ok(Dim3::new(*x, *y, 1)),
        Some([x, y, z]) => Ok(Dim3::new(*x, *y, *z)),
        _ => Err("write one to three numbers, such as 256 or 16,16".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_one_to_three_numbers() {
        assert_eq!(extents("256"), Ok(Dim3::new(256, 1, 1)));
        assert_eq!(extents("16,8"), Ok(Dim3::new(16, 8, 1)));
        assert_eq!(extents("1, 2, 3"), Ok(Dim3::new(1, 2, 3)));
        for text in ["", "1,2,3,4", "-1", "1,", "x", "4294967296"] {
            assert!(extents(text).is_err(), "{text}");
        }
    }
}

//! The flags that `kiln run` and `kiln check` share.

use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser};
use kiln_driver::Dim3;

use super::program_arguments::Shape;
use crate::argument_spec::Spec;
use crate::constant_spec::ConstantSpec;
use crate::device_choice::Where;
use crate::failure::Failure;
use crate::source_file::SourceFlags;

/// The flags `run` and `check` have in common.
#[derive(Args, Clone, Debug)]
pub(crate) struct LaunchFlags {
    #[command(flatten)]
    pub(crate) source: SourceFlags,
    /// The kernel, if the file has several: its name in CUDA C or PTX, with arguments for a template, such as 'scale<float>'.
    #[arg(long, value_name = "NAME")]
    pub(crate) kernel: Option<String>,
    /// Blocks in the grid. A program that runs over a buffer needs none.
    #[arg(long, value_name = "X[,Y[,Z]]", value_parser = extents, allow_hyphen_values = true)]
    pub(crate) grid: Option<Extents>,
    /// Threads in a block. A program has its own, which this replaces.
    #[arg(long, value_name = "X[,Y[,Z]]", value_parser = extents, allow_hyphen_values = true)]
    pub(crate) block: Option<Extents>,
    /// Bytes of dynamic shared memory for each block.
    #[arg(long, value_name = "BYTES", default_value_t = 0, allow_negative_numbers = true)]
    pub(crate) shared: u32,
    /// One argument; repeat the flag in the order of the parameters (of a program: its buffers, then its scalars). Input: in:A.npy. Output: out:f32:1024:B.npy
    /// (the kernel writes every element), zeros:f32:1024:B.npy (begins as zeros) or uninit:f32:1024:B.npy (begins uninitialised, and the kernel may write a
    /// part); without :B.npy the result is not saved. Input and output: inout:A.npy:B.npy, or inout:A.npy to save nothing. Temporary: scratch:f32:1024.
    /// Others: null, a value such as f32:2.5, 'struct:{f32:1.5,u32:2}', bytes:00ff. Texture: tex:2d+linear+normalized:A.npy. Surface:
    /// surf:2d:A.npy:B.npy.
    #[arg(long = "arg", value_name = "SPEC", value_parser = OsStringValueParser::new().try_map(|word| Spec::of_word(&word)), allow_hyphen_values = true)]
    pub(crate) arguments: Vec<Spec>,
    /// What a `__constant__` or `__device__` variable of the file holds at the launch; repeat the flag for each variable. SPEC is a value such as f32:2.5, in:A.npy,
    /// 'struct:{f32:1.5,u32:2}' or bytes:00ff, and has all bytes of the variable.
    #[arg(long = "const", value_name = "NAME=SPEC", value_parser = OsStringValueParser::new().try_map(|word| ConstantSpec::of_word(&word)), allow_hyphen_values = true)]
    pub(crate) constants: Vec<ConstantSpec>,
    /// Convert arrays whose element type is not the kernel's, such as float64 for a `float*`.
    #[arg(long)]
    pub(crate) cast: bool,
    /// Where to run; `auto` takes a GPU if there is one and the policy allows it, else the simulated device.
    #[arg(long, value_enum, default_value_t = Where::Auto)]
    pub(crate) device: Where,
    /// A number that chooses the order in which the simulated device runs blocks and warps.
    #[arg(long, default_value_t = 0, allow_negative_numbers = true)]
    pub(crate) seed: u64,
    /// Stop the kernel when one warp has executed N instructions, or all warps together have since the last thread exited (simulated device only).
    #[arg(long, value_name = "N", default_value_t = DEFAULT_STEP_LIMIT, value_parser = clap::value_parser!(u64).range(1..), allow_negative_numbers = true)]
    pub(crate) step_limit: u64,
    /// The most findings the simulated device keeps of one run; the rest is counted.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_findings: u32,
    /// The most bytes of `printf` the simulated device keeps of one run; the rest is counted.
    #[arg(long, value_name = "BYTES", default_value_t = 16 << 20)]
    pub(crate) max_printed: u32,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// A few seconds on the simulated device.
const DEFAULT_STEP_LIMIT: u64 = 1 << 26;

impl LaunchFlags {
    /// The shape, which a kernel does not have by itself.
    pub(super) fn shape(&self) -> Result<Shape, Failure> {
        match (self.grid()?, self.block()?) {
            (Some(grid), Some(block)) => Ok(Shape { grid, block }),
            (grid, block) => {
                let missing = [(grid, "--grid X[,Y[,Z]]"), (block, "--block X[,Y[,Z]]")];
                let missing: Vec<&str> =
                    missing.into_iter().filter(|(given, _)| given.is_none()).map(|(_, flag)| flag).collect();
                let message = format!("a kernel of CUDA C or PTX needs {}", missing.join(" and "));
                Err(Failure::usage(message).next("see the examples in --help"))
            }
        }
    }
}

/// The sizes of a grid or a block, as given.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Extents {
    /// The device knows its limits, and refuses what is too large.
    Sizes(Dim3),
    /// A size that no device has: it does not fit 32 bits.
    Beyond(String),
}

impl Extents {
    fn sizes(&self, flag: &str, limits: &str) -> Result<Dim3, Failure> {
        match self {
            Self::Sizes(sizes) => Ok(*sizes),
            Self::Beyond(text) => {
                Err(Failure::refused(format!("{flag} {text}: {limits}"))
                    .next(format!("give a smaller {flag}")))
            }
        }
    }
}

impl LaunchFlags {
    /// The grid, if one is given.
    pub(super) fn grid(&self) -> Result<Option<Dim3>, Failure> {
        let limits = "a grid has at most 2147483647 x 65535 x 65535 blocks";
        self.grid.as_ref().map(|grid| grid.sizes("--grid", limits)).transpose()
    }

    /// The block, if one is given.
    pub(super) fn block(&self) -> Result<Option<Dim3>, Failure> {
        let limits = "a block has at most 1024 threads";
        self.block.as_ref().map(|block| block.sizes("--block", limits)).transpose()
    }
}

/// One to three sizes.
fn extents(text: &str) -> Result<Extents, String> {
    let words: Vec<&str> = text.split(',').map(str::trim).collect();
    let is_number = |word: &&str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    if !words.iter().all(is_number) || words.len() > 3 {
        return Err("write one to three numbers that are not negative, such as 256 or 16,16".to_owned());
    }
    let sizes: Option<Vec<u32>> = words.iter().map(|word| word.parse().ok()).collect();
    Ok(match sizes.as_deref() {
        Some(&[x]) => Extents::Sizes(Dim3::new(x, 1, 1)),
        Some(&[x, y]) => Extents::Sizes(Dim3::new(x, y, 1)),
        Some(&[x, y, z]) => Extents::Sizes(Dim3::new(x, y, z)),
        _ => Extents::Beyond(text.to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_one_to_three_numbers() {
        assert_eq!(extents("256"), Ok(Extents::Sizes(Dim3::new(256, 1, 1))));
        assert_eq!(extents("16,8"), Ok(Extents::Sizes(Dim3::new(16, 8, 1))));
        assert_eq!(extents("1, 2, 3"), Ok(Extents::Sizes(Dim3::new(1, 2, 3))));
        assert_eq!(
            extents("4294967295"),
            Ok(Extents::Sizes(Dim3::new(u32::MAX, 1, 1))),
            "the device refuses it"
        );
        for text in ["4294967296", "99999999999999999999999"] {
            assert_eq!(extents(text), Ok(Extents::Beyond(text.to_owned())));
        }
        for text in ["", "1,2,3,4", "-1", "1,", "x", "+1"] {
            assert!(extents(text).is_err_and(|why| why.contains("one to three")), "{text}");
        }
    }
}

//! Tests of GPU code on the simulated device, under many seeds, in one line.
//!
//! A seed fixes the order in which streams, blocks and warps run. [`check`] runs a closure once for each seed, on a new simulated device
//! with every check on. It fails with the first finding, leak, error or panic, and its message says with which seed and how to repeat it.
//!
//! ```
//! # const TWICE: &str = "
//! #     .version 7.0
//! #     .target sm_70
//! #     .address_size 64
//! #     .visible .entry twice(.param .u64 data, .param .u32 n) {
//! #         .reg .pred %p; .reg .b32 %r<6>; .reg .b64 %rd<4>;
//! #         ld.param.u64 %rd1, [data]; ld.param.u32 %r5, [n];
//! #         mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;
//! #         mad.lo.u32 %r4, %r1, %r2, %r3;
//! #         setp.ge.u32 %p, %r4, %r5;
//! #         @%p ret;
//! #         mul.wide.u32 %rd2, %r4, 4;
//! #         add.s64 %rd3, %rd1, %rd2;
//! #         ld.global.u32 %r0, [%rd3]; add.u32 %r0, %r0, %r0; st.global.u32 [%rd3], %r0;
//! #         ret;
//! #     }";
//! // #[test]
//! fn every_element_is_doubled() -> Result<(), kiln::testing::TestFailure> {
//!     kiln::testing::check(0..8, |gpu| {
//!         let twice = gpu.kernel(TWICE, "twice")?; // twice(unsigned* data, unsigned n)
//!         let data = gpu.upload(&[3_u32; 1000])?;
//!         // SAFETY: `twice` touches the first n elements of `data` and nothing else, and it ends.
//!         unsafe { gpu.launch(&twice).threads(1000).read_write(&data).value(1000_u32).submit()? };
//!         assert_eq!(data.download()?, [6; 1000]);
//!         Ok(())
//!     })
//! }
//! # every_element_is_doubled().unwrap();
//! ```
//!
//! Two variables change what runs, and no test has to know them:
//!
//! | variable | means |
//! |---|---|
//! | `KILN_SEED=7` | run with this seed alone, as the message of a failure asks |
//! | `KILN_TEST_DEVICE=cuda` | run on the GPU as well, after the seeds; a machine without one counts a skipped test |
//!
//! [`SeededTest`] takes a machine, a runtime configuration or a memory stack of the caller's choice.

mod failure;
mod seeded_test;

pub use failure::{FailureCause, TestFailure};
pub use seeded_test::{DEVICE_VARIABLE, SEED_VARIABLE, SeededTest};

use crate::{DeviceRuntime, Result};

/// Runs a test on a new simulated device for each seed, with every check on.
///
/// The test fails with the first finding, leak, error or panic. See the [module](self) for an example and for the variables it honours.
///
/// # Errors
/// What failed, under which seed, and how to repeat it.
pub fn check(
    seeds: impl IntoIterator<Item = u64>,
    test: impl Fn(&DeviceRuntime) -> Result<()>,
) -> std::result::Result<(), TestFailure> {
    SeededTest::new(seeds).run(test)
}

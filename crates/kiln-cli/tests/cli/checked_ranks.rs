//! Ranks under `kiln launch --check` that are a test of this program, and a mistake that one of them may make.

use kiln::DeviceRuntime;

use crate::outcome::{Outcome, command, run};

/// A kernel whose result depends on the first element of `from`.
const COPY_ONE: &str = "
.version 7.0
.target sm_70
.address_size 64
.visible .entry copy_one(.param .u64 from, .param .u64 to) {
    .reg .u64 %rd<3>;
    .reg .u32 %r<2>;
    .reg .pred %p<2>;
    ld.param.u64 %rd1, [from];
    ld.param.u64 %rd2, [to];
    ld.global.u32 %r1, [%rd1];
    setp.eq.u32 %p1, %r1, 0;
    @%p1 bra DONE;
    st.global.u32 [%rd2], %r1;
DONE:
    ret;
}";

/// Uses a value that was never written.
pub(crate) fn use_unwritten(gpu: &DeviceRuntime) {
    let kernel = gpu.kernel(COPY_ONE, "copy_one").unwrap();
    let (from, to) = (gpu.allocate::<u32>(8).unwrap(), gpu.zeros::<u32>(8).unwrap());
    // SAFETY: it reads and writes the first element of two buffers of eight, and ends.
    unsafe { gpu.launch(&kernel).grid(1).block(1).read(&from).read_write(&to).submit() }.unwrap();
}

/// Runs a test of this program as so many ranks, with a variable that says what they do.
pub(crate) fn checked(ranks: &str, test: &str, variable: (&str, &str)) -> Outcome {
    checked_under(&[], ranks, test, variable)
}

/// The same under another command.
pub(crate) fn checked_under(other: &[&str], ranks: &str, test: &str, (name, value): (&str, &str)) -> Outcome {
    let program = std::env::current_exe().unwrap();
    let words = ["launch", "-n", ranks, "--check", "--time-limit", "300", "--", program.to_str().unwrap()];
    let mut launch = command(&[other, &words, &["--exact", test, "--nocapture"]].concat());
    launch.env(name, value);
    run(launch)
}

/// What was found, without who found it.
pub(crate) fn found(outcome: &Outcome) -> Vec<&str> {
    outcome.stderr.lines().filter_map(|line| Some(line.split_once(" found: ")?.1)).collect()
}

//! Whether a process lives.

/// Whether there is a process with a number.
#[cfg(unix)]
pub(crate) fn is_alive(process: u32) -> bool {
    let number = i32::try_from(process).ok().and_then(rustix::process::Pid::from_raw);
    number.is_some_and(|number| {
        !matches!(rustix::process::test_kill_process(number), Err(rustix::io::Errno::SRCH))
    })
}

/// Not known there, so that nothing of it is touched.
#[cfg(not(unix))]
pub(crate) fn is_alive(_: u32) -> bool {
    true
}

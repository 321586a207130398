//! The time a thread ran, for machines that others use too.

use std::time::Duration;

use kiln_driver::Clock;

/// Time that the calling thread spent on a processor.
pub(crate) struct ThreadClock;

#[repr(C)]
struct Timespec {
    seconds: i64,
    nanoseconds: i64,
}

/// Linux's number for the clock of the calling thread.
const THREAD_CPUTIME: i32 = 3;

unsafe extern "C" {
    fn clock_gettime(clock: i32, time: *mut Timespec) -> i32;
}

impl Clock for ThreadClock {
    fn now(&self) -> Duration {
        let mut time = Timespec { seconds: 0, nanoseconds: 0 };
        // SAFETY: the C library that std links has this function, and on 64-bit Linux its structure is two words.
        unsafe { clock_gettime(THREAD_CPUTIME, &mut time) };
        Duration::new(time.seconds as u64, time.nanoseconds as u32)
    }

    fn sleep(&self, duration: Duration) {
        std::thread::sleep(duration);
    }
}

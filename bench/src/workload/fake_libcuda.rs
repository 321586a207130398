//! A library in the place of libcuda: compiled, loaded by a separate process, and asked how long it took.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use libloading::Library;

use crate::Failure;
use crate::timing::Percentiles;

/// Names libcuda for kiln; cudarc finds it on the loader's path.
const VARIABLE: &str = "KILN_LIBCUDA";
/// Names cuBLASLt, which the same file stands in for.
const CUBLASLT_VARIABLE: &str = "KILN_CUBLASLT";
const LIBRARY: &str = "libcuda.so.1";
/// What cudarc looks for first, and finds elsewhere where a driver is installed.
const OTHER_NAME: &str = "libcuda.so";
/// Operations that are timed one by one.
const OPERATIONS: usize = 20_000;
/// The same where each of them runs through megabytes.
const SLOW_OPERATIONS: usize = 1_000;

const SOURCES: [(&str, &str); 7] = [
    ("fake.h", include_str!("../../../crates/kiln-cuda/tests/on_fake/libcuda/fake.h")),
    ("start.c", include_str!("../../../crates/kiln-cuda/tests/on_fake/libcuda/start.c")),
    ("memory.c", include_str!("../../../crates/kiln-cuda/tests/on_fake/libcuda/memory.c")),
    ("streams.c", include_str!("../../../crates/kiln-cuda/tests/on_fake/libcuda/streams.c")),
    ("code.c", include_str!("../../../crates/kiln-cuda/tests/on_fake/libcuda/code.c")),
    ("graphs.c", include_str!("../../../crates/kiln-cuda/tests/on_fake/libcuda/graphs.c")),
    ("empty_driver.c", include_str!("empty_driver.c")),
];
/// What `empty_driver.c` answers itself.
const HOLLOW: [&str; 4] = ["cuLaunchKernel", "cuEventRecord", "cuStreamWaitEvent", "cuGraphLaunch"];

/// The compiled library, in a folder that goes away with this.
pub(crate) struct FakeLibcuda {
    folder: PathBuf,
}

impl FakeLibcuda {
    /// None where there is no C compiler.
    pub(crate) fn compile() -> Result<Option<Self>, Failure> {
        if Command::new("cc").arg("--version").output().is_err() {
            return Ok(None);
        }
        let folder = std::env::temp_dir().join(format!("kiln-bench-l0-{}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        let made = Self { folder };
        let mut compiler = Command::new("cc");
        compiler.args(["-O2", "-w", "-shared", "-fPIC", "-o"]).arg(made.folder.join(LIBRARY));
        // Those of the tests go by another name here.
        compiler.args(HOLLOW.map(|name| format!("-D{name}=fake_{name}")));
        for (name, text) in SOURCES {
            let source = made.folder.join(name);
            std::fs::write(&source, text)?;
            if name.ends_with(".c") {
                compiler.arg(source);
            }
        }
        let output = compiler.arg("-lm").output()?;
        if !output.status.success() {
            return Err(format!("cc: {}", String::from_utf8_lossy(&output.stderr)).into());
        }
        std::os::unix::fs::symlink(LIBRARY, made.folder.join(OTHER_NAME))?;
        Ok(Some(made))
    }

    /// Puts it in the place of libcuda for a process.
    pub(crate) fn stand_in<'a>(&self, process: &'a mut Command) -> &'a mut Command {
        let library = self.folder.join(LIBRARY);
        process.env(VARIABLE, &library).env(CUBLASLT_VARIABLE, library).env("LD_LIBRARY_PATH", &self.folder)
    }
}

impl Drop for FakeLibcuda {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// What the calls of the library do to the caches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Caches {
    /// Nothing.
    LeftAlone,
    /// The first hold nothing of the caller's any more.
    FirstDrivenOut,
    /// Nor do the second.
    SecondDrivenOut,
}

/// Times operations, without what the library takes.
pub(crate) struct Meter {
    now: unsafe extern "C" fn() -> u64,
    inside: *const u64,
    drives_out: *mut i32,
    ticks_per_ns: f64,
}

impl Meter {
    /// That of the library this process has in place of libcuda.
    pub(crate) fn find() -> Result<Self, Failure> {
        let path = std::env::var_os(VARIABLE).ok_or("no library stands in for libcuda")?;
        // SAFETY: the library was compiled from the sources above, and nothing runs when it is loaded.
        let library = Box::leak(Box::new(unsafe { Library::new(path) }?));
        // SAFETY: the types are those of `empty_driver.c`; the library is never unloaded.
        let (now, inside, drives_out) = unsafe {
            let now: unsafe extern "C" fn() -> u64 = *library.get(b"empty_driver_now\0")?;
            let inside: *const u64 = *library.get(b"empty_driver_inside\0")?;
            let drives_out: *mut i32 = *library.get(b"empty_driver_drives_out\0")?;
            (now, inside, drives_out)
        };
        let mut meter = Self { now, inside, drives_out, ticks_per_ns: 1.0 };
        let (start, began) = (Instant::now(), meter.now());
        std::thread::sleep(Duration::from_millis(50));
        meter.ticks_per_ns = (meter.now() - began) as f64 / start.elapsed().as_nanos() as f64;
        Ok(meter)
    }

    /// What calls do to the caches from here on.
    pub(crate) fn set_caches(&self, caches: Caches) {
        // SAFETY: an int of the library, which is read on this thread alone.
        unsafe { self.drives_out.write_volatile(caches as i32) };
    }

    /// What calls do to the caches.
    fn caches_are(&self, caches: Caches) -> bool {
        // SAFETY: as above.
        unsafe { self.drives_out.read_volatile() == caches as i32 }
    }

    /// Nanoseconds of an operation beside the library.
    pub(crate) fn time(
        &self,
        mut operation: impl FnMut() -> Result<(), Failure>,
    ) -> Result<Percentiles, Failure> {
        let is_slow = self.caches_are(Caches::SecondDrivenOut);
        let operations = if is_slow { SLOW_OPERATIONS } else { OPERATIONS };
        let mut values = Vec::with_capacity(operations);
        for _ in 0..operations {
            let (inside, start) = (self.inside(), self.now());
            operation()?;
            let spent = self.now() - start;
            values.push((spent - (self.inside() - inside)) as f64 / self.ticks_per_ns);
        }
        Ok(Percentiles::of(values))
    }

    fn now(&self) -> u64 {
        // SAFETY: it reads a counter of the processor.
        unsafe { (self.now)() }
    }

    fn inside(&self) -> u64 {
        // SAFETY: a number of the library, which is written on this thread alone.
        unsafe { self.inside.read_volatile() }
    }
}

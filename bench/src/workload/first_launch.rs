//! C1: the first launch in a new process, from the moment the device is open until the kernel is done.
//!
//! Every value is measured by a separate process, which this program starts: with machine code in the disk cache, with nothing
//! there, and by the driver alone from a file of machine code. Without a GPU the simulated device shows what kiln adds.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use kiln::code_cache::{CacheConfig, CachePlace};
use kiln::{DeviceRuntime, RuntimeConfig, code::Source};
use kiln_cuda::CudaDevice;
use kiln_cuda::nvrtc::{CompileOptions, CudaSource, Nvrtc};
use kiln_driver::Driver;

use crate::Failure;
use crate::raw_driver::{self, Raw};
use crate::result_table::Table;
use crate::timing::Percentiles;

const KERNEL: &str = "saxpy";
const TEXT: &str = r#"
extern "C" __global__ void saxpy(float a, const float* x, float* y, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}
"#;
/// Processes for each repeat of what is quick.
const PROCESSES: usize = 6;
/// The file of machine code the driver is measured with.
const CUBIN: &str = "saxpy.cubin";

/// C1.
pub(crate) fn launch(table: &mut Table, repeats: usize) -> Result<(), Failure> {
    let folder = Folder::new()?;
    let gpu = CudaDevice::open(0).ok();
    let place = if gpu.is_some() { "" } else { ", simulated device" };
    if let Some(gpu) = &gpu {
        std::fs::write(folder.0.join(CUBIN), machine_code(gpu)?)?;
        let spread = measure("raw", &folder.0, PROCESSES * repeats)?.kernel;
        table.add("c1", "raw module load + first launch", spread);
    }
    let cold = measure("cold", &folder.0, repeats)?;
    // The first process compiles; those after it are measured.
    let _ = measure("warm", &folder.0, 1)?;
    let warm = measure("warm", &folder.0, PROCESSES * repeats)?;
    table.add("c1", format!("kiln, kernel in the disk cache{place}"), warm.kernel);
    table.add("c1", format!("the same with the runtime built{place}"), warm.whole);
    table.add("c1", format!("kiln, compiled by NVRTC{place}"), cold.kernel);
    Ok(())
}

/// What several processes measured.
struct Measured {
    /// From the runtime to the end of the first kernel.
    kernel: Percentiles,
    /// From the open device to the end of the first kernel.
    whole: Percentiles,
}

fn measure(what: &str, folder: &Path, processes: usize) -> Result<Measured, Failure> {
    let (mut kernels, mut wholes) = (Vec::new(), Vec::new());
    for _ in 0..processes.max(1) {
        let output =
            Command::new(std::env::current_exe()?).args(["--first-launch", what]).arg(folder).output()?;
        let said = String::from_utf8_lossy(&output.stdout);
        let numbers: Option<Vec<f64>> = said.split_whitespace().map(|number| number.parse().ok()).collect();
        match numbers.as_deref() {
            Some([kernel, whole]) => {
                kernels.push(*kernel);
                wholes.push(*whole);
            }
            _ => return Err(format!("{what}: {}", String::from_utf8_lossy(&output.stderr)).into()),
        }
    }
    Ok(Measured { kernel: Percentiles::of(kernels), whole: Percentiles::of(wholes) })
}

/// Measures in this process, and prints both times in nanoseconds.
#[expect(clippy::print_stdout, reason = "the process that started this one reads it")]
pub(crate) fn in_this_process(what: &str, folder: &Path) -> Result<(), Failure> {
    let [kernel, whole] = match what {
        "raw" => raw_launch(&std::fs::read(folder.join(CUBIN))?)?,
        "warm" => kiln_launch(CachePlace::At(folder.join("cache")))?,
        "cold" => kiln_launch(CachePlace::Off)?,
        other => return Err(format!("there is no first launch `{other}`").into()),
    };
    println!("{kernel} {whole}");
    Ok(())
}

fn raw_launch(cubin: &[u8]) -> Result<[u128; 2], Failure> {
    let raw = Raw::new()?;
    let (stream, x, y) = (raw.stream()?, raw.memory(4096)?, raw.memory(4096)?);
    let mut packed = 2.0_f32.to_ne_bytes().to_vec();
    packed.resize(8, 0);
    packed.extend([x, y].iter().flat_map(|address| address.to_ne_bytes()));
    packed.extend(1024_u32.to_ne_bytes());
    let start = Instant::now();
    let function = raw.load(cubin, KERNEL)?;
    raw_driver::launch(function, stream, &packed)?;
    raw_driver::synchronize(stream)?;
    let spent = start.elapsed().as_nanos();
    Ok([spent, spent])
}

fn kiln_launch(place: CachePlace) -> Result<[u128; 2], Failure> {
    let driver: Arc<dyn Driver> = match CudaDevice::open(0) {
        Ok(device) => device,
        Err(_) => Arc::clone(DeviceRuntime::simulated(0)?.driver()),
    };
    let opened = Instant::now();
    let cache = CacheConfig { place, ..CacheConfig::default() };
    let gpu = DeviceRuntime::from_driver(driver, RuntimeConfig { cache, ..RuntimeConfig::default() })?;
    let (x, y) = (gpu.zeros::<f32>(1024)?, gpu.zeros::<f32>(1024)?);
    gpu.synchronize()?;
    let start = Instant::now();
    let saxpy = gpu.kernel(Source::CudaC { name: "saxpy.cu", text: TEXT }, KERNEL)?;
    let mut launch = gpu.launch(&saxpy);
    launch.grid(1).block(1);
    launch.value(2.0_f32).read(&x).read_write(&y).value(1024_u32);
    // SAFETY: saxpy stays below n, and both arrays have that many elements.
    unsafe { launch.submit() }?;
    gpu.synchronize()?;
    Ok([start.elapsed().as_nanos(), opened.elapsed().as_nanos()])
}

fn machine_code(gpu: &CudaDevice) -> Result<Vec<u8>, Failure> {
    let nvrtc = Nvrtc::load()?;
    let target = nvrtc.target_for(gpu.info().capability).ok_or("NVRTC does not know this device")?;
    let compiled = nvrtc.compile(&CudaSource::new("saxpy.cu", TEXT), &CompileOptions::new(target))?;
    Ok(compiled.cubin.ok_or("NVRTC makes no machine code for this device")?)
}

/// A folder that goes away with the measurement.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Self, Failure> {
        let folder = std::env::temp_dir().join(format!("kiln-bench-c1-{}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        Ok(Self(folder))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

//! Q1: the code that programs become, against the same algorithm in CUDA C.
//!
//! Both are launched with the same shape on the same buffers, one after the other, and timed by events around each launch. The
//! program checks its indices; the C does so where its author would. Their results must be the same, bit for bit.

use std::sync::Arc;

use kiln_cuda::CudaDevice;
use kiln_cuda::nvrtc::{CompileOptions, CudaSource, Nvrtc};
use kiln_driver::{
    Command, DeviceMemory, Dim3, Driver, DriverExt, EventRequest, FunctionId, Image, LaunchCommand,
    MemoryRequest, StreamId, StreamRequest, Vouched,
};
use kiln_ir::{Axis, EntryParameterKind, Program, PtxTarget};

use crate::Failure;
use crate::result_table::Table;
use crate::timing::Percentiles;

const SOURCE: &str = include_str!("../hand_written_kernels.cu");
/// Elements of a vector, and rows of a matrix.
const ELEMENTS: u64 = 64 << 20;
const ROWS: u64 = 4096;
/// Threads of a block along the side of a tile, and its elements.
const TILE: u32 = 32;
/// Timed launches of each subject in a repeat.
const LAUNCHES: usize = 20;

pub(crate) fn programs(table: &mut Table, repeats: usize) -> Result<(), Failure> {
    let driver = CudaDevice::open(0)?;
    let nvrtc = Nvrtc::load()?;
    let target = nvrtc.target_for(driver.info().capability).ok_or("NVRTC does not know this device")?;
    let compiled =
        nvrtc.compile(&CudaSource::new("hand_written_kernels.cu", SOURCE), &CompileOptions::new(target))?;
    let cubin = compiled.cubin.ok_or("NVRTC makes no machine code for this device")?;
    for case in [saxpy(ELEMENTS)?, saxpy_of_four(ELEMENTS)?, matrix(ROWS)?] {
        let stage = Stage::new(driver.clone(), &case)?;
        let subjects = [stage.load(&Image::Cubin(&cubin), &case)?, stage.load_program(&case)?];
        stage.compare(&case, subjects)?;
        let mut spreads = [Vec::new(), Vec::new()];
        for _ in 0..repeats {
            let mut times = [Vec::new(), Vec::new()];
            for _ in 0..LAUNCHES {
                for (subject, times) in subjects.iter().zip(&mut times) {
                    times.push(stage.timed(&case, *subject)?);
                }
            }
            spreads.iter_mut().zip(times).for_each(|(spreads, times)| spreads.push(Percentiles::of(times)));
        }
        let workload = format!("q1.{}", case.program.name);
        table.add_in("us", &workload, "CUDA C by NVRTC, device time", Percentiles::median(&spreads[0]));
        table.add_in("us", &workload, "kiln program, device time", Percentiles::median(&spreads[1]));
    }
    Ok(())
}

/// A program and how it is launched.
struct Case {
    program: Program,
    grid: Dim3,
    /// Elements of each buffer, all of them `f32`; the last is written.
    counts: Vec<u64>,
    /// The bits of the only scalar.
    scalar: u64,
}

impl Case {
    fn written(&self) -> usize {
        self.counts.len() - 1
    }
}

fn saxpy(count: u64) -> Result<Case, Failure> {
    let program = Program::build("saxpy", |k| {
        let x = k.input::<f32>("x");
        let y = k.in_out::<f32>("y").like(x);
        let a = k.scalar::<f32>("a");
        let i = k.global_x();
        y.store(i, a.mul_add(x.load(i), y.load(i)));
    })?;
    let grid = Dim3::from(count.div_ceil(256) as u32);
    Ok(Case { program, grid, counts: vec![count; 2], scalar: u64::from(1.5f32.to_bits()) })
}

/// The same with four elements for each thread, which become accesses of 16 bytes.
fn saxpy_of_four(count: u64) -> Result<Case, Failure> {
    let program = Program::build("saxpy4", |k| {
        let x = k.input::<f32>("x");
        let y = k.in_out::<f32>("y").like(x);
        let a = k.scalar::<f32>("a");
        let first = k.global_x() * 4;
        let sums = [0u64, 1, 2, 3].map(|at| a.mul_add(x.load(first + at), y.load(first + at)));
        for (at, sum) in (0u64..).zip(sums) {
            y.store(first + at, sum);
        }
    })?;
    let grid = Dim3::from(count.div_ceil(4 * 256) as u32);
    Ok(Case { program, grid, counts: vec![count; 2], scalar: u64::from(1.5f32.to_bits()) })
}

/// A product of square matrices through tiles in shared memory.
fn matrix(rows: u64) -> Result<Case, Failure> {
    let program = Program::build("matrix", |k| {
        let (a, b) = (k.input::<f32>("a"), k.input::<f32>("b"));
        let c = k.in_out::<f32>("c");
        let n = k.scalar::<u32>("n");
        k.block([TILE, TILE, 1]);
        let elements = u64::from(TILE * TILE);
        let (left, right) =
            (k.shared::<f32>("left", elements).raw(), k.shared::<f32>("right", elements).raw());
        let (x, y) = (k.thread(Axis::X), k.thread(Axis::Y));
        let row = k.block_index(Axis::Y) * TILE + y;
        let column = k.block_index(Axis::X) * TILE + x;
        let sum = k.var(0.0f32);
        k.for_(0u32, n / TILE, |tile| {
            left.store(y * TILE + x, a.load(row * n + tile * TILE + x));
            right.store(y * TILE + x, b.load((tile * TILE + y) * n + column));
            k.barrier();
            k.for_(0u32, TILE, |at| {
                sum.set(left.load(y * TILE + at).mul_add(right.load(at * TILE + x), sum.get()));
            });
            k.barrier();
        });
        c.store(row * n + column, sum.get());
    })?;
    let blocks = (rows / u64::from(TILE)) as u32;
    Ok(Case { program, grid: Dim3::from((blocks, blocks)), counts: vec![rows * rows; 3], scalar: rows })
}

/// A device with the buffers of a case.
struct Stage {
    driver: Arc<dyn Driver>,
    stream: StreamId,
    buffers: Vec<DeviceMemory>,
    /// What a launch of it is given, packed.
    arguments: Vec<u8>,
}

impl Stage {
    /// Buffers with small numbers, so that sums stay exact enough to differ in every bit that matters.
    fn new(driver: Arc<dyn Driver>, case: &Case) -> Result<Self, Failure> {
        let stream = driver.create_stream(StreamRequest::New { priority: 0 })?;
        let mut stage = Self { driver, stream, buffers: Vec::new(), arguments: Vec::new() };
        for count in &case.counts {
            let buffer = stage.driver.allocate(MemoryRequest::Direct { bytes: count * 4 })?;
            stage.buffers.push(buffer);
            stage.reset(case, stage.buffers.len() - 1)?;
        }
        let layout = case.program.emit(stage.target()?).layout;
        stage.arguments = layout.pack(|kind| match kind {
            EntryParameterKind::Pointer(id) => stage.buffers[id.0 as usize].address.0,
            EntryParameterKind::Length(id) => case.counts[id.0 as usize],
            EntryParameterKind::Scalar(_) => case.scalar,
            EntryParameterKind::Status | EntryParameterKind::GridBarrier => 0,
        });
        Ok(stage)
    }

    /// Gives a buffer its first contents again.
    fn reset(&self, case: &Case, at: usize) -> Result<(), Failure> {
        let number = |i: u64| ((i * 7 + at as u64 * 3) % 61) as f32 / 8.0 - 3.0;
        let bytes: Vec<u8> = (0..case.counts[at]).flat_map(|i| number(i).to_le_bytes()).collect();
        let host = self.driver.allocate_host(bytes.len() as u64)?;
        if !host.write(0, &bytes) {
            return Err("the host block is too short".into());
        }
        self.driver.upload(self.stream, &host, self.buffers[at].id.into(), bytes.len() as u64)?;
        self.driver.synchronize(self.stream)?;
        self.driver.destroy(host.id().into())?;
        Ok(())
    }

    fn read(&self, at: usize) -> Result<Vec<u8>, Failure> {
        let buffer = self.buffers[at];
        let host = self.driver.allocate_host(buffer.bytes)?;
        self.driver.download(self.stream, buffer.id.into(), &host, buffer.bytes)?;
        self.driver.synchronize(self.stream)?;
        let mut bytes = vec![0; buffer.bytes as usize];
        if !host.read(0, &mut bytes) {
            return Err("the host block is too short".into());
        }
        self.driver.destroy(host.id().into())?;
        Ok(bytes)
    }

    fn load(&self, image: &Image<'_>, case: &Case) -> Result<FunctionId, Failure> {
        let module = self.driver.load(image)?;
        Ok(self.driver.function(module, &case.program.name)?.id)
    }

    fn target(&self) -> Result<PtxTarget, Failure> {
        let capability = self.driver.info().capability;
        let target = PtxTarget::for_device(capability.major * 10 + capability.minor);
        Ok(target.ok_or("the device is too old")?)
    }

    fn load_program(&self, case: &Case) -> Result<FunctionId, Failure> {
        self.load(&Image::Ptx(&case.program.emit(self.target()?).text), case)
    }

    fn launch(&self, case: &Case, function: FunctionId) -> Result<(), Failure> {
        let [x, y, z] = case.program.block;
        let launch = LaunchCommand {
            function,
            grid: case.grid,
            block: Dim3::new(x, y, z),
            cluster: None,
            dynamic_shared_bytes: 0,
            cooperative: false,
            arguments: &self.arguments,
            declared: None,
            // SAFETY: program and C stay inside of the buffers, whose counts they are given, and take the same parameters.
            vouched: unsafe { Vouched::new() },
        };
        self.driver.submit(self.stream, &Command::Launch(launch))?;
        Ok(())
    }

    /// Runs both subjects on the same contents; an error if they differ.
    fn compare(&self, case: &Case, subjects: [FunctionId; 2]) -> Result<(), Failure> {
        let mut results = Vec::new();
        for subject in subjects {
            self.reset(case, case.written())?;
            self.launch(case, subject)?;
            results.push(self.read(case.written())?);
        }
        match results.windows(2).all(|pair| pair[0] == pair[1]) {
            true => Ok(()),
            false => {
                Err(format!("{}: the program and CUDA C give different results", case.program.name).into())
            }
        }
    }

    /// Microseconds of one launch on the device. Another one runs ahead of it, so that the device never waits for the host
    /// between the events.
    fn timed(&self, case: &Case, subject: FunctionId) -> Result<f64, Failure> {
        let [before, after] = [EventRequest::Timed; 2].map(|request| self.driver.create_event(request));
        let (before, after) = (before?, after?);
        self.launch(case, subject)?;
        self.driver.submit(self.stream, &Command::Signal(before))?;
        self.launch(case, subject)?;
        self.driver.submit(self.stream, &Command::Signal(after))?;
        self.driver.synchronize(self.stream)?;
        let elapsed = self.driver.elapsed(before, after)?;
        self.driver.destroy(before.into())?;
        self.driver.destroy(after.into())?;
        Ok(elapsed.as_secs_f64() * 1e6)
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = self.driver.synchronize(self.stream);
        for buffer in &self.buffers {
            let _ = self.driver.free(buffer.id, None);
        }
        let _ = self.driver.destroy(self.stream.into());
    }
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        reason = "a test stops at the first surprise"
    )]

    use kiln_ir::Interpreter;
    use kiln_sim::{Machine, MachineConfig, PtxEngine};

    use super::*;

    /// Small ones, one of them not a multiple of four.
    fn cases() -> [Case; 3] {
        [saxpy(1003).unwrap(), saxpy_of_four(1003).unwrap(), matrix(64).unwrap()]
    }

    #[test]
    fn the_programs_do_what_the_interpreter_says_on_the_simulated_device() {
        let machine = Machine::new(MachineConfig::seeded(1).engine(Arc::new(PtxEngine::default())));
        for case in cases() {
            let stage = Stage::new(machine.device(0).unwrap(), &case).unwrap();
            let mut buffers: Vec<Vec<u8>> =
                (0..case.counts.len()).map(|at| stage.read(at).unwrap()).collect();
            stage.launch(&case, stage.load_program(&case).unwrap()).unwrap();
            let scalar = kiln_ir::Literal::new(case.program.scalars[0].ty, case.scalar);
            let grid = [case.grid.x, case.grid.y, case.grid.z];
            Interpreter::new(grid).run(&case.program, &[scalar], &mut buffers).unwrap();
            assert!(stage.read(case.written()).unwrap() == buffers[case.written()], "{}", case.program.name);
        }
        assert!(machine.findings().is_empty(), "{:#?}", machine.findings());
    }

    #[test]
    fn cuda_c_gives_the_same_on_the_simulated_device() {
        let Ok(nvrtc) = Nvrtc::load() else { return };
        let machine = Machine::new(MachineConfig::seeded(1).engine(Arc::new(PtxEngine::default())));
        let driver = machine.device(0).unwrap();
        let target = nvrtc.target_for(driver.info().capability).unwrap();
        let compiled = nvrtc
            .compile(&CudaSource::new("hand_written_kernels.cu", SOURCE), &CompileOptions::new(target))
            .unwrap();
        for case in cases() {
            let stage = Stage::new(driver.clone(), &case).unwrap();
            let c = stage.load(&Image::Ptx(&compiled.ptx), &case).unwrap();
            stage.compare(&case, [c, stage.load_program(&case).unwrap()]).unwrap();
        }
        assert!(machine.findings().is_empty(), "{:#?}", machine.findings());
    }
}

//! Runs programs on a device, through the driver interface, many of them in one module and one submission.
//!
//! Buffers lie in one block of memory with a margin around each, and begin wherever an element may begin. What a program
//! writes into a margin is a finding, on a GPU too, which would not see it by itself.

use std::ops::Range;
use std::sync::Arc;

use kiln_driver::{
    Command, DeviceMemory, Dim3, Driver, DriverExt, HostBlock, Image, LaunchCommand, MemoryRequest, ModuleId,
    StreamId, StreamRequest, Vouched,
};
use kiln_ir::{Emitted, EntryParameterKind, Program, PtxTarget, STATUS_BYTES, TrapStatus};

use super::{Launch, Left};

/// Bytes of the block that all buffers of one run lie in.
const ARENA_BYTES: usize = 4 << 20;
/// Bytes between buffers, at least.
const MARGIN_BYTES: usize = 64;
/// What is in the margins.
const UNTOUCHED: u8 = 0xA5;

/// A device with a stream and memory.
pub(crate) struct Device {
    driver: Arc<dyn Driver>,
    stream: StreamId,
    arena: DeviceMemory,
    host: HostBlock,
}

/// A program and a launch of it.
pub(crate) type Job<'a> = (&'a Program, &'a Launch);

impl Device {
    pub(crate) fn over(driver: Arc<dyn Driver>) -> Self {
        let stream = driver.create_stream(StreamRequest::New { priority: 0 }).unwrap();
        let arena = driver.allocate(MemoryRequest::Direct { bytes: ARENA_BYTES as u64 }).unwrap();
        let host = driver.allocate_host(ARENA_BYTES as u64).unwrap();
        Self { driver, stream, arena, host }
    }

    /// The best target of the device.
    pub(crate) fn target(&self) -> PtxTarget {
        let capability = self.driver.info().capability;
        PtxTarget::for_device(capability.major * 10 + capability.minor).unwrap()
    }

    /// Runs jobs as PTX for a target; what each left, or what went wrong with all of them.
    pub(crate) fn run(&self, jobs: &[Job<'_>], target: PtxTarget) -> Result<Vec<Left>, String> {
        let programs: Vec<Program> = (0..).zip(jobs).map(|(at, job)| renamed(job.0, at)).collect();
        let emitted: Vec<Emitted> = programs.iter().map(|program| program.emit(target)).collect();
        let module = self.load(&emitted)?;
        let done = self.launch_all(jobs, &programs, &emitted, module);
        self.driver.destroy(module.into()).map_err(|error| error.to_string())?;
        done
    }

    /// One module of all programs; if it is refused, the program that is.
    fn load(&self, emitted: &[Emitted]) -> Result<ModuleId, String> {
        let refused = match self.driver.load(&Image::Ptx(&joined(emitted))) {
            Ok(module) => return Ok(module),
            Err(error) => error,
        };
        for one in emitted {
            match self.driver.load(&Image::Ptx(&one.text)) {
                Ok(module) => self.driver.destroy(module.into()).map_err(|error| error.to_string())?,
                Err(error) => return Err(format!("{error}\n{}", one.text)),
            }
        }
        Err(format!("all together are refused, although each is accepted: {refused}"))
    }

    fn launch_all(
        &self,
        jobs: &[Job<'_>],
        programs: &[Program],
        emitted: &[Emitted],
        module: ModuleId,
    ) -> Result<Vec<Left>, String> {
        let mut image = Vec::new();
        let places: Vec<Places> = jobs.iter().map(|job| Places::lay(&mut image, *job)).collect();
        image.resize(image.len() + MARGIN_BYTES, UNTOUCHED);
        if image.len() > ARENA_BYTES || !self.host.write(0, &image) {
            return Err(format!("{} bytes do not fit; run fewer programs at once", image.len()));
        }
        let say = |error: kiln_driver::Error| error.to_string();
        let bytes = image.len() as u64;
        self.driver.upload(self.stream, &self.host, self.arena.id.into(), bytes).map_err(say)?;
        for (at, (program, launch)) in jobs.iter().enumerate() {
            let function = self.driver.function(module, &programs[at].name).map_err(say)?;
            let arguments = places[at].arguments(program, launch, &emitted[at], self.arena.address.0);
            let [grid, block] = [launch.grid, program.block].map(|[x, y, z]| Dim3::new(x, y, z));
            let command = Command::Launch(LaunchCommand {
                function: function.id,
                grid,
                block,
                cluster: None,
                dynamic_shared_bytes: launch.dynamic_shared_bytes,
                cooperative: emitted[at].cooperative,
                arguments: &arguments,
                declared: None,
                // SAFETY: a verified program reaches nothing but its buffers, which lie in the arena and are as long as
                // the arguments say; if that were not so, this test is here to show it.
                vouched: unsafe { Vouched::new() },
            });
            self.driver.submit(self.stream, &command).map_err(say)?;
        }
        self.driver.download(self.stream, self.arena.id.into(), &self.host, bytes).map_err(say)?;
        self.driver.synchronize(self.stream).map_err(say)?;
        let mut after = vec![0; image.len()];
        assert!(self.host.read(0, &mut after), "the host block is as long as the arena");
        places.iter().zip(jobs).map(|(places, job)| places.left(&image, &after, job.0)).collect()
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        let _ = self.driver.synchronize(self.stream);
        let _ = self.driver.free(self.arena.id, None);
        let _ = self.driver.destroy(self.host.id().into());
        let _ = self.driver.destroy(self.stream.into());
    }
}

/// Where the buffers of a job lie in the arena.
struct Places {
    buffers: Vec<Range<usize>>,
    /// Offset of the status words, and behind them the word of the grid barrier.
    status: usize,
    /// Everything that belongs to this job, margins included.
    all: Range<usize>,
}

impl Places {
    /// Adds what a job needs to an image of the arena.
    fn lay(image: &mut Vec<u8>, (program, launch): Job<'_>) -> Self {
        let first = image.len();
        let mut buffers = Vec::new();
        for (at, (buffer, bytes)) in program.buffers.iter().zip(&launch.buffers).enumerate() {
            let start = (image.len() + MARGIN_BYTES).next_multiple_of(16);
            let start = start + at % 5 * buffer.element.bytes() as usize;
            image.resize(start, UNTOUCHED);
            image.extend(bytes);
            buffers.push(start..image.len());
        }
        let status = (image.len() + MARGIN_BYTES).next_multiple_of(16);
        image.resize(status, UNTOUCHED);
        image.resize(status + STATUS_BYTES as usize + 8, 0);
        Self { buffers, status, all: first..image.len() }
    }

    fn arguments(&self, program: &Program, launch: &Launch, emitted: &Emitted, base: u64) -> Vec<u8> {
        emitted.layout.pack(|kind| match kind {
            EntryParameterKind::Pointer(id) => base + self.buffers[id.0 as usize].start as u64,
            EntryParameterKind::Length(id) => {
                let size = program.buffers[id.0 as usize].element.bytes();
                launch.buffers[id.0 as usize].len() as u64 / size
            }
            EntryParameterKind::Scalar(id) => launch.scalars[id.0 as usize].bits(),
            EntryParameterKind::Status => base + self.status as u64,
            EntryParameterKind::GridBarrier => base + self.status as u64 + STATUS_BYTES,
        })
    }

    /// What is left of a job in the arena.
    fn left(&self, before: &[u8], after: &[u8], program: &Program) -> Result<Left, String> {
        let words = &after[self.status..self.status + STATUS_BYTES as usize];
        if let TrapStatus::Trapped { code, thread, block } = TrapStatus::read(words.try_into().unwrap()) {
            return Ok(Left::Trap { code, thread, block });
        }
        let is_inside =
            |at: usize| self.buffers.iter().any(|buffer| buffer.contains(&at)) || at >= self.status;
        let stray = self.all.clone().find(|at| !is_inside(*at) && before[*at] != after[*at]);
        match stray {
            Some(at) => {
                Err(format!("byte {at} beside the buffers {:?} was written\n{program}", self.buffers))
            }
            None => {
                Ok(Left::Buffers(self.buffers.iter().map(|place| after[place.clone()].to_vec()).collect()))
            }
        }
    }
}

/// The same program with a name that is its own in a module of many.
fn renamed(program: &Program, at: usize) -> Program {
    let mut draft = program.clone().into_draft();
    draft.name = format!("{}_{at}", draft.name);
    for shared in &mut draft.shared {
        shared.name = format!("{}_{at}", shared.name);
    }
    Program::new(draft).unwrap()
}

/// One module of several that are for the same target: the newest version that one of them needs, and all bodies.
fn joined(emitted: &[Emitted]) -> String {
    let parts: Vec<(&str, &str)> = emitted.iter().map(|one| one.text.split_once("\n\n").unwrap()).collect();
    let version = |header: &str| {
        let numbers = header.lines().next().unwrap().trim_start_matches(".version ");
        let (major, minor) = numbers.split_once('.').unwrap();
        (major.parse::<u32>().unwrap(), minor.parse::<u32>().unwrap())
    };
    let header = parts.iter().map(|(header, _)| *header).max_by_key(|header| version(header)).unwrap();
    let bodies: Vec<&str> = parts.iter().map(|(_, body)| *body).collect();
    format!("{header}\n\n{}", bodies.join("\n"))
}

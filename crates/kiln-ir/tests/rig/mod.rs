//! Runs a program on the interpreter and, as PTX, on the executor of kiln-ptx.

#![allow(dead_code, reason = "every test uses a part of it")]

pub(crate) mod compare;
pub(crate) mod device;
pub(crate) mod golden;
pub(crate) mod ptxas;
pub(crate) mod run_line;

use kiln_ir::{
    EntryParameterKind, InterpretError, Interpreter, Literal, Program, PtxTarget, STATUS_BYTES, ThreadOrder,
    TrapStatus,
};
use kiln_ptx::PtxModule;
use kiln_ptx::exec::{self, LaunchShape, Options, SimpleMemory};

/// A launch.
#[derive(Clone, Debug)]
pub(crate) struct Launch {
    pub(crate) grid: [u32; 3],
    pub(crate) dynamic_shared_bytes: u32,
    pub(crate) scalars: Vec<Literal>,
    pub(crate) buffers: Vec<Vec<u8>>,
}

/// What a launch left behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    Buffers(Vec<Vec<u8>>),
    Trap { code: u32, thread: u32, block: u64 },
}

/// Interprets a launch; what it left and how many accesses were out_of_range.
pub(crate) fn interpret(program: &Program, launch: &Launch, order: ThreadOrder) -> (Left, u64) {
    let mut buffers = launch.buffers.clone();
    let how = Interpreter {
        order,
        dynamic_shared_bytes: launch.dynamic_shared_bytes,
        step_limit: 1 << 26,
        ..Interpreter::new(launch.grid)
    };
    match how.run(program, &launch.scalars, &mut buffers) {
        Ok(outcome) => (Left::Buffers(buffers), outcome.out_of_range.total()),
        Err(InterpretError::Trap { code, block, thread }) => {
            let linear = |at: [u32; 3], size: [u32; 3]| {
                let ([x, y, z], [width, height, _]) = (at.map(u64::from), size.map(u64::from));
                x + width * (y + height * z)
            };
            let thread = linear(thread, program.block) as u32;
            (Left::Trap { code, thread, block: linear(block, launch.grid) }, 0)
        }
        Err(error) => panic!("{error}\n{program}"),
    }
}

/// Emits a program and executes its PTX; what the launch left, or what went wrong.
pub(crate) fn simulate(
    program: &Program,
    launch: &Launch,
    target: PtxTarget,
    seed: u64,
) -> Result<Left, String> {
    let emitted = program.emit(target);
    let module = PtxModule::parse(&emitted.text).map_err(|error| format!("{error}\n{}", emitted.text))?;
    let entry = exec::ExecProgram::new(module).entry(&program.name).ok_or("no entry")?;
    let mut memory = SimpleMemory::new();
    let addresses: Vec<u64> = launch.buffers.iter().map(|bytes| memory.allocate_with(bytes)).collect();
    let status = memory.allocate_with(&[0; STATUS_BYTES as usize]);
    let barrier = memory.allocate_with(&[0; 8]);
    let arguments = emitted.layout.pack(|kind| match kind {
        EntryParameterKind::Pointer(id) => addresses[id.0 as usize],
        EntryParameterKind::Length(id) => {
            let size = program.buffers[id.0 as usize].element.bytes();
            launch.buffers[id.0 as usize].len() as u64 / size
        }
        EntryParameterKind::Scalar(id) => launch.scalars[id.0 as usize].bits(),
        EntryParameterKind::Status => status,
        EntryParameterKind::GridBarrier => barrier,
    });
    let shape = LaunchShape {
        grid: launch.grid,
        block: program.block,
        dynamic_shared_bytes: launch.dynamic_shared_bytes,
        cooperative: emitted.cooperative,
        cluster: None,
        non_portable_cluster: false,
    };
    let options = Options { seed, step_limit: 1 << 24, ..Options::default() };
    let outcome =
        entry.launch(&shape, &arguments, &[], &memory, &options).map_err(|error| error.to_string())?;
    let words = memory.read(status, STATUS_BYTES).ok_or("no status")?;
    if let TrapStatus::Trapped { code, thread, block } =
        TrapStatus::read(&words.try_into().map_err(|_| "status")?)
    {
        return Ok(Left::Trap { code, thread, block });
    }
    if !outcome.is_clean() {
        let findings: Vec<String> = outcome.findings.iter().map(ToString::to_string).collect();
        return Err(format!("{:?}\n{}\n{}", outcome.fault, findings.join("\n"), emitted.text));
    }
    let read =
        |(address, bytes): (&u64, &Vec<u8>)| memory.read(*address, bytes.len() as u64).unwrap_or_default();
    Ok(Left::Buffers(addresses.iter().zip(&launch.buffers).map(read).collect()))
}

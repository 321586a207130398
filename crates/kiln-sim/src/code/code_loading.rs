//! Loads modules, looks up kernels and variables, and computes occupancy.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use kiln_driver::{
    Code, DeviceAddress, DeviceMemory, Error, Function, FunctionId, Image, Limits, ModuleId, Object,
    Occupancy, Protection, Refusal, Result,
};
use kiln_operation::{ABORT, BRING, CommunicatorRank, DEPARTURE, FOLD, Operation, OperationError};

use crate::check::access_origin::Action;
use crate::code::code_engine::{CompileError, CompiledModule, Relocate, SimVariable};
use crate::code::cpu_libraries::CpuOperation;
use crate::code::kernel::SimKernel;
use crate::code::machine_code;
use crate::code::occupancy::occupancy;
use crate::collective::abort_kernel::AbortKernel;
use crate::collective::bring_kernel::BringKernel;
use crate::collective::collective_kernel::CollectiveKernel;
use crate::collective::fold_kernel::FoldKernel;
use crate::device::objects::{Loaded, LoadedFunction, Module, Objects, Origin, Users};
use crate::fault_plan::PlannedFault;
use crate::schedule::machine_core::Core;
use crate::schedule::machine_state::State;

/// Algorithms that are proposed for a matrix product. All of them do the same.
const MATMUL_ALGORITHMS: u64 = 2;

impl Core {
    pub(crate) fn load(&self, objects: &Objects, image: &Image<'_>) -> Result<ModuleId> {
        const CALL: &str = "load";
        let device = objects.info.ordinal;
        self.enter(device, CALL)?.count_load(device)?;
        let compiled = self.compile(objects, image)?;
        let communicator = match image {
            Image::Communicator(text) => Some(self.join(CALL, device, text)?),
            _ => None,
        };
        let limit = objects.info.limits.max_threads_per_block;
        let kernels: BTreeMap<Arc<str>, Loaded> = compiled
            .kernels
            .into_iter()
            .map(|(name, kernel)| loaded(&name, kernel, limit))
            .map(|loaded| (loaded.name.clone(), loaded))
            .collect();
        let mut state = self.lock();
        let variables = state.place_variables(objects, &compiled.variables)?;
        let globals: Arc<[DeviceAddress]> = variables.iter().map(|memory| memory.address).collect();
        if let Some(relocate) = &compiled.relocate {
            state.write_relocated(device, &globals, relocate);
        }
        let names = compiled.variables.into_iter().map(|variable| variable.name);
        let variables = names.zip(variables.iter().map(|memory| memory.id)).collect();
        let users = Arc::new(Mutex::new(Users::default()));
        let refused = compiled.refused.into_iter().collect();
        let functions = Mutex::default();
        let module = Module { kernels, refused, functions, variables, globals, users, communicator };
        objects.modules.insert(|_| module).map(|(id, _)| id)
    }

    pub(crate) fn function(&self, objects: &Objects, id: ModuleId, name: &str) -> Result<Function> {
        const CALL: &str = "function";
        let _state = self.enter(objects.info.ordinal, CALL)?;
        let module = objects.modules.find(CALL, id)?;
        let collective = match module.communicator {
            Some(rank) => Some(collective(CALL, rank, name, &objects.info.limits)?),
            None => None,
        };
        let Some(loaded) = collective.as_ref().or_else(|| module.kernels.get(name)) else {
            if let Some(CompileError { code, log }) = module.refused.get(name) {
                return Err(Error::refused(CALL, Refusal::Image { code: Some(*code), log: log.clone() }));
            }
            let known = module.kernels.keys().map(ToString::to_string).collect();
            return Err(not_found(CALL, "kernel", name, id, known));
        };
        let mut functions = module.functions.lock().unwrap_or_else(PoisonError::into_inner);
        let attributes = loaded.attributes.clone();
        if let Some(id) = functions.get(name) {
            return Ok(Function { id: *id, attributes });
        }
        let make = |_| LoadedFunction {
            loaded: loaded.clone(),
            globals: module.globals.clone(),
            users: module.users.clone(),
        };
        let (id, _) = objects.functions.insert(make)?;
        functions.insert(name.into(), id);
        Ok(Function { id, attributes })
    }

    pub(crate) fn global(&self, objects: &Objects, id: ModuleId, name: &str) -> Result<DeviceMemory> {
        const CALL: &str = "global";
        let mut state = self.enter(objects.info.ordinal, CALL)?;
        let module = objects.modules.find(CALL, id)?;
        if let Some(rank) = module.communicator.as_ref().filter(|_| name == DEPARTURE) {
            state.communicators.depart(rank);
            state.note_movement();
            self.notify();
        }
        let found = module.variables.iter().find(|(known, _)| known == name);
        let Some((_, memory)) = found else {
            let known = module.variables.iter().map(|(known, _)| known.clone()).collect();
            return Err(not_found(CALL, "variable", name, id, known));
        };
        let block = objects.memory.find(CALL, *memory)?;
        Ok(DeviceMemory { id: *memory, address: DeviceAddress(block.address), bytes: block.bytes })
    }

    pub(crate) fn occupancy(
        &self,
        objects: &Objects,
        function: FunctionId,
        block_threads: u32,
        dynamic_shared_bytes: u32,
    ) -> Result<Occupancy> {
        const CALL: &str = "occupancy";
        let _state = self.enter(objects.info.ordinal, CALL)?;
        let function = objects.functions.find(CALL, function)?;
        let attributes = &function.loaded.attributes;
        occupancy(&objects.info.limits, attributes, block_threads, dynamic_shared_bytes).ok_or_else(|| {
            let what = format!(
                "no multiprocessor can hold a block of {block_threads} threads with {dynamic_shared_bytes} bytes of shared memory"
            );
            Error::invalid(CALL, what, "use a smaller block")
        })
    }

    pub(crate) fn unload(&self, objects: &Objects, id: ModuleId) -> Result<()> {
        const CALL: &str = "destroy";
        let device = objects.info.ordinal;
        let mut state = self.enter(device, CALL)?;
        let module = objects.modules.remove(CALL, id)?;
        let users = module.users.lock().unwrap_or_else(PoisonError::into_inner);
        state.check_unused(device, Object::Module(id), &users);
        let functions = module.functions.lock().unwrap_or_else(PoisonError::into_inner);
        for function in functions.values() {
            objects.functions.remove(CALL, *function)?;
        }
        if let Some(rank) = &module.communicator {
            state.communicators.leave(rank);
            state.note_movement();
            self.notify();
        }
        for (_, memory) in &module.variables {
            let block = objects.memory.remove(CALL, *memory)?;
            let death = state.host_mark(device, Action::Free(*memory));
            state.free_now(device, &block, &death);
        }
        Ok(())
    }

    fn compile(&self, objects: &Objects, image: &Image<'_>) -> Result<CompiledModule> {
        const CALL: &str = "load";
        match image {
            Image::HostKernels(name) => {
                let library = self.config.libraries.iter().find(|library| library.name() == *name);
                let library = library.ok_or_else(|| {
                    let known: Vec<_> = self.config.libraries.iter().map(|library| library.name()).collect();
                    let log = format!("no library `{name}` is registered; there are: {}", known.join(", "));
                    Error::refused(CALL, Refusal::Image { code: Some(Code::FILE_NOT_FOUND), log })
                })?;
                let kernels =
                    library.kernels().iter().map(|(name, kernel)| (name.to_string(), kernel.clone()));
                Ok(CompiledModule { kernels: kernels.collect(), ..CompiledModule::default() })
            }
            Image::Library(text) => {
                let operation: Operation = text.parse().map_err(|error: OperationError| {
                    Error::refused(CALL, Refusal::Image { code: None, log: error.to_string() })
                })?;
                if let Operation::Matmul(matmul) = &operation
                    && matmul.algorithm >= MATMUL_ALGORITHMS
                {
                    let why = format!(
                        "it proposes {MATMUL_ALGORITHMS} algorithms for `{operation}`; 0 is its choice"
                    );
                    return Err(Error::refused(CALL, Refusal::Library { library: "simulated BLAS", why }));
                }
                let kernel: Arc<dyn SimKernel> = CpuOperation::new(operation);
                let kernels = vec![(operation.name().to_owned(), kernel)];
                Ok(CompiledModule { kernels, ..CompiledModule::default() })
            }
            Image::Communicator(_) => Ok(CompiledModule::default()),
            Image::CommunicatorId { id } => {
                let mut state = self.lock();
                let seed = state.seed;
                // A cell that is full already stays as it is.
                let _ = id.set(state.communicators.new_id(seed).bytes().to_vec());
                Ok(CompiledModule::default())
            }
            Image::Ptx(text) => self.compile_ptx(objects, text),
            Image::PtxToKeep { text, machine_code } => {
                let compiled = self.compile_ptx(objects, text)?;
                // A cell that is full already stays as it is.
                let _ = machine_code.set(machine_code::assemble(text, objects.info.capability));
                Ok(compiled)
            }
            Image::Cubin(code) => match machine_code::disassemble(CALL, code, objects.info.capability)? {
                Some(ptx) => self.compile_ptx(objects, ptx),
                None => Err(unknown_kind(image)),
            },
            _ => Err(unknown_kind(image)),
        }
    }

    /// Makes a device the place of a rank.
    fn join(&self, call: &'static str, device: u32, text: &str) -> Result<CommunicatorRank> {
        let rank: CommunicatorRank = text.parse().map_err(|error: OperationError| {
            Error::refused(call, Refusal::Image { code: None, log: error.to_string() })
        })?;
        let mut state = self.lock();
        state.communicators.join(call, device, &rank)?;
        state.note_movement();
        self.notify();
        Ok(rank)
    }

    fn compile_ptx(&self, objects: &Objects, text: &str) -> Result<CompiledModule> {
        const CALL: &str = "load";
        const WHY: &str =
            "this machine has no engine; give its configuration `.engine(Arc::new(PtxEngine::default()))`";
        let engine = self.config.engine.as_ref().ok_or_else(|| Error::unsupported(CALL, "PTX", WHY))?;
        engine
            .compile(text, &objects.info)
            .map_err(|error| Error::refused(CALL, Refusal::Image { code: Some(error.code), log: error.log }))
    }
}

impl State {
    fn count_load(&mut self, device: u32) -> Result<()> {
        let counts = &mut self.device(device).counts;
        counts.loads += 1;
        let number = counts.loads;
        let planned = self.faults.meet(device, |fault| match fault {
            PlannedFault::LoadFails { load, code, log } if *load == number => Some((*code, log.clone())),
            _ => None,
        });
        match planned {
            Some((code, log)) => Err(Error::refused("load", Refusal::Image { code: Some(code), log })),
            None => Ok(()),
        }
    }

    fn place_variables(&mut self, objects: &Objects, variables: &[SimVariable]) -> Result<Vec<DeviceMemory>> {
        let mut placed: Vec<DeviceMemory> = Vec::new();
        for variable in variables {
            match self.place_variable(objects, variable) {
                Ok(memory) => placed.push(memory),
                Err(error) => {
                    for memory in placed {
                        let block = objects.memory.remove("load", memory.id)?;
                        let death = self.host_mark(objects.info.ordinal, Action::Free(memory.id));
                        self.free_now(objects.info.ordinal, &block, &death);
                    }
                    return Err(error);
                }
            }
        }
        Ok(placed)
    }

    /// Writes what variables hold now that all of them have addresses.
    fn write_relocated(&mut self, device: u32, globals: &[DeviceAddress], relocate: &Relocate) {
        let addresses: Vec<u64> = globals.iter().map(|address| address.0).collect();
        for (at, address) in addresses.iter().enumerate() {
            let contents = relocate(at, &addresses);
            let map = self.device(device).map.clone();
            if let Some(index) = map.index_of(*address) {
                let segment = &map.segments()[index];
                let len = contents.len().min((segment.end - address) as usize);
                let written =
                    segment.physical.bytes.write(segment.place_of(*address) as usize, &contents[..len]);
                debug_assert!(written, "the contents were cut to the variable");
            }
        }
    }

    fn place_variable(&mut self, objects: &Objects, variable: &SimVariable) -> Result<DeviceMemory> {
        let device = objects.info.ordinal;
        let bytes = variable.bytes.max(1);
        let free_bytes = self.device(device).free_bytes();
        if bytes > free_bytes {
            return Err(Error::out_of_memory("load", bytes, Some(free_bytes)));
        }
        let charge = crate::memory::physical_memory::Charge::new(&self.device(device).used_bytes, bytes);
        let born = |state: &mut Self, id| Some(state.host_mark(device, Action::Allocate(id)));
        let memory = self.place("load", objects, bytes, Origin::Variable, Some(charge), born)?;
        let range = memory.address.0..memory.address.0 + bytes;
        for segment in Arc::make_mut(&mut self.device(device).map).overlapping_mut(range) {
            let len = variable.contents.len().min(bytes as usize);
            let written = segment.physical.bytes.write(0, &variable.contents[..len]);
            debug_assert!(written, "the contents were cut to the variable");
            if !variable.writable {
                segment.protection = Protection::Read;
            }
        }
        Ok(memory)
    }
}

fn loaded(name: &str, kernel: Arc<dyn SimKernel>, limit: u32) -> Loaded {
    let attributes = kernel.signature().attributes(limit);
    let spans = attributes.parameters.clone().unwrap_or_default().into();
    Loaded { name: name.into(), kernel, attributes, spans, collective: None, aborts: None }
}

/// The function of a communicator of that name.
fn collective(call: &'static str, rank: CommunicatorRank, name: &str, limits: &Limits) -> Result<Loaded> {
    if name == ABORT {
        let loaded = loaded(name, Arc::new(AbortKernel::default()), limits.max_threads_per_block);
        return Ok(Loaded { aborts: Some(rank), ..loaded });
    }
    if let Some(folded) = name.strip_prefix(FOLD) {
        let kernel = FoldKernel::new(call, rank, folded)?;
        return Ok(loaded(name, kernel, limits.max_threads_per_block));
    }
    if let Some(brought) = name.strip_prefix(BRING) {
        let kernel = BringKernel::new(call, brought)?;
        // What it finds is a mistake in the use of the collective.
        return Ok(loaded(brought, kernel, limits.max_threads_per_block));
    }
    let kernel = CollectiveKernel::new(call, rank, name)?;
    let loaded = loaded(name, kernel.clone(), limits.max_threads_per_block);
    Ok(Loaded { collective: Some(kernel), ..loaded })
}

fn unknown_kind(image: &Image<'_>) -> Error {
    Error::unsupported(
        "load",
        image.name(),
        "a simulated device runs PTX, library operations, collectives and host kernels",
    )
}

fn not_found(
    call: &'static str,
    what: &'static str,
    name: &str,
    module: ModuleId,
    known: Vec<String>,
) -> Error {
    let (name, module) = (name.to_string(), module.to_string());
    Error::refused(call, Refusal::NotFound { what, name, module, known })
}

//! Launches.

use std::ffi::c_uint;

use cudarc::driver::sys;
use kiln_driver::{Code, Command, Dim3, LaunchCommand, Vouched};

use crate::boundary::Answer;
use crate::caller_memory::{In, fetch_slice};
use crate::calls::functions::{Function, function};
use crate::calls::kernel_memory;
use crate::calls::process_state::{ProcessState, state};
use crate::calls::streams::choose;
use crate::handle_table::RawHandle;
use crate::small_values::SmallValues;

/// The structure `CUlaunchConfig`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Configuration {
    grid: [c_uint; 3],
    block: [c_uint; 3],
    shared_bytes: c_uint,
    stream: RawHandle,
    attributes: *const Attribute,
    attribute_count: c_uint,
}

/// The structure `CUlaunchAttribute`, with its kind as a number: a program may give any.
#[repr(C)]
#[derive(Clone, Copy)]
struct Attribute {
    kind: c_uint,
    padding: [u8; 4],
    value: [u32; 16],
}

const _: () = assert!(size_of::<Configuration>() == size_of::<sys::CUlaunchConfig>());
const _: () = assert!(size_of::<Attribute>() == size_of::<sys::CUlaunchAttribute>());

/// Attributes of a launch; more are refused.
const MOST_ATTRIBUTES: usize = 64;
/// Addresses of parameters that are fetched together.
const ADDRESSES_AT_ONCE: usize = 8;
/// Arguments of so many bytes are packed on the stack.
const FEW_BYTES: usize = 256;
/// The keys of `extra`.
const EXTRA_END: usize = 0;
const EXTRA_BUFFER: usize = 1;
const EXTRA_SIZE: usize = 2;

/// A launch, but for its arguments.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) grid: Dim3,
    pub(crate) block: Dim3,
    pub(crate) cluster: Option<Dim3>,
    pub(crate) shared_bytes: c_uint,
    pub(crate) cooperative: bool,
}

fn dim([x, y, z]: [c_uint; 3]) -> Dim3 {
    Dim3::new(x, y, z)
}

/// Writes the packed arguments of a launch, which are so many bytes.
fn pack(function: &Function, (parameters, extra): (In<usize>, In<usize>), packed: &mut [u8]) -> Answer {
    if !extra.is_null() {
        return if parameters.is_null() { from_extra(extra, packed) } else { Err(Code::INVALID_VALUE) };
    }
    let spans = function.below.attributes.parameters.as_deref().unwrap_or_default();
    if parameters.is_null() && !spans.is_empty() {
        return Err(Code::INVALID_VALUE);
    }
    let (mut values, mut place) = (SmallValues::new(), parameters.address());
    for some in spans.chunks(ADDRESSES_AT_ONCE) {
        let mut addresses = [0; ADDRESSES_AT_ONCE];
        let addresses = addresses.get_mut(..some.len()).ok_or(Code::INVALID_VALUE)?;
        values.fetch_addresses(place, addresses)?;
        place = place.wrapping_add(size_of_val(addresses));
        for (span, address) in some.iter().zip(addresses) {
            let range = span.offset as usize..(span.offset + span.bytes) as usize;
            values.fetch(*address, packed.get_mut(range).ok_or(Code::INVALID_VALUE)?)?;
        }
    }
    Ok(())
}

/// Writes the arguments that `extra` names.
fn from_extra(extra: In<usize>, packed: &mut [u8]) -> Answer {
    let (mut buffer, mut size) = (0, 0);
    for pair in 0.. {
        match extra.at(2 * pair)? {
            EXTRA_END => break,
            EXTRA_BUFFER => buffer = extra.at(2 * pair + 1)?,
            EXTRA_SIZE => {
                let mut value = [0; size_of::<usize>()];
                fetch_slice(extra.at(2 * pair + 1)?, &mut value)?;
                size = usize::from_ne_bytes(value);
            }
            _ => return Err(Code::INVALID_VALUE),
        }
        if pair > 2 {
            return Err(Code::INVALID_VALUE);
        }
    }
    // A buffer may be longer than the parameters; what a kernel does not take is not looked at.
    if size < packed.len() {
        return Err(Code::INVALID_VALUE);
    }
    fetch_slice(buffer, packed)
}

/// Whether a grid is made of whole clusters; one without blocks is refused for that.
fn divides(cluster: Dim3, grid: Dim3) -> bool {
    let pairs = [(cluster.x, grid.x), (cluster.y, grid.y), (cluster.z, grid.z)];
    grid.count() == 0 || pairs.iter().all(|(cluster, grid)| *cluster > 0 && grid.is_multiple_of(*cluster))
}

fn launch(
    state: &ProcessState,
    handle: RawHandle,
    stream: RawHandle,
    shape: Shape,
    (parameters, extra): (In<usize>, In<usize>),
) -> Answer {
    let function = function(state, handle)?;
    let chosen = choose(state, stream)?;
    let context = chosen.context()?;
    if context.device != function.device {
        return Err(Code::INVALID_CONTEXT);
    }
    check(state, &function, shape)?;
    // Most kernels have few arguments, which need no memory of the heap.
    let (mut few, mut many) = ([0; FEW_BYTES], Vec::new());
    let arguments: &mut [u8] = match few.get_mut(..function.argument_bytes) {
        Some(few) => few,
        None => {
            many.resize(function.argument_bytes, 0);
            &mut many
        }
    };
    pack(&function, (parameters, extra), arguments)?;
    let spans = kernel_memory::spans(state, &function, arguments);
    let declared = (!spans.is_empty()).then_some(spans.as_slice());
    let command = LaunchCommand { declared, ..command(&function, shape, arguments) };
    context.order()?.get()?.submit(&chosen.choice, &Command::Launch(command))
}

/// The packed arguments of a launch whose shape fits its kernel.
pub(crate) fn checked_arguments(
    state: &ProcessState,
    function: &Function,
    shape: Shape,
    given: (In<usize>, In<usize>),
) -> Answer<Vec<u8>> {
    check(state, function, shape)?;
    let mut packed = vec![0; function.argument_bytes];
    pack(function, given, &mut packed)?;
    Ok(packed)
}

/// An error for a shape that does not fit a kernel.
pub(crate) fn check(state: &ProcessState, function: &Function, shape: Shape) -> Answer {
    if shape.shared_bytes > function.most_dynamic_shared_bytes(state)? {
        return Err(Code::INVALID_VALUE);
    }
    if shape.block.count() > u128::from(function.below.attributes.max_threads_per_block) {
        return Err(Code::INVALID_VALUE);
    }
    if shape.cluster.is_some_and(|cluster| !divides(cluster, shape.grid)) {
        return Err(Code(912));
    }
    Ok(())
}

/// The launch for the device below.
pub(crate) fn command<'a>(function: &Function, shape: Shape, arguments: &'a [u8]) -> LaunchCommand<'a> {
    LaunchCommand {
        function: function.below.id,
        grid: shape.grid,
        block: shape.block,
        cluster: shape.cluster,
        dynamic_shared_bytes: shape.shared_bytes,
        cooperative: shape.cooperative,
        arguments,
        declared: None,
        // SAFETY: a simulated device checks each access of a kernel and reaches no memory but its own, of which Rust has no references. On a GPU the program
        // answers for its kernels, as it does to NVIDIA's library; this library keeps no references to memory that they can reach.
        vouched: unsafe { Vouched::new() },
    }
}

/// Whether a number is that of an attribute that a launch can have; those of CUDA 13.0, which the bindings do not all name.
fn is_of_launches(number: u32) -> bool {
    const SYNCHRONIZATION_POLICY_OF_STREAMS: u32 = 3;
    const PREFERRED_SHARED_MEMORY_CARVEOUT: u32 = 14;
    const NVLINK_UTIL_CENTRIC_SCHEDULING: u32 = 16;
    match number {
        SYNCHRONIZATION_POLICY_OF_STREAMS => false,
        NVLINK_UTIL_CENTRIC_SCHEDULING => true,
        other => other <= PREFERRED_SHARED_MEMORY_CARVEOUT,
    }
}

/// What the attributes of a launch say.
fn with_attributes(mut shape: Shape, configuration: &Configuration) -> Answer<Shape> {
    use sys::CUlaunchAttributeID as A;
    let count = configuration.attribute_count as usize;
    if count > MOST_ATTRIBUTES {
        return Err(Code::INVALID_VALUE);
    }
    for index in 0..count {
        let mut bytes = [0; size_of::<Attribute>()];
        let address = configuration.attributes.addr().wrapping_add(index * size_of::<Attribute>());
        fetch_slice(address, &mut bytes)?;
        let word = |at: usize| {
            let word = bytes.get(at..at + 4).and_then(|word| word.try_into().ok()).unwrap_or([0; 4]);
            u32::from_ne_bytes(word)
        };
        match word(0) {
            kind if kind == A::CU_LAUNCH_ATTRIBUTE_COOPERATIVE as u32 => shape.cooperative = word(8) != 0,
            kind if kind == A::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION as u32 => {
                shape.cluster = Some(Dim3::new(word(8), word(12), word(16)));
            }
            // The others are about speed, or order within the stream that the simulated device keeps anyway.
            kind if is_of_launches(kind) => {}
            _ => return Err(Code::INVALID_VALUE),
        }
    }
    Ok(shape)
}

driver_api! {
    fn cuLaunchKernel | cuLaunchKernel_ptsz (
        function: RawHandle,
        grid_x: c_uint, grid_y: c_uint, grid_z: c_uint,
        block_x: c_uint, block_y: c_uint, block_z: c_uint,
        shared_bytes: c_uint,
        stream: RawHandle,
        parameters: In<usize>,
        extra: In<usize>
    ) {
        let (grid, block) = (Dim3::new(grid_x, grid_y, grid_z), Dim3::new(block_x, block_y, block_z));
        let shape = Shape { grid, block, cluster: None, shared_bytes, cooperative: false };
        launch(state()?, function, stream, shape, (parameters, extra))
    }

    fn cuLaunchCooperativeKernel | cuLaunchCooperativeKernel_ptsz (
        function: RawHandle,
        grid_x: c_uint, grid_y: c_uint, grid_z: c_uint,
        block_x: c_uint, block_y: c_uint, block_z: c_uint,
        shared_bytes: c_uint,
        stream: RawHandle,
        parameters: In<usize>
    ) {
        let (grid, block) = (Dim3::new(grid_x, grid_y, grid_z), Dim3::new(block_x, block_y, block_z));
        let shape = Shape { grid, block, cluster: None, shared_bytes, cooperative: true };
        launch(state()?, function, stream, shape, (parameters, In::null()))
    }

    fn cuLaunchKernelEx | cuLaunchKernelEx_ptsz (
        configuration: In<Configuration>, function: RawHandle, parameters: In<usize>, extra: In<usize>
    ) {
        let state = state()?;
        let configuration = configuration.get()?;
        let shape = Shape {
            grid: dim(configuration.grid),
            block: dim(configuration.block),
            cluster: None,
            shared_bytes: configuration.shared_bytes,
            cooperative: false,
        };
        let shape = with_attributes(shape, &configuration)?;
        launch(state, function, configuration.stream, shape, (parameters, extra))
    }
}

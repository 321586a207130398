//! Scaled dot-product attention.

use kiln_operation::{Attention, AttentionLayout, AttentionMask, Determinism, ElementType, Operation};
use kiln_runtime::{GpuRef, GraphBuilder, NodeId, Stream, Ticket};

use super::tensor::{NetworkElement, dimensions_text};
use crate::Result;
use crate::call_arguments::Argument;
use crate::described::Described;
use crate::error::LibraryError;
use crate::library_call::LibraryCall;
use crate::loaded_operations::LoadedOperations;
use crate::operands::Operands;
use crate::scalar_argument::checked;

/// Workspace at most, unless a call says otherwise.
const WORKSPACE_LIMIT_BYTES: u64 = 256 << 20;

/// Queries, keys, values or results at the start of a buffer, without gaps: sequences, heads, positions, elements of a head.
///
/// It begins at a multiple of 16 bytes, on every device; a buffer does, and a view where it is cut so.
///
/// The positions of a head lie one after the other unless [`positions_first`](Self::positions_first) is said.
#[derive(Debug)]
pub struct AttentionTensor<'a, T: NetworkElement> {
    buffer: &'a GpuRef<T>,
    dimensions: [u64; 4],
    layout: AttentionLayout,
}

impl<T: NetworkElement> Clone for AttentionTensor<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: NetworkElement> Copy for AttentionTensor<'_, T> {}

impl<'a, T: NetworkElement> AttentionTensor<'a, T> {
    /// A tensor of sequences, heads, positions and elements of a head, in this order.
    pub fn new(buffer: &'a GpuRef<T>, dimensions: [usize; 4]) -> Self {
        let dimensions = dimensions.map(|size| size as u64);
        Self { buffer, dimensions, layout: AttentionLayout::HeadsFirst }
    }

    /// The same dimensions, where the heads of a position lie one after the other, as a linear layer leaves them.
    #[must_use]
    pub fn positions_first(self) -> Self {
        Self { layout: AttentionLayout::PositionsFirst, ..self }
    }
}

/// Attention that is being described.
///
/// All tensors have one layout. Values have the dimensions of keys, and results those of queries. A head has a multiple of 8 elements, 128 at most.
///
/// ```
/// use half::f16;
/// use kiln::DeviceRuntime;
/// use kiln_libs::dnn::{AttentionTensor, Dnn};
///
/// let gpu = DeviceRuntime::simulated(1)?;
/// let dnn = Dnn::new(&gpu);
/// let zeros = gpu.upload(&[f16::ZERO; 2 * 64])?;
/// let values: Vec<f16> = (0..2 * 64).map(|at| f16::from_f32(if at < 64 { 1.0 } else { 3.0 })).collect();
/// let (values, result) = (gpu.upload(&values)?, gpu.allocate::<f16>(2 * 64)?);
/// let [q, v, o] = [&zeros, &values, &result].map(|buffer| AttentionTensor::new(buffer, [1, 1, 2, 64]));
/// dnn.attention(q, q, v, o).causal().submit()?;
/// let found = result.download()?;
/// assert_eq!((found[0].to_f32(), found[64].to_f32()), (1.0, 2.0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[must_use = "nothing is computed until `submit` or `record`"]
pub struct AttentionCall<'a, T: NetworkElement> {
    loaded: &'a LoadedOperations,
    /// Queries, keys, values and results.
    tensors: [AttentionTensor<'a, T>; 4],
    scale: Option<f64>,
    mask: AttentionMask,
    determinism: Determinism,
    workspace_limit_bytes: u64,
    stream: Option<&'a Stream>,
}

impl<'a, T: NetworkElement> AttentionCall<'a, T> {
    pub(super) fn new(loaded: &'a LoadedOperations, tensors: [AttentionTensor<'a, T>; 4]) -> Self {
        Self {
            loaded,
            tensors,
            scale: None,
            mask: AttentionMask::None,
            determinism: Determinism::Any,
            workspace_limit_bytes: WORKSPACE_LIMIT_BYTES,
            stream: None,
        }
    }

    /// What scores are multiplied with; `1 / √d` for heads of `d` elements unless something else is said.
    pub fn scale(self, scale: f64) -> Self {
        Self { scale: Some(scale), ..self }
    }

    /// Lets each query see the keys at its own and earlier positions alone; positions are counted from the first query and the first key.
    ///
    /// So with one query and a longer cache of keys, the query sees key 0 alone: use [`causal_bottom_right`](Self::causal_bottom_right) for queries behind a cache.
    pub fn causal(self) -> Self {
        Self { mask: AttentionMask::CausalTopLeft, ..self }
    }

    /// As [`causal`](Self::causal), with positions counted from the last query and the last key: the last query sees all keys, the one before it all but the
    /// last. This is what new queries behind a cache of keys need. There are at most as many queries as keys.
    pub fn causal_bottom_right(self) -> Self {
        Self { mask: AttentionMask::CausalBottomRight, ..self }
    }

    /// Whether equal calls give equal bits.
    pub fn determinism(self, determinism: Determinism) -> Self {
        Self { determinism, ..self }
    }

    /// Workspace at most; 256 MiB unless something else is said.
    pub fn workspace_limit_bytes(self, bytes: u64) -> Self {
        Self { workspace_limit_bytes: bytes, ..self }
    }

    /// The stream to run on. Otherwise it is the home of the result.
    pub fn on(self, stream: &'a Stream) -> Self {
        Self { stream: Some(stream), ..self }
    }

    /// The operation, for [`Tolerance::of`](crate::Tolerance::of) and for messages.
    ///
    /// # Errors
    /// What is wrong with the call.
    pub fn operation(self) -> Result<Operation> {
        self.call().operation()
    }

    /// Loads the operation; see [`LibraryCall::load`].
    ///
    /// # Errors
    /// As for [`LibraryCall::load`].
    pub fn load(self) -> Result<u64> {
        self.call().load()
    }

    /// Queues attention; see [`LibraryCall::submit`].
    ///
    /// # Errors
    /// As for [`LibraryCall::submit`].
    #[track_caller]
    pub fn submit(self) -> Result<Ticket> {
        self.call().submit()
    }

    /// Makes attention a node of a graph; see [`LibraryCall::record`].
    ///
    /// # Errors
    /// As for [`LibraryCall::record`].
    pub fn record(self, graph: &mut GraphBuilder) -> Result<NodeId> {
        self.call().record(graph)
    }

    fn call(self) -> LibraryCall<'a> {
        let call = LibraryCall::new(self.loaded, self.described());
        match self.stream {
            Some(stream) => call.on(stream),
            None => call,
        }
    }

    fn described(&self) -> Result<Described<'a>> {
        let [q, k, v, o] = &self.tensors;
        let refuse = |what, hint| Err(LibraryError::argument(Attention::NAME, what, hint));
        if self.tensors.iter().any(|tensor| tensor.layout != q.layout) {
            let names = self.tensors.each_ref().map(|tensor| tensor.layout.to_string()).join(", ");
            return refuse(format!("tensors in the layouts {names}"), "use one layout for all of them");
        }
        let [batch, heads, queries, head] = q.dimensions;
        let [key_batch, key_heads, keys, key_head] = k.dimensions;
        if v.dimensions != k.dimensions
            || o.dimensions != q.dimensions
            || (key_batch, key_head) != (batch, head)
        {
            let texts = self.tensors.each_ref().map(|tensor| dimensions_text(tensor.dimensions)).join(", ");
            let hint = "give keys and values equal dimensions, results those of queries, and equal numbers of sequences and elements of a head";
            return refuse(format!("queries, keys, values and results of {texts}"), hint);
        }
        if head == 0 {
            let what = format!("`q` is {}", dimensions_text(q.dimensions));
            return refuse(what, "give heads of 1 element or more");
        }
        if keys == 0 || (key_heads == 0 && heads != 0) {
            let what = format!("`k` is {}", dimensions_text(k.dimensions));
            return refuse(what, "give 1 key or more, and 1 head of keys or more");
        }
        let scale = self.scale.unwrap_or_else(|| 1.0 / (head.max(1) as f64).sqrt());
        let scale = checked(Attention::NAME, "scale", ElementType::F32, scale)?;
        let operation = Attention {
            element: T::TYPE,
            layout: q.layout,
            batch,
            heads,
            key_heads,
            queries,
            keys,
            head,
            mask: self.mask,
            order: self.determinism,
            workspace: self.workspace_limit_bytes,
        };
        if batch == 0 || heads == 0 || queries == 0 {
            for (name, tensor) in [("q", q), ("k", k)] {
                check_other_sizes(name, tensor.dimensions)?;
            }
            // The rest must fit as if there were something to do.
            let (heads, key_heads) = if heads == 0 { (1, 1) } else { (heads, key_heads) };
            let (batch, queries) = (batch.max(1), queries.max(1));
            Operation::from(Attention { batch, heads, key_heads, queries, ..operation }).check()?;
            let operands = Operands::of(Attention::NAME).with("q", q.buffer).with("k", k.buffer);
            let operands = operands.with("v", v.buffer).with("o", o.buffer);
            return Described::nothing(self.loaded, operation, &operands);
        }
        let buffers = [q, k, v, o].map(|tensor| Ok(Argument::borrowed(tensor.buffer)));
        Described::new(operation, buffers.into_iter().chain([Ok(Argument::Scalar(scale))]))
    }
}

/// Refuses sizes of a tensor without elements that fit no memory, as its other sizes are.
fn check_other_sizes(name: &str, dimensions: [u64; 4]) -> Result<()> {
    let elements = dimensions.iter().try_fold(1_u64, |elements, size| {
        elements.checked_mul((*size).max(1)).filter(|elements| *elements < 1 << 59)
    });
    if elements.is_some() {
        return Ok(());
    }
    let sizes = dimensions_text(dimensions);
    let what = format!("`{name}` is {sizes}: what is not 0 multiplies to 2^59 elements or more");
    Err(LibraryError::argument(Attention::NAME, what, "use smaller sizes"))
}

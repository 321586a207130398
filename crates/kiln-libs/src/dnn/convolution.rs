//! Convolutions.

use kiln_operation::{Convolution, ConvolutionPass, Determinism, Math, Operation, Spatial};
use kiln_runtime::{GraphBuilder, NodeId, Stream, Ticket};

use super::tensor::{NetworkElement, Tensor, dimensions_text};
use crate::Result;
use crate::blas::{Matrix, without_terms};
use crate::call_arguments::Argument;
use crate::called::Called;
use crate::described::Described;
use crate::error::LibraryError;
use crate::library_call::LibraryCall;
use crate::loaded_operations::LoadedOperations;
use crate::operands::Operands;

/// Workspace at most, unless a call says otherwise.
const WORKSPACE_LIMIT_BYTES: u64 = 256 << 20;

static FORWARD: Called = Called::new("dnn.convolution", "y");
static BACKWARD_DATA: Called = Called::new("dnn.convolution_backward_data", "dx");
static BACKWARD_FILTER: Called = Called::new("dnn.convolution_backward_filter", "dw");

/// A convolution, or one of its gradients, that is being described.
///
/// Without images, channels or filters there is nothing to do where the result has no elements; otherwise it is zero. Filters have the dimensions `[out, channels / groups, height, width]`. Images, filters and results have one layout.
///
/// ```
/// use kiln::DeviceRuntime;
/// use kiln_libs::dnn::{Dnn, Tensor};
///
/// let gpu = DeviceRuntime::simulated(1)?;
/// let dnn = Dnn::new(&gpu);
/// let image = gpu.upload(&[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0])?;
/// let filter = gpu.upload(&[1.0_f32, 0.0, 0.0, -1.0])?;
/// let result = gpu.allocate::<f32>(4)?;
/// let (x, w) = (Tensor::new(&image, [1, 1, 3, 3]), Tensor::new(&filter, [1, 1, 2, 2]));
/// dnn.convolution(x, w, Tensor::new(&result, [1, 1, 2, 2])).submit()?;
/// assert_eq!(result.download()?, [-4.0; 4]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[must_use = "nothing is computed until `submit` or `record`"]
pub struct ConvolutionCall<'a, T: NetworkElement> {
    loaded: &'a LoadedOperations,
    pass: ConvolutionPass,
    /// `x`, `w` and `y`, or gradients in their places.
    tensors: [Tensor<'a, T>; 3],
    padding: Spatial,
    stride: Spatial,
    dilation: Spatial,
    groups: u64,
    math: Math,
    determinism: Determinism,
    workspace_limit_bytes: u64,
    stream: Option<&'a Stream>,
}

fn spatial([height, width]: [usize; 2]) -> Spatial {
    Spatial::new(height as u64, width as u64)
}

impl<'a, T: NetworkElement> ConvolutionCall<'a, T> {
    pub(super) fn new(
        loaded: &'a LoadedOperations,
        pass: ConvolutionPass,
        tensors: [Tensor<'a, T>; 3],
    ) -> Self {
        Self {
            loaded,
            pass,
            tensors,
            padding: Spatial::new(0, 0),
            stride: Spatial::new(1, 1),
            dilation: Spatial::new(1, 1),
            groups: 1,
            math: Math::Ieee,
            determinism: Determinism::Any,
            workspace_limit_bytes: WORKSPACE_LIMIT_BYTES,
            stream: None,
        }
    }

    /// Zeros above and below, and left and right of the image; none unless something else is said.
    pub fn padding(self, rows_and_columns: [usize; 2]) -> Self {
        Self { padding: spatial(rows_and_columns), ..self }
    }

    /// Rows and columns from one position of the filter to the next; 1 unless something else is said.
    pub fn stride(self, rows_and_columns: [usize; 2]) -> Self {
        Self { stride: spatial(rows_and_columns), ..self }
    }

    /// The distance, in rows and columns, from one pixel to the next that neighbouring elements of the filter are applied to; 1 (dense) unless something else is said.
    pub fn dilation(self, rows_and_columns: [usize; 2]) -> Self {
        Self { dilation: spatial(rows_and_columns), ..self }
    }

    /// Divides channels and filters into groups: each filter is applied to the channels of its group. As many groups as channels are a depthwise
    /// convolution.
    pub fn groups(self, groups: usize) -> Self {
        Self { groups: groups as u64, ..self }
    }

    /// How products are computed; [`Math::Ieee`] unless something else is said. [`Math::Tf32`] lets tensor cores multiply `f32`. Sums are made in `f32` for all types.
    pub fn math(self, math: Math) -> Self {
        Self { math, ..self }
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

    /// Queues the convolution; see [`LibraryCall::submit`].
    ///
    /// # Errors
    /// As for [`LibraryCall::submit`].
    #[track_caller]
    pub fn submit(self) -> Result<Ticket> {
        self.call().submit()
    }

    /// Makes the convolution a node of a graph; see [`LibraryCall::record`].
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
        let [x, w, y] = &self.tensors;
        let refuse = |what, hint| Err(LibraryError::argument(self.called().call, what, hint));
        if x.layout != w.layout || x.layout != y.layout {
            let what = format!("tensors in the layouts {}, {} and {}", x.layout, w.layout, y.layout);
            return refuse(what, "use one layout for all of them");
        }
        self.check_settings()?;
        if self.groups.checked_mul(w.dimensions[1]) != Some(x.dimensions[1]) {
            let what = format!(
                "filters of {} for images of {} in {} groups",
                w.shape_text(),
                x.shape_text(),
                self.groups
            );
            return refuse(what, "give filters the channels of the images divided by the groups");
        }
        let operation = self.operation_of();
        let [batch, filters, ..] = y.dimensions;
        let is_empty = x.dimensions[0] == 0 || x.dimensions[1] == 0 || w.dimensions[0] == 0;
        if is_empty && (batch, filters) == (x.dimensions[0], w.dimensions[0]) {
            return self.without_terms(operation);
        }
        self.operation_fits(&operation, y.dimensions)?;
        let described =
            Described::new(operation, [x, w, y].map(|tensor| Ok(Argument::borrowed(tensor.buffer))));
        Ok(described?.called(self.called()))
    }

    /// Refuses sizes of 0 that have no meaning, by the name of the tensor or of the setting.
    fn check_settings(&self) -> Result<()> {
        let ([image, filter, _], call) = (self.names(), self.called().call);
        let [x, w, _] = &self.tensors;
        let refuse = |what: String, hint| Err(LibraryError::argument(call, what, hint));
        if x.dimensions[2..].contains(&0) {
            let what = format!("`{image}` is {}", x.shape_text());
            return refuse(what, "give images a height and a width of 1 or more");
        }
        if w.dimensions[2..].contains(&0) {
            let what = format!("`{filter}` is {}", w.shape_text());
            return refuse(what, "give filters a height and a width of 1 or more");
        }
        if self.groups == 0 {
            return refuse("`groups` is 0".to_owned(), "use 1 or more");
        }
        for (name, size) in [("stride", self.stride), ("dilation", self.dilation)] {
            if size.height == 0 || size.width == 0 {
                return refuse(format!("`{name}` is {size}"), "use 1 or more");
            }
        }
        Ok(())
    }

    /// A convolution without images, channels or filters: the result has no elements, or its sums have no terms.
    fn without_terms(&self, operation: Convolution) -> Result<Described<'a>> {
        let [x, w, y] = &self.tensors;
        // The rest must fit as if there were something to do.
        let or = |size: u64, other: u64| if size == 0 { other } else { size };
        let channels = or(operation.channels, operation.groups);
        let (batch, filters) = (or(operation.batch, 1), or(operation.filters, operation.groups));
        let [_, _, height, width] = y.dimensions;
        let some = Convolution { batch, channels, filters, ..operation };
        self.operation_fits(&some, [batch, filters, height, width])?;
        let (called, names) = (self.called(), self.names());
        let operands = Operands::of(called.call).with(names[0], x.buffer).with(names[1], w.buffer);
        let operands = operands.with(names[2], y.buffer);
        let result = match self.pass {
            ConvolutionPass::Forward => y,
            ConvolutionPass::BackwardData => x,
            ConvolutionPass::BackwardFilter => w,
        };
        let elements = result.dimensions.iter().try_fold(1_u64, |count, size| count.checked_mul(*size));
        match elements.map(usize::try_from) {
            _ if result.dimensions.contains(&0) => Described::nothing(self.loaded, operation, &operands),
            Some(Ok(elements)) => {
                operands.check(self.loaded.gpu())?;
                without_terms(self.loaded, called, Matrix::new(result.buffer, 1, elements), None)
            }
            _ => {
                let what = format!("`{}` is {}", called.result, result.shape_text());
                Err(LibraryError::argument(called.call, what, "use smaller sizes"))
            }
        }
    }

    /// What messages name the call by.
    fn called(&self) -> &'static Called {
        match self.pass {
            ConvolutionPass::Forward => &FORWARD,
            ConvolutionPass::BackwardData => &BACKWARD_DATA,
            ConvolutionPass::BackwardFilter => &BACKWARD_FILTER,
        }
    }

    /// What messages name the tensors by.
    fn names(&self) -> [&'static str; 3] {
        match self.pass {
            ConvolutionPass::Forward => ["x", "w", "y"],
            ConvolutionPass::BackwardData => ["dx", "w", "dy"],
            ConvolutionPass::BackwardFilter => ["x", "dw", "dy"],
        }
    }

    /// Refuses a `y`, or its gradient, whose dimensions are not those of the operation.
    fn operation_fits(&self, operation: &Convolution, given: [u64; 4]) -> Result<()> {
        let called = self.called();
        Operation::from(*operation).check().map_err(|error| match called.renamed(error.into()) {
            LibraryError::Argument { operation: call, what, .. } if self.is_too_far(operation) => {
                let hint = "use a smaller filter, less dilation, or more padding";
                LibraryError::Argument { operation: call, what, hint }
            }
            error => error,
        })?;
        let wanted = operation.dimensions().unwrap_or_default()[2];
        if given == wanted {
            return Ok(());
        }
        let ([image, filter, result], [x, w, _]) = (self.names(), &self.tensors);
        let what = format!(
            "`{result}` is {} where `{image}` of {} and `{filter}` of {} give {}",
            dimensions_text(given),
            x.shape_text(),
            w.shape_text(),
            dimensions_text(wanted)
        );
        let hint = match self.pass {
            ConvolutionPass::Forward => "give `y` the dimensions that follow from the others",
            _ => "give all three the dimensions, padding, stride and dilation of the convolution",
        };
        Err(LibraryError::argument(called.call, what, hint))
    }

    /// Whether a filter that would fit into the image is spread too far.
    fn is_too_far(&self, operation: &Convolution) -> bool {
        let dense = Convolution { dilation: Spatial::new(1, 1), ..*operation };
        operation.output().is_none() && dense.output().is_some()
    }

    fn operation_of(&self) -> Convolution {
        let [x, w, _] = &self.tensors;
        let [batch, channels, height, width] = x.dimensions;
        let [filters, _, filter_height, filter_width] = w.dimensions;
        Convolution {
            pass: self.pass,
            element: T::TYPE,
            layout: x.layout,
            batch,
            channels,
            image: Spatial::new(height, width),
            filters,
            filter: Spatial::new(filter_height, filter_width),
            padding: self.padding,
            stride: self.stride,
            dilation: self.dilation,
            groups: self.groups,
            math: self.math,
            order: self.determinism,
            workspace: self.workspace_limit_bytes,
        }
    }
}

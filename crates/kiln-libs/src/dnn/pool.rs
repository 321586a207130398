//! Pooling of images: the greatest or the average number of each window, and gradients.

use kiln_mem::StreamKey;
use kiln_operation::TensorLayout;
use kiln_runtime::GpuRef;

use super::row_launch_shape::THREADS;
use super::tensor::{NetworkElement, Tensor, dimensions_text};
use crate::Result;
use crate::kernel_operation::KernelOperation;
use crate::operands::Operands;
use crate::prims::PrimitiveCall;
use crate::prims::check::Check;
use crate::prims::plan::{Argument, Plan};
use crate::prims::primitive_call::Operation;

/// Elements of a tensor at most: kernels count them with 32 bits.
const TENSOR_LIMIT: u64 = 1 << 31;
/// Windows, strides and paddings are below it, and windows have fewer than `WINDOW_AREA_LIMIT` places: kernels compute with 32 bits.
const WINDOW_LIMIT: usize = 1 << 31;
const WINDOW_AREA_LIMIT: u128 = 1 << 32;

/// What is taken of a window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PoolKind {
    Max,
    Average,
}

/// Which of the tensors is computed.
#[derive(Clone, Debug)]
pub(super) enum PoolPass<T> {
    /// `y` of `x`.
    Forward { x: GpuRef<T>, y: GpuRef<T> },
    /// `dx` of `dy`, and of `x` where the greatest numbers are looked for.
    Backward { x: Option<GpuRef<T>>, dy: GpuRef<T>, dx: GpuRef<T> },
}

impl<T: NetworkElement> PoolPass<T> {
    /// The same with the parts of buffers that the tensors lie in. One that is too short is refused later.
    fn cut(self, image: [u64; 4], result: [u64; 4]) -> Self {
        let first = |buffer: GpuRef<T>, dimensions: [u64; 4]| {
            let count = dimensions.iter().try_fold(1_u64, |count, size| count.checked_mul(*size));
            let end = count.and_then(|count| usize::try_from(count).ok());
            end.and_then(|end| buffer.view(..end).ok()).unwrap_or(buffer)
        };
        match self {
            Self::Forward { x, y } => Self::Forward { x: first(x, image), y: first(y, result) },
            Self::Backward { x, dy, dx } => {
                // The gradient of a greatest number comes without dimensions.
                let dx = if x.is_some() { dx } else { first(dx, image) };
                Self::Backward { x: x.map(|x| first(x, image)), dy: first(dy, result), dx }
            }
        }
    }
}

/// A [`max_pool`](super::Dnn::max_pool), [`average_pool`](super::Dnn::average_pool), or the gradient of one.
#[derive(Clone, Debug)]
pub struct Pool<T> {
    kind: PoolKind,
    pass: PoolPass<T>,
    /// Dimensions and layouts of images and of results.
    image: ([u64; 4], TensorLayout),
    result: ([u64; 4], TensorLayout),
    window: [usize; 2],
    stride: [usize; 2],
    padding: [usize; 2],
    counts_padding: bool,
}

impl<T: NetworkElement> PrimitiveCall<'_, Pool<T>> {
    /// Rows and columns from one window to the next; those of the window unless something else is said, so that windows do not overlap.
    pub fn stride(mut self, rows_and_columns: [usize; 2]) -> Self {
        self.operation.stride = rows_and_columns;
        self
    }

    /// Rows and columns that windows reach over the image, on each side; none unless something else is said. They are never the greatest.
    pub fn padding(mut self, rows_and_columns: [usize; 2]) -> Self {
        self.operation.padding = rows_and_columns;
        self
    }

    /// Divides the sum of each window by the size of the window, also where a part of it is outside of the image. Otherwise it is divided by the number of
    /// pixels in the image. PyTorch's default is to count padding; here it is not. For the greatest number, where it has no meaning, it is refused.
    pub fn count_padding(mut self) -> Self {
        self.operation.counts_padding = true;
        self
    }
}

impl<T: NetworkElement> PrimitiveCall<'_, Pool<T>> {
    /// The operation, for [`Tolerance::of`](crate::Tolerance::of).
    ///
    /// # Errors
    /// What is wrong with the call.
    pub fn operation(&self) -> Result<KernelOperation> {
        let call = &self.operation;
        call.check()?;
        let ([height, width], [down, right]) = (call.window, call.stride);
        let terms = match (call.kind, &call.pass) {
            (PoolKind::Max, PoolPass::Forward { .. }) => {
                return Ok(KernelOperation::choice(call.name().0, T::TYPE));
            }
            (PoolKind::Average, PoolPass::Forward { .. }) => height as u64 * width as u64,
            // Windows that a pixel lies in.
            (_, PoolPass::Backward { .. }) => height.div_ceil(down) as u64 * width.div_ceil(right) as u64,
        };
        Ok(KernelOperation::sum(call.name().0, T::TYPE, terms))
    }
}

impl<T: NetworkElement> Pool<T> {
    pub(super) fn new(
        kind: PoolKind,
        pass: PoolPass<T>,
        image: &Tensor<'_, T>,
        result: &Tensor<'_, T>,
        window: [usize; 2],
    ) -> Self {
        let pass = pass.cut(image.dimensions, result.dimensions);
        let (image, result) = ((image.dimensions, image.layout), (result.dimensions, result.layout));
        Self { kind, pass, image, result, window, stride: window, padding: [0, 0], counts_padding: false }
    }

    fn name(&self) -> Check {
        Check(match (self.kind, &self.pass) {
            (PoolKind::Max, PoolPass::Forward { .. }) => "dnn.max_pool",
            (PoolKind::Max, PoolPass::Backward { .. }) => "dnn.max_pool_backward",
            (PoolKind::Average, PoolPass::Forward { .. }) => "dnn.average_pool",
            (PoolKind::Average, PoolPass::Backward { .. }) => "dnn.average_pool_backward",
        })
    }

    /// What messages name the tensors by whose dimensions were given.
    fn tensor_names(&self) -> [&'static str; 2] {
        match &self.pass {
            PoolPass::Forward { .. } => ["x", "y"],
            PoolPass::Backward { x: Some(_), .. } => ["x", "dy"],
            PoolPass::Backward { x: None, .. } => ["dx", "dy"],
        }
    }

    /// Positions of the window along one dimension.
    fn positions(&self, at: usize) -> Option<u64> {
        let (size, window) = (self.image.0[at + 2], self.window[at] as u64);
        let padded = size.checked_add((self.padding[at] as u64).checked_mul(2)?)?;
        padded.checked_sub(window)?.checked_div(self.stride[at] as u64)?.checked_add(1)
    }

    fn check_windows(&self) -> Result<()> {
        let (check, [image, result]) = (self.name(), self.tensor_names());
        let (window, padding, stride) = (self.window, self.padding, self.stride);
        let [images, channels, height, width] = self.image.0;
        if window.contains(&0) || stride.contains(&0) || height == 0 || width == 0 {
            let images = dimensions_text(self.image.0);
            let what = format!("windows of {window:?}, {stride:?} apart, in images of {images}");
            return check.refuse(what, "use windows, strides and images whose sizes are not 0");
        }
        let is_large = [window, stride, padding].as_flattened().iter().any(|size| *size >= WINDOW_LIMIT);
        if is_large || window[0] as u128 * window[1] as u128 >= WINDOW_AREA_LIMIT {
            let what = format!("windows of {window:?}, {stride:?} apart, with a padding of {padding:?}");
            return check.refuse(what, "use sizes below 2^31, and windows of fewer than 2^32 places");
        }
        if self.kind == PoolKind::Max && self.counts_padding {
            let what = "padding that is counted, for the greatest number of each window".to_owned();
            return check.refuse(what, "leave `count_padding` out: padding is never the greatest");
        }
        if padding[0] >= window[0] || padding[1] >= window[1] {
            let what = format!("a padding of {padding:?} for windows of {window:?}");
            return check.refuse(what, "use less padding, so that each window sees a pixel");
        }
        if self.image.1 != self.result.1 {
            let what =
                format!("`{image}` in the layout {} and `{result}` in {}", self.image.1, self.result.1);
            return check.refuse(what, "use one layout for both");
        }
        let wanted = match (self.positions(0), self.positions(1)) {
            (Some(rows), Some(columns)) => [images, channels, rows, columns],
            _ => {
                let what = format!("windows of {window:?} in images of {}", dimensions_text(self.image.0));
                return check.refuse(what, "use smaller windows, or more padding");
            }
        };
        if self.result.0 != wanted {
            let (given, wanted) = (dimensions_text(self.result.0), dimensions_text(wanted));
            let images = dimensions_text(self.image.0);
            let what = format!(
                "`{result}` is {given} where `{image}` of {images} and windows of {window:?} give {wanted}"
            );
            return check.refuse(what, "give both the dimensions that windows, stride and padding make");
        }
        Ok(())
    }

    /// Elements of images and of results.
    fn lengths(&self) -> Result<(usize, usize)> {
        let [image, result] = self.tensor_names();
        let length = |name: &str, dimensions: [u64; 4]| {
            let count = dimensions.iter().try_fold(1_u64, |count, size| count.checked_mul(*size));
            count.filter(|count| *count < TENSOR_LIMIT).ok_or_else(|| {
                let what = format!("`{name}` is {}", dimensions_text(dimensions));
                let next = match dimensions[0] {
                    0 | 1 => "split the image, or its channels: use tensors below 2^31 elements",
                    _ => "split the batch: use tensors below 2^31 elements",
                };
                self.name().refusal(what, next)
            })
        };
        Ok((length(image, self.image.0)? as usize, length(result, self.result.0)? as usize))
    }

    /// The arguments of all kernels: sizes, windows and the layout.
    fn shape_arguments(&self) -> impl Iterator<Item = Argument> {
        let [_, channels, height, width] = self.image.0;
        let [_, _, rows, columns] = self.result.0;
        let sizes = [channels, height, width, rows, columns];
        let windows = [self.window, self.padding, self.stride].into_iter().flatten().map(|size| size as u64);
        let is_last = u64::from(self.image.1 == TensorLayout::Nhwc);
        sizes.into_iter().chain(windows).chain([is_last]).map(|size| Argument::value(size as u32))
    }

    fn launch(
        &self,
        plan: &mut Plan<'_>,
        entry: &'static str,
        count: usize,
        mut arguments: Vec<Argument>,
    ) -> Result<()> {
        arguments.push(Argument::value(count as u32));
        if self.kind == PoolKind::Average {
            arguments.push(Argument::value(if self.counts_padding { 1_u32 } else { 2 }));
        }
        arguments.extend(self.shape_arguments());
        let blocks = (count as u64).div_ceil(u64::from(THREADS));
        plan.launch(("pool", T::TYPE.name(), entry), blocks, THREADS, arguments)
    }
}

impl<T: NetworkElement> Operation for Pool<T> {
    fn check(&self) -> Result<()> {
        let check = self.name();
        self.check_windows()?;
        let (images, results) = self.lengths()?;
        match &self.pass {
            PoolPass::Forward { x, y } => {
                check.length("x", x, images)?;
                check.length("y", y, results)?;
                check.apart(("x", x), ("y", y))
            }
            PoolPass::Backward { x, dy, dx } => {
                check.length("dy", dy, results)?;
                check.length("dx", dx, images)?;
                check.apart(("dy", dy), ("dx", dx))?;
                let Some(x) = x else { return Ok(()) };
                check.length("x", x, images)?;
                check.apart(("x", x), ("dx", dx))
            }
        }
    }

    fn plan(&self, plan: &mut Plan<'_>) -> Result<()> {
        let (images, results) = self.lengths()?;
        if results == 0 {
            return Ok(());
        }
        match (&self.pass, self.kind) {
            (PoolPass::Forward { x, y }, PoolKind::Max) => {
                let arguments = vec![Argument::read(x)?, Argument::write(y)?, Argument::Null];
                self.launch(plan, "pool_max", results, arguments)
            }
            (PoolPass::Forward { x, y }, PoolKind::Average) => {
                let arguments = vec![Argument::read(x)?, Argument::write(y)?];
                self.launch(plan, "pool_average", results, arguments)
            }
            (PoolPass::Backward { x: Some(x), dy, dx }, _) => {
                let chosen = plan.scratch::<u32>(results as u64)?;
                let arguments = vec![Argument::read(x)?, Argument::Null, Argument::write(&chosen)?];
                self.launch(plan, "pool_max", results, arguments)?;
                let arguments = vec![Argument::read(dy)?, Argument::read(&chosen)?, Argument::write(dx)?];
                self.launch(plan, "pool_max_backward", images, arguments)
            }
            (PoolPass::Backward { x: None, dy, dx }, _) => {
                let arguments = vec![Argument::read(dy)?, Argument::write(dx)?];
                self.launch(plan, "pool_average_backward", images, arguments)
            }
        }
    }

    fn operands(&self) -> Operands<'_> {
        let operands = Operands::of(self.name().0);
        match &self.pass {
            PoolPass::Forward { x, y } => operands.with("x", x).with("y", y),
            PoolPass::Backward { x, dy, dx } => {
                operands.with_some("x", x.as_ref()).with("dy", dy).with("dx", dx)
            }
        }
    }

    fn home(&self) -> StreamKey {
        match &self.pass {
            PoolPass::Forward { y, .. } => y.home(),
            PoolPass::Backward { dx, .. } => dx.home(),
        }
    }
}

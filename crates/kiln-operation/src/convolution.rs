//! Convolutions of images, and their gradients.

use std::fmt;

use crate::element_type::ElementType;
use crate::error::OperationError;
use crate::extent::{Extent, check_sizes};
use crate::field::{Field, operation, words};
use crate::matmul::{Determinism, Math};
use crate::operand::{OperandEffect, OperationOperand};

words! {
    /// How a tensor of images lies in memory. Filters lie the same way, with filters in the place of images.
    TensorLayout {
        /// Image after image, channel after channel, row after row.
        Nchw = "nchw",
        /// Image after image, row after row, with the channels of a pixel side by side.
        Nhwc = "nhwc",
    }
}

words! {
    /// What a convolution computes.
    ConvolutionPass {
        /// `y` of `x` and `w`.
        Forward = "forward",
        /// The gradient `dx` of `dy` and `w`.
        BackwardData = "backward_data",
        /// The gradient `dw` of `x` and `dy`.
        BackwardFilter = "backward_filter",
    }
}

/// A number for each spatial dimension: `3x5` is a height of 3 and a width of 5.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Spatial {
    /// In rows.
    pub height: u64,
    /// In columns.
    pub width: u64,
}

impl Spatial {
    /// A number for each dimension.
    pub fn new(height: u64, width: u64) -> Self {
        Self { height, width }
    }

    /// How many positions there are.
    pub fn area(self) -> u64 {
        self.height.saturating_mul(self.width)
    }
}

impl fmt::Display for Spatial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.height, self.width)
    }
}

impl Field for Spatial {
    const WANTED: &'static str = "height and width, such as 3x5";

    fn parse(text: &str) -> Option<Self> {
        let (height, width) = text.split_once('x')?;
        Some(Self { height: u64::parse(height)?, width: u64::parse(width)? })
    }
}

operation! {
    /// `y[n, k, p, q] = Σ x[n, c, p stride + r dilation - padding, q stride + s dilation - padding] w[k, c, r, s]`, with zeros outside of the image, or one of
    /// its gradients. The filter is not flipped.
    Convolution = "dnn.convolution" {
        /// What is computed.
        pass: ConvolutionPass,
        /// Of all tensors.
        element: ElementType,
        /// Of all tensors.
        layout: TensorLayout,
        /// How many images.
        batch: u64,
        /// Channels of `x`.
        channels: u64,
        /// Height and width of `x`.
        image: Spatial,
        /// Channels of `y`, each with a filter.
        filters: u64,
        /// Height and width of a filter.
        filter: Spatial,
        /// Zeros around the image, on each side.
        padding: Spatial,
        /// Distance between positions of the filter.
        stride: Spatial,
        /// Distance between pixels that a filter is applied to.
        dilation: Spatial,
        /// In how many groups channels and filters are divided; a filter has the channels of its group.
        groups: u64,
        /// How products are computed.
        math: Math,
        /// Whether equal calls give equal bits.
        order: Determinism,
        /// Bytes of workspace at most.
        workspace: u64,
    }
}

/// Elements of a tensor at most: libraries count them with 31 bits.
pub(crate) const TENSOR_LIMIT: u64 = 1 << 31;
/// Each tensor begins at a multiple of so many bytes, so that all algorithms can be used.
pub(crate) const TENSOR_ALIGNMENT: u64 = 16;

/// Positions of a window along one dimension; `None` where it does not fit once.
pub(crate) fn window_positions(
    size: u64,
    window: u64,
    padding: u64,
    stride: u64,
    dilation: u64,
) -> Option<u64> {
    let reach = window.checked_sub(1)?.checked_mul(dilation)?.checked_add(1)?;
    let padded = size.checked_add(padding.checked_mul(2)?)?;
    padded.checked_sub(reach)?.checked_div(stride)?.checked_add(1)
}

impl Convolution {
    /// Height and width of `y`; `None` where the filter does not fit into the image and its padding.
    pub fn output(&self) -> Option<Spatial> {
        let along = |size, window, padding, stride, dilation| {
            window_positions(size, window, padding, stride, dilation)
        };
        let (image, filter) = (self.image, self.filter);
        Some(Spatial {
            height: along(
                image.height,
                filter.height,
                self.padding.height,
                self.stride.height,
                self.dilation.height,
            )?,
            width: along(
                image.width,
                filter.width,
                self.padding.width,
                self.stride.width,
                self.dilation.width,
            )?,
        })
    }

    /// Dimensions of `x`, `w` and `y`: images or filters, channels, height, width.
    pub fn dimensions(&self) -> Option<[[u64; 4]; 3]> {
        let output = self.output()?;
        let in_group = self.channels.checked_div(self.groups)?;
        Some([
            [self.batch, self.channels, self.image.height, self.image.width],
            [self.filters, in_group, self.filter.height, self.filter.width],
            [self.batch, self.filters, output.height, output.width],
        ])
    }

    /// Products that are added for one element of the result.
    pub fn terms(&self) -> u64 {
        let groups = self.groups.max(1);
        match self.pass {
            ConvolutionPass::Forward => (self.channels / groups).saturating_mul(self.filter.area()),
            ConvolutionPass::BackwardData => (self.filters / groups).saturating_mul(self.filter.area()),
            ConvolutionPass::BackwardFilter => {
                self.batch.saturating_mul(self.output().map_or(0, Spatial::area))
            }
        }
    }

    pub(crate) fn operands(&self) -> Result<Vec<OperationOperand>, OperationError> {
        self.check_sizes()?;
        self.check_types()?;
        let Some(dimensions) = self.dimensions() else {
            let what = format!(
                "a filter of {} with a dilation of {} in an image of {} with a padding of {}",
                self.filter, self.dilation, self.image, self.padding
            );
            return Err(OperationError::shape(Self::NAME, what, "use a smaller filter, or more padding"));
        };
        let names = match self.pass {
            ConvolutionPass::Forward => ["x", "w", "y"],
            ConvolutionPass::BackwardData => ["dx", "w", "dy"],
            ConvolutionPass::BackwardFilter => ["x", "dw", "dy"],
        };
        let result = match self.pass {
            ConvolutionPass::Forward => 2,
            ConvolutionPass::BackwardData => 0,
            ConvolutionPass::BackwardFilter => 1,
        };
        let operand = |(at, (name, dimensions)): (usize, (&'static str, [u64; 4]))| {
            let effect = if at == result { OperandEffect::Overwrites } else { OperandEffect::Reads };
            tensor(Self::NAME, name, self.element, &dimensions, effect)
        };
        names.into_iter().zip(dimensions).enumerate().map(operand).collect()
    }

    fn check_sizes(&self) -> Result<(), OperationError> {
        check_sizes(
            Self::NAME,
            &[
                ("batch", self.batch),
                ("channels", self.channels),
                ("image", self.image.area()),
                ("filters", self.filters),
                ("filter", self.filter.area()),
                ("stride", self.stride.area()),
                ("dilation", self.dilation.area()),
                ("groups", self.groups),
            ],
        )?;
        if self.padding.height.max(self.padding.width) >= TENSOR_LIMIT {
            let what = format!("a padding of {}", self.padding);
            return Err(OperationError::shape(Self::NAME, what, "use less padding: below 2^31"));
        }
        for (name, steps) in [("stride", self.stride), ("dilation", self.dilation)] {
            if steps.height.max(steps.width) >= TENSOR_LIMIT {
                let what = format!("`{name}` is {steps}");
                return Err(OperationError::shape(Self::NAME, what, "use steps below 2^31"));
            }
        }
        if !self.channels.is_multiple_of(self.groups) || !self.filters.is_multiple_of(self.groups) {
            let what =
                format!("{} channels and {} filters in {} groups", self.channels, self.filters, self.groups);
            let hint = "use numbers of channels and filters that are multiples of the groups";
            return Err(OperationError::shape(Self::NAME, what, hint));
        }
        Ok(())
    }

    fn check_types(&self) -> Result<(), OperationError> {
        check_network_element(Self::NAME, self.element)?;
        let fits = match self.math {
            Math::Ieee => true,
            Math::Tf32 => self.element == ElementType::F32,
            Math::Bf16x9 | Math::F16 => false,
        };
        if !fits {
            let what = format!("math {} for {}", self.math, self.element);
            return Err(OperationError::shape(Self::NAME, what, "use ieee, or tf32 for f32"));
        }
        Ok(())
    }
}

/// Refuses elements that networks are not computed with.
pub(crate) fn check_network_element(
    operation: &'static str,
    element: ElementType,
) -> Result<(), OperationError> {
    if matches!(element, ElementType::F32 | ElementType::F16 | ElementType::Bf16) {
        return Ok(());
    }
    Err(OperationError::shape(operation, format!("elements of {element}"), "use f32, f16 or bf16"))
}

/// A tensor without gaps, of fewer than 2^31 elements.
pub(crate) fn tensor(
    operation: &'static str,
    name: &'static str,
    element: ElementType,
    dimensions: &[u64],
    effect: OperandEffect,
) -> Result<OperationOperand, OperationError> {
    let extent = Extent::dense((operation, name), dimensions)?;
    if extent.reach >= TENSOR_LIMIT {
        let what = format!("`{name}` has {} elements", extent.reach);
        return Err(OperationError::shape(
            operation,
            what,
            "split the batch: use tensors below 2^31 elements",
        ));
    }
    Ok(OperationOperand { alignment: TENSOR_ALIGNMENT, ..extent.operand(name, element, effect) })
}

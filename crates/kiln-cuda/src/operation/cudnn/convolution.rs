//! Convolutions as graphs of one operation.

use kiln_operation::{Convolution, ConvolutionPass, Spatial, TensorLayout};

use super::DnnHandle;
use super::descriptor::{Descriptor, DnnResult};
use super::element_kind;
use super::enum_values::{Named, attribute, attribute_type, convolution_mode, data_type, descriptor_type};
use super::graph::Graph;

/// The names that an operation has for its parts.
struct PassNames {
    operation: Named,
    convolution: Named,
    /// `x`, `w` and `y`, or their gradients.
    tensors: [Named; 3],
    alpha: Named,
    beta: Named,
}

fn names(pass: ConvolutionPass) -> PassNames {
    match pass {
        ConvolutionPass::Forward => PassNames {
            operation: descriptor_type::OPERATION_CONVOLUTION_FORWARD,
            convolution: attribute::OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
            tensors: [
                attribute::OPERATION_CONVOLUTION_FORWARD_X,
                attribute::OPERATION_CONVOLUTION_FORWARD_W,
                attribute::OPERATION_CONVOLUTION_FORWARD_Y,
            ],
            alpha: attribute::OPERATION_CONVOLUTION_FORWARD_ALPHA,
            beta: attribute::OPERATION_CONVOLUTION_FORWARD_BETA,
        },
        ConvolutionPass::BackwardData => PassNames {
            operation: descriptor_type::OPERATION_CONVOLUTION_BACKWARD_DATA,
            convolution: attribute::OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
            tensors: [
                attribute::OPERATION_CONVOLUTION_BWD_DATA_DX,
                attribute::OPERATION_CONVOLUTION_BWD_DATA_W,
                attribute::OPERATION_CONVOLUTION_BWD_DATA_DY,
            ],
            alpha: attribute::OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
            beta: attribute::OPERATION_CONVOLUTION_BWD_DATA_BETA,
        },
        ConvolutionPass::BackwardFilter => PassNames {
            operation: descriptor_type::OPERATION_CONVOLUTION_BACKWARD_FILTER,
            convolution: attribute::OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
            tensors: [
                attribute::OPERATION_CONVOLUTION_BWD_FILTER_X,
                attribute::OPERATION_CONVOLUTION_BWD_FILTER_DW,
                attribute::OPERATION_CONVOLUTION_BWD_FILTER_DY,
            ],
            alpha: attribute::OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
            beta: attribute::OPERATION_CONVOLUTION_BWD_FILTER_BETA,
        },
    }
}

/// The graph of a convolution. Tensors are named by their operands, from 1 on.
pub(super) fn describe<'h>(handle: &'h DnnHandle, operation: &Convolution) -> DnnResult<Graph<'h>> {
    let names = names(operation.pass);
    let mut graph = Graph::new(handle);
    let kind = element_kind(operation.element);
    let mut tensors = Vec::with_capacity(3);
    for (dimensions, name) in operation.dimensions().unwrap_or_default().into_iter().zip(names.tensors) {
        let dimensions = dimensions.map(integer);
        let [_, channels, height, width] = dimensions;
        let strides = match operation.layout {
            TensorLayout::Nchw => [channels * height * width, height * width, width, 1],
            TensorLayout::Nhwc => [height * width * channels, 1, width * channels, channels],
        };
        tensors.push((name, graph.in_memory(kind, dimensions, strides)?));
    }
    let geometry = geometry(&graph, operation)?;
    let factors = [(names.alpha, 1.0), (names.beta, 0.0)];
    graph.add(names.operation, (names.convolution, geometry), &tensors, &factors)?;
    Ok(graph)
}

/// Padding, strides and dilation.
fn geometry(graph: &Graph<'_>, operation: &Convolution) -> DnnResult<Descriptor> {
    let convolution = graph.describe(descriptor_type::CONVOLUTION)?;
    let along = |spatial: Spatial| [spatial.height, spatial.width].map(integer);
    // Sums are made in f32 for all types.
    let compute = data_type::FLOAT.number;
    convolution.set_number(attribute::CONVOLUTION_COMP_TYPE, attribute_type::DATA_TYPE, compute)?;
    let mode = convolution_mode::CROSS_CORRELATION.number;
    convolution.set_number(attribute::CONVOLUTION_CONV_MODE, attribute_type::CONVOLUTION_MODE, mode)?;
    convolution.set_integers(attribute::CONVOLUTION_SPATIAL_DIMS, &[2])?;
    convolution.set_integers(attribute::CONVOLUTION_PRE_PADDINGS, &along(operation.padding))?;
    convolution.set_integers(attribute::CONVOLUTION_POST_PADDINGS, &along(operation.padding))?;
    convolution.set_integers(attribute::CONVOLUTION_DILATIONS, &along(operation.dilation))?;
    convolution.set_integers(attribute::CONVOLUTION_FILTER_STRIDES, &along(operation.stride))?;
    Ok(convolution)
}

/// A size, which was checked to fit.
fn integer(size: u64) -> i64 {
    i64::try_from(size).unwrap_or(i64::MAX)
}

//! Attention as the graph that cuDNN computes in one kernel: two products with a softmax between them, of which nothing is stored.

use kiln_operation::{Attention, AttentionMask};

use super::descriptor::DnnResult;
use super::enum_values::{
    Named, attribute, attribute_type, data_type, descriptor_type, pointwise, reduction,
};
use super::graph::{Graph, ScalarSource, TensorId};
use super::{DnnHandle, element_kind};

/// The argument that is the scale.
const SCALE: usize = 4;
/// Versions before this one want the least number in the place of an infinity.
const INFINITE_MASK_VERSION: usize = 91_000;

/// The dimensions of scores, and of a number for each of their rows.
#[derive(Clone, Copy)]
struct Scores {
    all: [i64; 4],
    rows: [i64; 4],
}

/// The graph of attention. Tensors are named by their operands, from 1 on.
pub(super) fn describe<'h>(handle: &'h DnnHandle, operation: &Attention) -> DnnResult<Graph<'h>> {
    let Attention { layout, batch, heads, key_heads, queries, keys, head, .. } = *operation;
    let mut graph = Graph::new(handle);
    let kind = element_kind(operation.element);
    let integer = |size: u64| i64::try_from(size).unwrap_or(i64::MAX);
    let mut tensor = |heads: u64, positions: u64, is_transposed: bool| {
        let [sequence, per_head, position] = layout.strides(heads, positions, head).map(integer);
        let (mut dimensions, mut strides) =
            ([batch, heads, positions, head].map(integer), [sequence, per_head, position, 1]);
        if is_transposed {
            dimensions.swap(2, 3);
            strides.swap(2, 3);
        }
        graph.in_memory(kind, dimensions, strides)
    };
    let q = tensor(heads, queries, false)?;
    let k = tensor(key_heads, keys, true)?;
    let v = tensor(key_heads, keys, false)?;
    let o = tensor(heads, queries, false)?;
    let [batch, heads, queries, keys] = [batch, heads, queries, keys].map(integer);
    let scores = Scores { all: [batch, heads, queries, keys], rows: [batch, heads, queries, 1] };
    let products = graph.between(data_type::FLOAT, scores.all)?;
    matmul(&mut graph, q, k, products)?;
    let scale = graph.scalar(ScalarSource::Argument(SCALE))?;
    let mut scaled = graph.between(data_type::FLOAT, scores.all)?;
    apply(&mut graph, pointwise::MUL, &[products, scale], scaled)?;
    // The last query sees all keys, which is no mask for one query.
    let is_masked = match operation.mask {
        AttentionMask::None => false,
        AttentionMask::CausalTopLeft => true,
        AttentionMask::CausalBottomRight => operation.queries > 1,
    };
    if is_masked {
        let value = if handle.version < INFINITE_MASK_VERSION { f32::MIN } else { f32::NEG_INFINITY };
        scaled = masked(&mut graph, scaled, scores, (operation, value))?;
    }
    let weights = softmax(&mut graph, scaled, scores, kind)?;
    matmul(&mut graph, weights, v, o)?;
    Ok(graph)
}

/// The scores, with another value where the key comes after the query.
fn masked(
    graph: &mut Graph<'_>,
    x: TensorId,
    scores: Scores,
    (operation, value): (&Attention, f32),
) -> DnnResult<TensorId> {
    let mut index = |axis: i64| -> DnnResult<TensorId> {
        let place = graph.between(data_type::INT32, scores.all)?;
        let mode = (pointwise::GEN_INDEX, data_type::FLOAT, Some(axis));
        pointwise_node(graph, mode, &[x], place)?;
        Ok(place)
    };
    let (mut row, column) = (index(2)?, index(3)?);
    // With as many queries as keys, both diagonals are one.
    if operation.mask == AttentionMask::CausalBottomRight && operation.queries != operation.keys {
        // The pattern that cuDNN knows: the row plus all keys, minus all queries.
        row = shifted(graph, row, scores, (pointwise::ADD, operation.keys))?;
        row = shifted(graph, row, scores, (pointwise::SUB, operation.queries))?;
    }
    let is_seen = graph.between(data_type::BOOLEAN, scores.all)?;
    pointwise_node(graph, (pointwise::CMP_GE, data_type::BOOLEAN, None), &[row, column], is_seen)?;
    let hidden = graph.scalar(ScalarSource::Constant(value))?;
    let y = graph.between(data_type::FLOAT, scores.all)?;
    apply(graph, pointwise::BINARY_SELECT, &[x, hidden, is_seen], y)?;
    Ok(y)
}

/// Places moved by a number of them.
fn shifted(
    graph: &mut Graph<'_>,
    place: TensorId,
    scores: Scores,
    (mode, count): (Named, u64),
) -> DnnResult<TensorId> {
    let count = graph.scalar(ScalarSource::Integer(i32::try_from(count).unwrap_or(i32::MAX)))?;
    let y = graph.between(data_type::INT32, scores.all)?;
    pointwise_node(graph, (mode, data_type::INT32, Some(3)), &[place, count], y)?;
    Ok(y)
}

/// `exp(x - max) / sum`, with the logarithm of the sums that the pattern has.
fn softmax(graph: &mut Graph<'_>, x: TensorId, scores: Scores, kind: Named) -> DnnResult<TensorId> {
    let float = data_type::FLOAT;
    let greatest = graph.between(float, scores.rows)?;
    reduce(graph, reduction::MAX, x, greatest)?;
    let differences = graph.between(float, scores.all)?;
    apply(graph, pointwise::SUB, &[x, greatest], differences)?;
    let powers = graph.between(float, scores.all)?;
    apply(graph, pointwise::EXP, &[differences], powers)?;
    let sums = graph.between(float, scores.rows)?;
    reduce(graph, reduction::ADD, powers, sums)?;
    let logarithms = graph.between(float, scores.rows)?;
    apply(graph, pointwise::LOG, &[sums], logarithms)?;
    let statistics = graph.between(float, scores.rows)?;
    apply(graph, pointwise::ADD, &[greatest, logarithms], statistics)?;
    let weights = graph.between(kind, scores.all)?;
    apply(graph, pointwise::DIV, &[powers, sums], weights)?;
    Ok(weights)
}

/// An operation on each element, computed in `f32`.
fn apply(graph: &mut Graph<'_>, mode: Named, inputs: &[TensorId], y: TensorId) -> DnnResult<()> {
    pointwise_node(graph, (mode, data_type::FLOAT, None), inputs, y)
}

fn pointwise_node(
    graph: &mut Graph<'_>,
    (mode, compute, axis): (Named, Named, Option<i64>),
    inputs: &[TensorId],
    y: TensorId,
) -> DnnResult<()> {
    let description = graph.describe(descriptor_type::POINTWISE)?;
    description.set_number(attribute::POINTWISE_MODE, attribute_type::POINTWISE_MODE, mode.number)?;
    description.set_number(attribute::POINTWISE_MATH_PREC, attribute_type::DATA_TYPE, compute.number)?;
    if let Some(axis) = axis {
        description.set_integers(attribute::POINTWISE_AXIS, &[axis])?;
    }
    let names = [
        attribute::OPERATION_POINTWISE_XDESC,
        attribute::OPERATION_POINTWISE_BDESC,
        attribute::OPERATION_POINTWISE_TDESC,
    ];
    let mut tensors: Vec<(Named, TensorId)> = names.into_iter().zip(inputs.iter().copied()).collect();
    tensors.push((attribute::OPERATION_POINTWISE_YDESC, y));
    let factors =
        [(attribute::OPERATION_POINTWISE_ALPHA1, 1.0), (attribute::OPERATION_POINTWISE_ALPHA2, 1.0)];
    let name = attribute::OPERATION_POINTWISE_PW_DESCRIPTOR;
    graph.add(descriptor_type::OPERATION_POINTWISE, (name, description), &tensors, &factors)
}

fn reduce(graph: &mut Graph<'_>, operator: Named, x: TensorId, y: TensorId) -> DnnResult<()> {
    let description = graph.describe(descriptor_type::REDUCTION)?;
    let compute = data_type::FLOAT.number;
    description.set_number(attribute::REDUCTION_COMP_TYPE, attribute_type::DATA_TYPE, compute)?;
    let kind = attribute_type::REDUCTION_OPERATOR_TYPE;
    description.set_number(attribute::REDUCTION_OPERATOR, kind, operator.number)?;
    let tensors = [(attribute::OPERATION_REDUCTION_XDESC, x), (attribute::OPERATION_REDUCTION_YDESC, y)];
    let name = attribute::OPERATION_REDUCTION_DESC;
    graph.add(descriptor_type::OPERATION_REDUCTION, (name, description), &tensors, &[])
}

fn matmul(graph: &mut Graph<'_>, a: TensorId, b: TensorId, c: TensorId) -> DnnResult<()> {
    let description = graph.describe(descriptor_type::MATMUL)?;
    let compute = data_type::FLOAT.number;
    description.set_number(attribute::MATMUL_COMP_TYPE, attribute_type::DATA_TYPE, compute)?;
    let tensors = [
        (attribute::OPERATION_MATMUL_ADESC, a),
        (attribute::OPERATION_MATMUL_BDESC, b),
        (attribute::OPERATION_MATMUL_CDESC, c),
    ];
    graph.add(
        descriptor_type::OPERATION_MATMUL,
        (attribute::OPERATION_MATMUL_DESC, description),
        &tensors,
        &[],
    )
}

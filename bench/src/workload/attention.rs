//! B6: attention over 8,192 positions through kiln-libs.
//!
//! `bench/peers/attention.py` measures PyTorch with cuDNN and with its own kernels in the same way: graphs of equal calls, between two events.

use half::bf16;
use kiln::DeviceRuntime;
use kiln_libs::dnn::{AttentionTensor, Dnn};

use crate::Failure;
use crate::result_table::Table;
use crate::workload::launch::runtime;
use crate::workload::library_comparison::{TURNS, calls_for, compare, recorded, replayed};

/// Sequences, heads, positions, elements of a head.
const DIMENSIONS: [usize; 4] = [1, 16, 8192, 128];

pub(crate) fn attended(table: &mut Table, _: usize) -> Result<(), Failure> {
    let gpu = runtime()?;
    measured(table, &gpu, "b6.whole.device", false)?;
    measured(table, &gpu, "b6.causal.device", true)
}

fn measured(table: &mut Table, gpu: &DeviceRuntime, workload: &str, is_causal: bool) -> Result<(), Failure> {
    let elements = DIMENSIONS.into_iter().product();
    let inputs = [1, 2, 3].map(|seed| gpu.upload(&numbers(seed, elements)));
    let [q, k, v] = inputs;
    let (q, k, v, result) = (q?, k?, v?, gpu.allocate::<bf16>(elements)?);
    let dnn = Dnn::new(gpu);
    let attention = || {
        let [q, k, v, result] =
            [&q, &k, &v, &result].map(|buffer| AttentionTensor::new(buffer, DIMENSIONS).positions_first());
        let call = dnn.attention(q, k, v, result);
        if is_causal { call.causal() } else { call }
    };
    attention().submit()?.wait()?;
    let alone = recorded(gpu, 1, |graph| Ok(attention().record(graph).map(drop)?))?;
    let calls = calls_for(alone.replay_timed()?.wait()?.device.as_nanos() as f64);
    let graph = recorded(gpu, calls, |graph| Ok(attention().record(graph).map(drop)?))?;
    compare(table, workload, TURNS, vec![("kiln", replayed(&graph, calls))])
}

/// Numbers between -1 and 1.
fn numbers(seed: u64, count: usize) -> Vec<bf16> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        bf16::from_f32((state >> 40) as f32 / (1 << 23) as f32 - 1.0)
    };
    (0..count).map(|_| next()).collect()
}

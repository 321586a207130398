//! Graph algorithms and other irregular accesses.

use crate::argument::{exact, value};
use crate::buffer::Compare;
use crate::case::{Case, CaseShape, case};
use crate::seeded_inputs::Random;
use crate::source::{CaseSource, source};

const SOURCE: &CaseSource = source!("graph");
const NODES: usize = 300;

/// Row starts and columns of a random graph with up to 8 edges per node.
fn edges(r: &mut Random) -> (Vec<u32>, Vec<u32>) {
    let degrees = r.list(NODES, |r| r.within(0, 8) as u32);
    let mut rows = vec![0];
    degrees.iter().for_each(|degree| rows.push(rows[rows.len() - 1] + degree));
    let count = rows[NODES] as usize;
    (rows, r.u32s(count, NODES as u32))
}

/// What a hash table without deletions must hold, wherever its keys landed.
fn hash(a: &mut crate::CaseArguments) {
    let (keys, table) = (a.u32s(0), a.u32s(1));
    let (mut slots, mut counts) = (vec![u32::MAX; table.len()], vec![0u32; table.len()]);
    for key in keys {
        let mut slot = (key.wrapping_mul(2_654_435_761) & 511) as usize;
        while slots[slot] != u32::MAX && slots[slot] != key {
            slot = (slot + 1) & 511;
        }
        slots[slot] = key;
        counts[slot] += 1;
    }
    a.set(1, slots);
    a.set(2, counts);
}

pub(super) const CASES: &[Case] = &[
    case!(
        SOURCE,
        "spmv_csr",
        CaseShape::linear(3, 128),
        |r| {
            let (rows, cols) = edges(r);
            let values = r.f32s(cols.len(), -1.0, 1.0);
            vec![
                exact(rows),
                exact(cols),
                exact(values),
                exact(r.f32s(NODES, -1.0, 1.0)),
                exact(vec![0f32; NODES]),
                value(NODES as u32),
            ]
        },
        |a| {
            let (rows, cols, values, x) = (a.u32s(0), a.u32s(1), a.f32s(2), a.f32s(3));
            let row = |row: &[u32]| {
                let own = row[0] as usize..row[1] as usize;
                own.fold(0f32, |sum, k| values[k].mul_add(x[cols[k] as usize], sum))
            };
            a.set(4, rows.windows(2).map(row).collect::<Vec<f32>>());
        }
    ),
    case!(
        SOURCE,
        "bfs_step",
        CaseShape::linear(3, 128),
        |r| {
            let (rows, cols) = edges(r);
            let depth = r.list(NODES, |r| [-1, -1, 0, 1, 2][r.within(0, 4) as usize]);
            vec![exact(rows), exact(cols), exact(depth), value(2i32), exact(vec![0i32]), value(NODES as u32)]
        },
        |a| {
            let (rows, cols, before) = (a.u32s(0), a.u32s(1), a.i32s(2));
            let mut depth = before.clone();
            let mut changed = 0;
            for v in (0..NODES).filter(|v| before[*v] == 2) {
                for k in rows[v] as usize..rows[v + 1] as usize {
                    if depth[cols[k] as usize] == -1 {
                        depth[cols[k] as usize] = 3;
                        changed = 1;
                    }
                }
            }
            a.set(2, depth);
            a.set(4, vec![changed]);
        }
    ),
    case!(
        SOURCE,
        "relax",
        CaseShape::linear(2, 64),
        |r| vec![
            exact(r.u32s(500, 20)),
            exact(r.list(500, |r| r.within(20, 39) as u32)),
            exact(r.i32s(500, 1, 50)),
            exact([r.i32s(20, 0, 9), vec![1_000_000; 20]].concat()),
            value(500u32)
        ],
        |a| {
            let (from, to, weight) = (a.u32s(0), a.u32s(1), a.i32s(2));
            let mut distance = a.i32s(3);
            for e in 0..500 {
                let reached = distance[from[e] as usize] + weight[e];
                let best = &mut distance[to[e] as usize];
                *best = reached.min(*best);
            }
            a.set(3, distance);
        }
    ),
    case!(
        SOURCE,
        "compact",
        CaseShape::linear(8, 128),
        |r| vec![
            exact(r.i32s(1000, -9, 9)),
            exact(vec![0i32; 1000]).judged(Compare::Sorted),
            exact(vec![0u32]),
            value(1000u32)
        ],
        |a| {
            let mut kept: Vec<i32> = a.i32s(0).into_iter().filter(|x| *x > 0).collect();
            a.set(2, vec![kept.len() as u32]);
            kept.resize(1000, 0);
            a.set(1, kept);
        }
    ),
    case!(
        SOURCE,
        "hash_insert",
        CaseShape::linear(3, 128),
        |r| vec![
            exact(r.list(384, |r| r.within(0, 199) as u32 * 7919)),
            exact(vec![u32::MAX; 512]).judged(Compare::Sorted),
            exact(vec![0u32; 512]).judged(Compare::Sorted),
            value(511u32),
            value(384u32)
        ],
        hash
    ),
    case!(
        SOURCE,
        "list_rank",
        CaseShape::linear(1, 256),
        |r| {
            // One list through all nodes in random order; the last points at itself.
            let mut order: Vec<u32> = (0..256).collect();
            (1..256).rev().for_each(|at| order.swap(at, r.within(0, at as i64) as usize));
            let mut next = vec![0u32; 256];
            order.windows(2).for_each(|pair| next[pair[0] as usize] = pair[1]);
            next[order[255] as usize] = order[255];
            vec![exact(next), exact(vec![0u32; 256]), exact(vec![0u32; 256]), value(256u32)]
        },
        |a| {
            let next = a.u32s(0);
            let end = |mut at: usize| {
                let mut steps = 0u32;
                while next[at] as usize != at {
                    at = next[at] as usize;
                    steps += 1;
                }
                (steps, at as u32)
            };
            let (rank, link): (Vec<u32>, Vec<u32>) = (0..256).map(end).unzip();
            a.set(1, rank);
            a.set(2, link);
        }
    ),
];

//! The kernels of the workloads: what `bench/src/kernels.ptx` holds, as CubeCL writes them. They touch nothing unless their number is
//! negative.

#![allow(clippy::too_many_arguments, reason = "that is what the workload is about")]

use cubecl::prelude::*;

#[cube(launch_unchecked)]
pub(crate) fn one(a: &mut Array<f32>, number: i32) {
    if number < 0 {
        a[0] = 1.0;
    }
}

#[cube(launch_unchecked)]
pub(crate) fn four(a: &mut Array<f32>, b: &Array<f32>, c: &Array<f32>, d: &Array<f32>, number: i32) {
    if number < 0 {
        a[0] = b[0] + c[0] + d[0];
    }
}

#[cube(launch_unchecked)]
pub(crate) fn many(
    a0: &mut Array<f32>,
    a1: &Array<f32>,
    a2: &Array<f32>,
    a3: &Array<f32>,
    a4: &Array<f32>,
    a5: &Array<f32>,
    a6: &Array<f32>,
    a7: &Array<f32>,
    a8: &Array<f32>,
    a9: &Array<f32>,
    a10: &Array<f32>,
    a11: &Array<f32>,
    a12: &Array<f32>,
    a13: &Array<f32>,
    a14: &Array<f32>,
    a15: &Array<f32>,
    a16: &Array<f32>,
    a17: &Array<f32>,
    a18: &Array<f32>,
    a19: &Array<f32>,
    a20: &Array<f32>,
    a21: &Array<f32>,
    a22: &Array<f32>,
    a23: &Array<f32>,
    a24: &Array<f32>,
    a25: &Array<f32>,
    a26: &Array<f32>,
    a27: &Array<f32>,
    a28: &Array<f32>,
    a29: &Array<f32>,
    a30: &Array<f32>,
    a31: &Array<f32>,
    number: i32,
) {
    if number < 0 {
        a0[0] = a1[0]
            + a2[0]
            + a3[0]
            + a4[0]
            + a5[0]
            + a6[0]
            + a7[0]
            + a8[0]
            + a9[0]
            + a10[0]
            + a11[0]
            + a12[0]
            + a13[0]
            + a14[0]
            + a15[0]
            + a16[0]
            + a17[0]
            + a18[0]
            + a19[0]
            + a20[0]
            + a21[0]
            + a22[0]
            + a23[0]
            + a24[0]
            + a25[0]
            + a26[0]
            + a27[0]
            + a28[0]
            + a29[0]
            + a30[0]
            + a31[0];
    }
}

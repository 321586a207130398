//! Sizes of Fourier transforms, and offsets of random draws.

use kiln_libs::rand::{Bits, Draw, Permutation, Uniform};

use super::{N, Row, SIZES, row};
use crate::refusals_by_name::Calls;

pub(super) fn transform_rows() -> Vec<Row> {
    vec![
        row!("fft.forward", "extent", [0, 1], |it, s| {
            it.fft.transform(&[s]).forward(&it.complex[0], &it.complex[1])
        }),
        row!("fft.inverse", "extents", [0, 1], |it, s| {
            it.fft.transform(&[s, s, s]).inverse(&it.complex[0], &it.complex[1])
        }),
        row!("fft.forward", "batch", [0, 1], |it, s| {
            it.fft.transform(&[N]).batch(s).forward(&it.complex[0], &it.complex[1])
        }),
        row!("fft.forward_in_place", "extent and batch", [0, 1], |it, s| {
            it.fft.transform(&[s]).batch(s).forward_in_place(&it.complex[0])
        }),
        row!("fft.inverse_in_place", "slow extent", [0, 1], |it, s| {
            it.fft.transform(&[s, N]).inverse_in_place(&it.complex[0])
        }),
        row!("fft.real_forward", "extent", [0, 1], |it, s| {
            it.fft.transform(&[s]).real_forward(&it.x, &it.complex[0])
        }),
        row!("fft.real_forward", "rows without numbers", [0, 1], |it, s| {
            it.fft.transform(&[s, 0]).real_forward(&it.x, &it.complex[0])
        }),
        row!("fft.real_inverse", "extent", [0, 1], |it, s| {
            it.fft.transform(&[s]).real_inverse(&it.complex[0], &it.x)
        }),
        row!("fft.real_inverse", "batch", [0, 1], |it, s| {
            it.fft.transform(&[N]).batch(s).real_inverse(&it.complex[0], &it.x)
        }),
        row!("fft.real_forward_in_place", "extent", [0, 1], |it, s| {
            it.fft.transform(&[s]).real_forward_in_place(&it.complex[0])
        }),
        row!("fft.real_inverse_in_place", "batch", [0, 1], |it, s| {
            it.fft.transform(&[2]).batch(s).real_inverse_in_place(&it.complex[0])
        }),
    ]
}

pub(super) fn random_rows() -> Vec<Row> {
    fn offset(it: &Calls, s: usize) -> Draw<'_> {
        it.random.draw(1).offset(s as u64)
    }
    vec![
        Row {
            call: "rand.uniform",
            of: "offset",
            good: &SIZES[..7],
            submit: |it, s| offset(it, s).fill(&it.x, Uniform).map(drop),
        },
        Row {
            call: "rand.bits",
            of: "offset",
            good: &SIZES[..7],
            submit: |it, s| offset(it, s).fill(&it.words, Bits).map(drop),
        },
        Row {
            call: "rand.permutation",
            of: "offset",
            good: &SIZES[..7],
            submit: |it, s| offset(it, s).fill(&it.words, Permutation).map(drop),
        },
    ]
}

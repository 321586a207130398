//! What Hopper added: products of warpgroups, tensor copies, bulk copies and clusters give on the simulated device what they give on the GPU.
//!
//! Every trial has an oracle here, too, so that it can fail on a machine without a GPU.

mod beside_gpu;
mod bulk_trials;
mod cluster_trials;
mod element;
mod reduction;
mod tensor_box;
mod tensor_columns;
mod tensor_kernel;
mod tensor_replaced;
mod tensor_trials;
mod trial;
mod warpgroup;
mod warpgroup_judge;
mod warpgroup_trials;

use beside_gpu::{judge, unmatched};

#[test]
fn products_of_warpgroups_of_every_width_are_those_of_the_gpu() {
    judge("hopper::products_of_warpgroups_of_every_width_are_those_of_the_gpu", &warpgroup_trials::widths());
}

#[test]
fn products_of_warpgroups_in_every_layout_are_those_of_the_gpu() {
    judge(
        "hopper::products_of_warpgroups_in_every_layout_are_those_of_the_gpu",
        &warpgroup_trials::layouts(),
    );
}

#[test]
fn products_of_warpgroups_with_other_signs_are_those_of_the_gpu() {
    judge("hopper::products_of_warpgroups_with_other_signs_are_those_of_the_gpu", &warpgroup_trials::signs());
}

#[test]
fn tensor_loads_are_those_of_the_gpu() {
    judge("hopper::tensor_loads_are_those_of_the_gpu", &tensor_trials::loads());
}

#[test]
fn tensor_stores_are_those_of_the_gpu() {
    judge("hopper::tensor_stores_are_those_of_the_gpu", &tensor_trials::stores());
}

#[test]
fn tensor_reductions_are_those_of_the_gpu() {
    judge("hopper::tensor_reductions_are_those_of_the_gpu", &tensor_trials::reductions());
}

#[test]
fn columns_of_pixels_are_those_of_the_gpu() {
    judge("hopper::columns_of_pixels_are_those_of_the_gpu", &tensor_columns::columns());
}

#[test]
fn copies_to_several_blocks_are_those_of_the_gpu() {
    judge("hopper::copies_to_several_blocks_are_those_of_the_gpu", &tensor_columns::multicasts());
}

#[test]
fn tensor_maps_that_kernels_change_are_those_of_the_gpu() {
    judge("hopper::tensor_maps_that_kernels_change_are_those_of_the_gpu", &tensor_replaced::replaced());
}

#[test]
fn bulk_copies_are_those_of_the_gpu() {
    judge("hopper::bulk_copies_are_those_of_the_gpu", &bulk_trials::trials());
}

#[test]
fn blocks_of_a_cluster_meet_as_on_the_gpu() {
    judge("hopper::blocks_of_a_cluster_meet_as_on_the_gpu", &cluster_trials::meetings());
}

#[test]
fn messages_between_blocks_are_those_of_the_gpu() {
    judge("hopper::messages_between_blocks_are_those_of_the_gpu", &cluster_trials::messages());
}

#[test]
fn every_trial_has_one_answer_of_a_gpu_and_every_answer_a_trial() {
    let lists = [
        warpgroup_trials::widths(),
        warpgroup_trials::layouts(),
        warpgroup_trials::signs(),
        tensor_trials::loads(),
        tensor_trials::stores(),
        tensor_trials::reductions(),
        tensor_columns::columns(),
        tensor_columns::multicasts(),
        tensor_replaced::replaced(),
        bulk_trials::trials(),
        cluster_trials::meetings(),
        cluster_trials::messages(),
    ];
    let wrong = unmatched(&lists.into_iter().flatten().collect::<Vec<_>>());
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}

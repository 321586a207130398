//! The forms of tensor copies.

use crate::{Flag, Form, Modifier, Opcode, Operation, Space};

/// What a tensor copy does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TensorAction {
    /// Global to shared memory; to several blocks of the cluster if `multicast`.
    Load {
        multicast: bool,
    },
    Store,
    Reduce(Operation),
    Prefetch,
}

/// A form of a tensor copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TensorForm {
    pub(crate) action: TensorAction,
    pub(crate) dimensions: usize,
    pub(crate) im2col: bool,
    /// Whether each of the four rows has a coordinate: `tile::gather4` and `tile::scatter4`.
    pub(crate) four_rows: bool,
    /// Whether shared memory is that of any block of the cluster.
    pub(crate) cluster: bool,
}

/// What completes bytes of an `mbarrier` object.
const COMPLETES: &str = "mbarrier::complete_tx::bytes";

impl TensorForm {
    /// The copy that a form means; `None` if there is none such, or none that is executed.
    pub(crate) fn of(form: &Form) -> Option<Self> {
        if form.opcode() != Opcode::Cp || !form.has(Flag::Tensor) || !form.has(Flag::Bulk) {
            return None;
        }
        let mut words = Vec::new();
        for modifier in form.modifiers() {
            match modifier {
                Modifier::Flag(Flag::Async | Flag::Bulk | Flag::Tensor | Flag::Prefetch | Flag::Reduce) => {}
                Modifier::Space(_) | Modifier::Cache(_) | Modifier::Operation(_) => {}
                other => words.push(other.keyword()),
            }
        }
        let mut take = |word: &str| match words.iter().position(|other| *other == word) {
            Some(at) => {
                words.remove(at);
                true
            }
            None => false,
        };
        let dimensions = (1..=5).find(|count| take(&format!("{count}d")))?;
        let is_tile = take("tile");
        let (gathers, scatters) = (take("tile::gather4"), take("tile::scatter4"));
        // The object lies in the block's memory here anyway.
        let is_own_object = take("cta_group::1");
        let (is_column, is_plain_column) = (take("im2col"), take("im2col_no_offs"));
        let (completes, is_grouped) = (take(COMPLETES), take("bulk_group"));
        let multicast = take("multicast::cluster");
        if !words.is_empty()
            || [is_tile, gathers, scatters, is_column, is_plain_column].into_iter().filter(|is| *is).count()
                > 1
        {
            return None;
        }
        let spaces: Vec<Space> = form.spaces().map(Space::base).collect();
        let action = match &spaces[..] {
            [Space::Shared | Space::SharedCluster, Space::Global]
                if completes && !is_plain_column && !scatters =>
            {
                TensorAction::Load { multicast }
            }
            [Space::Global, Space::Shared] if is_grouped && !is_column && !gathers => {
                match form.operation() {
                    Some(operation) if form.has(Flag::Reduce) => TensorAction::Reduce(operation),
                    None if !form.has(Flag::Reduce) => TensorAction::Store,
                    _ => return None,
                }
            }
            [Space::Global] if form.has(Flag::Prefetch) && !is_plain_column && !scatters => {
                TensorAction::Prefetch
            }
            _ => return None,
        };
        let is_load = matches!(action, TensorAction::Load { .. });
        let cluster = spaces.first() == Some(&Space::SharedCluster);
        let (im2col, four_rows) = (is_column || is_plain_column, gathers || scatters);
        let fits = completes == is_load
            && is_grouped == matches!(action, TensorAction::Store | TensorAction::Reduce(_))
            && form.has(Flag::Prefetch) == (action == TensorAction::Prefetch)
            && (!multicast || is_load && cluster)
            && (!is_own_object || is_load)
            && (!four_rows || dimensions == 2)
            && (!im2col || dimensions >= 3);
        fits.then_some(Self { action, dimensions, im2col, four_rows, cluster })
    }
}

/// A field of a tensor map that `tensormap.replace` changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MapField {
    Address,
    Rank,
    BoxDim,
    GlobalDim,
    GlobalStride,
    ElementStride,
    Element,
    Interleave,
    Swizzle,
    Fill,
}

impl MapField {
    const NAMES: [(&'static str, Self); 10] = [
        ("global_address", Self::Address),
        ("rank", Self::Rank),
        ("box_dim", Self::BoxDim),
        ("global_dim", Self::GlobalDim),
        ("global_stride", Self::GlobalStride),
        ("element_stride", Self::ElementStride),
        ("elemtype", Self::Element),
        ("interleave_layout", Self::Interleave),
        ("swizzle_mode", Self::Swizzle),
        ("fill_mode", Self::Fill),
    ];

    /// The field that a form of `tensormap.replace` changes.
    pub(crate) fn of(form: &Form) -> Option<Self> {
        let is_replace =
            form.opcode() == Opcode::Tensormap && form.has_word("replace") && form.has_word("tile");
        let named = |(name, field): &(&str, Self)| form.has_word(name).then_some(*field);
        Self::NAMES.iter().find_map(named).filter(|_| is_replace)
    }

    /// Whether the field has a number for each dimension.
    pub(crate) fn is_list(self) -> bool {
        matches!(self, Self::BoxDim | Self::GlobalDim | Self::GlobalStride | Self::ElementStride)
    }

    pub(crate) fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, field)| *field == self).map_or("", |(name, _)| name)
    }
}

/// Whether a form is `tensormap.cp_fenceproxy`.
pub(crate) fn is_map_copy(form: &Form) -> bool {
    form.opcode() == Opcode::Tensormap && form.has_word("cp_fenceproxy")
}

/// Whether an instruction on tensors or their maps is executed, as far as its form tells.
pub(crate) fn is_run(form: &Form) -> bool {
    TensorForm::of(form).is_some() || MapField::of(form).is_some() || is_map_copy(form)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_known_or_not() {
        let of = |text: &str| {
            TensorForm::of(&Form::read(text)).map(|form| (form.action, form.dimensions, form.im2col))
        };
        let load = |multicast| TensorAction::Load { multicast };
        let name = "cp.async.bulk.tensor.2d.shared::cluster.global";
        let tx = "mbarrier::complete_tx::bytes";
        assert_eq!(of(&format!("{name}.tile.{tx}")), Some((load(false), 2, false)));
        assert_eq!(
            of(&format!("{name}.{tx}.multicast::cluster.L2::cache_hint")),
            Some((load(true), 2, false))
        );
        assert_eq!(
            of(&format!("{}.{tx}.tile", name.replace("cluster", "cta"))),
            Some((load(false), 2, false))
        );
        assert_eq!(of(&format!("{}.im2col.{tx}", name.replace("2d", "4d"))), Some((load(false), 4, true)));
        assert_eq!(of(&format!("{name}.im2col.{tx}")), None);
        assert_eq!(of(&format!("{name}.tile::gather4.{tx}.cta_group::1")), Some((load(false), 2, false)));
        assert_eq!(of(&format!("{}.tile::gather4.{tx}", name.replace("2d", "3d"))), None);
        assert_eq!(of(&format!("{name}.tile::scatter4.{tx}")), None);
        assert_eq!(of(&format!("{name}.tile.{tx}.cta_group::2")), None);
        assert_eq!(of(&format!("{name}.bulk_group")), None);
        let store = "cp.async.bulk.tensor.5d.global.shared::cta.bulk_group";
        assert_eq!(of(store), Some((TensorAction::Store, 5, false)));
        assert_eq!(of(&store.replace("cta.", "cta.im2col_no_offs.")), Some((TensorAction::Store, 5, true)));
        let reduce = "cp.reduce.async.bulk.tensor.1d.global.shared::cta.add.tile.bulk_group";
        assert_eq!(of(reduce), Some((TensorAction::Reduce(Operation::Add), 1, false)));
        let scatter = "cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group";
        assert!(TensorForm::of(&Form::read(scatter)).is_some_and(|form| form.four_rows));
        assert_eq!(of(&scatter.replace("scatter", "gather")), None);
        let prefetch = "cp.async.bulk.prefetch.tensor.3d.L2.global.tile";
        assert_eq!(of(prefetch), Some((TensorAction::Prefetch, 3, false)));
        let field = |text: &str| MapField::of(&Form::read(text));
        assert_eq!(
            field("tensormap.replace.tile.global_dim.shared::cta.b1024.b32"),
            Some(MapField::GlobalDim)
        );
        assert_eq!(field("tensormap.replace.tile.swizzle_atomicity.global.b1024.b32"), None);
    }
}

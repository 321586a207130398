//! Generic addresses of shared and local memory: whose memory they mean.

use super::access::Access;
use super::{Done, Warp};
use crate::exec::block::Cta;
use crate::exec::finding::ExecFindingKind;
use crate::exec::memory::generic_address::{
    Place, cluster_rank, in_window, is_outside_cluster, local_window, owner_of,
};
use crate::exec::warp_register::{Column, LANES, each, first_lane, lanes_where};

impl Warp {
    /// The lanes that reach the same memory as the first of them; their addresses become addresses in it.
    #[inline]
    pub(super) fn resolve(
        &self,
        cta: &mut Cta<'_>,
        at: usize,
        access: &mut Access,
        place: Place,
        addresses: &mut Column,
        lanes: u32,
    ) -> Done<u32> {
        if place == Place::Cluster {
            return self.resolve_shared(cta, at, access, place, addresses, lanes);
        }
        if place != Place::Generic {
            return Ok(lanes);
        }
        let first = addresses[first_lane(lanes)];
        let place = Place::at(first);
        if place == Place::Shared && (cta.is_clustered() || is_outside_cluster(first)) {
            return self.resolve_shared(cta, at, access, place, addresses, lanes);
        }
        cta.visit(None);
        access.block = None;
        let group = lanes_where(lanes, |lane| Place::at(addresses[lane]) == place);
        access.place = place;
        if place != Place::Global {
            access.halves = None;
        }
        match place {
            Place::Shared | Place::Local => self.enter_windows(cta, at, access, addresses, group),
            Place::Param => each(group, |lane| addresses[lane] -= place.base()),
            Place::Global | Place::Generic | Place::Cluster => {}
        }
        Ok(group)
    }

    /// Where the local memory of a lane appears among generic addresses.
    pub(super) fn local_window(&self, cta: &Cta<'_>, lane: usize) -> u64 {
        local_window(cta.first_thread + (self.index * LANES + lane) as u64)
    }

    /// A generic address of shared or local memory as one lane sees it, and whether it means the memory of that lane. On hardware all windows are one.
    pub(super) fn in_own_window(
        &self,
        cta: &Cta<'_>,
        lane: usize,
        place: Place,
        address: u64,
    ) -> (u64, bool) {
        let window = match place {
            Place::Local => self.local_window(cta, lane),
            Place::Shared => cta.shared_window,
            place => return (address.wrapping_sub(place.base()), true),
        };
        in_window(address, window).map_or((address & 0xffff_ffff, false), |within| (within, true))
    }

    /// Makes generic addresses such in shared or local memory. Those of another block or thread are reported, and reach the own memory, as on hardware.
    pub(super) fn enter_windows(
        &self,
        cta: &Cta<'_>,
        at: usize,
        access: &Access,
        addresses: &mut Column,
        lanes: u32,
    ) {
        let foreign = lanes_where(lanes, |lane| {
            let (within, is_own) = self.in_own_window(cta, lane, access.place, addresses[lane]);
            if is_own {
                addresses[lane] = within;
            }
            !is_own
        });
        each(foreign, |lane| {
            let near = owner_words(cta, access.place, addresses[lane]);
            addresses[lane] &= 0xffff_ffff;
            let bad = ExecFindingKind::OutOfBounds(access.bad(addresses[lane], near));
            cta.report(self.index, lane, self.lane_groups[at].pc, bad);
        });
    }

    /// Words for an address in shared or local memory that was made from a generic one of another block or thread, if it was.
    pub(super) fn foreign_words(
        &self,
        cta: &Cta<'_>,
        lane: usize,
        place: Place,
        address: u64,
    ) -> Option<String> {
        if let (Place::Shared, Some(rank)) = (place, cluster_rank(address).0.filter(|_| cta.is_clustered())) {
            return Some(format!(
                "in the shared memory of rank {rank} of the cluster, which `.shared` does not reach; access it with `.shared::cluster`"
            ));
        }
        let window = if place == Place::Local { self.local_window(cta, lane) } else { cta.shared_window };
        let generic = window.wrapping_add(address);
        let is_foreign = Place::at(generic) == place && in_window(generic, window).is_none();
        is_foreign.then(|| owner_words(cta, place, generic))
    }
}

fn shape_is_clustered(cta: &Cta<'_>) -> bool {
    cta.launch.clusters.size() > 1
}

/// Whose memory an address means, in words that complete "which is ...".
fn owner_words(cta: &Cta<'_>, place: Place, address: u64) -> String {
    let shape = &cta.launch.shape;
    let block = |number: u64| {
        let [x, y, z] = cta.launch.block_index(number);
        format!("block ({x},{y},{z})")
    };
    let threads = shape.threads().max(1);
    if place == Place::Shared {
        let owner = owner_of(address, shape.blocks()).map_or("another block".to_owned(), block);
        return match shape_is_clustered(cta) {
            true => format!(
                "in the shared memory of {owner}: a pointer to shared memory is valid in its own cluster alone, and of other blocks than its own by \
                 `.shared::cluster` or generic accesses alone"
            ),
            false => format!(
                "in the shared memory of {owner}: a pointer to shared memory is valid in its own block alone"
            ),
        };
    }
    let owner = match owner_of(address, shape.blocks().saturating_mul(threads)) {
        Some(number) => {
            let within = (number % threads) as usize;
            let [x, y, z] = cta.thread(within / LANES, within % LANES);
            format!("thread ({x},{y},{z}) of {}", block(number / threads))
        }
        None => "another thread".to_owned(),
    };
    format!("in the local memory of {owner}: a pointer to local memory is valid in its own thread alone")
}

//! The trees of hosts through which an all-reduce goes.

/// The links of a tree: chains of devices in each host, and two binary trees of hosts.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct HostTree {
    /// Neighbours in the chains.
    pub(crate) chains: Vec<(u32, u32)>,
    /// Steps along the longest chain.
    pub(crate) chain_steps: u64,
    /// First devices of hosts that are joined in one of the binary trees.
    pub(crate) edges: Vec<(u32, u32)>,
    /// Steps from the lowest host to the root.
    pub(crate) depth: u64,
}

impl HostTree {
    /// That of these devices, in the order of their ranks.
    pub(crate) fn of(devices: &[u32], host_of: impl Fn(u32) -> u32) -> Self {
        let mut hosts: Vec<(u32, Vec<u32>)> = Vec::new();
        for device in devices {
            let host = host_of(*device);
            match hosts.iter_mut().find(|(known, _)| *known == host) {
                Some((_, members)) => members.push(*device),
                None => hosts.push((host, vec![*device])),
            }
        }
        let chains = hosts.iter().flat_map(|(_, members)| members.windows(2).map(|pair| (pair[0], pair[1])));
        let chain_steps = hosts.iter().map(|(_, members)| members.len() as u64 - 1).max().unwrap_or(0);
        let first = |host: u32| hosts.get(host as usize).and_then(|(_, members)| members.first()).copied();
        let count = hosts.len() as u32;
        let edge = |host: u32| Some((first(host)?, first(parent(host, count)?)?));
        // The second tree is the first one with the hosts in the opposite order.
        let mirrored = |host: u32| {
            let (one, other) = (count - 1 - host, count - 1 - parent(host, count)?);
            Some((first(one)?, first(other)?))
        };
        let edges = (0..count).filter_map(edge).chain((0..count).filter_map(mirrored)).collect();
        let steps = |host: u32| std::iter::successors(Some(host), |at| parent(*at, count)).count() as u64 - 1;
        Self { chains: chains.collect(), chain_steps, edges, depth: (0..count).map(steps).max().unwrap_or(0) }
    }
}

/// Whom a host passes its sum to in a binary tree of so many hosts, with host 0 at the root: hosts with odd numbers are leaves, and the number of trailing zeros is the height.
fn parent(host: u32, count: u32) -> Option<u32> {
    if host == 0 {
        return None;
    }
    let height = 1 << host.trailing_zeros();
    let below = host - height;
    let upper = below | (height << 1);
    Some(if upper < count { upper } else { below })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_in_two_trees_of_logarithmic_depth() {
        for count in 1..70_u32 {
            let devices: Vec<u32> = (0..count).collect();
            let tree = HostTree::of(&devices, |device| device);
            assert_eq!((tree.chains.len(), tree.chain_steps), (0, 0));
            assert_eq!(tree.edges.len() as u32, 2 * (count - 1), "{count}");
            let limit = u64::from(u32::BITS - count.leading_zeros());
            assert!(tree.depth <= limit, "{count}: {}", tree.depth);
            // No host has more than two below it.
            let (first, second) = tree.edges.split_at(count as usize - 1);
            for edges in [first, second] {
                let below = |host: u32| edges.iter().filter(|(_, upper)| *upper == host).count();
                assert!((0..count).all(|host| below(host) <= 2), "{count}: {edges:?}");
            }
        }
    }

    #[test]
    fn devices_of_a_host_are_a_chain() {
        let tree = HostTree::of(&[0, 1, 2, 3, 4, 5], |device| device / 3);
        assert_eq!(tree.chains, [(0, 1), (1, 2), (3, 4), (4, 5)]);
        assert_eq!(tree.edges, [(3, 0), (0, 3)]);
        assert_eq!((tree.chain_steps, tree.depth), (2, 1));
        let alone = HostTree::of(&[7], |_| 0);
        assert_eq!((alone.chain_steps, alone.depth, alone.edges.len()), (0, 0, 0));
    }
}

//! Why a text is no topology.

/// Why a text is no topology.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TopologyError {
    /// Something else was expected at a place of the text.
    #[error(
        "column {column}: {found} where {expected} is expected; write it as `8x nvlink(450GB/s, 1us) per host, 4 hosts over 8x 400Gb/s, 5us`"
    )]
    Unexpected {
        /// The place, in characters, counted from 1.
        column: usize,
        /// What stands there.
        found: String,
        /// What is expected.
        expected: &'static str,
    },
    /// A number outside of its range.
    #[error("column {column}: {what} is {given}; it must be from {least} to {most}")]
    Range {
        /// The place, in characters, counted from 1.
        column: usize,
        /// What the number is.
        what: &'static str,
        /// The number.
        given: String,
        /// The least that is accepted.
        least: &'static str,
        /// The most that is accepted.
        most: &'static str,
    },
    /// A topology has at least one host.
    #[error("a topology of 0 hosts; it has at least one")]
    NoHosts,
    /// Several hosts need a network.
    #[error("{hosts} hosts and no network; add `, {hosts} hosts over 400Gb/s`")]
    NoNetwork {
        /// The number of hosts.
        hosts: u32,
    },
    /// Ranks that do not fill hosts.
    #[error("{ranks} ranks on hosts of {per_host}; use 1 to {per_host}, or a multiple of {per_host}")]
    Ranks {
        /// The number of ranks.
        ranks: u32,
        /// The devices of one host.
        per_host: u32,
    },
    /// Too many ranks.
    #[error("{ranks} ranks; a topology has at most {}", super::MAX_RANKS)]
    TooManyRanks {
        /// The number of ranks.
        ranks: u64,
    },
}

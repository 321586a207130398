//! Why the variables of a launcher cannot be used.

use crate::launcher::Launcher;

/// Why the variables of a launcher cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RankEnvironmentError {
    /// A launcher of which only a part is set.
    #[error(
        "{marker} is set{}, and {} is not; start every rank by the launcher, or set it by hand",
        by(*.launcher), .names.join(" or ")
    )]
    Missing {
        /// The launcher.
        launcher: Launcher,
        /// What would hold the number; one of them is enough.
        names: &'static [&'static str],
        /// The variable that showed the launcher.
        marker: &'static str,
    },
    /// A variable that should be a number.
    #[error("{name} is `{text}`, which is no whole number from 0 to 4294967295; correct it")]
    NoNumber {
        /// The variable.
        name: &'static str,
        /// Its value.
        text: String,
    },
    /// A rank that is not below the number of ranks.
    #[error(
        "{rank_name} is {rank} and {size_name} is {size}; ranks are counted from 0 and are below the number of ranks: correct one of the two"
    )]
    Rank {
        /// The variable of the rank.
        rank_name: &'static str,
        /// The rank.
        rank: u32,
        /// The variable of the number of ranks.
        size_name: &'static str,
        /// The number of ranks.
        size: u32,
    },
    /// A variable that should be a port.
    #[error("{name} has the port `{text}`, which is no number from 1 to 65535; correct it")]
    NoPort {
        /// The variable.
        name: &'static str,
        /// Its value, or the part of it that should be the port.
        text: String,
    },
    /// A variable that should be a host and a port.
    #[error("{name} is `{text}`; set it to a host and a port, such as `node0:29500`")]
    NoHostAndPort {
        /// The variable.
        name: &'static str,
        /// Its value.
        text: String,
    },
    /// A host without a port, or a port without a host.
    #[error("{set} is set and {missing} is not; set both or neither")]
    HalfAMeetingPoint {
        /// The variable that is set.
        set: &'static str,
        /// The other one.
        missing: &'static str,
    },
    /// A list of nodes that Slurm would not write.
    #[error(
        "{name} is `{text}`, which is no list of nodes; set MASTER_ADDR and MASTER_PORT, or KILN_MEETING_POINT"
    )]
    NodeList {
        /// The variable.
        name: &'static str,
        /// Its value.
        text: String,
    },
}

/// Who sets such variables, where that is not the variable itself.
fn by(launcher: Launcher) -> String {
    match launcher {
        Launcher::ByHand => ", as `kiln launch` does".into(),
        launcher => format!(", as by {launcher}"),
    }
}

//! Special registers: values the hardware provides.

use std::fmt;

use crate::keyword::keywords;

/// One axis of a three-dimensional value, or the fourth element that always reads zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Axis {
    /// First.
    X,
    /// Second.
    Y,
    /// Third.
    Z,
    /// Always zero.
    W,
}

impl Axis {
    /// The axis named by one letter: `x`, `y`, `z`, `w`, or the colour names of the same elements.
    pub fn from_letter(letter: &str) -> Option<Self> {
        match letter {
            "x" | "r" => Some(Self::X),
            "y" | "g" => Some(Self::Y),
            "z" | "b" => Some(Self::Z),
            "w" | "a" => Some(Self::W),
            _ => None,
        }
    }

    /// The letter PTX prints.
    pub fn letter(self) -> char {
        match self {
            Self::X => 'x',
            Self::Y => 'y',
            Self::Z => 'z',
            Self::W => 'w',
        }
    }

    /// 0 to 3.
    pub fn index(self) -> usize {
        self as usize
    }
}

keywords! {
    /// A special register without its axis.
    pub enum SpecialName {
        Tid = "tid", Ntid = "ntid", Ctaid = "ctaid", Nctaid = "nctaid",
        Laneid = "laneid", Warpid = "warpid", Nwarpid = "nwarpid", Smid = "smid", Nsmid = "nsmid",
        Gridid = "gridid", IsExplicitCluster = "is_explicit_cluster",
        Clusterid = "clusterid", Nclusterid = "nclusterid", ClusterCtaid = "cluster_ctaid",
        ClusterNctaid = "cluster_nctaid", ClusterCtarank = "cluster_ctarank",
        ClusterNctarank = "cluster_nctarank",
        LanemaskEq = "lanemask_eq", LanemaskLe = "lanemask_le", LanemaskLt = "lanemask_lt",
        LanemaskGe = "lanemask_ge", LanemaskGt = "lanemask_gt",
        Clock = "clock", ClockHi = "clock_hi", Clock64 = "clock64",
        Globaltimer = "globaltimer", GlobaltimerLo = "globaltimer_lo", GlobaltimerHi = "globaltimer_hi",
        Pm0 = "pm0", Pm1 = "pm1", Pm2 = "pm2", Pm3 = "pm3", Pm4 = "pm4", Pm5 = "pm5", Pm6 = "pm6", Pm7 = "pm7",
        Pm064 = "pm0_64", Pm164 = "pm1_64", Pm264 = "pm2_64", Pm364 = "pm3_64", Pm464 = "pm4_64",
        Pm564 = "pm5_64", Pm664 = "pm6_64", Pm764 = "pm7_64",
        ReservedSmemOffsetBegin = "reserved_smem_offset_begin",
        ReservedSmemOffsetEnd = "reserved_smem_offset_end",
        ReservedSmemOffsetCap = "reserved_smem_offset_cap",
        ReservedSmemOffset0 = "reserved_smem_offset_0", ReservedSmemOffset1 = "reserved_smem_offset_1",
        TotalSmemSize = "total_smem_size", AggrSmemSize = "aggr_smem_size",
        DynamicSmemSize = "dynamic_smem_size", CurrentGraphExec = "current_graph_exec",
    }
}

/// A special register as an operand: `%tid.x`, `%laneid`, `%envreg3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SpecialRegister {
    /// A named register, with the axis when one is written.
    Named(SpecialName, Option<Axis>),
    /// `%envreg0` to `%envreg31`: set by the driver.
    Env(u8),
}

impl SpecialRegister {
    /// Reads a name with its percent sign.
    ///
    /// ```
    /// use kiln_ptx::{Axis, SpecialName, SpecialRegister};
    ///
    /// let x = SpecialRegister::from_name("%ctaid.x");
    /// assert_eq!(x, Some(SpecialRegister::Named(SpecialName::Ctaid, Some(Axis::X))));
    /// ```
    pub fn from_name(name: &str) -> Option<Self> {
        let name = name.strip_prefix('%')?;
        if let Some(number) = name.strip_prefix("envreg") {
            return number.parse().ok().filter(|n| *n < 32 && number.len() <= 2).map(Self::Env);
        }
        match name.split_once('.') {
            None => SpecialName::from_keyword(name).map(|n| Self::Named(n, None)),
            Some((name, axis)) => {
                Some(Self::Named(SpecialName::from_keyword(name)?, Some(Axis::from_letter(axis)?)))
            }
        }
    }
}

impl fmt::Display for SpecialRegister {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(name, None) => write!(f, "%{name}"),
            Self::Named(name, Some(axis)) => write!(f, "%{name}.{}", axis.letter()),
            Self::Env(n) => write!(f, "%envreg{n}"),
        }
    }
}

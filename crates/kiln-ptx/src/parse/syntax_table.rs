//! The instructions about barriers, copies, fences and their like: which words each has, and which operands.
//!
//! The words are those of the manual of PTX 9.0. A line is tried if its first words are those of the instruction. Words are separated by blanks; of words with `|` between them one
//! is needed.

use crate::opcode::Opcode;

/// One form of an instruction.
pub(super) struct Syntax {
    pub(super) opcode: Opcode,
    /// The words that come first, in this order.
    pub(super) head: &'static str,
    /// The words that may follow.
    pub(super) taken: &'static str,
    /// Those of them that are needed.
    pub(super) needed: &'static str,
    /// The operands, one letter each, and further possibilities behind `/`; see [`Kind`](super::syntax::Kind). `*` for what other code looks at.
    pub(super) operands: &'static str,
}

const fn line(
    opcode: Opcode,
    head: &'static str,
    taken: &'static str,
    needed: &'static str,
    operands: &'static str,
) -> Syntax {
    Syntax { opcode, head, taken, needed, operands }
}

const COUNTED: &str = "s m n";
const COPY_WORDS: &str =
    "ca cg shared shared::cta global L2::cache_hint L2::64B L2::128B L2::256B L2::evict_first L2::evict_last";
const LEVELS: &str = "cta|cluster|gpu|sys";

/// All of them. Instructions of an opcode that is named here have one of its forms.
pub(super) const TABLE: &[Syntax] = &[
    line(Opcode::Bar, "sync", "", "", "n/n n"),
    line(Opcode::Bar, "cta sync", "", "", "n/n n"),
    line(Opcode::Bar, "arrive", "", "", "n n"),
    line(Opcode::Bar, "cta arrive", "", "", "n n"),
    line(Opcode::Bar, "red", "popc u32", "popc u32", "r n p/r n n p"),
    line(Opcode::Bar, "red", "and or pred", "and|or pred", "p n p/p n n p"),
    line(Opcode::Bar, "cta red", "popc u32", "popc u32", "r n p/r n n p"),
    line(Opcode::Bar, "cta red", "and or pred", "and|or pred", "p n p/p n n p"),
    line(Opcode::Bar, "warp sync", "", "", "n"),
    line(Opcode::Barrier, "sync", "aligned", "", "n/n n"),
    line(Opcode::Barrier, "cta sync", "aligned", "", "n/n n"),
    line(Opcode::Barrier, "arrive", "aligned", "", "n n"),
    line(Opcode::Barrier, "cta arrive", "aligned", "", "n n"),
    line(Opcode::Barrier, "red", "popc u32 aligned", "popc u32", "r n p/r n n p"),
    line(Opcode::Barrier, "red", "and or pred aligned", "and|or pred", "p n p/p n n p"),
    line(Opcode::Barrier, "cta red", "popc u32 aligned", "popc u32", "r n p/r n n p"),
    line(Opcode::Barrier, "cta red", "and or pred aligned", "and|or pred", "p n p/p n n p"),
    line(Opcode::Barrier, "cluster arrive", "release relaxed aligned", "", ""),
    line(Opcode::Barrier, "cluster wait", "acquire aligned", "", ""),
    line(Opcode::Mbarrier, "init", "shared shared::cta b64", "b64", "m n"),
    line(Opcode::Mbarrier, "inval", "shared shared::cta b64", "b64", "m"),
    line(Opcode::Mbarrier, "expect_tx", TRANSACTION, "b64", "m n"),
    line(Opcode::Mbarrier, "complete_tx", TRANSACTION, "b64", "m n"),
    line(Opcode::Mbarrier, "arrive", ARRIVAL, "b64", "s m/s m n"),
    line(Opcode::Mbarrier, "arrive expect_tx", ARRIVAL, "b64", COUNTED),
    line(Opcode::Mbarrier, "arrive noComplete", ARRIVAL, "b64", COUNTED),
    line(Opcode::Mbarrier, "arrive_drop", ARRIVAL, "b64", "s m/s m n"),
    line(Opcode::Mbarrier, "arrive_drop expect_tx", ARRIVAL, "b64", COUNTED),
    line(Opcode::Mbarrier, "arrive_drop noComplete", ARRIVAL, "b64", COUNTED),
    line(Opcode::Mbarrier, "test_wait", LOOK, "b64", "p m q"),
    line(Opcode::Mbarrier, "test_wait parity", LOOK, "b64", "p m n"),
    line(Opcode::Mbarrier, "try_wait", LOOK, "b64", "p m q/p m q n"),
    line(Opcode::Mbarrier, "try_wait parity", LOOK, "b64", "p m n/p m n n"),
    line(Opcode::Mbarrier, "pending_count", "b64", "b64", "r q"),
    line(Opcode::Cp, "async", COPY_WORDS, "ca|cg shared|shared::cta global", "m m i/m m i a/m m i a a"),
    line(Opcode::Cp, "async commit_group", "", "", ""),
    line(Opcode::Cp, "async wait_group", "", "", "i"),
    line(Opcode::Cp, "async wait_all", "", "", ""),
    line(Opcode::Cp, "async mbarrier arrive", "noinc shared shared::cta b64", "b64", "m"),
    line(Opcode::Cp, "async bulk commit_group", "", "", ""),
    line(Opcode::Cp, "async bulk wait_group", "read", "", "i"),
    line(
        Opcode::Cp,
        "async bulk shared::cluster global",
        BULK_MULTICAST,
        BULK_BYTES,
        "m m n m/m m n m a/m m n m a a",
    ),
    line(Opcode::Cp, "async bulk shared::cta global", BULK_HINTED, BULK_BYTES, "m m n m/m m n m a"),
    line(Opcode::Cp, "async bulk shared::cluster shared::cta", BULK_BYTES, BULK_BYTES, "m m n m"),
    line(Opcode::Cp, "async bulk global shared::cta", BULK_STORED, "bulk_group", "m m n/m m n a/m m n a a"),
    line(Opcode::Cp, "async bulk prefetch L2 global", "L2::cache_hint", "", "m n/m n a"),
    line(Opcode::Cp, "async bulk tensor", "*", "", "*"),
    line(Opcode::Cp, "async bulk prefetch tensor", "*", "", "*"),
    line(Opcode::Cp, "reduce async bulk", "*", "", "*"),
    line(Opcode::Fence, "", FENCE, LEVELS, ""),
    line(Opcode::Fence, "mbarrier_init", "release cluster", "release cluster", ""),
    line(Opcode::Fence, "proxy alias", "", "", ""),
    line(Opcode::Fence, "proxy async", "global shared::cta shared::cluster", "", ""),
    line(Opcode::Fence, "proxy async::generic", FETCHED, FETCHED, ""),
    line(Opcode::Fence, "proxy async::generic", GIVEN, GIVEN, ""),
    line(Opcode::Fence, "proxy tensormap::generic", "release cta cluster gpu sys", RELEASED, ""),
    line(Opcode::Fence, "proxy tensormap::generic", "acquire cta cluster gpu sys", ACQUIRED, "m i"),
    line(Opcode::Setmaxnreg, "inc", "sync aligned u32 s32", "sync aligned u32|s32", "i"),
    line(Opcode::Setmaxnreg, "dec", "sync aligned u32 s32", "sync aligned u32|s32", "i"),
    line(Opcode::Mapa, "", "shared::cluster u32", "u32", "r v n"),
    line(Opcode::Mapa, "", "shared::cluster u64", "u64", "q w n"),
    line(Opcode::Getctarank, "", "shared::cluster u32 s32", "u32|s32", "r v"),
    line(Opcode::Getctarank, "", "shared::cluster u64 s64", "u64|s64", "r w"),
    line(Opcode::Discard, "", "global L2", "L2", "m l"),
    line(Opcode::Applypriority, "", "global L2::evict_normal", "L2::evict_normal", "m l"),
    line(Opcode::Elect, "", "sync", "sync", "e n"),
    line(Opcode::Membar, "", "cta gl sys", "cta|gl|sys", ""),
    line(Opcode::Membar, "proxy alias", "", "", ""),
    line(Opcode::Griddepcontrol, "wait", "", "", ""),
    line(Opcode::Griddepcontrol, "launch_dependents", "", "", ""),
    line(Opcode::Prefetchu, "", "L1", "L1", "m"),
    line(Opcode::Ret, "", "uni", "", ""),
];

const TRANSACTION: &str = "relaxed cta cluster shared shared::cta shared::cluster b64";
const ARRIVAL: &str = "release relaxed cta cluster shared shared::cta shared::cluster b64";
const LOOK: &str = "acquire relaxed cta cluster shared shared::cta b64";
const FENCE: &str = "sc acq_rel acquire release relaxed cta cluster gpu sys sync_restrict::shared::cluster \
    sync_restrict::shared::cta";
const BULK_BYTES: &str = "mbarrier::complete_tx::bytes";
const BULK_HINTED: &str = "mbarrier::complete_tx::bytes L2::cache_hint";
const BULK_MULTICAST: &str = "mbarrier::complete_tx::bytes multicast::cluster L2::cache_hint";
const BULK_STORED: &str = "bulk_group L2::cache_hint cp_mask";
const FETCHED: &str = "acquire sync_restrict::shared::cluster cluster";
const GIVEN: &str = "release sync_restrict::shared::cta cluster";
const RELEASED: &str = "release cta|cluster|gpu|sys";
const ACQUIRED: &str = "acquire cta|cluster|gpu|sys";

//! A budget on live bytes, shared with everything else that is charged to it.

use std::fmt;
use std::sync::{Arc, Weak};

use kiln_sync::{Bias, BiasedLock, PerThread};

use super::{free_below, unwrap};
use crate::allocation_counters::{self, AllocationCounters, ThreadCounters};
use crate::block::{DeviceBlock, ResourceKey};
use crate::budget::{Budget, BudgetReservation, BudgetShortage, CreditHolder};
use crate::byte_size::ByteSize;
use crate::error::{Error, ErrorKind, FreeError, MemoryRefusal, Result};
use crate::last_use::Stamps;
use crate::layer_view::LayerView;
use crate::out_of_memory::Exhausted;
use crate::reclaim::{PressurePolicy, ReclaimAttempt, ReclaimStep, Reclaimed};
use crate::request::AllocationRequest;
use crate::resource::MemoryResource;
use crate::resource_totals::Accounting;
use crate::tag::AllocTag;

/// A thread keeps at most this much of the budget at hand ...
const CREDIT_BYTES: u64 = 1 << 20;
/// ... and no more than this part of the limit.
const CREDIT_PART: u64 = 256;
/// Tags named in an error.
const TOP_TAGS: usize = 5;

/// Charges live bytes to a [`Budget`].
///
/// A thread charges a little more than it needs and pays small requests from that, so that threads do not meet at the
/// budget; when the budget is short, what all threads have at hand goes back first, here and wherever else the same
/// budget is charged.
pub struct Budgeted<R> {
    key: ResourceKey,
    credit: Arc<Credit>,
    /// Accounts below the budget for some tags.
    by_tag: Vec<(AllocTag, Budget)>,
    pressure: PressurePolicy,
    counters: AllocationCounters,
    inner: R,
}

/// A budget, and what each thread has at hand of it.
struct Credit {
    budget: Budget,
    parts: PerThread<Part>,
}

/// A thread's part.
struct Part {
    at_hand: BiasedLock<u64>,
    /// What each tag holds; for the error of a request that is refused.
    counters: ThreadCounters,
}

impl<R: MemoryResource> Budgeted<R> {
    /// Puts a budget around a resource.
    pub fn new(budget: Budget, inner: R) -> Self {
        let credit = Arc::new(Credit { budget, parts: PerThread::new() });
        let hand: Weak<dyn CreditHolder> = Arc::downgrade(&credit) as _;
        credit.budget.add_credit_holder(hand);
        let (key, pressure, counters) =
            (ResourceKey::fresh(), PressurePolicy::default(), AllocationCounters::default());
        Self { key, credit, by_tag: Vec::new(), pressure, counters, inner }
    }

    /// Charges a tag to a separate account below the budget.
    #[must_use]
    pub fn limit_tag(mut self, tag: AllocTag, limit_bytes: u64) -> Self {
        self.by_tag.retain(|(known, _)| *known != tag);
        let account = self.budget().child(tag.name(), limit_bytes);
        self.by_tag.push((tag, account));
        self
    }

    /// What may be done when the budget is short.
    #[must_use]
    pub fn under(mut self, pressure: PressurePolicy) -> Self {
        self.pressure = pressure;
        self
    }

    /// The budget.
    pub fn budget(&self) -> &Budget {
        &self.credit.budget
    }

    /// The resource below.
    pub fn inner(&self) -> &R {
        &self.inner
    }

    /// Sets bytes aside, for several allocations to draw from.
    ///
    /// # Errors
    /// Out of memory.
    pub fn reserve(&self, bytes: u64) -> Result<BudgetReservation> {
        match self.with_room(bytes, || self.budget().charge_as_it_is(bytes)) {
            Ok(()) => Ok(BudgetReservation::of_charged(self.budget(), bytes)),
            Err((short, attempts)) => Err(self.explain(&short, bytes, attempts)),
        }
    }

    /// Hands out a block that is paid from what was set aside.
    ///
    /// # Errors
    /// As for [`MemoryResource::allocate`]; out of memory when too little is left of what was set aside, or of what the
    /// tag may have; refused if it was set aside in another budget.
    pub fn allocate_from(
        &self,
        reserved: &BudgetReservation,
        request: &AllocationRequest,
    ) -> Result<DeviceBlock> {
        if !reserved.budget().is(self.budget()) {
            let what = format!("bytes set aside in {} cannot pay here", reserved.budget().name());
            let next = "set them aside with `reserve` of the same resource";
            return Err(ErrorKind::from(MemoryRefusal::Unsupported { what, next }).into());
        }
        let bytes = request.bytes;
        reserved.draw(bytes).map_err(|short| self.explain(&short, bytes, Vec::new()))?;
        // The budget is charged already; the tag's account below it is not.
        let account = self.account(request.tag);
        if let Some(account) = account {
            self.with_room(bytes, || account.charge_here(bytes)).map_err(|(short, attempts)| {
                reserved.put_back(bytes);
                self.explain(&short, bytes, attempts)
            })?;
        }
        match self.inner.allocate(request) {
            Ok(block) => Ok(self.hand_out(block)),
            Err(error) => {
                if let Some(account) = account {
                    account.refund_here(request.bytes);
                }
                reserved.put_back(request.bytes);
                Err(error)
            }
        }
    }

    fn account(&self, tag: AllocTag) -> Option<&Budget> {
        self.by_tag.iter().find(|(known, _)| *known == tag).map(|(_, account)| account)
    }

    fn own_part(&self) -> &Part {
        self.credit.parts.own(|_| Part {
            at_hand: BiasedLock::with_bias(0, Bias::Always),
            counters: ThreadCounters::new(),
        })
    }

    /// A block from below that was paid for.
    fn hand_out(&self, block: DeviceBlock) -> DeviceBlock {
        self.counters.note_allocated(&self.own_part().counters, block.tag(), block.bytes());
        block.rebound(self.key)
    }

    fn credit_limit(&self) -> u64 {
        CREDIT_BYTES.min(self.budget().limit_bytes() / CREDIT_PART)
    }

    /// Charges bytes, from what this thread has at hand if that is enough.
    fn charge(
        &self,
        tag: AllocTag,
        bytes: u64,
    ) -> std::result::Result<(), (BudgetShortage, Vec<ReclaimAttempt>)> {
        if let Some(account) = self.account(tag) {
            return self.with_room(bytes, || account.charge_as_it_is(bytes));
        }
        let is_paid = {
            let mut credit = self.own_part().at_hand.lock();
            let enough = *credit >= bytes;
            *credit -= if enough { bytes } else { 0 };
            enough
        };
        if is_paid {
            return Ok(());
        }
        let extra = self.credit_limit();
        if bytes <= extra && self.budget().charge_as_it_is(bytes + extra).is_ok() {
            *self.own_part().at_hand.lock() += extra;
            return Ok(());
        }
        self.with_room(bytes, || self.budget().charge_as_it_is(bytes))
    }

    fn refund(&self, tag: AllocTag, bytes: u64) {
        if let Some(account) = self.account(tag) {
            return account.refund(bytes);
        }
        let limit = self.credit_limit();
        let excess = {
            let mut credit = self.own_part().at_hand.lock();
            *credit += bytes;
            let excess = if *credit > 2 * limit { *credit - limit } else { 0 };
            *credit -= excess;
            excess
        };
        if excess > 0 {
            self.budget().refund(excess);
        }
    }

    /// Tries a charge, and again after each step that may have made room for it.
    fn with_room(
        &self,
        bytes: u64,
        charge: impl Fn() -> std::result::Result<(), BudgetShortage>,
    ) -> std::result::Result<(), (BudgetShortage, Vec<ReclaimAttempt>)> {
        let Err(mut last) = charge() else { return Ok(()) };
        let mut attempts = Vec::new();
        for step in self.pressure.steps.iter().copied() {
            let reclaimed = match step {
                ReclaimStep::ThreadCaches => Reclaimed::freed(self.budget().collect()),
                ReclaimStep::Callbacks => Reclaimed::freed(self.pressure.call_back(bytes)),
                // What is live stays live, whatever else is done.
                ReclaimStep::Completed
                | ReclaimStep::Ordered
                | ReclaimStep::IdlePages
                | ReclaimStep::Wait => continue,
            };
            attempts.push(ReclaimAttempt { step, reclaimed });
            match charge() {
                Ok(()) => return Ok(()),
                Err(short) => last = short,
            }
        }
        Err((last, attempts))
    }

    fn explain(&self, short: &BudgetShortage, bytes: u64, attempts: Vec<ReclaimAttempt>) -> Error {
        let top_tags =
            allocation_counters::top_tags(self.credit.parts.iter().map(|part| &part.counters), TOP_TAGS);
        let layer = format!("budget {}", short.name);
        let exhausted = Exhausted {
            limit_bytes: Some(short.limit),
            in_use_bytes: short.used,
            top_tags,
            attempts,
            ..Exhausted::over(layer, bytes, &self.inner.accounting())
        };
        ErrorKind::from(exhausted).into()
    }
}

impl CreditHolder for Credit {
    fn give_up(&self) -> u64 {
        let collected = self.parts.iter().map(|part| std::mem::take(&mut *part.at_hand.visit())).sum();
        self.budget.refund(collected);
        collected
    }
}

#[deny(clippy::missing_trait_methods)]
impl<R: MemoryResource> MemoryResource for Budgeted<R> {
    fn key(&self) -> ResourceKey {
        self.key
    }

    fn allocate(&self, request: &AllocationRequest) -> Result<DeviceBlock> {
        self.charge(request.tag, request.bytes)
            .map_err(|(short, attempts)| self.explain(&short, request.bytes, attempts))?;
        match self.inner.allocate(request) {
            Ok(block) => Ok(self.hand_out(block)),
            Err(error) => {
                self.refund(request.tag, request.bytes);
                Err(error)
            }
        }
    }

    fn deallocate(&self, block: DeviceBlock, uses: &Stamps) -> std::result::Result<(), FreeError> {
        let (tag, bytes) = (block.tag(), block.bytes());
        free_below(unwrap(block, self.key, &self.inner)?, uses, self.key, &self.inner)?;
        self.counters.note_freed(&self.own_part().counters, tag, bytes);
        self.refund(tag, bytes);
        Ok(())
    }

    fn accounting(&self) -> Accounting {
        self.inner.accounting()
    }

    fn reclaim(&self, step: ReclaimStep) -> Result<Reclaimed> {
        if step == ReclaimStep::ThreadCaches {
            self.credit.give_up();
        }
        self.inner.reclaim(step)
    }

    fn layer(&self) -> LayerView<'_> {
        LayerView::around(&self.inner).showing(self.budget())
    }
}

impl<R> Drop for Budgeted<R> {
    fn drop(&mut self) {
        self.credit.give_up();
    }
}

impl<R: MemoryResource> fmt::Display for Budgeted<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "budget({}, {})", ByteSize(self.budget().limit_bytes()), self.inner)
    }
}

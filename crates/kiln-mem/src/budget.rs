//! How much memory may be used, counted in one place for all users.
//!
//! A budget is a tree of accounts: one for a device, shared by everything in the process, and below it accounts by
//! name. Charging an account charges all above it. A charge is taken with a compare-and-swap against the limit, so a
//! request that does not fit changes nothing that others can see.
//!
//! One case needs care. A charge that fits its account but not the one above has to be taken back, and meanwhile a
//! small request that would fit sees the account full. A charge is therefore unsettled until all accounts have it, and
//! a charge that finds no room while some are unsettled looks again.
//!
//! Another case is bytes that were charged in advance and are not used yet. A holder of such bytes registers, and
//! gives them up before a request is refused on their account.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use kiln_driver::{DeviceInfo, DeviceKey, DeviceKind, Uuid};

use crate::charge_counter::Account;

/// A limit on memory, shared by all clones.
///
/// ```
/// use kiln_mem::Budget;
///
/// let device = Budget::new("device", 1000);
/// let model = device.child("model", 600);
/// model.charge(500)?;
/// assert_eq!((model.used_bytes(), device.used_bytes()), (500, 500));
/// assert!(model.charge(200).is_err(), "over its own limit");
/// assert!(device.charge(400).is_ok(), "a refused charge takes nothing from others");
/// # Ok::<(), kiln_mem::BudgetShortage>(())
/// ```
#[derive(Clone)]
pub struct Budget {
    entry: Arc<BudgetAccount>,
}

struct BudgetAccount {
    name: String,
    account: Account,
    parent: Option<Budget>,
    children: Mutex<Vec<Weak<BudgetAccount>>>,
    /// Who keeps bytes of this tree at hand; kept by the account at its root.
    hands: Mutex<Vec<Weak<dyn CreditHolder>>>,
}

/// A holder of bytes that are charged to a budget and not used yet.
pub(crate) trait CreditHolder: Send + Sync {
    /// Gives them back to the budget; returns how many.
    fn give_up(&self) -> u64;
}

/// A charge that did not fit.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{name}: {requested} bytes do not fit; {used} of {limit} are in use")]
pub struct BudgetShortage {
    /// The account that was full.
    pub name: String,
    /// What was asked for.
    pub requested: u64,
    /// What was in use.
    pub used: u64,
    /// The limit.
    pub limit: u64,
}

/// Bytes set aside, for several charges to draw from. What is left goes back when it is dropped.
#[derive(Debug)]
pub struct BudgetReservation {
    budget: Budget,
    left: Account,
}

impl Budget {
    /// A budget without a parent.
    pub fn new(name: impl Into<String>, limit_bytes: u64) -> Self {
        Self::with_parent(name.into(), limit_bytes, None)
    }

    /// The one budget of a device in this process, however often it is opened. It begins with all of the device's
    /// memory as its limit. Simulated devices look alike and have separate memory, so each has a separate budget,
    /// which goes with the last clone.
    pub fn of_device(device: &DeviceInfo) -> Self {
        static REAL: OnceLock<Mutex<HashMap<Uuid, Budget>>> = OnceLock::new();
        static SIMULATED: OnceLock<Mutex<HashMap<DeviceKey, Weak<BudgetAccount>>>> = OnceLock::new();
        let make = || Self::new(device.name.clone(), device.total_memory_bytes);
        if device.kind != DeviceKind::Simulated {
            let mut known = REAL.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
            return known.entry(device.uuid).or_insert_with(make).clone();
        }
        let mut known = SIMULATED.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = known.get(&device.key).and_then(Weak::upgrade) {
            return Self { entry };
        }
        known.retain(|_, entry| entry.strong_count() > 0);
        let budget = make();
        known.insert(device.key, Arc::downgrade(&budget.entry));
        budget
    }

    /// An account below this one: what it is charged, this one is charged too.
    #[must_use]
    pub fn child(&self, name: impl Into<String>, limit_bytes: u64) -> Self {
        let child = Self::with_parent(name.into(), limit_bytes, Some(self.clone()));
        let mut children = self.entry.children.lock().unwrap_or_else(PoisonError::into_inner);
        children.retain(|child| child.strong_count() > 0);
        children.push(Arc::downgrade(&child.entry));
        child
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.entry.name
    }

    /// The limit.
    pub fn limit_bytes(&self) -> u64 {
        self.entry.account.limit()
    }

    /// Changes the limit. More than the new limit may be in use already; then nothing more fits until enough is given
    /// back.
    pub fn set_limit(&self, bytes: u64) {
        self.entry.account.set_limit(bytes);
    }

    /// Bytes in use.
    pub fn used_bytes(&self) -> u64 {
        self.entry.account.used()
    }

    /// The most that was in use.
    pub fn peak_bytes(&self) -> u64 {
        self.entry.account.peak()
    }

    /// Bytes that would fit now.
    pub fn room_bytes(&self) -> u64 {
        let own = self.limit_bytes().saturating_sub(self.used_bytes());
        self.entry.parent.as_ref().map_or(own, |parent| own.min(parent.room_bytes()))
    }

    /// The accounts directly below.
    pub fn children(&self) -> Vec<Self> {
        let children = self.entry.children.lock().unwrap_or_else(PoisonError::into_inner);
        children.iter().filter_map(Weak::upgrade).map(|entry| Self { entry }).collect()
    }

    /// Charges bytes to this account and all above.
    ///
    /// # Errors
    /// If they do not fit one of them; then none was charged.
    pub fn charge(&self, bytes: u64) -> Result<(), BudgetShortage> {
        match self.charge_as_it_is(bytes) {
            Err(_) if self.collect() > 0 => self.charge_as_it_is(bytes),
            answer => answer,
        }
    }

    /// Gives bytes back that were charged here. Of more than are in use only those are given back.
    pub fn refund(&self, bytes: u64) {
        let given = self.entry.account.refund(bytes);
        if let Some(parent) = &self.entry.parent {
            parent.refund(given);
        }
    }

    /// Sets bytes aside.
    ///
    /// # Errors
    /// If they do not fit.
    pub fn reserve(&self, bytes: u64) -> Result<BudgetReservation, BudgetShortage> {
        self.charge(bytes)?;
        Ok(BudgetReservation::of_charged(self, bytes))
    }

    /// The same as [`charge`](Self::charge), leaving what others have at hand where it is.
    pub(crate) fn charge_as_it_is(&self, bytes: u64) -> Result<(), BudgetShortage> {
        self.charge_chain(bytes)?;
        self.accounts(|account| account.settle(bytes));
        Ok(())
    }

    /// Registers a holder of bytes that are charged in advance.
    pub(crate) fn add_credit_holder(&self, hand: Weak<dyn CreditHolder>) {
        let mut hands = self.root().entry.hands.lock().unwrap_or_else(PoisonError::into_inner);
        hands.retain(|hand| hand.strong_count() > 0);
        hands.push(hand);
    }

    /// Has all holders give up what they charged in advance to this budget, those above and those beside it; returns how much
    /// that was.
    pub(crate) fn collect(&self) -> u64 {
        let hands = self.root().entry.hands.lock().unwrap_or_else(PoisonError::into_inner).clone();
        hands.iter().filter_map(Weak::upgrade).map(|hand| hand.give_up()).sum()
    }

    /// Whether both are the same account.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.entry, &other.entry)
    }

    /// Charges bytes to this account alone; those above were charged when the bytes were set aside.
    pub(crate) fn charge_here(&self, bytes: u64) -> Result<(), BudgetShortage> {
        self.try_charge(bytes)?;
        self.entry.account.settle(bytes);
        Ok(())
    }

    /// Takes [`charge_here`](Self::charge_here) back.
    pub(crate) fn refund_here(&self, bytes: u64) {
        self.entry.account.refund(bytes);
    }

    fn with_parent(name: String, limit_bytes: u64, parent: Option<Self>) -> Self {
        let account = Account::new(limit_bytes);
        let (children, hands) = (Mutex::default(), Mutex::default());
        Self { entry: Arc::new(BudgetAccount { name, account, parent, children, hands }) }
    }

    fn root(&self) -> &Self {
        self.entry.parent.as_ref().map_or(self, Self::root)
    }

    fn charge_chain(&self, bytes: u64) -> Result<(), BudgetShortage> {
        self.try_charge(bytes)?;
        let Some(parent) = &self.entry.parent else { return Ok(()) };
        parent.charge_chain(bytes).inspect_err(|_| self.entry.account.cancel(bytes))
    }

    fn try_charge(&self, bytes: u64) -> Result<(), BudgetShortage> {
        self.entry.account.try_charge(bytes).map_err(|(used, limit)| BudgetShortage {
            name: self.entry.name.clone(),
            requested: bytes,
            used,
            limit,
        })
    }

    fn accounts(&self, run: impl Fn(&Account)) {
        let mut next = Some(self);
        while let Some(budget) = next {
            run(&budget.entry.account);
            next = budget.entry.parent.as_ref();
        }
    }
}

impl BudgetReservation {
    /// Bytes that were charged to a budget for this.
    pub(crate) fn of_charged(budget: &Budget, bytes: u64) -> Self {
        Self { budget: budget.clone(), left: Account::new(bytes) }
    }

    /// Draws bytes from what was set aside. They stay charged until they are given back with [`Budget::refund`].
    ///
    /// # Errors
    /// If less is left; then nothing was drawn.
    pub fn draw(&self, bytes: u64) -> Result<(), BudgetShortage> {
        let drawn = self.left.try_charge(bytes);
        drawn.map_err(|(used, limit)| BudgetShortage {
            name: format!("set aside of {}", self.budget.name()),
            requested: bytes,
            used,
            limit,
        })?;
        self.left.settle(bytes);
        Ok(())
    }

    /// Puts bytes back that were drawn. Of more than were drawn only those are put back.
    pub fn put_back(&self, bytes: u64) {
        self.left.refund(bytes);
    }

    /// What is left.
    pub fn left_bytes(&self) -> u64 {
        self.left.limit() - self.left.used()
    }

    /// The budget it was taken from.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }
}

impl Drop for BudgetReservation {
    fn drop(&mut self) {
        self.budget.refund(self.left_bytes());
    }
}

impl fmt::Debug for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} of {}", self.name(), self.used_bytes(), self.limit_bytes())
    }
}

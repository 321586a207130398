//! Values that layers above the runtime keep with it.

use std::any::{Any, TypeId};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::counters::{Counted, Numbers};

/// At most one value of each type. The runtime drops them when it ends and does not know what they are.
#[derive(Default)]
pub(crate) struct Extensions {
    values: Mutex<Vec<Extension>>,
}

struct Extension {
    key: TypeId,
    value: Arc<dyn Any + Send + Sync>,
    /// Adds the numbers of the value to others.
    count: fn(&dyn Any, &mut Numbers),
}

impl Extensions {
    /// The value of a type, made now if there is none. `make` must not ask for an extension itself.
    pub(crate) fn get_or_insert_with<T: Counted + Any + Send + Sync>(
        &self,
        make: impl FnOnce() -> T,
    ) -> Arc<T> {
        let mut values = self.values();
        if let Some(value) = find(&values) {
            return value;
        }
        let value = Arc::new(make());
        values.push(Extension { key: TypeId::of::<T>(), value: value.clone(), count: count::<T> });
        value
    }

    /// The value of a type, if there is one.
    pub(crate) fn get<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        find(&self.values())
    }

    /// Adds the numbers of all values to others.
    pub(crate) fn add_counts(&self, numbers: &mut Numbers) {
        self.values().iter().for_each(|extension| (extension.count)(&*extension.value, numbers));
    }

    fn values(&self) -> MutexGuard<'_, Vec<Extension>> {
        self.values.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn find<T: Any + Send + Sync>(values: &[Extension]) -> Option<Arc<T>> {
    let known = values.iter().find(|extension| extension.key == TypeId::of::<T>())?;
    known.value.clone().downcast().ok()
}

fn count<T: Counted + Any>(value: &dyn Any, numbers: &mut Numbers) {
    if let Some(value) = value.downcast_ref::<T>() {
        value.add_to(numbers);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::Count;

    struct Modules(u64);
    struct Names(&'static str);

    impl Counted for Modules {
        fn add_to(&self, numbers: &mut Numbers) {
            numbers[Count::ModuleLoads as usize] += self.0;
        }
    }

    impl Counted for Names {
        fn add_to(&self, _: &mut Numbers) {}
    }

    #[test]
    fn each_type_has_one_value_that_is_made_once_and_counted() {
        let extensions = Extensions::default();
        let modules = extensions.get_or_insert_with(|| Modules(7));
        let names = extensions.get_or_insert_with(|| Names("x"));
        let again = extensions.get_or_insert_with::<Modules>(|| panic!("it is there"));
        assert!(Arc::ptr_eq(&modules, &again));
        assert_eq!((modules.0, names.0), (7, "x"));
        let mut numbers = [0; Count::ALL.len()];
        extensions.add_counts(&mut numbers);
        assert_eq!((numbers[Count::ModuleLoads as usize], numbers.iter().sum::<u64>()), (7, 7));
    }
}

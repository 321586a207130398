//! Values that layers above the runtime keep with it.

use std::any::{Any, TypeId};
use std::sync::{Arc, Mutex, PoisonError};

/// At most one value of each type. The runtime drops them when it ends and does not know what they are.
#[derive(Default)]
pub(crate) struct Extensions {
    values: Mutex<Vec<(TypeId, Arc<dyn Any + Send + Sync>)>>,
}

impl Extensions {
    /// The value of a type, made now if there is none. `make` must not ask for an extension itself.
    pub(crate) fn get_or_insert_with<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> Arc<T> {
        let mut values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        let known = values.iter().find(|(key, _)| *key == TypeId::of::<T>());
        if let Some(Ok(value)) = known.map(|(_, value)| value.clone().downcast()) {
            return value;
        }
        let value = Arc::new(make());
        values.push((TypeId::of::<T>(), value.clone()));
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_type_has_one_value_and_it_is_made_once() {
        let extensions = Extensions::default();
        let number = extensions.get_or_insert_with(|| 7_u32);
        let text = extensions.get_or_insert_with(|| String::from("x"));
        let again = extensions.get_or_insert_with::<u32>(|| panic!("it is there"));
        assert!(Arc::ptr_eq(&number, &again));
        assert_eq!((*number, text.as_str()), (7, "x"));
    }
}

//! Values that a program passes to its tools and layers, keyed by type: a database pool, a client, a session.

use std::any::{Any, TypeId, type_name};
use std::fmt;
use std::sync::Arc;

/// A map from type to value. Cheap to clone; an empty map does not allocate.
///
/// ```
/// use helve_core::Extensions;
///
/// let mut extensions = Extensions::default();
/// extensions.insert(5_u32);
/// assert_eq!(extensions.get::<u32>(), Some(&5));
/// assert_eq!(extensions.get::<String>(), None);
/// ```
#[derive(Clone, Default)]
pub struct Extensions(Option<Arc<[Extension]>>);

#[derive(Clone)]
struct Extension {
    id: TypeId,
    name: &'static str,
    value: Arc<dyn Any + Send + Sync>,
}

impl Extensions {
    /// Adds a value. It replaces a value of the same type.
    pub fn insert<T: Any + Send + Sync>(&mut self, value: T) {
        let new = Extension { id: TypeId::of::<T>(), name: type_name::<T>(), value: Arc::new(value) };
        self.0 = Some(self.all().filter(|known| known.id != new.id).cloned().chain([new.clone()]).collect());
    }

    /// Returns the value of type `T`, if there is one.
    #[must_use]
    pub fn get<T: Any + Send + Sync>(&self) -> Option<&T> {
        self.all().find(|known| known.id == TypeId::of::<T>())?.value.downcast_ref()
    }

    /// Returns whether there are no values.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    fn all(&self) -> impl Iterator<Item = &Extension> {
        self.0.as_deref().unwrap_or_default().iter()
    }
}

/// Writes only the types, because the values may be secret.
impl fmt::Debug for Extensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.all().map(|known| known.name)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_one_value_of_each_type() {
        let mut extensions = Extensions::default();
        assert!(extensions.is_empty());
        extensions.insert("first");
        let before = extensions.clone();
        extensions.insert("second");
        extensions.insert(3_u8);
        assert_eq!((extensions.get::<&str>(), extensions.get::<u8>()), (Some(&"second"), Some(&3)));
        assert_eq!((before.get::<&str>(), before.get::<u8>()), (Some(&"first"), None), "a clone is not changed");
        assert_eq!(format!("{extensions:?}"), r#"{"&str", "u8"}"#);
    }
}

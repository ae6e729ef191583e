//! Setters for structs that people fill in: typing a dot shows what there is to set. The structs are open as well, for those who write
//! `..Default::default()`.

/// Writes a setter for each field. It takes the value (`field: Type`), anything that becomes it (`into Type`), a value for an `Option`
/// (`some Type`), both (`some into Type`), or the items of a list (`list Type`).
#[doc(hidden)]
#[macro_export]
macro_rules! setters {
    ($owner:ident { $($rest:tt)* }) => {
        impl $owner { $crate::setters!(@ $($rest)*); }
    };
    (@) => {};
    (@ $(#[$doc:meta])* $field:ident: some into $value:ty, $($rest:tt)*) => {
        $(#[$doc])*
        #[must_use]
        pub fn $field(mut self, $field: impl Into<$value>) -> Self {
            self.$field = Some($field.into());
            self
        }
        $crate::setters!(@ $($rest)*);
    };
    (@ $(#[$doc:meta])* $field:ident: some $value:ty, $($rest:tt)*) => {
        $(#[$doc])*
        #[must_use]
        pub fn $field(mut self, $field: impl Into<Option<$value>>) -> Self {
            self.$field = $field.into();
            self
        }
        $crate::setters!(@ $($rest)*);
    };
    (@ $(#[$doc:meta])* $field:ident: into $value:ty, $($rest:tt)*) => {
        $(#[$doc])*
        #[must_use]
        pub fn $field(mut self, $field: impl Into<$value>) -> Self {
            self.$field = $field.into();
            self
        }
        $crate::setters!(@ $($rest)*);
    };
    (@ $(#[$doc:meta])* $field:ident: list $value:ty, $($rest:tt)*) => {
        $(#[$doc])*
        #[must_use]
        pub fn $field(mut self, $field: impl IntoIterator<Item = impl Into<$value>>) -> Self {
            self.$field = $field.into_iter().map(Into::into).collect();
            self
        }
        $crate::setters!(@ $($rest)*);
    };
    (@ $(#[$doc:meta])* $field:ident: $value:ty, $($rest:tt)*) => {
        $(#[$doc])*
        #[must_use]
        pub fn $field(mut self, $field: $value) -> Self {
            self.$field = $field;
            self
        }
        $crate::setters!(@ $($rest)*);
    };
}

//! All formats.

mod table;

pub(crate) use table::TABLE;

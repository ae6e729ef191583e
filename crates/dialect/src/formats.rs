//! The table of formats, in the order in which `auto` prefers them if a text is ambiguous.

mod called;
mod objects;
mod tagged;

use crate::format::{Format, Keys, Marks, Shape};

/// The default values of a format.
const PLAIN: Format = Format {
    name: "",
    who: "",
    section: Marks::NONE,
    call: Marks::NONE,
    shape: Shape::Object(Keys::new("name", "arguments")),
    list: false,
    bare: false,
    weak: false,
    noise: &[],
    thinks: &[],
    markup: &[],
};

/// Number of rows in the table.
pub(crate) const COUNT: usize = objects::ROWS.len() + tagged::ROWS.len() + called::ROWS.len();

/// Returns all rows of the table. A format with two spellings has two rows with the same name.
pub(crate) fn all() -> impl Iterator<Item = &'static Format> + Clone {
    objects::ROWS.iter().chain(&tagged::ROWS).chain(&called::ROWS)
}

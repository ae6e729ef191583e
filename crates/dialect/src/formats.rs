//! All formats, by the order in which `auto` prefers them where the text leaves a choice.

mod called;
mod objects;
mod tagged;

use crate::format::{Format, Keys, Marks, Shape};

/// A format with nothing special about it.
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

/// How many rows there are.
pub(crate) const COUNT: usize = objects::ROWS.len() + tagged::ROWS.len() + called::ROWS.len();

/// Every row. Formats that come in two spellings have two rows of one name.
pub(crate) fn all() -> impl Iterator<Item = &'static Format> + Clone {
    objects::ROWS.iter().chain(&tagged::ROWS).chain(&called::ROWS)
}

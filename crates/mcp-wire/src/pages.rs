//! Collects paginated lists, with limits against servers that send pages without end.

use std::collections::HashSet;

use serde_json::Value;

/// Limits on a paginated list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageLimits {
    /// Maximum number of pages.
    pub pages: usize,
    /// Maximum number of items on all pages together.
    pub items: usize,
}

impl Default for PageLimits {
    fn default() -> Self {
        Self { pages: 100, items: 1000 }
    }
}

/// Why a list is incomplete.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PageError {
    /// The response has no list.
    #[error("the response has no list `{0}`")]
    NoList(&'static str),
    /// The server sent the same cursor twice.
    #[error("the server repeats a cursor; the list may be incomplete")]
    RepeatedCursor,
    /// The list has more pages than the limit.
    #[error("the list has more than {0} pages; the rest is ignored")]
    Pages(usize),
    /// The list has more items than the limit.
    #[error("the list has more than {0} items; the rest is ignored")]
    Items(usize),
}

/// Collects the pages of a list.
#[derive(Debug)]
pub struct Pages {
    field: &'static str,
    limits: PageLimits,
    items: Vec<Value>,
    read: usize,
    cursors: HashSet<String>,
}

impl Pages {
    /// Creates an empty collection for a list whose items are in the field `field` of each response.
    #[must_use]
    pub fn new(field: &'static str, limits: PageLimits) -> Self {
        Self { field, limits, items: Vec::new(), read: 0, cursors: HashSet::new() }
    }

    /// Adds the items of a response. Returns the cursor of the next page, or `None` after the last page.
    ///
    /// # Errors
    /// Returns an error if the response has no list, a limit is exceeded, or a cursor repeats. The items so far are kept.
    pub fn take(&mut self, mut response: Value) -> Result<Option<String>, PageError> {
        let Some(Value::Array(items)) = response.get_mut(self.field).map(Value::take) else { return Err(PageError::NoList(self.field)) };
        let room = self.limits.items.saturating_sub(self.items.len());
        let too_many = items.len() > room;
        self.items.extend(items.into_iter().take(room));
        self.read += 1;
        if too_many {
            return Err(PageError::Items(self.limits.items));
        }
        let Some(Value::String(next)) = response.get_mut("nextCursor").map(Value::take) else { return Ok(None) };
        if self.read >= self.limits.pages {
            return Err(PageError::Pages(self.limits.pages));
        }
        if !self.cursors.insert(next.clone()) {
            return Err(PageError::RepeatedCursor);
        }
        Ok(Some(next))
    }

    /// Returns the items of all pages.
    #[must_use]
    pub fn items(self) -> Vec<Value> {
        self.items
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const FEW: PageLimits = PageLimits { pages: 3, items: 4 };

    /// Adds responses until the last one. Returns the number of items, and the error.
    fn gather(responses: impl IntoIterator<Item = Value>) -> (usize, Option<PageError>) {
        let mut pages = Pages::new("tools", FEW);
        for response in responses {
            match pages.take(response) {
                Ok(Some(_)) => {}
                Ok(None) => return (pages.items().len(), None),
                Err(error) => return (pages.items().len(), Some(error)),
            }
        }
        panic!("the last page was not the last");
    }

    #[test]
    fn pages_become_one_list() {
        let responses = [
            json!({"tools": [1, 2], "nextCursor": "a"}),
            json!({"tools": [], "nextCursor": ""}),
            json!({"tools": [3], "nextCursor": null}),
        ];
        assert_eq!(gather(responses), (3, None), "an empty cursor is one");
    }

    #[test]
    fn a_list_without_end_is_cut_and_what_came_is_kept() {
        let again = std::iter::repeat_n(json!({"tools": [1], "nextCursor": "a"}), 9);
        assert_eq!(gather(again), (2, Some(PageError::RepeatedCursor)));
        let new = (0..9).map(|number| json!({"tools": [1], "nextCursor": number.to_string()}));
        assert_eq!(gather(new), (3, Some(PageError::Pages(3))));
        assert_eq!(gather([json!({"tools": [1, 2, 3, 4, 5, 6]})]), (4, Some(PageError::Items(4))));
        assert_eq!(gather([json!({"tools": {}})]), (0, Some(PageError::NoList("tools"))));
        assert_eq!(gather([json!("nothing")]), (0, Some(PageError::NoList("tools"))));
    }
}

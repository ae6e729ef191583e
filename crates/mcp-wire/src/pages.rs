//! Lists that come in pages, from servers that may never stop.

use std::collections::HashSet;

use serde_json::Value;

/// How much of a list is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageLimits {
    /// So many pages.
    pub pages: usize,
    /// So many items in all.
    pub items: usize,
}

impl Default for PageLimits {
    fn default() -> Self {
        Self { pages: 100, items: 1000 }
    }
}

/// Why a list ends before its end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PageTrouble {
    /// It is none.
    #[error("there is no list `{0}` in the answer")]
    NoList(&'static str),
    /// The same page would come again.
    #[error("the server names a page a second time; the list may be incomplete")]
    Again,
    /// It has too many pages.
    #[error("the list has more than {0} pages; the rest is left out")]
    Pages(usize),
    /// It has too many items.
    #[error("the list has more than {0} items; the rest is left out")]
    Items(usize),
}

/// Gathers a list.
#[derive(Debug)]
pub struct Pages {
    field: &'static str,
    limits: PageLimits,
    items: Vec<Value>,
    taken: usize,
    seen: HashSet<String>,
}

impl Pages {
    /// A list that stands in this field of each answer.
    #[must_use]
    pub fn new(field: &'static str, limits: PageLimits) -> Self {
        Self { field, limits, items: Vec::new(), taken: 0, seen: HashSet::new() }
    }

    /// Takes an answer. Gives the cursor of the next page to ask for; nothing where this was the last one.
    ///
    /// # Errors
    /// Where the list ends early. What was taken before is kept.
    pub fn take(&mut self, mut answer: Value) -> Result<Option<String>, PageTrouble> {
        let Some(Value::Array(items)) = answer.get_mut(self.field).map(Value::take) else { return Err(PageTrouble::NoList(self.field)) };
        let room = self.limits.items.saturating_sub(self.items.len());
        let too_many = items.len() > room;
        self.items.extend(items.into_iter().take(room));
        self.taken += 1;
        if too_many {
            return Err(PageTrouble::Items(self.limits.items));
        }
        let Some(Value::String(next)) = answer.get_mut("nextCursor").map(Value::take) else { return Ok(None) };
        if self.taken >= self.limits.pages {
            return Err(PageTrouble::Pages(self.limits.pages));
        }
        if !self.seen.insert(next.clone()) {
            return Err(PageTrouble::Again);
        }
        Ok(Some(next))
    }

    /// What was taken.
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

    /// Takes answers until one is the last. Gives what was taken, and what went wrong.
    fn gather(answers: impl IntoIterator<Item = Value>) -> (usize, Option<PageTrouble>) {
        let mut pages = Pages::new("tools", FEW);
        for answer in answers {
            match pages.take(answer) {
                Ok(Some(_)) => {}
                Ok(None) => return (pages.items().len(), None),
                Err(trouble) => return (pages.items().len(), Some(trouble)),
            }
        }
        panic!("the last page was not the last");
    }

    #[test]
    fn pages_become_one_list() {
        let answers = [
            json!({"tools": [1, 2], "nextCursor": "a"}),
            json!({"tools": [], "nextCursor": ""}),
            json!({"tools": [3], "nextCursor": null}),
        ];
        assert_eq!(gather(answers), (3, None), "an empty cursor is one");
    }

    #[test]
    fn a_list_without_end_is_cut_and_what_came_is_kept() {
        let again = std::iter::repeat_n(json!({"tools": [1], "nextCursor": "a"}), 9);
        assert_eq!(gather(again), (2, Some(PageTrouble::Again)));
        let new = (0..9).map(|number| json!({"tools": [1], "nextCursor": number.to_string()}));
        assert_eq!(gather(new), (3, Some(PageTrouble::Pages(3))));
        assert_eq!(gather([json!({"tools": [1, 2, 3, 4, 5, 6]})]), (4, Some(PageTrouble::Items(4))));
        assert_eq!(gather([json!({"tools": {}})]), (0, Some(PageTrouble::NoList("tools"))));
        assert_eq!(gather([json!("nothing")]), (0, Some(PageTrouble::NoList("tools"))));
    }
}

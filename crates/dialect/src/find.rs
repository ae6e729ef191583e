//! Searches for several literals at once.

use crate::work;

/// Finds the first of several literals in a text, in one pass. Returns its position and its index in `marks`.
pub(crate) fn first_mark<S: AsRef<[u8]>>(bytes: &[u8], marks: &[S]) -> Option<(usize, usize)> {
    let mut firsts = [marks.first()?.as_ref()[0]; 3];
    let mut count = 1;
    for mark in marks {
        let first = mark.as_ref()[0];
        if !firsts[..count.min(firsts.len())].contains(&first) {
            if let Some(place) = firsts.get_mut(count) {
                *place = first;
            }
            count += 1;
        }
    }
    let begins = |byte: &u8| marks.iter().any(|mark| mark.as_ref()[0] == *byte);
    let mut at = 0;
    loop {
        let rest = &bytes[at..];
        let few = count <= firsts.len();
        let found = if few { memchr::memchr3(firsts[0], firsts[1], firsts[2], rest) } else { rest.iter().position(begins) };
        at += work::seen(rest, found)?;
        work::count(marks.len());
        if let Some(place) = marks.iter().position(|mark| bytes[at..].starts_with(mark.as_ref())) {
            return Some((at, place));
        }
        at += 1;
    }
}

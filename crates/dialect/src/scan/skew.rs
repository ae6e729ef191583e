//! Maps positions in the text to offsets in the input. Invalid UTF-8 in the input becomes U+FFFD, which may be longer.

use std::collections::VecDeque;

/// The length of the replacement character U+FFFD in UTF-8.
const WRITTEN: u8 = 3;
/// Maximum gap between two entries, because an entry stores the gap in 30 bits. Longer gaps take several entries.
const MAX_GAP: usize = (1 << 30) - 1;

/// The positions at which text and input differ in length. Each takes only four bytes, because all of the text may be such positions.
#[derive(Debug, Default)]
pub(super) struct Skews {
    /// For each position, the distance from the previous one, and in the lowest two bits the number of bytes in the input.
    places: VecDeque<u32>,
    first: usize,
    last: usize,
}

impl Skews {
    /// Records that `length` bytes of input were replaced with U+FFFD, which ends at position `at` of the text.
    pub fn push(&mut self, at: usize, length: usize) {
        let length = u8::try_from(length).unwrap_or(WRITTEN).min(WRITTEN);
        if length == WRITTEN {
            return;
        }
        let mut gap = at - self.last;
        while gap > MAX_GAP {
            self.add(MAX_GAP, WRITTEN);
            gap -= MAX_GAP;
        }
        self.add(gap, length);
        self.last = at;
    }

    fn add(&mut self, gap: usize, length: u8) {
        self.places.push_back(u32::try_from(gap).unwrap_or(0) << 2 | u32::from(length));
    }

    /// Removes the positions up to `upto`, and returns by how many bytes the text was longer than the input at these positions.
    #[inline]
    pub fn pass(&mut self, upto: usize) -> usize {
        if self.places.is_empty() { 0 } else { self.pass_places(upto) }
    }

    fn pass_places(&mut self, upto: usize) -> usize {
        let mut longer = 0;
        while let Some(place) = self.places.front() {
            let at = self.first + (place >> 2) as usize;
            if at > upto {
                break;
            }
            longer += usize::from(WRITTEN) - (place & 3) as usize;
            self.first = at;
            self.places.pop_front();
        }
        longer
    }
}

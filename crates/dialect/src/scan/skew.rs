//! Bytes that are no text: each run of them reads as U+FFFD, which is longer than what it stands for.

use std::collections::VecDeque;

/// The length of U+FFFD.
const WRITTEN: u8 = 3;
/// Gaps are kept in thirty bits; longer ones are kept in parts.
const MAX_GAP: usize = (1 << 30) - 1;

/// Where text and input differ in length. Held text may consist of such places, so each takes four bytes.
#[derive(Debug, Default)]
pub(super) struct Skews {
    /// How far each place is behind the one before it, and in the lowest two bits how many bytes stood there.
    places: VecDeque<u32>,
    first: usize,
    last: usize,
}

impl Skews {
    /// So many bytes of input read as U+FFFD, which ends at this place of the text.
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

    /// How much longer the text is than the input, in what came up to this place since the last time.
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

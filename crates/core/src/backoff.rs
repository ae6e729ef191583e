//! Exponential backoff between attempts.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};

/// Exponential backoff with jitter: each delay is about twice the previous one, up to a maximum.
///
/// ```
/// use std::time::Duration;
/// use helve_core::Backoff;
///
/// let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(5));
/// assert!(backoff.delay() < Duration::from_millis(300));
/// ```
#[derive(Debug)]
pub struct Backoff {
    delays: ExponentialBackoff,
    builder: ExponentialBuilder,
    longest: Duration,
}

impl Backoff {
    /// Creates a backoff that starts with the delay `first` and never exceeds `longest`.
    #[must_use]
    pub fn new(first: Duration, longest: Duration) -> Self {
        let builder = ExponentialBuilder::default().with_min_delay(first).with_max_delay(longest).with_jitter().without_max_times();
        Self { delays: builder.build(), builder, longest }
    }

    /// Returns the next delay.
    pub fn delay(&mut self) -> Duration {
        self.delays.next().map_or(self.longest, |delay| delay.min(self.longest))
    }

    /// Starts again with the first delay. Call this after a success.
    pub fn reset(&mut self) {
        self.delays = self.builder.build();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_to_the_longest_and_start_again() {
        let (first, longest) = (Duration::from_millis(100), Duration::from_secs(2));
        let mut backoff = Backoff::new(first, longest);
        let delays: Vec<_> = (0..20).map(|_| backoff.delay()).collect();
        assert!(delays[0] >= first && delays[0] <= first * 2, "{delays:?}");
        assert!(delays.iter().all(|delay| *delay <= longest), "{delays:?}");
        assert_eq!(delays[19], longest);
        backoff.reset();
        assert!(backoff.delay() <= first * 2);
    }
}

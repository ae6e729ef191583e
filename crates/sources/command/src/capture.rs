//! Reads the output of a program up to a limit.

use tokio::io::{AsyncRead, AsyncReadExt};

/// The error for a program that exceeded its output limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OutputTooLarge;

/// Reads a pipe to its end into `into`. Fails if there are more than `limit` bytes. A broken pipe counts as the end.
pub(crate) async fn read_all(pipe: impl AsyncRead + Unpin, into: &mut Vec<u8>, limit: u64) -> Result<(), OutputTooLarge> {
    let _ = pipe.take(limit.saturating_add(1)).read_to_end(into).await;
    if into.len() as u64 > limit { Err(OutputTooLarge) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn more_than_the_limit_is_neither_read_nor_kept() {
        let mut kept = Vec::new();
        assert_eq!(read_all(tokio::io::repeat(b'x'), &mut kept, 100_000).await, Err(OutputTooLarge));
        assert!(kept.capacity() < 300_000, "{}", kept.capacity());
        for (limit, result) in [(2, Err(OutputTooLarge)), (3, Ok(())), (u64::MAX, Ok(()))] {
            let mut kept = Vec::new();
            assert_eq!(read_all(&b"abc"[..], &mut kept, limit).await, result, "{limit}");
        }
    }
}

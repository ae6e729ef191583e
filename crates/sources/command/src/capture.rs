//! Keeps what a program writes, as much as is wanted and no more.

use tokio::io::{AsyncRead, AsyncReadExt};

/// The program wrote more than it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooMuch;

/// Reads everything, up to a limit. A pipe that breaks has ended.
pub(crate) async fn read_all(pipe: impl AsyncRead + Unpin, into: &mut Vec<u8>, limit: u64) -> Result<(), TooMuch> {
    let _ = pipe.take(limit.saturating_add(1)).read_to_end(into).await;
    if into.len() as u64 > limit { Err(TooMuch) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn more_than_the_limit_is_neither_read_nor_kept() {
        let mut kept = Vec::new();
        assert_eq!(read_all(tokio::io::repeat(b'x'), &mut kept, 100_000).await, Err(TooMuch));
        assert!(kept.capacity() < 300_000, "{}", kept.capacity());
        for (limit, result) in [(2, Err(TooMuch)), (3, Ok(())), (u64::MAX, Ok(()))] {
            let mut kept = Vec::new();
            assert_eq!(read_all(&b"abc"[..], &mut kept, limit).await, result, "{limit}");
        }
    }
}

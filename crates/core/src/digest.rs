//! SHA-256 digests of specs and of the calls that people approve.

use std::fmt;
use std::io::{self, Write};
use std::str::FromStr;

use sha2::{Digest as _, Sha256};

/// A SHA-256 digest, written as 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// Computes the digest of a list of parts. Each part is preceded by its length, so that different lists have different digests.
    #[must_use]
    pub fn of<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut hash = Sha256::new();
        for part in parts {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        Self(hash.finalize().into())
    }

    /// Returns the bytes of the digest.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// A writer that computes the digest of all bytes written to it.
#[derive(Debug, Default)]
pub struct Digester(Sha256);

impl Digester {
    /// Returns the digest of all bytes written so far.
    #[must_use]
    pub fn finish(self) -> Digest {
        Digest(self.0.finalize().into())
    }
}

impl Write for Digester {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        self.0.update(piece);
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut text = [0; 64];
        for (pair, byte) in text.chunks_exact_mut(2).zip(self.0) {
            pair.copy_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
        }
        f.write_str(std::str::from_utf8(&text).unwrap_or_default())
    }
}

/// The error for a string that is not 64 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a digest: expected 64 hexadecimal digits")]
pub struct DigestError;

impl FromStr for Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, DigestError> {
        if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(DigestError);
        }
        let mut bytes = [0; 32];
        for (byte, place) in bytes.iter_mut().zip((0..64).step_by(2)) {
            *byte = u8::from_str_radix(&text[place..place + 2], 16).map_err(|_| DigestError)?;
        }
        Ok(Self(bytes))
    }
}

crate::ids::text_form!(Digest);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_does_not_matter_where_a_text_is_cut() {
        let hash = |pieces: &[&[u8]]| {
            let mut digester = Digester::default();
            for piece in pieces {
                digester.write_all(piece).expect("it takes everything");
            }
            digester.finish()
        };
        assert_eq!(hash(&[b"ab", b"", b"c"]), hash(&[b"abc"]));
        assert_ne!(hash(&[b"abc"]), hash(&[b"abd"]));
    }

    #[test]
    fn digests_round_trip_and_parts_do_not_run_together() {
        let digest = Digest::of([b"ab".as_slice(), b"c"]);
        assert_eq!(digest.to_string().parse(), Ok(digest));
        assert_ne!(digest, Digest::of([b"a".as_slice(), b"bc"]));
        assert_eq!(Digest([0x0f; 32]).to_string(), "0f".repeat(32));
        assert_eq!("+f".repeat(32).parse::<Digest>(), Err(DigestError));
        assert_eq!("x".parse::<Digest>(), Err(DigestError));
    }
}

//! Names that nobody can guess: whoever knows one may use what it stands for.

/// A new one, in 32 hexadecimal digits; nothing where the machine has no random numbers.
#[must_use]
pub fn unguessable() -> Option<String> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).ok()?;
    Some(format!("{:032x}", u128::from_be_bytes(random)))
}

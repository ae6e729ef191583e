//! What nobody can guess: whoever knows it may use what it stands for.

/// A number; nothing where the machine has no random numbers.
#[must_use]
pub fn unguessable_number() -> Option<u128> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).ok()?;
    Some(u128::from_be_bytes(random))
}

/// A name, in 32 hexadecimal digits; nothing where the machine has no random numbers.
#[must_use]
pub fn unguessable() -> Option<String> {
    unguessable_number().map(|number| format!("{number:032x}"))
}

//! Random ids that cannot be guessed, because knowing an id gives access to what it identifies.

/// Returns a random number, or `None` if the system cannot generate one.
#[must_use]
pub fn random_number() -> Option<u128> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).ok()?;
    Some(u128::from_be_bytes(random))
}

/// Returns a random id of 32 hexadecimal digits, or `None` if the system cannot generate one.
#[must_use]
pub fn random_id() -> Option<String> {
    random_number().map(|number| format!("{number:032x}"))
}

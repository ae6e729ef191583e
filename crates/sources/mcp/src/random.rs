//! Random ids. Knowing one grants access to what it names.

/// A random number. Returns `None` if the system has no randomness.
#[must_use]
pub fn random_number() -> Option<u128> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).ok()?;
    Some(u128::from_be_bytes(random))
}

/// A random id of 32 hexadecimal digits. Returns `None` if the system has no randomness.
#[must_use]
pub fn random_id() -> Option<String> {
    random_number().map(|number| format!("{number:032x}"))
}

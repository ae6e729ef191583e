//! Suggestions ("did you mean …?"): finds the known name that is most similar to a misspelled one.

/// Maximum length of a name to compare, in bytes.
const LONGEST: usize = 64;
/// Maximum number of names to compare.
const MOST: usize = 2_000;

/// Returns the most similar known name, or `None` if no name is similar enough.
pub fn nearest<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // The comparison is quadratic, and a longer text is not a misspelled name.
    if written.len() > LONGEST {
        return None;
    }
    let wanted = written.to_lowercase();
    known
        .into_iter()
        .take(MOST)
        .filter(|name| name.len() <= LONGEST)
        .map(|name| (score(&wanted, &name.to_lowercase()), name))
        .filter(|(score, _)| *score >= 0.7)
        .max_by(|(a, left), (b, right)| a.total_cmp(b).then_with(|| right.cmp(left)))
        .map(|(_, name)| name)
}

fn score(wanted: &str, name: &str) -> f64 {
    let alike = strsim::normalized_damerau_levenshtein(wanted, name);
    // A name that is a whole word of the other (`weather` in `get_weather`) counts as similar, although many letters differ.
    let (short, long) = if wanted.len() < name.len() { (wanted, name) } else { (name, wanted) };
    if short.len() >= 4 && long.split(['_', '-', '.']).any(|word| word == short) { alike.max(0.75) } else { alike }
}

/// Returns the end of a message, ``; did you mean `name`?``, or an empty string.
#[must_use]
pub fn did_you_mean<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(written, known).map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_found_and_far_ones_are_not() {
        let known = ["get_time", "get_date", "calculate", "get_weather"];
        assert_eq!(nearest("get_tiem", known), Some("get_time"));
        assert_eq!(nearest("Calculate", known), Some("calculate"));
        assert_eq!(nearest("weather", known), Some("get_weather"));
        assert_eq!(nearest("launch", known), None);
        assert_eq!(nearest(&"x".repeat(1_000_000), known), None);
        assert_eq!(did_you_mean("calulate", known), "; did you mean `calculate`?");
    }
}

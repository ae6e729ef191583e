//! The table of results.

use std::fmt;

/// Rows of a Markdown table.
#[derive(Default)]
pub struct Report {
    rows: Vec<[String; 5]>,
}

impl Report {
    /// Adds a figure with its baseline and, where one is set, the most it may be.
    pub fn row(&mut self, what: &str, figure: f64, unit: &str, baseline: (&str, f64), target: Option<f64>) {
        let (name, bare) = baseline;
        let against = if bare > 0.0 { format!("{name}: {bare:.3} {unit} (×{:.1})", figure / bare) } else { name.to_owned() };
        let (target, verdict) = match target {
            Some(most) if figure <= most => (format!("≤ {most} {unit}"), "holds"),
            Some(most) => (format!("≤ {most} {unit}"), "MISSED"),
            None => ("–".to_owned(), "–"),
        };
        self.rows.push([what.to_owned(), format!("{figure:.3} {unit}"), against, target, verdict.to_owned()]);
    }

    /// Says what was not measured, and why.
    pub fn left_out(&mut self, what: &str, why: &str) {
        self.rows.push([what.to_owned(), "not measured".to_owned(), why.to_owned(), "–".to_owned(), "–".to_owned()]);
    }

    /// Adds a speed with its baseline and, where one is set, the least it may be.
    pub fn speed(&mut self, what: &str, figure: f64, unit: &str, baseline: (&str, f64), target: Option<f64>) {
        let (name, bare) = baseline;
        let against = if bare > 0.0 { format!("{name}: {bare:.1} {unit} (×{:.2})", figure / bare) } else { name.to_owned() };
        let (target, verdict) = match target {
            Some(least) if figure >= least => (format!("≥ {least:.1} {unit}"), "holds"),
            Some(least) => (format!("≥ {least:.1} {unit}"), "MISSED"),
            None => ("–".to_owned(), "–"),
        };
        self.rows.push([what.to_owned(), format!("{figure:.1} {unit}"), against, target, verdict.to_owned()]);
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| what | CPU | beside it | target | |\n|---|---|---|---|---|")?;
        self.rows.iter().try_for_each(|row| writeln!(f, "| {} |", row.join(" | ")))
    }
}

//! Explains why a value does not match a schema, in terms that a model can act on: location, expected value, actual value.
//!
//! The compiled schema decides whether a value is valid. This module walks the schema separately to find the reasons, because a full report
//! on an untrusted schema could take forever. The walk has a limited number of steps, and reports less if they run out.

use std::fmt;

use serde::Serialize;
use serde_json::Value;

use super::check::{enter, resolve};
use super::form::{Form, forms, is_of_type};
use crate::printable::{escape_line, shorten};
use crate::suggest;

/// Maximum number of problems to report.
const MOST: usize = 8;
/// Maximum length of a value in a report, in characters.
const SHOWN: usize = 60;
/// Maximum number of pairs of a value and a subschema to visit.
const STEPS: usize = 20_000;
/// Maximum number of names to compare for a suggestion.
const NAMES: usize = 200;

/// The value of [`Problem::got`] for a field that the schema does not have.
const UNKNOWN: &str = "an unknown argument";

/// One reason why a value does not match a schema.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The location in the value, as a JSON pointer; `/` is the whole value.
    pub path: String,
    /// What the schema allows at this location.
    pub expected: String,
    /// What the value has at this location.
    pub got: String,
    /// A suggestion of what was probably meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Problem {
    /// Returns the problem to report if a schema that was checked does not compile.
    pub(super) fn unusable() -> Self {
        Self { path: "/".into(), expected: "a usable schema".into(), got: "a schema that does not compile".into(), hint: None }
    }

    fn unclear(value: &Value) -> Self {
        Self { path: "/".into(), expected: "a value that matches the schema".into(), got: got(value), hint: None }
    }

    /// Returns the problem of an unknown field.
    fn unknown<'a>(path: &str, name: &str, known: impl Iterator<Item = &'a str> + Clone) -> Self {
        let names: Vec<_> = known.clone().take(20).map(|name| format!("`{}`", shown_name(name))).collect();
        let expected = if names.is_empty() { "no arguments".to_owned() } else { format!("only {}", names.join(", ")) };
        let hint = suggest::nearest(name, known.take(NAMES)).map(|near| format!("did you mean `{near}`?"));
        Self { path: pointer(&format!("{path}/{}", shown_name(name))), expected, got: UNKNOWN.into(), hint }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.got.as_str() {
            UNKNOWN => write!(f, "{}: unknown argument, expected {}", self.path, self.expected)?,
            got => write!(f, "{}: expected {}, got {got}", self.path, self.expected)?,
        }
        self.hint.iter().try_for_each(|hint| write!(f, " ({hint})"))
    }
}

/// Returns the problems of a value: fields that are not in `known`, and the mismatches with the schema unless `fits` is true.
pub(super) fn problems(schema: &Value, known: Option<&[Box<str>]>, value: &Value, fits: bool) -> Vec<Problem> {
    let mut walk = Walk { root: schema, problems: Vec::new(), steps: STEPS };
    if let (Some(known), Value::Object(fields)) = (known, value) {
        let names = known.iter().map(|name| &**name);
        for name in fields.keys().filter(|name| !known.iter().any(|known| **known == ***name)).take(MOST) {
            walk.problems.push(Problem::unknown("", name, names.clone()));
        }
    }
    if !fits {
        walk.visit(schema, value, &mut String::new(), known.is_some());
        if walk.problems.is_empty() {
            walk.problems.push(Problem::unclear(value));
        }
    }
    walk.problems
}

/// Formats a JSON pointer for people; the whole document is `/`.
pub(super) fn pointer(path: &str) -> String {
    if path.is_empty() { "/".to_owned() } else { shorten(&escape_line(path), 200) }
}

struct Walk<'s> {
    root: &'s Value,
    problems: Vec<Problem>,
    steps: usize,
}

impl<'s> Walk<'s> {
    fn is_over(&self) -> bool {
        self.steps == 0 || self.problems.len() >= MOST
    }

    fn report(&mut self, path: &str, expected: impl Into<String>, value: &Value) {
        if !self.is_over() {
            self.problems.push(Problem { path: pointer(path), expected: expected.into(), got: got(value), hint: None });
        }
    }

    /// Visits one value. `names_checked` is true if unknown fields were already reported.
    fn visit(&mut self, schema: &'s Value, value: &Value, path: &mut String, names_checked: bool) {
        if self.is_over() {
            return;
        }
        self.steps -= 1;
        let forms = forms(self.root, schema);
        let admitting: Vec<&Form<'s>> = forms.iter().filter(|form| form.admits(value)).collect();
        match (admitting.as_slice(), forms.as_slice()) {
            ([], []) => {}
            ([], all) => self.report_forms(all, value, path),
            ([form], _) => self.inside(form.schema, value, path, names_checked),
            // Several forms are possible. Their constants may tell which one was meant.
            (several, _)
                if several.len() == forms.len() && several.iter().all(|form| form.schema.get("const").is_none()) && value.is_object() =>
            {
                self.best_of(several, value, path);
            }
            _ => self.report(path, "a value of one of the allowed forms", value),
        }
    }

    /// Explains the one of several object forms whose constants match.
    fn best_of(&mut self, several: &[&Form<'s>], value: &Value, path: &mut String) {
        let meant: Vec<_> = several.iter().filter(|form| form.constants_fit(value)).collect();
        match meant.as_slice() {
            [form] => self.inside(form.schema, value, path, false),
            _ => self.report(path, "a value of one of the allowed forms", value),
        }
    }

    /// Reports the allowed types or values, if no form admits the value.
    fn report_forms(&mut self, forms: &[Form<'s>], value: &Value, path: &str) {
        let options: Vec<&Value> = forms.iter().flat_map(|form| form.list("enum").iter().chain(form.schema.get("const"))).collect();
        let of_listed_type = options.iter().any(|option| std::mem::discriminant(*option) == std::mem::discriminant(value));
        if !options.is_empty() && (of_listed_type || forms.iter().all(|form| form.types().next().is_none())) {
            let listed: Vec<_> = options.iter().take(20).map(|option| shorten(&escape_line(&option.to_string()), SHOWN)).collect();
            self.report(path, format!("one of {}", listed.join(", ")), value);
            if let (Some(text), Some(problem)) = (value.as_str(), self.problems.last_mut()) {
                let near = suggest::nearest(text, options.iter().filter_map(|option| option.as_str()).take(NAMES));
                problem.hint = near.map(|near| format!("did you mean \"{near}\"?"));
            }
            return;
        }
        let mut types: Vec<&str> = Vec::new();
        for name in forms.iter().flat_map(Form::types) {
            // A model that sent a value does not mean null.
            if name != "null" && !types.contains(&name) {
                types.push(name);
            }
        }
        let expected = if types.is_empty() { "null".to_owned() } else { types.join(" or ") };
        self.report(path, expected, value);
    }

    fn inside(&mut self, schema: &'s Value, value: &Value, path: &mut String, names_checked: bool) {
        match value {
            Value::Object(_) => self.fields(schema, value, path, names_checked),
            Value::Array(items) => self.items(schema, items, value, path),
            Value::String(text) => self.text(schema, text, value, path),
            Value::Number(_) => self.number(schema, value, path),
            Value::Null | Value::Bool(_) => {}
        }
        for part in schema.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            self.visit(part, value, path, true);
        }
        if let Some(target) = schema.get("$ref").and_then(Value::as_str).and_then(|reference| resolve(self.root, reference)) {
            self.visit(target, value, path, names_checked);
        }
    }

    fn fields(&mut self, schema: &'s Value, value: &Value, path: &mut String, names_checked: bool) {
        let Value::Object(fields) = value else { return };
        for name in schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
            if !fields.contains_key(name) && !self.is_over() {
                let expected = "a value for this required argument".to_owned();
                let path = pointer(&format!("{path}/{}", shown_name(name)));
                self.problems.push(Problem { path, expected, got: "nothing".into(), hint: None });
            }
        }
        let properties = schema.get("properties").and_then(Value::as_object);
        let closed =
            schema.get("additionalProperties").is_some_and(|more| *more == Value::Bool(false)) && schema.get("patternProperties").is_none();
        for (name, field) in fields {
            if self.is_over() {
                return;
            }
            let length = enter(path, &shown_name(name));
            match properties
                .and_then(|properties| properties.get(name))
                .or_else(|| schema.get("additionalProperties").filter(|more| more.is_object()))
            {
                Some(child) => self.visit(child, field, path, false),
                None if closed && !names_checked => {
                    let known = properties.into_iter().flatten().map(|(name, _)| name.as_str());
                    self.problems.push(Problem::unknown(&path[..length], name, known));
                }
                None => {}
            }
            path.truncate(length);
        }
    }

    fn items(&mut self, schema: &'s Value, items: &[Value], value: &Value, path: &mut String) {
        self.length(schema, ["minItems", "maxItems"], items.len(), "items", value, path);
        let first = schema.get("prefixItems").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        for (index, item) in items.iter().enumerate() {
            if self.is_over() {
                return;
            }
            let Some(child) = first.get(index).or_else(|| schema.get("items").filter(|items| items.is_object())) else { return };
            let length = enter(path, &index.to_string());
            self.visit(child, item, path, false);
            path.truncate(length);
        }
    }

    fn length(&mut self, schema: &Value, [least, most]: [&str; 2], length: usize, unit: &str, value: &Value, path: &str) {
        let count = |keyword: &str| schema.get(keyword).and_then(Value::as_u64);
        if let Some(least) = count(least).filter(|least| (length as u64) < *least) {
            self.report(path, format!("at least {least} {unit}"), value);
        }
        if let Some(most) = count(most).filter(|most| length as u64 > *most) {
            self.report(path, format!("at most {most} {unit}"), value);
        }
    }

    fn text(&mut self, schema: &'s Value, text: &str, value: &Value, path: &str) {
        self.length(schema, ["minLength", "maxLength"], text.chars().count(), "characters", value, path);
        if let Some(pattern) = schema.get("pattern").and_then(Value::as_str) {
            let alone = super::compile(&serde_json::json!({"pattern": pattern}));
            if alone.is_ok_and(|alone| !alone.is_valid(value)) {
                // Examples are clearer than a pattern.
                let examples: Vec<_> =
                    schema.get("examples").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).take(5).collect();
                let expected = if examples.is_empty() {
                    format!("text that matches `{}`", shorten(&escape_line(pattern), SHOWN))
                } else {
                    shorten(&escape_line(&format!("text such as `{}`", examples.join("`, `"))), SHOWN * 2)
                };
                self.report(path, expected, value);
            }
        }
    }

    fn number(&mut self, schema: &'s Value, value: &Value, path: &str) {
        let Some(number) = value.as_f64() else { return };
        let bound = |keyword: &str| schema.get(keyword).and_then(Value::as_f64).zip(schema.get(keyword));
        for (keyword, is_broken, before, after) in [
            ("minimum", (|number, bound| number < bound) as fn(f64, f64) -> bool, "", " or more"),
            ("maximum", |number, bound| number > bound, "", " or less"),
            ("exclusiveMinimum", |number, bound| number <= bound, "more than ", ""),
            ("exclusiveMaximum", |number, bound| number >= bound, "less than ", ""),
        ] {
            if let Some((_, limit)) = bound(keyword).filter(|(bound, _)| is_broken(number, *bound)) {
                self.report(path, format!("{before}{limit}{after}"), value);
            }
        }
        if let Some((step, shown)) = bound("multipleOf")
            && (number / step).fract() != 0.0
        {
            self.report(path, format!("a multiple of {shown}"), value);
        }
        if schema.get("type").is_some_and(|kind| kind == "integer") && !is_of_type("integer", value) {
            self.report(path, "integer", value);
        }
    }
}

fn shown_name(name: &str) -> String {
    shorten(&escape_line(&name.replace('~', "~0").replace('/', "~1")), SHOWN)
}

/// Describes a value briefly: its type, and for a scalar the value itself.
fn got(value: &Value) -> String {
    let shown = || shorten(&escape_line(&value.to_string()), SHOWN);
    match value {
        Value::Null => "null".into(),
        Value::Bool(_) => format!("boolean {}", shown()),
        Value::Number(number) if number.is_f64() => format!("number {}", shown()),
        Value::Number(_) => format!("integer {}", shown()),
        Value::String(_) => format!("string {}", shown()),
        Value::Array(items) => format!("array of {} items", items.len()),
        Value::Object(fields) => format!("object with {} fields", fields.len()),
    }
}

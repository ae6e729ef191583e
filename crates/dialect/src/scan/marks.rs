//! The marks of a tagged format, put together once.

use crate::format::{CallTag, Format, ParameterTag, Tags};

/// Every literal that reading a tagged call looks for.
#[derive(Debug)]
pub(crate) struct TagMarks {
    pub tags: &'static Tags,
    pub format: &'static Format,
    /// The call's own closing tag, where it has one.
    pub closing: Vec<String>,
    /// What opens another call.
    pub call_open: Vec<String>,
    /// What closes a call, from inside or outside.
    pub call_close: Vec<String>,
    /// What may follow the closing tag of a value.
    pub structure: Vec<String>,
    /// What closes the section, and what opens the next one.
    pub outer: Vec<String>,
    pub section_open: Vec<String>,
    /// How the next parameter begins.
    pub parameter_open: String,
    /// The tags of keys and values that stand apart.
    pub pair: Option<(String, String)>,
    /// The element with the tool's name.
    pub name: Option<(String, String)>,
    /// Parameters are elements of their own names.
    pub children: bool,
}

impl TagMarks {
    pub fn new(format: &'static Format, tags: &'static Tags) -> Self {
        let owned = |marks: &[&str]| marks.iter().map(|mark| (*mark).to_owned()).collect::<Vec<_>>();
        let open = |name: &str| format!("{}{name}{}", tags.open, tags.end);
        let close = |name: &str| format!("{}{name}{}", tags.close, tags.end);
        let closing = match tags.call {
            CallTag::Equals(stem) | CallTag::Attribute(stem, _) => vec![close(stem)],
            CallTag::Text(_) | CallTag::Child(_) => Vec::new(),
        };
        let call_open = match tags.call {
            CallTag::Equals(stem) => vec![format!("{}{stem}=", tags.open)],
            CallTag::Attribute(stem, _) => vec![format!("{}{stem} ", tags.open)],
            CallTag::Text(_) | CallTag::Child(_) => owned(format.call.open),
        };
        let parameter_open = match tags.parameter {
            ParameterTag::Equals(stem) => format!("{}{stem}=", tags.open),
            ParameterTag::Attribute(stem, _) => format!("{}{stem} ", tags.open),
            ParameterTag::Pair(key, _) => open(key),
            ParameterTag::Child(_) => tags.open.to_owned(),
        };
        let outer = owned(format.section.close);
        let call_close = [closing.clone(), owned(format.call.close)].concat();
        let wrappers = match tags.parameter {
            ParameterTag::Child(wrappers) => wrappers.iter().map(|name| close(name)).collect(),
            _ => vec![parameter_open.clone()],
        };
        Self {
            tags,
            format,
            structure: [wrappers, call_close.clone(), outer.clone()].concat(),
            outer,
            section_open: owned(format.section.open),
            pair: match tags.parameter {
                ParameterTag::Pair(key, value) => Some((close(key), open(value))),
                _ => None,
            },
            name: match tags.call {
                CallTag::Child(name) => Some((open(name), close(name))),
                _ => None,
            },
            children: matches!(tags.parameter, ParameterTag::Child(_)),
            closing,
            call_open,
            call_close,
            parameter_open,
        }
    }
}

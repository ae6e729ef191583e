//! The markers of a tagged format, prepared once.

use crate::format::{CallTag, Format, ParameterTag, Tags};

/// All literals that the parser of a tagged call searches for.
#[derive(Debug)]
pub(crate) struct TagMarks {
    pub tags: &'static Tags,
    pub format: &'static Format,
    /// The closing tag of the call itself, if the format has one.
    pub closing: Vec<String>,
    /// Literals that open a call.
    pub call_open: Vec<String>,
    /// Literals that close a call: its own closing tag, or a closing marker around it.
    pub call_close: Vec<String>,
    /// Literals that may follow the closing tag of a value.
    pub structure: Vec<String>,
    /// Markers that close the section.
    pub outer: Vec<String>,
    /// Markers that open a section.
    pub section_open: Vec<String>,
    /// The start of the opening tag of a parameter.
    pub parameter_open: String,
    /// The closing tag of a key and the opening tag of a value, if keys and values have separate tags.
    pub pair: Option<(String, String)>,
    /// The opening and the closing tag of the element with the tool name.
    pub name: Option<(String, String)>,
    /// Whether parameters are elements that are named after the parameter.
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

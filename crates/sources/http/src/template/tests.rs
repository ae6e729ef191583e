//! Results of templates for values of every kind.

use serde_json::json;

use super::*;

fn value(template: &str, variables: &Value) -> Result<Option<Value>, TemplateError> {
    Template::new(template).expect("a template").value(&Variables::new(variables))
}

fn written(template: &str, encoding: Encoding, variables: &Value) -> Result<String, TemplateError> {
    Template::text(template, encoding).expect("a template").written(&Variables::new(variables))
}

#[test]
fn a_lone_expression_keeps_its_type() {
    let all = json!({"n": 3, "big": u64::MAX, "f": 1.5, "one": 1.0, "b": false, "z": null, "t": "text", "list": [1, "a"],
        "o": {"b": 1, "a": {"c": [10, 20]}}, "名": "name"});
    for name in ["n", "big", "f", "one", "b", "z", "t", "list", "o", "名"] {
        assert_eq!(value(&format!("{{{{ {name} }}}}"), &all), Ok(Some(all[name].clone())), "{name}");
    }
    assert_eq!(value(" {{o.a.c[1]}} ", &all), Ok(Some(json!(20))));
    assert_eq!(value("{{ list | join('-') }}", &all), Ok(Some(json!("1-a"))));
    assert_eq!(value("{{ n + 1 }}", &all), Ok(Some(json!(4))));
}

#[test]
fn words_around_a_value_make_it_text() {
    let all = json!({"n": 3, "b": true, "z": null, "list": [1, "a"], "t": "<&>"});
    assert_eq!(value("n={{ n }} b={{ b }} z={{ z }} l={{ list }} t={{ t }}", &all), Ok(Some(json!("n=3 b=true z=null l=[1,\"a\"] t=<&>"))));
    assert_eq!(value("{{ n }}{{ n }}", &all), Ok(Some(json!("33"))));
    assert_eq!(value("{% for x in list %}({{ x }}){% endfor %}", &all), Ok(Some(json!("(1)(a)"))));
    assert_eq!(value("no {# comment #} here", &all), Ok(Some(json!("no {# comment #} here"))));
}

#[test]
fn what_is_left_out_leaves_out_an_expression_but_not_a_text() {
    let none = json!({});
    for template in ["{{ x }}", "{{ x.y.z }}", "{{ x | upper }}", "{{ x[0] }}", "{{ range }}", "{{ dict }}"] {
        assert_eq!(value(template, &none), Ok(None), "{template}");
    }
    assert_eq!(value("a {{ x }}", &none), Err(TemplateError::Missing));
    assert_eq!(value("a {{ x | default('b') }}", &none), Ok(Some(json!("a b"))));
}

#[test]
fn values_are_never_templates() {
    assert_eq!(value("{{ x }}!", &json!({"x": "{{ y }}{% raw %}", "y": "secret"})), Ok(Some(json!("{{ y }}{% raw %}!"))));
}

#[test]
fn values_cannot_leave_their_place_in_an_address() {
    let all = json!({"x": "../a?b=c#d e/é%2e&", "n": 7, "e": "", "l": [1]});
    let encoded = "..%2Fa%3Fb%3Dc%23d%20e%2F%C3%A9%252e%26";
    assert_eq!(written("/p/{{ x }}/{{ n }}", Encoding::Path, &all), Ok(format!("/p/{encoded}/7")));
    assert_eq!(written("q={{ x }}&e={{ e }}", Encoding::Query, &all), Ok(format!("q={encoded}&e=")));
    for (template, encoding) in [("/{{ e }}", Encoding::Path), ("/{{ l }}", Encoding::Path), ("q={{ l }}", Encoding::Query)] {
        assert!(matches!(written(template, encoding, &all), Err(TemplateError::Other(_))), "{template}");
    }
}

#[test]
fn mistakes_are_found_when_it_is_read() {
    for template in ["{{ x", "{{ x | nosuch }}", "{{ }}", "{{ x | upper | nosuch }}!", "{% for %}", "{{ x.y.z | nosuch }}"] {
        assert!(Template::new(template).is_err(), "{template}");
    }
}

#[test]
fn names_are_those_of_variables() {
    let names = |text: &str| Template::new(text).expect("a template").names().into_iter().collect::<Vec<_>>();
    assert_eq!(names("{{ a.b[c] | default(d) }}"), ["a", "c", "d"]);
    assert_eq!(names("x {% for i in items %}{{ i }}{{ loop.index }}{% endfor %} {{ range }}"), ["items", "range"]);
    assert!(names("plain").is_empty());
}

#[test]
fn endless_work_ends() {
    let list: Vec<u32> = (0..2_000).collect();
    let result = value("{% for a in x %}{% for b in x %}{% for c in x %}{{ c }}{% endfor %}{% endfor %}{% endfor %}", &json!({"x": list}));
    assert!(matches!(result, Err(TemplateError::Other(_))), "{result:?}");
}

//! Which operations are imported, under which names, and errors of filters that match nothing.

use serde_json::{Value, json};

use super::*;

fn mistake(fields: &Value, document: &Value) -> (String, String, String) {
    let error = import_with(fields, document).expect_err("a mistake");
    (error.path, error.message, error.hint.unwrap_or_default())
}

#[test]
fn operations_are_chosen_by_name_pattern_and_tag() {
    for (fields, expected) in [
        (json!({"include": ["repos_get"]}), vec!["repos_get"]),
        (json!({"include": ["repos/get"]}), vec!["repos_get"]),
        (json!({"include": ["pulls_*"], "exclude": ["*_merge*", "pulls/list"]}), vec!["pulls_create", "pulls_get"]),
        (json!({"tags": ["gists"], "exclude": ["gists/*"]}), vec![]),
        (json!({"tags": ["search"]}), vec!["search_repos", "search_issues_and_pull_requests"]),
        (
            json!({"tags": ["search", "git"], "include": ["*tree*", "search/repos"]}),
            vec!["git_create_tree", "git_get_tree", "search_repos"],
        ),
        (json!({"include": ["nothing_like_it_*"]}), vec![]),
    ] {
        let mut found = import_with(&fields, &hosting()).map(|imported| names(&imported).join(" ")).expect("tools");
        let mut expected = expected.join(" ");
        for list in [&mut found, &mut expected] {
            let mut words: Vec<&str> = list.split_whitespace().collect();
            words.sort_unstable();
            *list = words.join(" ");
        }
        assert_eq!(found, expected, "{fields}");
    }
}

#[test]
fn what_was_not_asked_for_is_not_reported() {
    let imported = import_with(&json!({"include": ["users_*"]}), &hosting()).expect("tools");
    let skipped: Vec<&str> = imported.skipped.iter().map(|skipped| skipped.operation.as_str()).collect();
    assert_eq!(skipped, ["users/upload-avatar"]);
}

#[test]
fn deprecated_operations_come_by_name_only() {
    let by_pattern = import_with(&json!({"include": ["search_*"]}), &hosting()).expect("tools");
    assert_eq!(by_pattern.skipped[0].reason, "it is deprecated; import it with `include: [search_legacy]`");
    for name in ["search_legacy", "search/legacy"] {
        assert_eq!(names(&import_with(&json!({"include": [name]}), &hosting()).expect("tools")), ["search_legacy"]);
    }
}

#[test]
fn a_prefix_is_part_of_the_name_but_not_of_the_filters() {
    let imported = import_with(&json!({"prefix": "hub", "include": ["repos_get"]}), &hosting()).expect("tools");
    assert_eq!(names(&imported), ["hub_repos_get"]);
    let all = import_with(&json!({"prefix": "a_rather_long_prefix_for_a_test"}), &hosting()).expect("tools");
    check(&all);
    assert_eq!(mistake(&json!({"prefix": "My-API"}), &hosting()).0, "/prefix");
}

#[test]
fn wishes_that_nothing_fulfils_are_mistakes() {
    for (fields, path, message, hint) in [
        (
            json!({"include": ["repos_get", "repos_gett"]}),
            "/include/1",
            "the document has no operation `repos_gett`",
            "did you mean `repos_get`?",
        ),
        (
            json!({"include": ["issues/creat"]}),
            "/include/0",
            "the document has no operation `issues/creat`",
            "did you mean `issues/create`?",
        ),
        (json!({"include": ["launch"]}), "/include/0", "the document has no operation `launch`", ""),
        (json!({"tags": ["repos", "isues"]}), "/tags/1", "the document has no tag `isues`", "did you mean `issues`?"),
    ] {
        assert_eq!(mistake(&fields, &hosting()), (path.into(), message.into(), hint.into()));
    }
}

#[test]
fn other_documents_are_refused_with_a_hint() {
    for (document, message) in [
        (json!({"swagger": "2.0", "paths": {}}), "the document is Swagger 2.0; OpenAPI 3 is required"),
        (json!({"openapi": "3.0.3"}), "the document has no `paths`"),
        (json!({"openapi": "2.5", "paths": {}}), "OpenAPI 2.5 is not supported"),
        (json!({"paths": {}}), "not an OpenAPI document"),
        (json!([]), "not an OpenAPI document"),
        (json!("x"), "not an OpenAPI document"),
    ] {
        let (path, found, hint) = mistake(&json!({}), &document);
        assert_eq!((path.as_str(), found.as_str(), hint.is_empty()), ("/openapi", message, false));
    }
    // YAML parses the version as a number.
    assert!(import_with(&json!({}), &json!({"openapi": 3.1, "paths": {}})).is_ok());
}

#[test]
fn too_many_operations_are_a_mistake_only_if_all_are_wanted() {
    let paths: serde_json::Map<String, Value> = (0..1_200).map(|number| (format!("/p{number}"), json!({"get": {}}))).collect();
    let document = small(&Value::Object(paths));
    assert_eq!(mistake(&json!({}), &document).2, "select operations with `include` or `tags`");
    assert_eq!(import_with(&json!({"include": ["get_p1?"]}), &document).expect("tools").tools.len(), 10);
}

#[test]
fn the_address_comes_from_the_definition_or_the_document() {
    let given = import_with(&json!({"api_url": "https://test.example/base/"}), &hosting()).expect("tools");
    assert!(given.tools.iter().all(|tool| tool.api_url.starts_with("https://test.example/base/")));
    let at = |servers: Value| {
        let mut document = small(&json!({"/a": {"get": {}}}));
        document["servers"] = servers;
        import_with(&json!({}), &document).map(|imported| imported.tools[0].api_url.clone()).map_err(|error| (error.path, error.hint))
    };
    assert_eq!(at(json!([{"url": "http://x.example:8080/"}])), Ok("http://x.example:8080/a".into()));
    let wrong = ("/api_url".to_owned(), Some("set `api_url` to the base URL of the service".to_owned()));
    for servers in [
        json!([{"url": "/v1"}]),
        json!([]),
        json!(null),
        json!([{"url": "https://{host}/"}]),
        json!([{"url": "ftp://x.example"}]),
        json!([{"url": "https://x.example/{{ secret }}"}]),
        json!([{"url": "https://"}]),
    ] {
        assert_eq!(at(servers.clone()), Err(wrong.clone()), "{servers}");
    }
    assert_eq!(mistake(&json!({"api_url": "test.example"}), &hosting()).0, "/api_url");
}

use std::collections::HashSet;

use serde_json::{Value, json};

use super::super::document::Document;
use super::*;

fn names(document: &Value, room: usize) -> Vec<ToolName> {
    let document = Document::new(document).expect("a document");
    let listed = document.operations().expect("operations");
    allocate(&listed.operations, room).into_iter().map(|named| named.expect("a name")).collect()
}

fn name_of(method: &str, path: &str, id: Option<&str>) -> String {
    let operation = id.map_or_else(|| json!({}), |id| json!({"operationId": id}));
    names(&json!({"openapi": "3.0.3", "paths": {path: {method: operation}}}), MAX_NAME).remove(0).name
}

#[test]
fn words_are_found_in_any_case() {
    for (text, name) in [
        ("getPetById", "get_pet_by_id"),
        ("repos/list-for-user", "repos_list_for_user"),
        ("HTTPServer", "http_server"),
        ("listURLs", "list_urls"),
        ("getV2Users", "get_v2_users"),
        ("users.get_all__now", "users_get_all_now"),
        ("__init__", "init"),
        ("获取", ""),
        ("UPPER_CASE", "upper_case"),
    ] {
        assert_eq!(snake(text), name, "{text}");
    }
}

#[test]
fn operations_are_called_by_id_or_by_path() {
    for (method, path, id, name) in [
        ("get", "/x", Some("getPetById"), "get_pet_by_id"),
        ("get", "/x", Some("2fa/enable"), "call_2fa_enable"),
        ("get", "/pets/{id}/toys", None, "get_pets_toys_by_id"),
        ("get", "/pets", None, "get_pets"),
        ("delete", "/repos/{owner}/{repo}", Some("  "), "delete_repos_by_owner_repo"),
        ("post", "/", Some("作成"), "post"),
    ] {
        assert_eq!(name_of(method, path, id), name, "{method} {path} {id:?}");
    }
}

#[test]
fn clashes_are_settled_whatever_the_order() {
    let paths = json!({
        "/a": {"get": {"operationId": "do it"}, "post": {"operationId": "doIt"}},
        "/b": {"get": {"operationId": "do-it"}},
        "/c": {"get": {"operationId": "doItPost"}},
    });
    let forwards = names(&json!({"openapi": "3.1.0", "paths": paths.clone()}), MAX_NAME);
    let mut reversed: Vec<_> = paths.as_object().expect("paths").clone().into_iter().collect();
    reversed.reverse();
    let backwards = names(&json!({"openapi": "3.1.0", "paths": Value::Object(reversed.into_iter().collect())}), MAX_NAME);
    let sorted = |names: &[ToolName]| {
        let mut names: Vec<String> = names.iter().map(|named| named.name.clone()).collect();
        names.sort();
        names
    };
    assert_eq!(sorted(&forwards), sorted(&backwards));
    // The operation that is `do_it_post` anyway keeps its name, and the notes of the others say why theirs changed.
    let why: HashSet<bool> = forwards.iter().filter(|named| named.name != "do_it_post").map(|named| named.why.is_some()).collect();
    assert_eq!((forwards[3].name.as_str(), &forwards[3].why, why), ("do_it_post", &None, HashSet::from([true])));
    assert_eq!(sorted(&forwards), ["do_it_post", "get_a", "get_b", "post_a"]);
}

#[test]
fn methods_and_paths_tell_operations_apart_before_digits_do() {
    let called = |paths: Value| {
        let named = names(&json!({"openapi": "3.1.0", "paths": paths}), MAX_NAME);
        named.into_iter().map(|named| named.name).collect::<Vec<_>>()
    };
    assert_eq!(called(json!({"/a": {"get": {"operationId": "x"}, "put": {"operationId": "x"}}})), ["x_get", "x_put"]);
    assert_eq!(called(json!({"/a": {"get": {"operationId": "x"}}, "/a/{b}": {"get": {"operationId": "x"}}})), ["get_a", "get_a_by_b"]);
    let alike = called(json!({"/a/{b}/c": {"get": {}}, "/a/c/{b}": {"get": {}}}));
    assert!(alike.iter().all(|name| name.len() == "get_a_c_by_b_".len() + 6) && alike[0] != alike[1], "{alike:?}");
}

#[test]
fn long_names_are_cut_between_words() {
    let id = "actions/set-github-actions-default-workflow-permissions-organization";
    let names = names(&json!({"openapi": "3.0.0", "paths": {"/a": {"put": {"operationId": id}}, "/b": {"put": {"operationId": id}}}}), 40);
    assert!(names.iter().all(|named| named.name.len() <= 40 && named.why.is_some()), "{names:?}");
    assert_ne!(names[0].name, names[1].name);
    assert_eq!(cut("set_default_permissions", 20), "set_default");
    assert_eq!(cut("set_default_permissions", 11), "set_default");
    assert_eq!(cut("abcdefgh", 5), "abcde");
}

#[test]
fn prefixes_are_plain() {
    assert_eq!(room(None).ok(), Some(64));
    assert_eq!(room(Some("")).ok(), Some(64));
    assert_eq!(room(Some("hub")).ok(), Some(60));
    for (prefix, hint) in [("GitHub", "write `git_hub`"), ("my-api", "write `my_api`"), ("hub_", "write `hub`"), ("2x", "write `api_2x`")] {
        let error = room(Some(prefix)).expect_err("a mistake");
        assert_eq!((error.path.as_str(), error.hint.as_deref()), ("/prefix", Some(hint)));
    }
    assert!(room(Some(&"x".repeat(33))).is_err());
}

//! Cache keys are equal exactly where the calls are.

#![allow(clippy::expect_used, clippy::panic, reason = "a test that goes wrong should stop")]

use helve_core::json::canonical;
use helve_core::{Caller, ConversationId, Digest, Scope, SourceId};
use helve_tools::CacheKey;
use proptest::prelude::*;
use serde_json::Value;

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3i64..3).prop_map(Value::from),
        (-3i8..3).prop_map(|whole| Value::from(f64::from(whole))),
        (-1.0..1.0f64).prop_map(Value::from),
        "[a1\"\\\\,:]{0,3}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::hash_map("[ab\":]{0,2}", inner, 0..3).prop_map(|fields| fields.into_iter().collect()),
        ]
    })
}

/// Equality as JSON means it: numbers by value, objects without order.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b))),
        _ => a == b,
    }
}

fn key(arguments: &Value) -> CacheKey {
    CacheKey::new(&(Scope::Global, SourceId::from("s")), Digest::of([b"spec".as_slice()]), arguments, None)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn keys_are_equal_only_for_equal_arguments(a in value(), b in value()) {
        prop_assert_eq!(key(&a) == key(&b), same(&a, &b));
    }

    #[test]
    fn canonical_text_is_the_same_value(a in value()) {
        let back: Value = serde_json::from_str(&canonical(&a)).expect("JSON");
        prop_assert!(same(&a, &back));
        prop_assert_eq!(canonical(&a), canonical(&back));
    }
}

#[test]
fn tool_definition_source_and_caller_keep_keys_apart() {
    let (arguments, spec) = (Value::Null, Digest::of([b"spec".as_slice()]));
    let here = (Scope::Global, SourceId::from("s"));
    let plain = CacheKey::new(&here, spec, &arguments, None);
    assert_ne!(plain, CacheKey::new(&(Scope::Global, SourceId::from("t")), spec, &arguments, None));
    assert_ne!(plain, CacheKey::new(&(Scope::Device("d".into()), SourceId::from("s")), spec, &arguments, None));
    assert_ne!(plain, CacheKey::new(&here, Digest::of([]), &arguments, None));
    let caller = |conversation| Caller::default().conversation(conversation);
    let (one, two) = (caller(ConversationId::mint()), caller(ConversationId::mint()));
    let of = |caller: &Caller| CacheKey::new(&here, spec, &arguments, Some(caller));
    assert_ne!(of(&one), of(&two));
    assert_eq!(of(&one), of(&one.clone().run(helve_core::RunId::mint())), "another run of the same conversation");
}

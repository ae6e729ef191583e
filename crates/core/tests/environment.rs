//! Installed variables replace the real environment, once. Alone in its process, because that is for good.

use helve_core::environment;

#[test]
fn installed_variables_take_the_place_of_the_real_ones() {
    assert_eq!(environment::var_os("PATH"), std::env::var_os("PATH"), "nothing is installed yet");
    assert_eq!(environment::vars_os().len(), std::env::vars_os().count());
    assert!(environment::install([("ONE".into(), "1".into())]));
    assert_eq!((environment::var("ONE").as_deref(), environment::var("PATH")), (Some("1"), None));
    assert_eq!(environment::vars_os(), [("ONE".into(), "1".into())]);
    assert!(!environment::install([("ONE".into(), "2".into())]), "only once");
    assert_eq!(environment::var("ONE").as_deref(), Some("1"));
}

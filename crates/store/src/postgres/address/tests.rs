//! The TLS options of URLs, and their defaults.

use super::*;

fn mode(url: &str) -> SslMode {
    Address::read(url).expect("an address").config.get_ssl_mode()
}

#[test]
fn only_what_stays_on_the_machine_goes_unencrypted_unless_it_is_said() {
    for here in ["127.0.0.1", "localhost", "[::1]", "127.0.0.1,localhost", "%2Frun%2Fpostgresql", "db.localhost."] {
        assert_eq!(mode(&format!("postgres://me@{here}/x")), SslMode::Disable, "{here}");
    }
    for away in ["10.0.0.7", "db.example.org", "127.0.0.1,db.example.org", "localhost.example.org"] {
        assert_eq!(mode(&format!("postgres://me@{away}/x")), SslMode::Require, "{away}");
        assert_eq!(mode(&format!("postgres://me@{away}/x?sslmode=disable")), SslMode::Disable, "{away}");
    }
    assert_eq!(mode("postgres://me@localhost/x?hostaddr=10.0.0.7"), SslMode::Require, "another machine under that name");
    assert_eq!(mode("postgres://me@db.example.org/x?hostaddr=127.0.0.1"), SslMode::Disable, "a tunnel");
    let elsewhere = "postgres://me@%2Frun%2Fpostgresql/x?hostaddr=10.0.0.7";
    assert_eq!(mode(elsewhere), SslMode::Require, "no socket at all");
}

#[test]
fn what_is_said_holds() {
    for (said, expected) in [("prefer", SslMode::Prefer), ("require", SslMode::Require), ("verify-ca", SslMode::Require)] {
        assert_eq!(mode(&format!("postgres://me@127.0.0.1/x?sslmode={said}")), expected);
    }
    assert_eq!(mode("postgresql://me:what?@127.0.0.1/x?application_name=a&sslmode=verify-full"), SslMode::Require);
    assert_eq!(mode("postgres://me@%2Frun%2Fpostgresql/x?sslmode=require"), SslMode::Disable, "a socket has no TLS");
    assert_eq!(mode("host=db.example.org user=me sslmode=disable"), SslMode::Disable);
    assert_eq!(mode("host=db.example.org user=me"), SslMode::Require);
    let error = Address::read("host=db.example.org user=me password=hunter 22").err().expect("unreadable").to_string();
    assert!(error.contains("postgres://user") && !error.contains("22"), "{error}");
    let error = Address::read("postgres://me:hunter22@127.0.0.1/x?sslmode=allow").err().expect("unknown").to_string();
    assert!(error.contains("sslmode=allow") && error.contains("verify-full") && !error.contains("hunter22"), "{error}");
}

#[test]
fn the_rest_of_an_address_stays_as_it_is() {
    let (url, options) =
        split_options("postgres://me:a?b&sslmode=x@host/x?sslmode=require&options=-c%20a%3Db&sslrootcert=%2Fmy%20ca.pem&port=7");
    assert_eq!(url, "postgres://me:a?b&sslmode=x@host/x?options=-c%20a%3Db&port=7");
    assert_eq!(options, TlsOptions { mode: Some("require".into()), root: Some("/my ca.pem".into()) });
    let (url, options) = split_options("postgres://host/x?sslmode=require&sslrootcert=system");
    assert_eq!((&*url, options), ("postgres://host/x", TlsOptions { mode: Some("require".into()), root: None }));
    assert_eq!(split_options("postgres://host/x"), ("postgres://host/x".into(), TlsOptions::default()));
}

#[test]
fn an_authority_that_is_named_is_needed() {
    let error = Address::read("postgres://me@127.0.0.1/x?sslrootcert=/nowhere/ca.pem").err().expect("no file").to_string();
    assert!(error.contains("/nowhere/ca.pem"), "{error}");
    assert!(Address::read("postgres://me@127.0.0.1/x?sslrootcert=/nowhere/ca.pem&sslmode=disable").is_ok(), "it is not used");
}

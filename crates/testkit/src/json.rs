//! Comparing JSON.

use serde_json::{Map, Value};

/// Checks that two JSON values are equal, except for digits of fractions after the ninth.
pub fn assert_same(one: &Value, other: &Value, at: &str) {
    match (one, other) {
        (Value::Array(ones), Value::Array(others)) => {
            assert_eq!(ones.len(), others.len(), "{at}");
            ones.iter().zip(others).for_each(|(one, other)| assert_same(one, other, at));
        }
        (Value::Object(ones), Value::Object(others)) => {
            let keys = |map: &Map<String, Value>| map.keys().cloned().collect::<Vec<_>>();
            assert_eq!(keys(ones), keys(others), "{at}");
            ones.iter()
                .for_each(|(key, one)| assert_same(one, &others[key], &format!("{at}.{key}")));
        }
        (Value::Number(one), Value::Number(other)) => {
            let (one, other) = (one.as_f64().unwrap(), other.as_f64().unwrap());
            assert!((one - other).abs() <= 1e-8 * other.abs(), "{at}: {one}, {other}");
        }
        _ => assert_eq!(one, other, "{at}"),
    }
}

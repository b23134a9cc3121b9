//! A load is read as it was written.

use proptest::prelude::*;
use regatta_record::{Arrivals, BackgroundLoad, Burst, Drive, LoadShape};
use serde_json::json;
use std::num::NonZeroU32;

fn drives() -> impl Strategy<Value = Drive> {
    let number = || (1..=u32::MAX).prop_map(|n| NonZeroU32::new(n).unwrap());
    let arrivals = prop::sample::select(&Arrivals::ALL[..]);
    prop_oneof![
        Just(Drive::Closed),
        number().prop_map(|in_flight| Drive::Bounded { in_flight }),
        (number(), arrivals).prop_map(|(rate, arrivals)| Drive::Open { rate, arrivals }),
        Just(Drive::Churn),
        any::<(u32, u32)>()
            .prop_map(|(instances, requests)| Drive::Burst(Burst { instances, requests })),
    ]
}

fn shapes() -> impl Strategy<Value = LoadShape> {
    let beside = any::<Option<(u32, u32)>>()
        .prop_map(|beside| beside.map(|(connections, n)| BackgroundLoad { connections, n }));
    let rest = (any::<[u32; 5]>(), any::<[Option<u32>; 3]>(), beside);
    (drives(), rest).prop_map(|(drive, (numbers, [cores, requests, n], beside))| {
        let [connections, idle, stalled, passing, pipeline] = numbers;
        let closed = LoadShape::closed(connections, pipeline);
        LoadShape { idle, stalled, passing, drive, cores, requests, n, beside, ..closed }
    })
}

proptest! {
    #[test]
    fn a_load_is_read_as_it_was_written(load in shapes()) {
        let text = serde_json::to_string(&load).unwrap();
        prop_assert_eq!(serde_json::from_str::<LoadShape>(&text).unwrap(), load, "{}", text);
        let text = toml::to_string(&load).unwrap();
        prop_assert_eq!(toml::from_str::<LoadShape>(&text).unwrap(), load, "{}", text);
    }
}

#[test]
fn parameters_of_a_drive_are_keys_of_the_load() {
    let burst = Drive::Burst(Burst { instances: 2, requests: 3 });
    let load = LoadShape { drive: burst, requests: Some(4), ..LoadShape::closed(64, 1) };
    let expected = json!({
        "connections": 64, "idle": 0, "pipeline": 1, "drive": "burst",
        "burst": {"instances": 2, "requests": 3},
        "cores": null, "requests": 4, "n": null, "beside": null,
    });
    assert_eq!(serde_json::to_value(load).unwrap(), expected);
}

#[test]
fn a_load_without_a_drive_or_with_a_wrong_one_is_refused() {
    for (keys, message) in [
        ("", "missing field `drive`"),
        (r#","drive":"open""#, "missing field `rate`"),
        (r#","drive":"open","rate":0"#, "nonzero"),
        (r#","drive":"bounded""#, "missing field `in_flight`"),
        (r#","drive":"burst""#, "missing field `burst`"),
        (r#","drive":"random""#, "unknown variant `random`, expected one of `closed`, `bounded`"),
    ] {
        let text = format!(r#"{{"connections":64,"pipeline":1{keys}}}"#);
        let error = serde_json::from_str::<LoadShape>(&text).unwrap_err().to_string();
        assert!(error.contains(message), "{keys}: {error}");
    }
}
